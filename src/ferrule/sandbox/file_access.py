"""Which files the file tools, search, completion and checkpoints may read and write, and how they open them.

The rules are those of `ShellSandbox`: the same lists, search and precedence. In addition, nothing outside the allowed
folders is read, and nothing is created under a hidden or protected name.

A path is resolved when it is used, and then opened without following any link: see `open_beneath`. A link within the
allowed folders works; one that is swapped meanwhile is resolved anew, and never followed to where it wasn't checked.
"""

# Paths are strings here: resolved and compared by the hundred for each decision.
# ruff: noqa: PTH111, PTH118

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ferrule._util.terminal_text import escape_line
from ferrule.errors import FileAccessRefused, choose_advice
from ferrule.sandbox.git.repositories import find_written_repository
from ferrule.sandbox.hidden_paths import HIDDEN, OTHER_REPOSITORIES, PROTECTED
from ferrule.sandbox.open_beneath import NotRegularFile, OpenFolder, PathMoved, open_folder_beneath
from ferrule.sandbox.own_files import describe_own_file
from ferrule.sandbox.paths import follow_links, is_within, list_ancestors
from ferrule.sandbox.shell.access_plan import Access, AccessPlanner
from ferrule.sandbox.shell.settings import ShellSettings, make_planner, make_protected_paths
from ferrule.sandbox.shell.workspace_scan import WorkspaceScan

__all__ = ["AccessSnapshot", "FileAccess"]

_TRIES: Final = 50
_LONGEST_PATH: Final = 4096  # PATH_MAX


