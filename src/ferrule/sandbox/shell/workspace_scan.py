"""Finding what to hide and to protect inside of a workspace: one bounded walk, and cheap ones after it."""

# Paths are text here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH113, PTH116, PTH118

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from ferrule.sandbox.hidden_paths import holds_private_key, is_settled
from ferrule.sandbox.shell import placeholders
from ferrule.sandbox.visible_paths import is_within

__all__ = ["ScanResult", "WorkspaceScan", "can_search"]

# Nobody's secrets, and the bulk of all folders.
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", ".tox", ".mypy_cache", ".ruff_cache"})
_SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/dev", "/proc", "/sys")


@dataclass(frozen=True, slots=True)
class ScanResult:
    """Absolute paths. `hidden` names what links lead to, where that is where a name on the list led."""

    hidden: tuple[str, ...]
    protected: tuple[str, ...]
    """Each of a protected name, be it a folder, a file or a link."""
    unsearched: tuple[str, ...] = ()
    """Folders at the top of the workspace whose search was given up, since together they hold too many, and folders
    whose modes keep everybody from searching them: a command could change those back."""


@dataclass(slots=True)
class _Folder:
    changed: int
    is_settled: bool
    folders: list[str]
    hidden: list[str]
    protected: list[str]
    bundles: dict[str, tuple[int, int]]
    """Files of certificates that held no private key, by when they were written last, and their length."""


@dataclass(slots=True)
class WorkspaceScan:
    """Remembers each folder with its time of change, so that a second walk reads only what has changed.

    Links to folders are not followed: what they lead to is either in the workspace or outside of it. `node_modules`,
    `site-packages` and caches are not searched.
    """

    workspace: str
    names: re.Pattern[str]
    """Of what is hidden."""
    protected: Collection[str]
    """Names of what is protected in any folder, in small letters."""
    limit: int
    """How many folders are searched."""
    _folders: dict[str, _Folder] = field(default_factory=dict)
    _closed: list[str] = field(default_factory=list)
    """Folders that the last walk could not search."""

    @property
    def is_large(self) -> bool:
        """Whether a walk takes so long that it should be made in a thread."""
        return not self._folders or len(self._folders) > 300

    def walk(self) -> ScanResult:
        """Everything of such a name that is there now.

        The folders at the top take turns, so that past the limit only those are left that hold the most.
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
        return ScanResult(tuple(hidden), tuple(protected), tuple(sorted(unsearched.union(self._closed))))

    def _find_top_folder(self, path: str) -> str:
        name = path[len(self.workspace) + 1 :].partition("/")[0]
        return f"{self.workspace}/{name}"

    def _visit(self, path: str, seen: dict[str, _Folder]) -> _Folder | None:
        """A folder as it was read last, or again; None where it is gone, or can't be searched."""
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
        folder = _Folder(changed, is_settled(changed), [], [], [], {})
        try:
            entries = list(os.scandir(path))
        except OSError:
            return folder
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            name = entry.name.lower()
            is_hidden = bool(self.names.match(name))
            if name in self.protected:
                folder.protected.append(entry.path)
            if is_hidden:
                folder.hidden += _find_secrets(entry, is_folder, folder)
            elif is_folder and name != ".git" and entry.name not in _SKIPPED:
                folder.folders.append(entry.path)
        return folder


def can_search(path: str, status: os.stat_result) -> bool:
    """Whether a command could list a folder and enter it: as root it has none of root's power over modes."""
    if status.st_uid == os.geteuid():
        shift = 6
    else:
        shift = 3 if status.st_gid == os.getegid() or status.st_gid in os.getgroups() else 0
    wanted = stat.S_IROTH | stat.S_IXOTH
    if status.st_mode >> shift & wanted == wanted:
        return True
    # A list of access rights may let an ordinary user in.
    return os.geteuid() != 0 and os.access(path, os.R_OK | os.X_OK)


def _find_secrets(entry: os.DirEntry[str], is_folder: bool, folder: _Folder) -> list[str]:
    """What to hide for an entry whose name is on the list: nothing, itself, or what it leads to."""
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
    # A command may have made the link: it must not hide a folder or a program from the next one.
    is_private = os.path.isfile(target) and not any(is_within(target, each) for each in _SYSTEM_FOLDERS)
    return [target] if is_private else []


def _read_modification(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return -1, -1
    return found.st_mtime_ns, found.st_size
