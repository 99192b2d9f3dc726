"""Puts files back as they were, unless somebody else has changed them since.

Every folder is opened by its name in the one before, following no link. A file is written beside its place and renamed
over it, so that it is either the old or the new one, whenever the program ends.
"""

# Descriptors and names in them, for which pathlib has no counterpart.
# ruff: noqa: PTH101, PTH123, PTH208

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from ferrule.coding.checkpoints.beneath import find_stat, open_folder, read_entry, split_path, stat_entry
from ferrule.coding.checkpoints.entries import UNREADABLE, Entry, is_folder, is_unchanged
from ferrule.coding.checkpoints.turns import Change
from ferrule.sandbox.git.objects import ObjectDamaged, ObjectStore

__all__ = [
    "Restoration",
    "Restored",
    "find_shut_folders",
    "name_action",
    "read_path",
    "remove_temporary_files",
    "shut_folders",
]

_TEMPORARY = re.compile(r"\.ferrule-[0-9a-f]{16}\.tmp")
_REPLACED = "something else is in the place of its folder"
_CHANGED = "it was changed afterwards"
_Maker: TypeAlias = Callable[[Change, int, str, os.stat_result | None], None]
_Action: TypeAlias = Literal["created", "restored", "removed", "mode", "kept", "failed"]


@dataclass(frozen=True, slots=True)
class Restored:
    """What was done with one path."""

    path: str
    action: _Action
    reason: str = ""
    """Why it was kept or failed."""

    @property
    def is_done(self) -> bool:
        """Whether the path is, or would be, changed."""
        return self.action not in ("kept", "failed")


