"""Finding what to hide and to protect inside of a workspace: one bounded walk, and cheap ones after it."""

# Paths are text here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH113, PTH116, PTH118

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.shell.places import is_settled, is_within

__all__ = ["Found", "WorkspaceScan"]

# Nobody's secrets, and the bulk of all folders.
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", ".tox", ".mypy_cache", ".ruff_cache"})
_OF_THE_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/dev", "/proc", "/sys")
_PRIVATE_KEY = b"PRIVATE KEY-----"
_HEAD_OF_A_KEY_FILE = 16_384


@dataclass(frozen=True, slots=True)
class Found:
    """Absolute paths. `hidden` names what links lead to, where that is where a name on the list led."""

    hidden: tuple[str, ...]
    repositories: tuple[str, ...]
    """Every `.git`, be it a folder, a file or a link."""


@dataclass(slots=True)
class _Folder:
    changed: int
    is_settled: bool
    folders: list[str]
    hidden: list[str]
    repositories: list[str]


@dataclass(slots=True)
class WorkspaceScan:
    """Remembers each folder with its time of change, so that a second walk reads only what has changed.

    Links to folders are not followed: what they lead to is either in the workspace or outside of it. `node_modules`,
    `site-packages` and caches are not searched.
    """

    workspace: str
    names: re.Pattern[str]
    limit: int
    """How many folders a workspace may have."""
    _folders: dict[str, _Folder] = field(default_factory=dict)

    @property
    def is_large(self) -> bool:
        """Whether a walk takes so long that it should be made in a thread."""
        return not self._folders or len(self._folders) > 300

    def walk(self) -> Found:
        """Every secret and repository that is there now. Raises `SandboxUnavailable` past the limit."""
        known, seen = self._folders, {}
        hidden: list[str] = []
        repositories: list[str] = []
        waiting = [self.workspace]
        while waiting:
            path = waiting.pop()
            try:
                changed = os.stat(path).st_mtime_ns
            except OSError:
                continue
            folder = known.get(path)
            if folder is None or folder.changed != changed or not folder.is_settled:
                folder = self._read(path, changed)
            seen[path] = folder
            if len(seen) > self.limit:
                raise SandboxUnavailable(
                    f"the workspace {self.workspace} has more than {self.limit} folders, too many to search for "
                    "secrets before each command: choose a smaller workspace, or raise `scan_limit`"
                )
            waiting += folder.folders
            hidden += folder.hidden
            repositories += folder.repositories
        self._folders = seen
        return Found(tuple(hidden), tuple(repositories))

    def _read(self, path: str, changed: int) -> _Folder:
        folder = _Folder(changed, is_settled(changed), [], [], [])
        try:
            entries = list(os.scandir(path))
        except OSError:
            return folder
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git":
                folder.repositories.append(entry.path)
            elif self.names.match(entry.name):
                folder.hidden += self._secret(entry, is_folder)
            elif is_folder and entry.name not in _SKIPPED:
                folder.folders.append(entry.path)
        return folder

    def _secret(self, entry: os.DirEntry[str], is_folder: bool) -> list[str]:
        """What to hide for an entry whose name is on the list: nothing, itself, or what it leads to."""
        if is_folder:
            return [] if os.path.lexists(os.path.join(entry.path, "pyvenv.cfg")) else [entry.path]
        if entry.name.endswith(".pem") and not _holds_private_key(entry.path):
            return []
        if not entry.is_symlink():
            return [entry.path]
        target = os.path.realpath(entry.path)
        # A command may have made the link: it must not hide a folder or a program from the next one.
        is_private = os.path.isfile(target) and not any(is_within(target, each) for each in _OF_THE_SYSTEM)
        return [target] if is_private else []


def _holds_private_key(path: str) -> bool:
    """Whether a file begins like one; what can't be read might, what isn't a file (a pipe would hang us) doesn't."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return os.path.isfile(path)
    try:
        return stat.S_ISREG(os.fstat(file).st_mode) and _PRIVATE_KEY in os.read(file, _HEAD_OF_A_KEY_FILE)
    finally:
        os.close(file)