class FileAccess:
    """What may be read and written in a workspace and the folders `added` to it. Can be used from any thread."""

    def __init__(
        self,
        workspace: Path | str,
        added: Sequence[Path | str] = (),
        hidden: Sequence[str] = HIDDEN,
        protected: Sequence[str] = PROTECTED,
        *,
        visible: Sequence[str] = (),
        open_installation: Sequence[Path | str] = (),
    ) -> None:
        """The parameters are those of `ShellSettings`. Raises `SandboxInputError` for a folder that can't be used."""
        self._settings = ShellSettings(
            workspace,
            added=added,
            hidden=hidden,
            visible=visible,
            protected=protected,
            open_installation=open_installation,
        )
        self.folders: tuple[Path, ...] = (Path(self._settings.workspace), *map(Path, self._settings.added))
        """The real paths of the workspace and of the added folders."""
        self._planners: list[AccessPlanner] = []
        self._lock = threading.Lock()

    @property
    def workspace(self) -> Path:
        """The real path of the workspace, which relative paths are relative to."""
        return self.folders[0]

    def take_snapshot(self) -> AccessSnapshot:
        """Decide on all paths at once, from the files that exist now; for tools that visit many.

        Raises `SandboxUnavailable` or `SandboxInputError` if a folder can't be protected, as for a command there.
        """
        with self._lock:
            if not self._planners:
                planner = make_planner(self._settings, make_protected_paths(self._settings), (), can_cover=True)
                self._planners = list(planner.list_planners())
            return AccessSnapshot(self._planners[0].plan_files(), self._planners[0].scan)

    def resolve(self, path: str | os.PathLike[str]) -> str:
        """The absolute real path that a path leads to now, existing or not. Raises `FileAccessRefused` if invalid."""
        text = os.fspath(path)
        problem = _find_problem(text)
        if problem:
            raise FileAccessRefused(f"{describe_path(text) or repr(text)} isn't a usable path: {problem}")
        return os.path.realpath(self._make_absolute(text))

    def _make_absolute(self, path: str | os.PathLike[str]) -> str:
        text = os.fspath(path)
        return os.path.join(self.workspace, os.path.expanduser(text) if text.startswith("~/") else text)

    def describe(self, real: str | os.PathLike[str]) -> str:
        """A real path as it is shown: relative to the workspace if it is in it, control characters escaped."""
        text = os.fspath(real)
        workspace = str(self.workspace)
        return describe_path(os.path.relpath(text, workspace) if is_within(text, workspace) else text)

    def check(self, path: str | os.PathLike[str], access: Access, snapshot: AccessSnapshot | None = None) -> str:
        """Resolve a path that should be read or written and return the real one.

        Raises `FileAccessRefused` unless that is allowed. For a decision, not for opening: use `open_folder`.
        """
        real = self.resolve(path)
        snapshot = snapshot or self.take_snapshot()
        found = snapshot.decide(real)
        if found is Access.WRITE and access is Access.WRITE and snapshot.has_protected_link(self._make_absolute(path)):
            found = Access.READ
        if found is None:
            raise FileAccessRefused(self._explain_outside(path, real, access))
        if found is Access.HIDDEN:
            raise FileAccessRefused(self._explain_hidden(path, real))
        if access is Access.WRITE and found is not Access.WRITE:
            own = describe_own_file(real)
            reason = f"it is {own}" if own else "other programs run what is written there"
            raise FileAccessRefused(
                f"{self._describe_way(path, real)} is protected: it can be read but not changed by tools, since "
                f"{reason}. Ask the user to change it"
            )
        if access is Access.WRITE:
            self._check_repository(path, real, ())
        return real

    def check_together(self, reals: Collection[str]) -> None:
        """Raise `FileAccessRefused` if real paths, each of which may be written, would make up a git repository."""
        for real in reals:
            self._check_repository(real, real, reals)

    def _check_repository(self, path: str | os.PathLike[str], real: str, alongside: Collection[str]) -> None:
        """Raise `FileAccessRefused` if a write would change or complete a git repository that isn't named `.git`."""
        folder = self.find_folder(real)
        if folder is None or ".git" not in self._settings.protected:
            return
        repository = find_written_repository(real, str(folder), alongside)
        if repository is not None:
            raise FileAccessRefused(
                f"{self._describe_way(path, real)} is protected like .git: git takes {self.describe(repository)} for a "
                "repository, with this file in it, and runs programs that a repository names. Ask the user to change "
                "it, or use git itself by a command"
            )

    def can_read(self, path: str | os.PathLike[str]) -> bool:
        """Whether a path may be read; false if it is outside, hidden or invalid."""
        try:
            self.check(path, Access.READ)
        except FileAccessRefused:
            return False
        return True

    @contextmanager
    def open_folder(
        self,
        path: str | os.PathLike[str],
        access: Access = Access.READ,
        *,
        create: bool = False,
        snapshot: AccessSnapshot | None = None,
    ) -> Iterator[OpenFolder]:
        """Open the folder that a path lies in, following no link, for using the path's last name in it.

        `create` makes missing folders. Raises `FileAccessRefused`, and OSError if the path is in no folder. Whoever
        uses the name must not follow a link either (`O_NOFOLLOW`, a rename).
        """
        opened = self._open_folder(path, access, create, snapshot)
        with opened:
            yield opened

    def open_file(self, path: str | os.PathLike[str], *, snapshot: AccessSnapshot | None = None) -> int:
        """Open a regular file for reading and return its descriptor, which the caller closes.

        Raises `FileAccessRefused` if it may not be read or isn't a regular file, and OSError.
        """
        for _ in range(_TRIES):
            opened = self._open_folder(path, Access.READ, False, snapshot)
            try:
                with opened:
                    return opened.open_file()
            except PathMoved:
                continue
            except NotRegularFile as error:
                raise FileAccessRefused(f"{describe_path(os.fspath(path))} is {error}, not a file") from error
        raise self._give_up(path)

    def read_bytes(self, path: str | os.PathLike[str], *, snapshot: AccessSnapshot | None = None) -> bytes:
        """The content of a regular file. Raises like `open_file`."""
        with open(self.open_file(path, snapshot=snapshot), "rb") as file:  # noqa: PTH123 - a descriptor
            return file.read()

    def _open_folder(
        self, path: str | os.PathLike[str], access: Access, create: bool, snapshot: AccessSnapshot | None
    ) -> OpenFolder:
        for _ in range(_TRIES):
            real = self.check(path, access, snapshot)
            folder = self.find_folder(real)
            assert folder is not None
            try:
                return open_folder_beneath(str(folder), real, create=create)
            except PathMoved:
                continue
            except OSError as error:
                # A link may have taken the place of a folder since it was resolved.
                if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.ENOENT) and self.resolve(path) != real:
                    continue
                raise
        raise self._give_up(path)

    def find_folder(self, real: str) -> Path | None:
        """The innermost of the folders that a real path is in, if any."""
        found = [each for each in self.folders if is_within(real, str(each))]
        return max(found, key=lambda each: len(str(each)), default=None)

    def _give_up(self, path: str | os.PathLike[str]) -> FileAccessRefused:
        shown = describe_path(os.fspath(path))
        if Path(self.resolve(path)).is_symlink():  # what realpath leaves of links that lead to each other
            return FileAccessRefused(f"{shown} is a link that leads in a circle, so it names no file")
        return FileAccessRefused(f"{shown} is replaced again and again while it is being opened; try again later")

    def _describe_way(self, path: str | os.PathLike[str], real: str) -> str:
        shown, target = describe_path(os.fspath(path)), self.describe(real)
        is_same = os.path.normpath(os.path.join(self.workspace, os.fspath(path))) == real
        return shown if is_same else f"{shown}, which leads to {target},"

    def _explain_hidden(self, path: str | os.PathLike[str], real: str) -> str:
        shown, own = self._describe_way(path, real), describe_own_file(real)
        if own:
            return f"{shown} is hidden: it is {own}, which tools can't read or write. Ask the user for what you need"
        folder = self.find_folder(real)
        has_name = folder is None or self._planners[0].scan.find_hidden_name(real, str(folder)) is not None
        reason = (
            "files of its name may hold secrets"
            if has_name
            else "it may hold secrets (by the settings, a link with such a name, or since it can't be searched for any)"
        )
        setting = choose_advice("the argument `visible`", "`visible` under [code] in ferrule.toml")
        exception = f", or to show it by {setting}" if has_name else ""
        return (
            f"{shown} is hidden: {reason}, so tools can't read or write it. Ask the user for what you need of it"
            f"{exception}"
        )

    def _explain_outside(self, path: str | os.PathLike[str], real: str, access: Access) -> str:
        verb = "read" if access is Access.READ else "write"
        add = choose_advice("add its folder (added=[…])", "start again with --add-dir and its folder")
        return (
            f"cannot {verb} files outside the working directory {describe_path(str(self.workspace))}: "
            f"{self._describe_way(path, real).rstrip(',')}. The user can {add}"
        )


