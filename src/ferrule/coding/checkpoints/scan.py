"""Finds everything in a workspace and keeps it as a git tree; what hasn't changed since the last time isn't read.

Each file is recognised by its status: mode, size, modification and change time, inode. No program can set the change
time, so a command that restores a file's modification time is noticed too. A file that changed within the clock's tick
before it was read could change again unnoticed, so it is read again the next time (git calls such a file racy).
"""

# Paths are strings here: tens of thousands are compared for each command.
# ruff: noqa: PTH116, PTH118

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from ferrule.coding.checkpoints.beneath import open_folder, read_chunks, read_entry
from ferrule.coding.checkpoints.entries import UNREADABLE, Entry, encode_tree
from ferrule.sandbox.file_versions import is_settled, read_clock
from ferrule.sandbox.git.objects import CHUNK, ObjectStore, hash_content
from ferrule.sandbox.open_beneath import FOLDER_FLAGS
from ferrule.sandbox.shell.placeholders import is_placeholder

__all__ = ["FileRecord", "FolderRecord", "FolderVisit", "ScanStopped", "TreeScan"]

_MANY = 64  # from here on one pack is faster than loose objects

Signature: TypeAlias = tuple[int, int, int, int, int]
FileRecord: TypeAlias = tuple[Signature | None, int, str]
"""A file's signature, if it can be relied on, its mode and its id; `UNREADABLE` for what isn't kept."""
FolderRecord: TypeAlias = tuple[int, str, dict[str, FileRecord], dict[str, tuple[int, str]]]
"""A folder's mode, the id of its tree, its files by name, and the mode and tree of each folder in it."""


class ScanStopped(Exception):  # noqa: N818 - an event
    """A scan was stopped, since its session ends."""


@dataclass(slots=True)
class FolderVisit:
    """One folder as it was just read."""

    path: str
    mode: int
    old: FolderRecord | None
    files: dict[str, FileRecord]
    folders: list[tuple[str, str, int, bool]]
    """The name, path and mode of each folder in it, and whether it is to be read."""
    changed: list[tuple[str, os.stat_result]]
    is_readable: bool = True

    @property
    def prefix(self) -> str:
        """What a name in it begins with as a path."""
        return f"{self.path}/" if self.path else ""


