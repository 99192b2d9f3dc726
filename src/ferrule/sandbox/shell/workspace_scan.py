"""Finds paths to hide and protect in a workspace: one bounded walk, then cheap incremental ones."""

# Paths are strings here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH112, PTH113, PTH115, PTH116, PTH118, PTH120

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field

from ferrule.sandbox.file_versions import Inode, Version, is_settled, make_version, read_version
from ferrule.sandbox.git.repositories import is_repository
from ferrule.sandbox.hidden_paths import ProtectedNames, holds_private_key
from ferrule.sandbox.paths import is_within, is_within_any
from ferrule.sandbox.shell import placeholders

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
    links: tuple[str, ...] = ()
    """Links with a protected name or in a protected folder, except in `.git`."""
    linked: tuple[tuple[str, Inode], ...] = ()
    """Files in such places that have other names too (hard links)."""
    linked_folders: tuple[str, ...] = ()
    """Links in the place of folders in which some names are protected, such as `.hg`."""


@dataclass(slots=True)
class _Folder:
    version: Version
    is_settled: bool
    is_closed: bool = False
    """Whether its mode prevents searching it."""
    folders: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    hidden_links: list[str] = field(default_factory=list)
    protected: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    linked: list[tuple[str, Inode]] = field(default_factory=list)
    linked_folders: list[str] = field(default_factory=list)
    repositories: list[str] = field(default_factory=list)
    shown: list[tuple[str, Version | None]] = field(default_factory=list)
    """Files that show that something isn't hidden, with their versions: certificates without a private key, and the
    `pyvenv.cfg` of a virtual environment."""


@dataclass(slots=True)
class WorkspaceScan:
    """Caches each folder with its version, so that later walks read only what has changed.

    Links to folders are not followed: their targets are either in the workspace anyway or outside. `node_modules`,
    `site-packages` and caches are skipped.
    """

    workspace: str
    names: re.Pattern[str]
    """Matches hidden names."""
    protected: ProtectedNames
    """Names that are protected in any folder."""
    limit: int
    """The maximum number of folders to search."""
    visible: Collection[str] = ()
    """Paths that aren't hidden, whatever their names."""
    _folders: dict[str, _Folder] = field(default_factory=dict)
    """Those that the last search visited, closed ones included."""
    _versions: list[tuple[str, Version]] | None = None
    """The same, if their versions can be relied on."""
    _with_shown: list[_Folder] = field(default_factory=list)
    _unfinished: frozenset[str] = frozenset()
    _targets: tuple[str, ...] = ()
    """Where links with hidden names led at the last walk: a link on the way can be replaced at any time."""
    _result: ScanResult | None = None

    @property
    def is_large(self) -> bool:
        """Whether a walk is slow enough to run in a thread."""
        return not self._folders or len(self._folders) > 300

    def walk(self) -> ScanResult:
        """Find everything with a hidden or protected name that exists now; the same object as before if unchanged."""
        if self._result is None or not self._is_unchanged():
            self._search()
            self._result = None
        links = (link for folder in self._folders.values() for link in folder.hidden_links)
        targets = tuple(target for target in map(_find_private_target, links) if target)
        if self._result is None or targets != self._targets:
            self._targets = targets
            self._result = self._summarize()
        return self._result

    def _is_unchanged(self) -> bool:
        """Whether no folder has changed since the last search."""
        if self._versions is None:
            return False
        try:
            for path, version in self._versions:
                # Inlined, since this is done for each folder around each command.
                status = os.stat(path)
                if (status.st_dev, status.st_ino, status.st_ctime_ns, status.st_size) != version:
                    return False
        except OSError:
            return False
        return all(map(_are_unchanged, self._with_shown))

    def _search(self) -> None:
        """Visit all folders, from the top: in turns, so that at the limit only the largest are unfinished."""
        seen: dict[str, _Folder] = {}
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
        is_settled = all(folder.is_settled for folder in seen.values())
        self._versions = [(path, folder.version) for path, folder in seen.items()] if is_settled else None
        self._with_shown = [folder for folder in seen.values() if folder.shown]
        self._unfinished = frozenset(self._find_top_folder(branch[0]) for branch in waiting)

    def _summarize(self) -> ScanResult:
        folders = self._folders.values()
        closed = self._unfinished.union(path for path, folder in self._folders.items() if folder.is_closed)
        return ScanResult(
            hidden=(*(path for folder in folders for path in folder.hidden), *self._targets),
            protected=tuple(path for folder in folders for path in folder.protected),
            repositories=tuple(path for folder in folders for path in folder.repositories),
            unsearched=tuple(sorted(closed)),
            links=tuple(path for folder in folders for path in folder.links),
            linked=tuple(each for folder in folders for each in folder.linked),
            linked_folders=tuple(path for folder in folders for path in folder.linked_folders),
        )

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
        """A folder, from the cache or read anew; None if it is gone."""
        try:
            status = os.stat(path)
        except OSError:
            return None
        folder = self._folders.get(path)
        version = make_version(status)
        if folder is None or folder.version != version or not folder.is_settled or not _are_unchanged(folder):
            folder = self._read_folder(path, status)
        seen[path] = folder
        return folder

    def _read_folder(self, path: str, status: os.stat_result) -> _Folder:
        folder = _Folder(make_version(status), is_settled(status.st_ctime_ns))
        folder.is_closed = not can_search(path, status)
        if folder.is_closed:
            return folder
        try:
            entries = list(os.scandir(path))
        except OSError:
            return folder
        if is_repository({entry.name for entry in entries}):
            folder.repositories.append(path)
        protecting = path
        while len(protecting) > len(self.workspace) and not self._is_protected(protecting):
            protecting = os.path.dirname(protecting)
        protecting = protecting if len(protecting) > len(self.workspace) else ""
        for entry in entries:
            self._add(entry, folder, protecting)
        return folder

    def _add(self, entry: os.DirEntry[str], folder: _Folder, protecting: str) -> None:
        """Add an entry to the folder that it is in; `protecting` is the protected folder that this is in, if any."""
        is_folder = entry.is_dir(follow_symlinks=False)
        name = entry.name.lower()
        is_protected = self._is_protected(entry.path)
        if is_protected:
            folder.protected.append(entry.path)
        if name == ".git":
            folder.repositories.append(entry.path)
        elif is_protected or protecting:
            _add_names(entry, folder, protecting)
        elif name in self.protected.folders and entry.is_symlink():
            folder.linked_folders.append(entry.path)
        if self.names.match(name) and entry.path not in self.visible and not _is_shown(entry, is_folder, folder):
            (folder.hidden_links if entry.is_symlink() else folder.hidden).append(entry.path)
        elif is_folder and name != ".git" and entry.name not in _SKIPPED:
            folder.folders.append(entry.path)

    def _is_protected(self, path: str) -> bool:
        return self.protected.include(path[len(self.workspace) :].lower())


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