@dataclass(slots=True)
class Restoration:
    """Restores paths below one root from a store. Each change goes from its `after` to its `before`."""

    root: str
    store: ObjectStore
    unfinished: Collection[str] = ()
    """The paths that an earlier undo or redo was changing when its program was killed."""
    halfway: set[str] = field(default_factory=set)
    """Those of them that it left between `after` and `before`: removed, or a folder with another mode."""
    results: list[Restored] = field(default_factory=list)
    _modes: list[tuple[str, int]] = field(default_factory=list)
    _blocked: set[str] = field(default_factory=set)
    """Where something of another kind couldn't be removed."""

    def choose(self, changes: Sequence[Change], force: bool) -> list[Change]:
        """The changes to take back; what isn't as the change left it is reported as kept, unless forced."""
        chosen: list[Change] = []
        replaced: list[str] = []
        for change in sorted(changes, key=lambda each: each.path):
            current = read_path(self.root, change.path)
            if _is_mode_change(change) and current is not None and change.after is not None:
                current = replace(current, oid=change.after.oid)
            if is_unchanged(change.before, current):
                if change.path in self.unfinished:
                    self._report(change.path, name_action(change))
                continue
            is_halfway = change.path in self.unfinished and _is_halfway(change, current)
            problem = self._find_problem(change)
            if problem:
                self._report(change.path, "failed", problem)
            elif change.before is not None and change.path.startswith(tuple(replaced)):
                self._report(change.path, "kept", _REPLACED)
            elif force or is_halfway or is_unchanged(change.after, current):
                chosen.append(change)
                self.halfway.update([change.path] if is_halfway else ())
            else:
                is_unknown = change.after is not None and change.after.oid == UNREADABLE
                reason = "the checkpoint doesn't include what the turn left there" if is_unknown else _CHANGED
                self._report(change.path, "kept", reason)
                if is_folder(change.before) and not is_folder(current):
                    replaced.append(f"{change.path}/")
        return chosen

    def _find_problem(self, change: Change) -> str:
        """Why a path can't be restored; empty if it can."""
        wanted = change.before
        if wanted is None or _is_mode_change(change):
            return ""
        if wanted.oid == UNREADABLE:
            return "the checkpoint doesn't include its content"
        if wanted.kind == "special":
            return "pipes, sockets and devices can't be made again"
        return "" if self._has_content(wanted) else "its content in the store is damaged or missing"

    def apply(self, changes: Sequence[Change]) -> None:
        """Take back changes that were chosen. What fails is reported; the others are done."""
        by_depth = sorted(changes, key=lambda change: (change.path.count("/"), change.path))
        removed = {change.path for change in reversed(by_depth) if self._remove_old(change)}
        for change in by_depth:
            if change.before is not None:
                self._attempt(change, self._make_folder if is_folder(change.before) else self._write, removed)
        for path, mode in reversed(self._modes):
            self._set_mode(path, mode)

    def _has_content(self, entry: Entry | None) -> bool:
        if entry is None or entry.kind not in ("file", "link"):
            return True
        try:
            for _ in self.store.stream(entry.oid):
                pass
        except (ObjectDamaged, OSError):
            return False
        return True

    def _remove_old(self, change: Change) -> bool:
        """Remove what is at a path if it isn't of the wanted kind; whether it was removed."""
        root, folder, name = split_path(self.root, change.path)
        try:
            with _open_writable(root, folder) as parent:
                status = find_stat(parent, name)
                if status is None:
                    return False
                if change.before is not None and stat.S_IFMT(status.st_mode) == stat.S_IFMT(change.before.mode):
                    return False
                if stat.S_ISDIR(status.st_mode):
                    os.rmdir(name, dir_fd=parent)
                elif change.before is None or is_folder(change.before):
                    os.unlink(name, dir_fd=parent)
                else:
                    return False  # renaming replaces it
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            is_filled = error.errno in (errno.ENOTEMPTY, errno.EEXIST)
            reason = "it holds files that aren't the turn's" if is_filled else _describe(error)
            self._report(change.path, "kept" if is_filled else "failed", reason)
            self._blocked.add(change.path)
            return False
        if change.before is None:
            self._report(change.path, "removed")
        return True

    def _attempt(self, change: Change, make: _Maker, removed: set[str]) -> None:
        root, folder, name = split_path(self.root, change.path)
        assert change.before is not None
        if change.path in self._blocked:
            return
        try:
            with _open_writable(root, folder, create=True) as parent:
                status = find_stat(parent, name)
                make(change, parent, name, status)
        except (OSError, ObjectDamaged) as error:
            is_replaced = isinstance(error, OSError) and error.errno in (errno.ENOTDIR, errno.ELOOP)
            reason = _REPLACED if is_replaced else _describe(error)
            self._report(change.path, "kept" if is_replaced else "failed", reason)
            return
        is_new = status is None and change.path not in removed
        self._report(change.path, "created" if is_new else name_action(change))

    def _make_folder(self, change: Change, parent: int, name: str, status: os.stat_result | None) -> None:
        assert change.before is not None
        if status is None:
            os.mkdir(name, 0o700, dir_fd=parent)
        self._modes.append((change.path, change.before.permissions))

    def _write(self, change: Change, parent: int, name: str, status: os.stat_result | None) -> None:
        """Write a file or link beside its place and rename it; of a file with the right content, set the mode."""
        entry = change.before
        assert entry is not None
        is_file = status is not None and entry.kind == "file" and stat.S_ISREG(status.st_mode)
        if status is not None and is_file and entry.oid in (UNREADABLE, read_entry(parent, name, status, None).oid):
            _change_mode(parent, name, entry.permissions)
            return
        temporary = f".ferrule-{os.urandom(8).hex()}.tmp"
        try:
            if entry.kind == "link":
                os.symlink(self.store.read(entry.oid), temporary, dir_fd=parent)
            else:
                self._write_file(parent, temporary, entry, status)
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=parent)
            raise

    def _write_file(self, parent: int, name: str, entry: Entry, old: os.stat_result | None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(name, flags, 0o600, dir_fd=parent), "wb", buffering=0) as file:
            for chunk in self.store.stream(entry.oid):
                view = memoryview(chunk)
                while view:
                    view = view[file.write(view) or 0 :]
            if old is not None and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(OSError):
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
            os.fchmod(file.fileno(), entry.permissions)

    def _set_mode(self, path: str, mode: int) -> None:
        root, folder, name = split_path(self.root, path)
        try:
            with open_folder(root, folder) as parent:
                _change_mode(parent, name, mode)
        except OSError as error:
            self._report(path, "failed", _describe(error))

    def _report(self, path: str, action: _Action, reason: str = "") -> None:
        self.results.append(Restored(path, action, reason))


