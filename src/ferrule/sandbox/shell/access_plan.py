"""What one command may see and change, as resolved absolute paths; a back end enforces it."""

# Paths are strings here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH112, PTH116, PTH118, PTH119, PTH120

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.hidden_paths import UNRESERVED, HiddenPaths
from ferrule.sandbox.own_files import list_hidden_files
from ferrule.sandbox.shell import placeholders
from ferrule.sandbox.shell.git_repositories import PLACEHOLDER_FILES
from ferrule.sandbox.shell.protected_paths import ProtectedPaths, limit_paths
from ferrule.sandbox.shell.workspace_scan import ScanResult, WorkspaceScan, can_search
from ferrule.sandbox.visible_paths import is_within, is_within_any

__all__ = ["REPLACED", "Access", "AccessPlan", "AccessPlanner", "Mode", "list_ancestors"]

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
    granted: tuple[str, ...] = ()
    """Protected paths that the command may write."""
    repositories: tuple[str, ...] = ()
    """The git repositories in the roots."""
    unsearched: tuple[str, ...] = ()
    """Folders hidden because there was too much to search in them."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """Hidden files, each with the copy that is shown in its place: see `TrackedFiles`."""

    def list_hidden(self) -> list[str]:
        """What is hidden in the roots since it may hold secrets."""
        hidden = (path for path, access in self.rules if access is Access.HIDDEN and path not in self.unsearched)
        return [path for path in hidden if is_within_any(path, self.roots)]


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
        self._file_rules: tuple[object, tuple[tuple[str, Access], ...]] = (None, ())
        """What `plan_files` has returned last, and from which paths it made it."""
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
        sandbox's, None for its own. Raises `SandboxInputError` for an invalid request, `SandboxUnavailable` if a path
        can't be protected.
        """
        mode = self._narrow(mode)
        planners = self.list_planners()
        for each in planners:
            each._check_workspace(mode)
        found = [each.scan.walk() for each in planners]
        hidden = [path for each, one in zip(planners, found, strict=True) for path in each._find_hidden(one)]
        if writable and mode is Mode.READ_ONLY:
            raise SandboxInputError("nothing can be made writable in read-only mode")
        granted = self._protected_paths.resolve_writable(writable)
        protected = self._find_protected(found[0].protected, granted, mode)
        for each, one in zip(self._added, found[1:], strict=True):
            protected += each._find_protected(one.protected, (), mode)
        programs = [
            path
            for each, one in zip(planners, found, strict=True)
            for path in each._find_missing_programs(one.protected, mode)
        ]
        absent = [path for path in protected if placeholders.is_placeholder(path) or not os.path.lexists(path)]
        writable_folders = (*self._roots, *granted)
        placeholders_by_path = {path: self._list_placeholders(path, writable_folders) for path in absent}
        # Landlock and Seatbelt prevent the creation of the paths in their rules.
        landlock_paths = () if self._can_cover else self._protected_paths.installation
        rule_paths = [
            path for path in protected if path not in absent or placeholders_by_path[path] or path in landlock_paths
        ]
        unwritable_folders = {self._find_unwritable_folder(path) for path in absent if not placeholders_by_path[path]}
        rule_paths += [path for path in unwritable_folders if path is not None]
        rules = list(self._make_rules([*hidden, state], rule_paths, granted, mode))
        return AccessPlan(
            mode=mode,
            workspace=self.workspace,
            roots=self._roots,
            folder=self._resolve_folder(folder, mode),
            scratch=os.path.join(state, "tmp"),
            rules=tuple(_pin_folders(rules) if self._can_cover else rules),
            placeholders=tuple(dict.fromkeys(each for chain in placeholders_by_path.values() for each in chain)),
            absent=(*(path for path in absent if path not in rule_paths), *programs),
            granted=tuple(granted),
            repositories=tuple(path for one in found for path in one.repositories),
            unsearched=tuple(path for one in found for path in one.unsearched),
        )

    def find_repositories(self) -> list[str]:
        """The git repositories that are in the roots now."""
        return [path for each in self.list_planners() for path in each.scan.walk().repositories]

    def plan_files(self) -> tuple[tuple[str, Access], ...]:
        """The rules for file tools, as in `AccessPlan.rules`: without placeholders, for paths existing or not.

        Raises `SandboxInputError` or `SandboxUnavailable` like `plan`.
        """
        found = self.scan.walk()
        protected = self._find_protected(found.protected, (), self.mode)
        protected += self._find_missing_programs(found.protected, self.mode)
        hidden = (*self._find_hidden(found), *list_hidden_files())
        paths = (hidden, protected)
        if self._file_rules[0] != paths:
            self._file_rules = (paths, tuple(self._make_rules(hidden, protected, (), self.mode)))
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

    def _find_hidden(self, scanned: ScanResult) -> list[str]:
        found = limit_paths(scanned.hidden, self.workspace)
        if len(found) > _MAX_HIDDEN:
            raise SandboxUnavailable(
                f"{len(found):,} files and folders with hidden names (such as {found[0]}) are directly in the "
                f"workspace, more than the {_MAX_HIDDEN:,} that can be hidden one by one: move them into a folder"
            )
        hidden = [path for path in (*found, *self._hidden_paths.find_existing()) if path != "/"]
        if self._first_hidden is None:
            # The files that ferrule uses are hidden only as long as it does.
            self._first_hidden = frozenset(hidden).difference(list_hidden_files())
        # A command may have deleted a link to a secret, but not the secret.
        hidden += filter(os.path.lexists, self._first_hidden.difference(hidden))
        if self.workspace in hidden:
            raise SandboxInputError(f"the workspace {self.workspace} is on the list of hidden paths: choose another")
        return hidden + limit_paths(scanned.unsearched, self.workspace)

    def _find_protected(self, found: Sequence[str], granted: Sequence[str], mode: Mode) -> list[str]:
        """The protected paths that a command could otherwise write; outside the workspace, only existing ones."""
        if mode is Mode.READ_ONLY:
            return []
        written = (self.workspace, *granted)
        return [
            path
            for path in self._protected_paths.list_protected_paths(found, granted)
            if any(is_within(path, each) for each in written) or (mode is Mode.FULL and os.path.lexists(path))
        ]

    def _find_missing_programs(self, found: Sequence[str], mode: Mode) -> list[str]:
        """The programs that git's settings name and that a command could create."""
        return [] if mode is Mode.READ_ONLY else self._protected_paths.list_missing_programs(found)

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


def list_ancestors(path: str) -> Iterator[str]:
    """A path's parent folders, nearest first."""
    while path != "/":
        path = os.path.dirname(path)
        yield path