def _add_names(entry: os.DirEntry[str], folder: _Folder, protecting: str) -> None:
    """Add a protected entry to those that can be reached by another name: links, and files with hard links."""
    with suppress(OSError):
        if entry.is_symlink():
            folder.links += [] if _stays_within(entry.path, protecting) else [entry.path]
        elif entry.is_file(follow_symlinks=False) and (status := entry.stat(follow_symlinks=False)).st_nlink > 1:
            folder.linked.append((entry.path, (status.st_dev, status.st_ino)))


def _stays_within(link: str, folder: str) -> bool:
    """Whether a link leads to a path in a folder that it is in, as far as no other link is on the way."""
    target = os.readlink(link)
    # Two dots after a name may be those of a folder elsewhere, which a link leads to.
    is_plain = ".." not in re.sub(r"^(\.{0,2}/)+", "", target).split("/")
    path = os.path.normpath(os.path.join(os.path.dirname(link), target))
    return bool(folder) and is_plain and is_within(path, folder)


def _is_shown(entry: os.DirEntry[str], is_folder: bool, folder: _Folder) -> bool:
    """Whether an entry with a hidden name holds no secret; what shows that is added to the folder."""
    if is_folder:
        evidence = os.path.join(entry.path, "pyvenv.cfg")
        is_shown = os.path.lexists(evidence)
    else:
        evidence = entry.path
        is_shown = entry.name.lower().endswith(".pem")
    version = read_version(evidence) if is_shown else None
    if is_shown and not is_folder:
        is_shown = not holds_private_key(entry.path)
    if is_shown:
        folder.shown.append((evidence, version))
    return is_shown


def _are_unchanged(folder: _Folder) -> bool:
    """Whether what a folder shows although its name is hidden is as it was."""
    return all(version is not None and read_version(path) == version for path, version in folder.shown)


def _find_private_target(link: str) -> str | None:
    """What to hide for a link with a hidden name: a file, but no part of the system.

    A command may have made the link, which must not hide a folder or a program from the next one.
    """
    target = os.path.realpath(link)
    return target if os.path.isfile(target) and not is_within_any(target, _SYSTEM_FOLDERS) else None