def remove_temporary_files(root: str, paths: Iterable[str]) -> None:
    """Remove what a program that was killed as it wrote these paths, here or as a file tool, has left beside them."""
    for base, folder in {split_path(root, path)[:2] for path in paths}:
        with suppress(OSError), open_folder(base, folder) as parent:
            for name in filter(_TEMPORARY.fullmatch, os.listdir(parent)):
                os.unlink(name, dir_fd=parent)


def read_path(root: str, path: str) -> Entry | None:
    """What is at a path now; None if nothing is, or if a folder on the way is gone. Nothing is kept."""
    base, folder, name = split_path(root, path)
    try:
        with open_folder(base, folder) as parent:
            return stat_entry(parent, name)[1]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return Entry(stat.S_IFREG, UNREADABLE)


def find_shut_folders(root: str, changes: Iterable[Change]) -> dict[str, int]:
    """The modes of the folders that have to be made writable to take changes back, by path."""
    found: dict[str, int] = {}
    for base, folder in {split_path(root, change.path)[:2] for change in changes}:
        with suppress(OSError), open_folder(base, folder) as descriptor:
            status = os.fstat(descriptor)
            if _is_shut(status):
                found[folder if base == root else f"/{folder}"] = stat.S_IMODE(status.st_mode)
    return found


def shut_folders(root: str, modes: Mapping[str, int]) -> None:
    """Give folders their modes back that were made writable and still are."""
    for path, mode in modes.items():
        base, folder, _ = split_path(root, f"{path}/" if path else path)
        with suppress(OSError), open_folder(base, folder) as descriptor:
            if stat.S_IMODE(os.fstat(descriptor).st_mode) == mode | 0o700:
                os.fchmod(descriptor, mode)


def _is_shut(status: os.stat_result) -> bool:
    """Whether a folder's mode forbids its owner, who can change that, to change entries in it."""
    return status.st_mode & 0o300 != 0o300 and status.st_uid == os.geteuid()


def _is_halfway(change: Change, current: Entry | None) -> bool:
    """Whether a path may be so because taking back the change was interrupted."""
    return current is None or (is_folder(current) and (is_folder(change.before) or is_folder(change.after)))


def _is_mode_change(change: Change) -> bool:
    """Whether only the mode changed, or is known to: of a folder, or of a content that the checkpoint leaves out."""
    one, other = change.before, change.after
    if one is None or other is None or one.kind != other.kind:
        return False
    return is_folder(one) or one.oid == other.oid == UNREADABLE


@contextmanager
def _open_writable(root: str, folder: str, *, create: bool = False) -> Iterator[int]:
    """Open a folder for changing entries in it, even if its mode forbids that to its owner; `create` makes it."""
    with open_folder(root, folder, create=create) as descriptor:
        status = os.fstat(descriptor)
        mode, is_shut = stat.S_IMODE(status.st_mode), _is_shut(status)
        if is_shut:
            os.fchmod(descriptor, mode | 0o700)
        try:
            yield descriptor
        finally:
            if is_shut:
                os.fchmod(descriptor, mode)


def _change_mode(parent: int, name: str, mode: int) -> None:
    """Set the mode of a file or folder, never of what a link leads to. Raises `OSError`."""
    if not hasattr(os, "O_PATH"):  # macOS, where a link can be told apart in the call itself, which Linux can't
        os.chmod(name, mode, dir_fd=parent, follow_symlinks=False)
        return
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if stat.S_ISLNK(os.fstat(descriptor).st_mode):
            raise OSError("a link has taken its place")
        os.chmod(f"/proc/self/fd/{descriptor}", mode)
    finally:
        os.close(descriptor)


def name_action(change: Change) -> Literal["created", "restored", "removed", "mode"]:
    """What taking back a change does to its path."""
    if change.before is None:
        return "removed"
    if change.after is None:
        return "created"
    is_mode = change.before.kind == change.after.kind and (
        is_folder(change.before) or change.before.oid == change.after.oid
    )
    return "mode" if is_mode else "restored"


def _describe(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