@dataclass(slots=True)
class TreeScan:
    """Scans one workspace again and again; `records`, by path relative to it, are what the last scan found."""

    root: str
    store: ObjectStore
    is_hidden: Callable[[str], bool]
    """Whether an absolute path is hidden from commands; they can't change it, and its content isn't kept."""
    max_file_bytes: int
    max_new_bytes: int
    records: dict[str, FolderRecord] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    """The ignored files and folders that are not scanned, relative to the workspace."""
    too_large: dict[str, int] = field(default_factory=dict)
    """Files that aren't kept, with their sizes in bytes."""
    unreadable: set[str] = field(default_factory=set)
    is_stopped: bool = False
    """Set from another thread, it ends a scan with `ScanStopped`."""
    _start: int = 0
    """When the scan began (ns)."""

    def visit_all(self, left_out: frozenset[str]) -> list[FolderVisit]:
        """Read all folders, parents first, except what is left out. Raises `OSError` if the workspace can't be read."""
        self.left_out = left_out
        self._start = read_clock()
        return list(self._walk())

    def keep(self, visits: list[FolderVisit]) -> str:
        """Keep what is new in the store and return the id of the workspace's tree. Raises `OSError`."""
        self.unreadable.clear()
        self._choose_too_large(visits)
        self._keep_files(visits)
        return self._make_trees(visits)

    def covers(self, path: str) -> bool:
        """Whether the last scan included a path, or would have if it had existed."""
        parts = path.split("/")
        if path.startswith("/") or ".git" in parts:
            return False
        for count in range(1, len(parts) + 1):
            entry = self._find("/".join(parts[:count]))
            if entry is None:
                return not self.is_hidden(os.path.join(self.root, path))
            if entry.oid == UNREADABLE:
                return False
        return True

    def _find(self, path: str) -> Entry | None:
        """What the last scan found at a path."""
        folder, name = os.path.split(path)
        record = self.records.get(folder)
        if record is None:
            return None
        if name in record[2]:
            return Entry(record[2][name][1], record[2][name][2])
        return Entry(*record[3][name]) if name in record[3] else None

    def _check_stopped(self) -> None:
        if self.is_stopped:
            raise ScanStopped

    def _walk(self) -> Iterator[FolderVisit]:
        """Read each folder, parents first."""
        waiting = [("", os.stat(self.root).st_mode)]
        while waiting:
            self._check_stopped()
            path, mode = waiting.pop()
            visit = self._read_folder(path, mode)
            waiting += [(inner, inner_mode) for _, inner, inner_mode, is_included in visit.folders if is_included]
            yield visit

    def _read_folder(self, path: str, mode: int) -> FolderVisit:
        visit = FolderVisit(path, mode, self.records.get(path), {}, [], [])
        try:
            # By a descriptor, from which the entries are found faster than by their whole paths.
            folder = os.open(f"{self.root}/{path}", FOLDER_FLAGS)
            try:
                with os.scandir(folder) as entries:
                    self._read_entries(visit, entries)
            finally:
                os.close(folder)
        except OSError:
            if not path:
                raise
            return FolderVisit(path, mode, visit.old, {}, [], [], is_readable=False)
        if self.left_out:
            self._drop_left_out(visit)
        return visit

    def _read_entries(self, visit: FolderVisit, entries: Iterable[os.DirEntry[str]]) -> None:
        known: dict[str, FileRecord] = visit.old[2] if visit.old else {}
        prefix, files, changed = visit.prefix, visit.files, visit.changed
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # removed meanwhile
            name, mode = entry.name, status.st_mode
            if mode & 0o170000 == 0o040000:
                self._add_folder(visit, name, prefix + name, mode)
                continue
            last = known.get(name)
            signature = (mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
            if last is not None and last[0] == signature:
                files[name] = last
            else:
                changed.append((name, status))

    def _add_folder(self, visit: FolderVisit, name: str, path: str, mode: int) -> None:
        # The sandbox's placeholders exist for a moment around each command, and aren't the user's.
        if name != ".git" and not is_placeholder(f"{self.root}/{path}"):
            is_shown = path in self.records or not self.is_hidden(f"{self.root}/{path}")
            visit.folders.append((name, path, mode, is_shown and path not in self.left_out))

    def _drop_left_out(self, visit: FolderVisit) -> None:
        """Mark the ignored files that are left out."""
        for name, status in visit.changed:
            if visit.prefix + name in self.left_out:
                visit.files[name] = (None, status.st_mode, UNREADABLE)
        for name, (_, mode, _) in visit.files.items():
            if visit.prefix + name in self.left_out:
                visit.files[name] = (None, mode, UNREADABLE)

    def _keep_files(self, visits: Iterable[FolderVisit]) -> None:
        """Read the changed files and keep their contents."""
        changed = [visit for visit in visits if visit.changed]
        if self.store.can_import and sum(len(visit.changed) for visit in changed) > _MANY:
            self.store.write_many(self._read_all(changed))
        for visit in changed:
            self._check_stopped()
            self._read_changed(visit)

    def _choose_too_large(self, visits: Iterable[FolderVisit]) -> None:
        """Find new files that aren't kept: the largest, if there is no room for all. They stay so until they change."""
        for path in [path for path in self.too_large if not self._is_left_out(path)]:
            del self.too_large[path]
        new = [
            (status.st_size, visit.prefix + name)
            for visit in visits
            for name, status in visit.changed
            if stat.S_ISREG(status.st_mode)
        ]
        left = min(self.max_new_bytes, shutil.disk_usage(self.store.folder).free // 2)
        for size, path in sorted(new):
            self.too_large.pop(path, None)
            left -= size
            if size > self.max_file_bytes or left < 0:
                self.too_large[path] = size

    def _is_left_out(self, path: str) -> bool:
        entry = self._find(path)
        return entry is not None and entry.oid == UNREADABLE

    def _read_changed(self, visit: FolderVisit) -> None:
        """Read the changed files of one folder that `_read_all` hasn't read."""
        known = visit.old[2] if visit.old else {}
        try:
            with open_folder(self.root, visit.path) as folder:
                for name, status in visit.changed:
                    if name in visit.files or self._leave_out(visit, name, status):
                        continue
                    last = known.get(name)
                    try:
                        entry = read_entry(folder, name, status, self.store, last[2] if last else "")
                    except FileNotFoundError:
                        continue
                    self._record(visit, folder, name, status, entry)
        except (FileNotFoundError, NotADirectoryError):
            return  # removed meanwhile
        except PermissionError:
            visit.is_readable = False

    def _read_all(self, visits: Iterable[FolderVisit]) -> Iterator[tuple[int, list[bytes]]]:
        """Read the changed regular files that fit into memory, for one pack."""
        for visit in visits:
            self._check_stopped()
            try:
                with open_folder(self.root, visit.path) as folder:
                    for name, status in visit.changed:
                        if not stat.S_ISREG(status.st_mode) or self._leave_out(visit, name, status):
                            continue
                        content = _read_small(folder, name)
                        if content is not None:
                            entry = Entry(content[0], hash_content(content[1]))
                            self._record(visit, folder, name, status, entry)
                            yield len(content[1]), [content[1]]
            except OSError:
                continue  # left to `_read_changed`

    def _leave_out(self, visit: FolderVisit, name: str, status: os.stat_result) -> bool:
        """Whether a file's content isn't kept: it is hidden, too large or git's own."""
        path = visit.prefix + name
        if name == ".git":
            return True
        if path in self.too_large:
            visit.files[name] = (_sign(status), status.st_mode, UNREADABLE)
            return True
        if self._is_hidden_file(visit, name, path):
            visit.files[name] = (_sign(status), status.st_mode, UNREADABLE)
            return True
        return False

    def _is_hidden_file(self, visit: FolderVisit, name: str, path: str) -> bool:
        """Whether a changed file is hidden. By their names files stay as they are; certificates may get a key."""
        last = visit.old[2].get(name) if visit.old else None
        is_known = last is not None and last[2] != UNREADABLE and not name.lower().endswith(".pem")
        return not is_known and self.is_hidden(f"{self.root}/{path}")

    def _record(self, visit: FolderVisit, folder: int, name: str, status: os.stat_result, entry: Entry) -> None:
        """Record a file that was read; its signature only if it stayed the same and isn't recent."""
        signature = _sign(status)
        is_reliable = is_settled(status.st_ctime_ns, self._start) and stat.S_ISREG(status.st_mode)
        try:
            now = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return
        is_reliable = is_reliable and _sign(now) == signature
        if entry.oid == UNREADABLE:
            self.unreadable.add(visit.prefix + name)
            is_reliable = False
        visit.files[name] = (signature if is_reliable else None, entry.mode, entry.oid)

    def _make_trees(self, visits: list[FolderVisit]) -> str:
        """Make the tree of each folder, innermost first, and return that of the workspace."""
        records: dict[str, FolderRecord] = {}
        for visit in reversed(visits):
            folders = {
                name: (mode, records[path][1] if is_included else UNREADABLE)
                for name, path, mode, is_included in visit.folders
            }
            old = visit.old
            if not visit.is_readable:
                self.unreadable.add(visit.path)
                records[visit.path] = (visit.mode, UNREADABLE, {}, {})
            elif old is not None and old[2] == visit.files and old[3] == folders and old[1] != UNREADABLE:
                records[visit.path] = (visit.mode, old[1], visit.files, folders)
            else:
                tree = self._write_tree(visit.files, folders)
                records[visit.path] = (visit.mode, tree, visit.files, folders)
        self.records = records
        return records[""][1]

    def _write_tree(self, files: dict[str, FileRecord], folders: dict[str, tuple[int, str]]) -> str:
        entries = {name: Entry(mode, oid) for name, (_, mode, oid) in files.items()}
        entries |= {name: Entry(mode, tree) for name, (mode, tree) in folders.items()}
        return self.store.write(encode_tree(entries), b"tree")


def _sign(status: os.stat_result) -> Signature:
    return (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _read_small(folder: int, name: str) -> tuple[int, bytes] | None:
    """The mode and content of a regular file that fits into memory; None for any other."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        file = os.open(name, flags, dir_fd=folder)
    except OSError:
        return None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > CHUNK:
            return None
        return status.st_mode, b"".join(read_chunks(file, status.st_size))
    finally:
        os.close(file)
