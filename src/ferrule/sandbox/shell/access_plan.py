"""What one command may see and change, as resolved absolute paths: decided here, enforced by a back end."""

# Paths are text here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH112, PTH116, PTH118, PTH119, PTH120

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.hidden_paths import HiddenPaths
from ferrule.sandbox.shell import placeholders
from ferrule.sandbox.shell.git_repositories import REDIRECT
from ferrule.sandbox.shell.protected_paths import ProtectedPaths, limit_paths
from ferrule.sandbox.shell.workspace_scan import WorkspaceScan, can_search
from ferrule.sandbox.visible_paths import is_within

__all__ = ["REPLACED", "Access", "AccessPlan", "AccessPlanner", "Mode", "list_ancestors"]

_MAX_HIDDEN = 20_000  # of which each costs a mount; fs.mount-max is 100,000

REPLACED: tuple[str, ...] = ("/dev", "/proc", "/run", "/sys", "/tmp", "/var/tmp")
"""The host's folders that no command sees; a back end puts something of its own there where it can. `FULL` has the
host's temporary folders."""


class Mode(StrEnum):
    """`READ_ONLY`: all files are read-only. `WORKSPACE_WRITE`: the workspace can be written.

    `FULL`: every file can be written that the user can write. In each of them the temporary folder is writable, and
    hidden places, protected places and the network's rules hold.
    """

    READ_ONLY = "read-only"
    WORKSPACE_WRITE = "workspace-write"
    FULL = "full"


class Access(StrEnum):
    """What a command may do with a path and all below it."""

    HIDDEN = "hidden"
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class AccessPlan:
    """One command's files."""

    mode: Mode
    workspace: str
    folder: str
    """Where the command starts."""
    scratch: str
    """The folder that stands in for `/tmp`: the sandbox's own, kept from one command to the next."""
    rules: tuple[tuple[str, Access], ...]
    """Sorted by path, from `/` on: a rule holds for what lies below, up to the next deeper rule."""
    placeholders: tuple[str, ...]
    """Folders that don't exist: empty ones stand in for what is protected and isn't there, so that nothing is put
    there. Each comes after the one that it lies in."""
    absent: tuple[str, ...]
    """Protected places that don't exist and have no such stand-in."""
    unsearched: tuple[str, ...] = ()
    """Folders that are hidden, since there was too much to be searched in them."""


