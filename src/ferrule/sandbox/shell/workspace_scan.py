"""Finds paths to hide and protect in a workspace: one bounded walk, then cheap incremental ones."""

# Paths are strings here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH112, PTH113, PTH116, PTH118

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Collection, Container
from dataclasses import dataclass, field

from ferrule.sandbox.hidden_paths import holds_private_key, is_settled
from ferrule.sandbox.shell import placeholders
from ferrule.sandbox.shell.git_repositories import is_repository
from ferrule.sandbox.visible_paths import is_within

__all__ = ["ScanResult", "WorkspaceScan", "can_search"]

# They hold no secrets, and most of all folders.
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", ".tox", ".mypy_cache", ".ruff_cache"})
_SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/dev", "/proc", "/sys")


@dataclass(frozen=True, slots=True)
class ScanResult:
    """Absolute paths. For a link with a hidden name, `hidden` has its target."""

    hidden: tuple[str, ...]
    protected: tuple[str, ...]
    """Folders, files and links with a protected name."""
    repositories: tuple[str, ...] = ()
    """Git repositories: files, folders and links named `.git`, and folders with a bare repository."""
    unsearched: tuple[str, ...] = ()
    """Top-level folders whose search was abandoned, since together they hold too many, and folders whose modes prevent
    searching them, since a command could change the modes back."""


@dataclass(slots=True)
class _Folder:
    changed: int
    is_settled: bool
    folders: list[str]
    hidden: list[str]
    protected: list[str]
    repositories: list[str]
    bundles: dict[str, tuple[int, int]]
    """Certificate files without a private key, each with its mtime (ns) and size."""


@dataclass(slots=True)
class WorkspaceScan:
    """Caches each folder with its mtime, so that later walks read only what has changed.

    Links to folders are not followed: their targets are either in the workspace anyway or outside. `node_modules`,
    `site-packages` and caches are skipped.
    """

    workspace: str
    names: re.Pattern[str]
    """Matches hidden names."""
    protected: Container[str]
    """Lower-case names that are protected in any folder."""
    limit: int
    """The maximum number of folders to search."""
    visible: Collection[str] = ()
    """Paths that aren't hidden, whatever their names."""
    _folders: dict[str, _Folder] = field(default_factory=dict)
    _closed: list[str] = field(default_factory=list)
    """Folders that the last walk could not search."""

    @property
    def is_large(self) -> bool:
        """Whether a walk is slow enough to run in a thread."""
        return not self._folders or len(self._folders) > 300

    def walk(self) -> ScanResult:
        """Find everything with a hidden or protected name that exists now.

        The top-level folders are searched in turns, so that at the limit only the largest are unfinished.
        """
        seen: dict[str, _Folder] = {}
        self._closed = []
        top = self._visit(self.workspace, seen)
        waiting = deque([path] for path in (top.folders if top else ()))
        limit = self.limit + placeholders.count()
        while waiting and len(seen) < limit:
            branch = waiting.popleft()
            folder = self._visit(branch.pop(), seen)
            branch += folder.folders if folder else ()
            if branch:
                waiting.append(branch)
        self._folders = seen
        unsearched = {self._find_top_folder(branch[0]) for branch in waiting}
        hidden = [path for folder in seen.values() for path in folder.hidden]
        protected = [path for folder in seen.values() for path in folder.protected]
        repositories = [path for folder in seen.values() for path in folder.repositories]
        closed = tuple(sorted(unsearched.union(self._closed)))
        return ScanResult(tuple(hidden), tuple(protected), tuple(repositories), closed)

    def find_hidden_name(self, path: str, folder: str) -> str | None:
        """The path, or the part of it below `folder`, that a walk would hide for its name if it existed."""
        parts = path[len(folder.rstrip("/")) + 1 :].split("/")
        for number, name in enumerate(parts, 1):
            inner = "/".join((folder.rstrip("/"), *parts[:number]))
            if self.names.match(name) and inner not in self.visible and not _is_harmless(inner):
                return name
            if name in _SKIPPED:
                return None
        return None

    def _find_top_folder(self, path: str) -> str:
        name = path[len(self.workspace) + 1 :].partition("/")[0]
        return f"{self.workspace}/{name}"

    def _visit(self, path: str, seen: dict[str, _Folder]) -> _Folder | None:
        """A folder, from the cache or read anew; None if it is gone or can't be searched."""
        try:
            status = os.stat(path)
        except OSError:
            return None
        if not can_search(path, status):
            self._closed.append(path)
            return None
        changed = status.st_mtime_ns
        folder = self._folders.get(path)
        if (
            folder is None
            or folder.changed != changed
            or not folder.is_settled
            or any(_read_modification(each) != last for each, last in folder.bundles.items())
        ):
            folder = self._read_folder(path, changed)
        seen[path] = folder
        return folder

    def _read_folder(self, path: str, changed: int) -> _Folder:
        folder = _Folder(changed, is_settled(changed), [], [], [], [], {})
        try:
            entries = list(os.scandir(path))
        except OSError:
            return folder
        if is_repository({entry.name for entry in entries}):
            folder.repositories.append(path)
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            name = entry.name.lower()
            is_hidden = bool(self.names.match(name)) and entry.path not in self.visible
            if name in self.protected:
                folder.protected.append(entry.path)
            if name == ".git":
                folder.repositories.append(entry.path)
            if is_hidden:
                folder.hidden += _find_secrets(entry, is_folder, folder)
            elif is_folder and name != ".git" and entry.name not in _SKIPPED:
                folder.folders.append(entry.path)
        return folder


def can_search(path: str, status: os.stat_result) -> bool:
    """Whether a command could list and enter a folder; even as root it must obey modes."""
    if status.st_uid == os.geteuid():
        shift = 6
    else:
        shift = 3 if status.st_gid == os.getegid() or status.st_gid in os.getgroups() else 0
    wanted = stat.S_IROTH | stat.S_IXOTH
    if status.st_mode >> shift & wanted == wanted:
        return True
    # An ACL may let an ordinary user in.
    return os.geteuid() != 0 and os.access(path, os.R_OK | os.X_OK)


def _is_harmless(path: str) -> bool:
    """Whether a path with a hidden name holds no secret, as `_find_secrets` decides; true for a missing `*.pem`."""
    is_bundle = path.lower().endswith(".pem") and not os.path.isdir(path)
    return not holds_private_key(path) if is_bundle else os.path.lexists(os.path.join(path, "pyvenv.cfg"))


def _find_secrets(entry: os.DirEntry[str], is_folder: bool, folder: _Folder) -> list[str]:
    """What to hide for an entry with a hidden name: nothing, itself, or its target."""
    if is_folder:
        return [] if os.path.lexists(os.path.join(entry.path, "pyvenv.cfg")) else [entry.path]
    if entry.name.lower().endswith(".pem"):
        written = _read_modification(entry.path)
        if not holds_private_key(entry.path):
            folder.bundles[entry.path] = written
            return []
    if not entry.is_symlink():
        return [entry.path]
    target = os.path.realpath(entry.path)
    # A command may have made the link, which must not hide a folder or a program from the next one.
    is_private = os.path.isfile(target) and not any(is_within(target, each) for each in _SYSTEM_FOLDERS)
    return [target] if is_private else []


def _read_modification(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return -1, -1
    return found.st_mtime_ns, found.st_size
