"""What one command may see and change, as resolved absolute paths; a back end enforces it."""

# Paths are strings here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH112, PTH116, PTH118, PTH119, PTH120

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.file_versions import Inode
from ferrule.sandbox.git.control_files import ControlFiles, MissingFile
from ferrule.sandbox.git.repositories import PLACEHOLDER_FILES
from ferrule.sandbox.hidden_paths import UNRESERVED, HiddenPaths
from ferrule.sandbox.installation import find_names
from ferrule.sandbox.own_files import list_hidden_files
from ferrule.sandbox.paths import LinkFollower, is_within_any, list_ancestors
from ferrule.sandbox.shell import placeholders
from ferrule.sandbox.shell.protected_paths import FoundPaths, ProtectedPaths, limit_paths
from ferrule.sandbox.shell.workspace_scan import ScanResult, WorkspaceScan, can_search

__all__ = ["REPLACED", "Access", "AccessPlan", "AccessPlanner", "Mode"]

_MAX_HIDDEN = 20_000  # each costs a mount; fs.mount-max is 100,000

REPLACED: tuple[str, ...] = ("/dev", "/proc", "/run", "/sys", "/tmp", "/var/tmp")
"""Host folders that no command sees; back ends replace them with their own where they can. `FULL` keeps the host's
temporary folders."""


class Mode(StrEnum):
    """`READ_ONLY`: all files are read-only. `WORKSPACE_WRITE`: the workspace can be written.

    `FULL`: every file that the user can write can be written. In every mode the temporary folder is writable, and
    hidden paths, protected paths and the network's rules apply.
    """

    READ_ONLY = "read-only"
    WORKSPACE_WRITE = "workspace-write"
    FULL = "full"


_BREADTH = (Mode.READ_ONLY, Mode.WORKSPACE_WRITE, Mode.FULL)


class Access(StrEnum):
    """What a command may do with a path and everything below it."""

    HIDDEN = "hidden"
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class AccessPlan:
    """One command's access to files."""

    mode: Mode
    workspace: str
    roots: tuple[str, ...]
    """The workspace and the folders added to it."""
    folder: str
    """The command's working directory."""
    scratch: str
    """The sandbox's own folder that replaces `/tmp`, kept between commands."""
    rules: tuple[tuple[str, Access], ...]
    """Sorted by path, starting with `/`: a rule applies to everything below it that has no deeper rule."""
    placeholders: tuple[str, ...]
    """Empty folders to create at protected paths that don't exist, so that nothing can be created there. Parents come
    first."""
    absent: tuple[str, ...]
    """Protected paths that don't exist and have no placeholder."""
    control_files: tuple[MissingFile, ...] = ()
    """Those of them that git would run or obey."""
    targets: tuple[str, ...] = ()
    """Paths that are protected since a link or a setting leads to them."""
    granted: tuple[str, ...] = ()
    """Protected paths that the command may write."""
    repositories: tuple[str, ...] = ()
    """The git repositories in the roots."""
    unsearched: tuple[str, ...] = ()
    """Folders hidden because there was too much to search in them."""
    hidden: tuple[str, ...] = ()
    """What is hidden in the roots since it may hold secrets."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """Hidden files, each with the copy that is shown in its place: see `TrackedFiles`."""


@dataclass(frozen=True, slots=True)
class _Protected:
    """The protected paths of all roots; see `FoundPaths`."""

    paths: tuple[str, ...]
    absent: frozenset[str]
    """Those of them that don't exist, or are placeholders."""
    control_files: tuple[MissingFile, ...]
    others: tuple[str, ...]
    targets: tuple[str, ...]


_SortedPaths: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], frozenset[str], tuple[str, ...]]
"""The protected paths that a command could write anyway; others; which of the first don't exist; those of which it
isn't known."""