class AccessPlanner:
    """Draws up the layout of each command of one sandbox, from what is there at that moment."""

    def __init__(
        self,
        mode: Mode,
        hidden: Sequence[str],
        protected_paths: ProtectedPaths,
        readable: Sequence[str],
        *,
        can_cover: bool,
    ) -> None:
        """`hidden` is a list as in `places`, `readable` are resolved paths.

        `can_cover`: the back end can protect a place within a folder that is writable as a whole, and so one that
        isn't there yet.
        """
        self._can_cover = can_cover
        self.mode, self.workspace, self.readable = mode, protected_paths.workspace, readable
        self._protected_paths = protected_paths
        self._hidden_paths = HiddenPaths.parse(hidden, self.workspace)
        self._first_hidden: frozenset[str] | None = None

    def scan(self, limit: int) -> WorkspaceScan:
        """A scan of the workspace for what the lists name."""
        return WorkspaceScan(self.workspace, self._hidden_paths.names, self._protected_paths.names, limit)

    def plan(self, scan: WorkspaceScan, state: str, folder: str | None, writable: Sequence[str]) -> AccessPlan:
        """The layout of a command that starts in `folder` and asked for the protected places `writable`.

        `state` is the sandbox's own folder, hidden but for its `tmp`. Raises `SandboxInputError` for what can't be
        asked for, `SandboxUnavailable` where a place can't be guarded.
        """
        self._check_workspace()
        found = scan.walk()
        hidden = self._find_hidden(found.hidden, state) + limit_paths(found.unsearched, self.workspace)
        if writable and self.mode is Mode.READ_ONLY:
            raise SandboxInputError("nothing can be made writable in read-only mode")
        granted = self._protected_paths.resolve_writable(writable)
        guarded = self._find_protected(found.protected, granted)
        absent = [path for path in guarded if placeholders.is_placeholder(path) or not os.path.lexists(path)]
        placeholders_by_path = {path: self._list_placeholders(path) for path in absent}
        # Landlock and Seatbelt keep from being made what they are told of.
        landlock_paths = () if self._can_cover else self._protected_paths.installation
        rule_paths = [
            path for path in guarded if path not in absent or placeholders_by_path[path] or path in landlock_paths
        ]
        unwritable_folders = {self._find_unwritable_folder(path) for path in absent if not placeholders_by_path[path]}
        rule_paths += [path for path in unwritable_folders if path is not None]
        rules = list(self._make_rules(hidden, rule_paths, granted))
        return AccessPlan(
            mode=self.mode,
            workspace=self.workspace,
            folder=self._resolve_folder(folder),
            scratch=os.path.join(state, "tmp"),
            rules=tuple(_pin_folders(rules) if self._can_cover else rules),
            placeholders=tuple(dict.fromkeys(each for chain in placeholders_by_path.values() for each in chain)),
            absent=tuple(path for path in absent if path not in rule_paths),
            unsearched=found.unsearched,
        )

    def _check_workspace(self) -> None:
        """Raises `SandboxUnavailable` where its mode shuts the owner out of the workspace, and its guards with them."""
        status = os.stat(self.workspace)
        needed = 0o500 if self.mode is Mode.READ_ONLY else 0o700
        is_shut = status.st_uid == os.geteuid() and status.st_mode & needed != needed
        if is_shut or not can_search(self.workspace, status):
            raise SandboxUnavailable(
                f"no command can work in {self.workspace}, whose mode is {status.st_mode & 0o7777:04o}: give it back "
                "to its owner, with `chmod u+rwx` outside of the sandbox"
            )

    def _find_hidden(self, found: Sequence[str], state: str) -> list[str]:
        found = limit_paths(found, self.workspace)
        if len(found) > _MAX_HIDDEN:
            raise SandboxUnavailable(
                f"{len(found):,} files and folders with names that are hidden ({found[0]} is one) lie directly in "
                f"the workspace, more than the {_MAX_HIDDEN:,} that are covered one by one: move them into a folder"
            )
        hidden = [path for path in (*found, *self._hidden_paths.find_existing(), state) if path != "/"]
        if self._first_hidden is None:
            self._first_hidden = frozenset(hidden)
        # A command may have deleted a link that told of a secret, and not the secret.
        hidden += filter(os.path.lexists, self._first_hidden.difference(hidden))
        if self.workspace in hidden:
            raise SandboxInputError(f"the workspace {self.workspace} is on the list of what is hidden: choose another")
        return hidden

    def _find_protected(self, found: Sequence[str], granted: Sequence[str]) -> list[str]:
        """The guards' places, as far as a command could write there; what is outside and absent is nobody's to make."""
        if self.mode is Mode.READ_ONLY:
            return []
        written = (self.workspace, *granted)
        return [
            path
            for path in self._protected_paths.list_protected_paths(found, granted)
            if any(is_within(path, each) for each in written) or (self.mode is Mode.FULL and os.path.lexists(path))
        ]

    def _make_rules(
        self, hidden: Iterable[str], guarded: Sequence[str], granted: Sequence[str]
    ) -> Iterator[tuple[str, Access]]:
        """One rule a path; those left out that change nothing, or would open what lies in a hidden folder."""
        is_full = self.mode is Mode.FULL
        wanted = dict.fromkeys((*granted, *self._find_opened()), Access.WRITE)
        wanted |= dict.fromkeys(self.readable, Access.READ)
        wanted |= dict.fromkeys(guarded, Access.READ) | dict.fromkeys(hidden, Access.HIDDEN)
        wanted |= {each: Access.HIDDEN for each in REPLACED if not (is_full and each.endswith("tmp"))}
        wanted |= {"/": Access.WRITE if is_full else Access.READ}
        wanted |= {self.workspace: Access.READ if self.mode is Mode.READ_ONLY else Access.WRITE}
        named = {self.workspace, *granted, *self.readable}
        only_shown = set(self.readable).difference(guarded)
        kept: dict[str, Access] = {}
        for path, access in sorted(wanted.items()):
            around = next((kept[each] for each in list_ancestors(path) if each in kept), None)
            if path in only_shown and access is Access.READ and around is Access.WRITE:
                continue  # to be shown takes nothing away
            if access is not around and (around is not Access.HIDDEN or path in named):
                kept[path] = access
                yield path, access

    def _list_placeholders(self, path: str) -> list[str]:
        """The folders to be made so that an empty one stands in for a path, the outermost first; none where none can.

        None does for what is a file by its name and not of the installation: whoever lists the folder would see it, and
        git fails where its redirect is a folder.
        """
        name = os.path.basename(path)
        is_seen = name == REDIRECT or ("." in name and not name.startswith("."))
        is_seen = is_seen and path not in self._protected_paths.installation
        if is_seen or not self._can_cover or not is_within(path, self.workspace):
            return []
        missing: list[str] = []
        while placeholders.is_placeholder(path) or not os.path.lexists(path):
            missing.insert(0, path)
            path = os.path.dirname(path)
        is_folder = is_within(path, self.workspace) and os.path.isdir(path) and os.path.realpath(path) == path
        return missing if is_folder and os.access(path, os.W_OK) else []

    def _find_unwritable_folder(self, path: str) -> str | None:
        """The folder around a missing path of the installation, where its mode lets its owner make no stand-in there.

        A command could change the mode back, where no mount on the folder keeps it from that.
        """
        if not self._can_cover or path not in self._protected_paths.installation:
            return None
        folder = next(
            each for each in list_ancestors(path) if os.path.lexists(each) and not placeholders.is_placeholder(each)
        )
        is_own = is_within(folder, self.workspace) and os.stat(folder).st_uid == os.geteuid()
        return folder if is_own and not os.access(folder, os.W_OK) else None

    def _find_opened(self) -> list[str]:
        """What was opened, as far as the mode lets anything be written there."""
        if self.mode is Mode.READ_ONLY:
            return []
        opened = self._protected_paths.opened
        return [path for path in opened if self.mode is Mode.FULL or is_within(path, self.workspace)]

    def _resolve_folder(self, folder: str | None) -> str:
        if folder is not None and (not isinstance(folder, str) or "\0" in folder):
            raise SandboxInputError(f"{folder!r} isn't the name of a folder")
        start = os.path.realpath(os.path.join(self.workspace, folder or "."))
        if self.mode is not Mode.FULL and not is_within(start, self.workspace):
            raise SandboxInputError(f"the folder {folder!r} is outside of the workspace {self.workspace}")
        if not os.path.isdir(start):
            raise SandboxInputError(f"the folder {folder!r} isn't there, or isn't a folder")
        return start


def _pin_folders(rules: Sequence[tuple[str, Access]]) -> list[tuple[str, Access]]:
    """The rules, and one for each writable folder on the way to what is hidden or protected, though it gives nothing.

    With a mount of its own a folder can't be renamed. Else a command could move it to where the next one isn't searched
    for secrets, such as into `node_modules`.
    """
    found = dict(rules)
    for path, access in rules:
        way: list[str] = []
        for folder in list_ancestors(path):
            if folder in found:
                if access is not Access.WRITE and found[folder] is Access.WRITE:
                    found |= dict.fromkeys(way, Access.WRITE)
                break
            way.append(folder)
    return sorted(found.items())


def list_ancestors(path: str) -> Iterator[str]:
    """The folders that a path lies in, the nearest first."""
    while path != "/":
        path = os.path.dirname(path)
        yield path