@dataclass(frozen=True, slots=True)
class AccessSnapshot:
    """The decisions on all paths, from the files that existed at one moment."""

    rules: Mapping[str, Mapping[str, Access]]
    """For each allowed folder, accesses by path; each applies below it as far as there is no deeper one."""
    _scan: WorkspaceScan

    def decide(self, real: str) -> Access | None:
        """What may be done with a real path, existing or not; None if it is outside of the allowed folders."""
        folder = max((each for each in self.rules if is_within(real, each)), key=len, default=None)
        if folder is None:
            return None
        rules = self.rules[folder]
        access = rules.get(real) or next(rules[each] for each in list_ancestors(real) if each in rules)
        if access is not Access.WRITE or real == folder:
            return access
        return self._judge_names(real, folder)

    def has_protected_link(self, path: str) -> bool:
        """Whether a path leads through a link with a protected name, or in a folder with one."""
        for link in follow_links(path)[:-1]:
            folder = max((each for each in self.rules if is_within(link, each)), key=len, default=None)
            if folder is not None and self._judge_names(link, folder) is Access.READ:
                return True
        return False

    def list_hidden(self) -> list[str]:
        """The real paths within the allowed folders that are hidden, each with everything below it."""
        return sorted(
            path
            for folder, rules in self.rules.items()
            for path, access in rules.items()
            if access is Access.HIDDEN and is_within(path, folder)
        )

    def _judge_names(self, real: str, folder: str) -> Access:
        """Judge a path without a rule by its names, since it may have appeared after the snapshot, or not yet."""
        below = real[len(folder.rstrip("/")) :].lower()
        if self._scan.protected.cover(below) or not set(below.split("/")).isdisjoint(OTHER_REPOSITORIES):
            return Access.READ
        return Access.HIDDEN if self._scan.find_hidden_name(real, folder) else Access.WRITE


def describe_path(text: str) -> str:
    """A path as it is shown in messages: bounded, in one line, with control characters and bad bytes escaped."""
    shown = escape_line(text)
    return shown if len(shown) <= 300 else f"{shown[:150]}…{shown[-100:]}"


def _find_problem(text: str) -> str:
    if not text.strip():
        return "it is empty"
    if "\0" in text:
        return "it holds a NUL character"
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        return "it holds half of a surrogate pair, which no file name can hold"
    if len(encoded) >= _LONGEST_PATH:
        return f"it has {len(encoded):,} bytes, more than the {_LONGEST_PATH - 1:,} that a path can have"
    return ""