class AccessPlanner:
    """Makes the `AccessPlan` of each command of one sandbox, from the files that exist at that moment."""

    def __init__(
        self,
        mode: Mode,
        hidden: Sequence[str],
        protected_paths: ProtectedPaths,
        readable: Sequence[str],
        *,
        can_cover: bool,
        added: Sequence[AccessPlanner] = (),
        scan_limit: int = 50_000,
    ) -> None:
        """`hidden` is a list as in `hidden_paths`, `readable` are resolved paths.

        `added` plan the folders that are used like the workspace. `scan_limit` is that of `WorkspaceScan`, for each.
        `can_cover`: the back end can protect a path inside a writable folder, and so one that doesn't exist yet.
        """
        self._can_cover = can_cover
        self.mode, self.workspace, self.readable = mode, protected_paths.workspace, readable
        self._protected_paths = protected_paths
        self._hidden_paths = HiddenPaths.parse(hidden, self.workspace)
        self._first_hidden: frozenset[str] | None = None
        self._plans: dict[object, tuple[object, AccessPlan]] = {}
        """The last plan for each kind of request, with what it was made from."""
        self._file_rules: tuple[object, dict[str, dict[str, Access]]] = (None, {})
        """What `plan_files` has returned last, with what it was made from."""
        self._other_names: tuple[frozenset[Inode], list[str]] = (frozenset(), [])
        """Files with hard links, and all their names in the roots."""
        self._sorted: tuple[object, _SortedPaths] = (None, ((), (), frozenset(), ()))
        """What `_sort_protected` has returned last, with what it was made from."""
        hidden_names, visible = self._hidden_paths.names, self._hidden_paths.visible
        self.scan = WorkspaceScan(self.workspace, hidden_names, self._protected_paths.names, scan_limit, visible)
        """Finds hidden and protected names in the workspace."""
        self._added = tuple(added)
        self._roots = (self.workspace, *(each.workspace for each in added))

    def list_planners(self) -> tuple[AccessPlanner, ...]:
        """This planner and those of the added folders."""
        return (self, *self._added)

    @property
    def is_large(self) -> bool:
        """Whether making a plan is slow enough to do it in a thread."""
        return any(each.scan.is_large for each in self.list_planners())

    def plan(self, state: str, folder: str | None, writable: Sequence[str], mode: Mode | None = None) -> AccessPlan:
        """Make the `AccessPlan` of a command that starts in `folder` and may write the protected paths `writable`.

        `state` is the sandbox's own folder, hidden except for its `tmp`; `mode` is one that allows less than the
        sandbox's, None for its own. The same object is returned again as long as nothing has changed. Raises
        `SandboxInputError` for an invalid request, `SandboxUnavailable` if a path can't be protected.
        """
        mode = self._narrow(mode)
        for each in self.list_planners():
            each._check_workspace(mode)
        if writable and mode is Mode.READ_ONLY:
            raise SandboxInputError("nothing can be made writable in read-only mode")
        granted = tuple(self._protected_paths.resolve_writable(writable))
        start, follower = self._resolve_folder(folder, mode), LinkFollower()
        scanned = self.scan_all()
        hidden = [path for paths in self._find_all_hidden(scanned, follower) for path in paths]
        protected = self._find_protected(scanned, follower, granted, mode)
        seen, request = (scanned, hidden, protected, state), (mode, granted)
        known, plan = self._plans.get(request, (None, None))
        if plan is None or known != seen:
            plan = self._make_plan(scanned, [*hidden, state], protected, granted, mode)
            plan = replace(plan, folder=start, scratch=os.path.join(state, "tmp"))
        elif plan.folder != start:
            plan = replace(plan, folder=start)
        self._plans[request] = seen, plan
        return plan

    def scan_all(self) -> tuple[ScanResult, ...]:
        """What the scan of each root finds now."""
        return tuple(each.scan.walk() for each in self.list_planners())

    def find_appeared(self, plan: AccessPlan, scanned: Sequence[ScanResult]) -> tuple[str, ...]:
        """Those of a plan's absent paths that exist now."""
        absent = frozenset(plan.absent)
        listed = frozenset[str]()
        if not any(one.linked_folders for one in scanned):
            listed = listed.union(*(each._protected_paths.listed for each in self.list_planners()))
        found = absent.intersection([path for one in scanned for path in one.protected])
        found = found.union(filter(os.path.lexists, absent.difference(listed)))
        return tuple([path for path in plan.absent if path in found])

    def plan_files(self) -> dict[str, dict[str, Access]]:
        """The rules for file tools, by root, as in `AccessPlan.rules`: without placeholders, for paths existing or not.

        Raises `SandboxInputError` or `SandboxUnavailable` like `plan`.
        """
        follower = LinkFollower()
        scanned = self.scan_all()
        found = self._find_protected(scanned, follower, (), self.mode)
        protected = [*found.paths, *found.others, *(each.way[-1] for each in found.control_files)]
        protected += self._find_targets_of_bare_repositories(scanned, follower)
        hidden = [(*paths, *list_hidden_files()) for paths in self._find_all_hidden(scanned, follower)]
        if self._file_rules[0] != (hidden, protected):
            rules = {
                each.workspace: dict(each._make_rules(paths, protected, (), self.mode))
                for each, paths in zip(self.list_planners(), hidden, strict=True)
            }
            self._file_rules = (hidden, protected), rules
        return self._file_rules[1]

    def _narrow(self, mode: Mode | None) -> Mode:
        if mode is None:
            return self.mode
        if _BREADTH.index(mode) > _BREADTH.index(self.mode):
            raise SandboxInputError(f"the mode {mode} allows more than the sandbox's own, {self.mode}")
        return mode

    def _check_workspace(self, mode: Mode) -> None:
        """Raise `SandboxUnavailable` if the workspace's mode keeps its owner, and so the sandbox, out."""
        status = os.stat(self.workspace)
        needed = 0o500 if mode is Mode.READ_ONLY else 0o700
        is_shut = status.st_uid == os.geteuid() and status.st_mode & needed != needed
        if is_shut or not can_search(self.workspace, status):
            raise SandboxUnavailable(
                f"no command can work in {self.workspace}, whose mode is {status.st_mode & 0o7777:04o}: give its "
                "owner access with `chmod u+rwx` outside of the sandbox"
            )

    def _find_all_hidden(self, scanned: Sequence[ScanResult], follower: LinkFollower) -> list[list[str]]:
        """What is hidden, for each planner."""
        return [each._find_hidden(one, follower) for each, one in zip(self.list_planners(), scanned, strict=True)]

    def _find_hidden(self, scanned: ScanResult, follower: LinkFollower) -> list[str]:
        found = limit_paths(scanned.hidden, self.workspace)
        if len(found) > _MAX_HIDDEN:
            raise SandboxUnavailable(
                f"{len(found):,} files and folders with hidden names (such as {found[0]}) are directly in the "
                f"workspace, more than the {_MAX_HIDDEN:,} that can be hidden one by one: move them into a folder"
            )
        hidden = [path for path in (*found, *self._hidden_paths.find_existing(follower)) if path != "/"]
        if self._first_hidden is None:
            # The files that ferrule uses are hidden only as long as it does.
            self._first_hidden = frozenset(hidden).difference(list_hidden_files())
        # A command may have deleted a link to a secret, but not the secret.
        hidden += filter(os.path.lexists, self._first_hidden.difference(hidden))
        if self.workspace in hidden:
            raise SandboxInputError(f"the workspace {self.workspace} is on the list of hidden paths: choose another")
        return hidden + limit_paths(scanned.unsearched, self.workspace)

    def _find_protected(
        self, scanned: Sequence[ScanResult], follower: LinkFollower, granted: Sequence[str], mode: Mode
    ) -> _Protected:
        """The protected paths that a command could otherwise write; outside of the roots, only existing ones."""
        if mode is Mode.READ_ONLY:
            return _Protected((), frozenset(), (), (), ())
        found = [
            each._protected_paths.find(one, follower, granted if each is self else (), self._roots)
            for each, one in zip(self.list_planners(), scanned, strict=True)
        ]
        linked = frozenset(inode for each in found for inode in each.linked)
        names = self._find_other_names(linked) if linked else []
        seen = scanned, found, names, granted, placeholders.list_paths()
        if self._sorted[0] != seen:
            self._sorted = seen, self._sort_protected(found, names, granted)
        inside, outside, absent, unlisted = self._sorted[1]
        absent = absent.union(path for path in unlisted if not os.path.lexists(path))
        if mode is Mode.FULL:
            inside = (*inside, *filter(os.path.lexists, outside))
        control_files = tuple(one for each in found for one in each.control_files)
        others = tuple(one for each in found for one in each.others)
        targets = tuple(one for each in found for one in each.targets)
        return _Protected(inside, absent, control_files, others, targets)

    def _sort_protected(
        self, found: Sequence[FoundPaths], names: Sequence[str], granted: Sequence[str]
    ) -> _SortedPaths:
        written = (*self._roots, *granted)
        below = tuple(f"{each}/" for each in written)
        paths = tuple(dict.fromkeys((*(path for each in found for path in each.protected), *names)))
        inside = tuple(path for path in paths if path.startswith(below) or path in written)
        absent = placeholders.list_paths().union(*(each.absent for each in found)).intersection(inside)
        existing = {path for each in found for path in each.existing}
        return (
            inside,
            tuple(path for path in paths if not path.startswith(below) and path not in written),
            absent,
            tuple(path for path in inside if path not in absent and path not in existing),
        )

    def _find_other_names(self, linked: frozenset[Inode]) -> list[str]:
        """All names that protected files with hard links have in the roots."""
        known, names = self._other_names
        if linked != known or not all(_read_inode(path) in linked for path in names):
            devices = {number: device for device, number in linked}
            is_protected = self._protected_paths.names.cover
            names = [
                path
                for root in self._roots
                for path in find_names(root, devices)
                if not is_protected(path[len(root) :].lower())
            ]
            self._other_names = linked, names
        return names

    def _find_targets_of_bare_repositories(self, scanned: Sequence[ScanResult], follower: LinkFollower) -> list[str]:
        """Where links among the settings and hooks of bare repositories lead, which commands may change."""
        found = ControlFiles(self._roots, follower)
        for path in (path for one in scanned for path in one.repositories):
            if not path.lower().endswith("/.git") and ".git" in self._protected_paths.names:
                found.add_parts(path)
        return [*found.protected, *(each.way[-1] for each in found.missing)]

    def _make_plan(
        self,
        scanned: Sequence[ScanResult],
        hidden: Sequence[str],
        protected: _Protected,
        granted: Sequence[str],
        mode: Mode,
    ) -> AccessPlan:
        """The plan, but for where the command starts and its temporary folder."""
        absent = [path for path in protected.paths if path in protected.absent]
        absent += [each.way[-1] for each in protected.control_files if each.may_be_reserved]
        writable_folders = (*self._roots, *granted)
        reserved = {path: found for path in absent if (found := self._list_placeholders(path, writable_folders))}
        # Landlock and Seatbelt prevent the creation of the paths in their rules.
        kept = {*reserved, *(() if self._can_cover else self._protected_paths.installation)}
        rule_paths = [path for path in protected.paths if path not in protected.absent or path in kept]
        rule_paths += [path for path in reserved if path not in rule_paths]
        unwritable_folders = {self._find_unwritable_folder(path) for path in absent if path not in reserved}
        rule_paths += [path for path in unwritable_folders if path is not None]
        rules = list(self._make_rules(hidden, rule_paths, granted, mode))
        unsearched = tuple(path for one in scanned for path in one.unsearched)
        hidden_paths = (path for path, access in rules if access is Access.HIDDEN and path not in unsearched)
        awaited = tuple(each for each in protected.control_files if each.way[-1] not in reserved)
        unreserved = (path for path in absent if path not in rule_paths)
        return AccessPlan(
            mode=mode,
            workspace=self.workspace,
            roots=self._roots,
            folder=self.workspace,
            scratch="",
            rules=tuple(_pin_folders(rules) if self._can_cover else rules),
            placeholders=tuple(dict.fromkeys(each for chain in reserved.values() for each in chain)),
            absent=tuple(dict.fromkeys((*unreserved, *protected.others, *(each.way[-1] for each in awaited)))),
            control_files=awaited,
            targets=protected.targets,
            granted=tuple(granted),
            repositories=tuple(path for one in scanned for path in one.repositories),
            unsearched=unsearched,
            hidden=tuple(path for path in hidden_paths if is_within_any(path, self._roots)),
        )

    def _make_rules(
        self, hidden: Iterable[str], protected: Sequence[str], granted: Sequence[str], mode: Mode
    ) -> Iterator[tuple[str, Access]]:
        """One rule per path, without those that change nothing or would expose what is in a hidden folder."""
        is_full = mode is Mode.FULL
        wanted = dict.fromkeys((*granted, *self._find_opened(mode)), Access.WRITE)
        wanted |= dict.fromkeys(self.readable, Access.READ)
        wanted |= dict.fromkeys(protected, Access.READ) | dict.fromkeys(hidden, Access.HIDDEN)
        wanted |= {each: Access.HIDDEN for each in REPLACED if not (is_full and each.endswith("tmp"))}
        wanted |= {"/": Access.WRITE if is_full else Access.READ}
        wanted |= dict.fromkeys(self._roots, Access.READ if mode is Mode.READ_ONLY else Access.WRITE)
        requested = {*self._roots, *granted, *self.readable}
        only_shown = set(self.readable).difference(protected)
        kept: dict[str, Access] = {}
        for path, access in sorted(wanted.items()):
            inherited = next((kept[each] for each in list_ancestors(path) if each in kept), None)
            if path in only_shown and access is Access.READ and inherited is Access.WRITE:
                continue  # `readable` never removes write access
            if access is not inherited and (inherited is not Access.HIDDEN or path in requested):
                kept[path] = access
                yield path, access

    def _list_placeholders(self, path: str, folders: Sequence[str]) -> list[str]:
        """What to create so that an empty folder takes a path's place, outermost first; empty if impossible.

        Also empty for what is a file by its name and part of neither a repository nor the installation: it would show
        up in listings; and for `UNRESERVED`. `folders` are those that the command may write.
        """
        name = os.path.basename(path)
        is_seen = "." in name and not name.startswith(".") and name not in PLACEHOLDER_FILES
        is_seen = is_seen and path not in self._protected_paths.installation
        is_seen = is_seen or os.path.relpath(path, self.workspace) in UNRESERVED
        if is_seen or not self._can_cover or not is_within_any(path, folders):
            return []
        missing: list[str] = []
        while placeholders.is_placeholder(path) or not os.path.lexists(path):
            missing.insert(0, path)
            path = os.path.dirname(path)
        is_folder = is_within_any(path, folders) and os.path.isdir(path) and os.path.realpath(path) == path
        return missing if is_folder and os.access(path, os.W_OK) else []

    def _find_unwritable_folder(self, path: str) -> str | None:
        """The nearest folder of a missing installation path, if its mode keeps its owner from creating a placeholder.

        Without a mount on the folder, a command could change the mode back.
        """
        if not self._can_cover or path not in self._protected_paths.installation:
            return None
        folder = next(
            each for each in list_ancestors(path) if os.path.lexists(each) and not placeholders.is_placeholder(each)
        )
        is_own = is_within_any(folder, self._roots) and os.stat(folder).st_uid == os.geteuid()
        return folder if is_own and not os.access(folder, os.W_OK) else None

    def _find_opened(self, mode: Mode) -> list[str]:
        """The paths that the user made writable, as far as the mode allows writing."""
        if mode is Mode.READ_ONLY:
            return []
        opened = self._protected_paths.opened
        return [path for path in opened if mode is Mode.FULL or is_within_any(path, self._roots)]

    def _resolve_folder(self, folder: str | None, mode: Mode) -> str:
        if folder is not None and (not isinstance(folder, str) or "\0" in folder):
            raise SandboxInputError(f"{folder!r} isn't a folder name")
        start = os.path.realpath(os.path.join(self.workspace, folder or "."))
        if mode is not Mode.FULL and not is_within_any(start, self._roots):
            raise SandboxInputError(f"the folder {folder!r} is outside of the workspace {self.workspace}")
        if not os.path.isdir(start):
            raise SandboxInputError(f"the folder {folder!r} doesn't exist, or isn't a folder")
        return start


def _pin_folders(rules: Sequence[tuple[str, Access]]) -> list[tuple[str, Access]]:
    """Add a rule for each writable folder above a hidden or protected path, although it changes no access.

    A folder with its own mount can't be renamed. Otherwise a command could move it to where it isn't searched for
    secrets, such as into `node_modules`.
    """
    found = dict(rules)
    for path, access in rules:
        passed: list[str] = []
        for folder in list_ancestors(path):
            if folder in found:
                if access is not Access.WRITE and found[folder] is Access.WRITE:
                    found |= dict.fromkeys(passed, Access.WRITE)
                break
            passed.append(folder)
    return sorted(found.items())


def _read_inode(path: str) -> Inode | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
