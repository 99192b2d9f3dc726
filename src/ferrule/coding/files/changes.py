"""Writes files so that each is the old one or the new one at every moment, and of several either all or none.

A new content is written beside the file under no name, flushed to the disk, and takes the file's name in one step.
Everything happens in folders that `FileAccess` opened, so that no link swapped in meanwhile is followed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from ferrule._util.spliced_bytes import SplicedBytes
from ferrule.errors import ToolFailed
from ferrule.sandbox.file_access import FileAccess
from ferrule.sandbox.open_beneath import NotRegularFile, OpenFolder, PathMoved, check_location
from ferrule.sandbox.shell.access_plan import Access

__all__ = ["FileChange", "apply_changes", "describe_os_error", "has_same_content"]

_REASONS: Final = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "not permitted",
    errno.ENOENT: "no such file or folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EISDIR: "it is a folder",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "its links lead in a circle",
    errno.EFBIG: "it would be too large",
    errno.EIO: "the disk failed",
    errno.EEXIST: "there is a file of that name by now",
}
_committing = threading.Lock()
_TEMPORARY_FILE: Final = getattr(os, "O_TMPFILE", 0)
_UNSUPPORTED: Final = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file to write, create or delete."""

    path: str
    """As it is shown."""
    real: str
    before: str | None
    """The hash of what must be there now; None if nothing may be."""
    after: bytes | SplicedBytes | None
    """The new content; None to delete the file."""
    status: os.stat_result | None = None
    """Of the file when it was hashed, if every change since alters it: if it still has this one, it isn't hashed again.
    """
    mode_from: str | None = None
    """For a new file: the real path of one whose mode it gets, such as one that it replaces elsewhere."""


def apply_changes(access: FileAccess, changes: Sequence[FileChange]) -> None:
    """Make all of the changes, or none. Blocks.

    Raises `ToolFailed` with one line if one of them can't be made, or if a file isn't what it should be; and
    `FileAccessRefused`. No temporary file or new folder is left then.
    """
    with ExitStack() as stack, _cleaned_folders(access, changes):
        staged = [stack.enter_context(_stage(access, change)) for change in changes]
        # Only now, and under a lock: another call may have written what these complete to a repository.
        stack.enter_context(_committing)
        access.check_together([each.real for each in changes if each.after is not None])
        made: list[_StagedChange] = []
        try:
            for each in staged:
                with _explained(each.change):
                    each.commit(is_only=len(staged) == 1)
                made.append(each)
        except BaseException:
            for each in reversed(made):
                each.roll_back()
            raise
        for each in made:
            each.finish()


def describe_os_error(error: OSError) -> str:
    """Why a file couldn't be read or written, in a few words without a path."""
    return _REASONS.get(error.errno or 0) or (error.strerror or type(error).__name__).lower()


@contextmanager
def _explained(change: FileChange) -> Iterator[None]:
    verb = "deleting" if change.after is None else "writing"
    try:
        yield
    except PathMoved as error:
        raise ToolFailed(
            f"Error {verb} {change.path}: a folder on the way was replaced meanwhile; try again"
        ) from error
    except NotRegularFile as error:
        raise ToolFailed(f"Error {verb} {change.path}: it is {error}, not a file") from error
    except OSError as error:
        raise ToolFailed(f"Error {verb} {change.path}: {describe_os_error(error)}; nothing was changed") from error


@contextmanager
def _cleaned_folders(access: FileAccess, changes: Sequence[FileChange]) -> Iterator[None]:
    """Remove the folders that were made for the changes, if these fail."""
    missing: set[str] = set()
    for change in changes:
        folder = os.path.dirname(change.real)  # noqa: PTH120
        while change.after is not None and not os.path.lexists(folder):
            missing.add(folder)
            folder = os.path.dirname(folder)  # noqa: PTH120
    try:
        yield
    except BaseException:
        for folder in sorted(missing, key=len, reverse=True):
            with suppress(Exception), access.open_folder(folder, Access.WRITE) as parent:
                os.rmdir(parent.name, dir_fd=parent.descriptor)
        raise


@contextmanager
def _stage(access: FileAccess, change: FileChange) -> Iterator[_StagedChange]:
    with ExitStack() as stack:
        with _explained(change):
            is_new = change.before is None
            folder = stack.enter_context(access.open_folder(change.real, Access.WRITE, create=is_new))
            staged = _StagedChange(change, folder)
            stack.callback(staged.close)
            staged.prepare(_read_mode(access, change.mode_from))
        yield staged


def _read_mode(access: FileAccess, path: str | None) -> int | None:
    if path is None:
        return None
    with access.open_folder(path) as folder:
        status = folder.stat()
    return None if status is None else stat.S_IMODE(status.st_mode)


class _StagedChange:
    """A change whose new content is on the disk, but not yet under its name."""

    def __init__(self, change: FileChange, folder: OpenFolder) -> None:
        self.change, self._folder = change, folder
        self._descriptor = -1
        self._temporary: str | None = None
        self._kept: str | None = None
        """The name under which the old file is kept until all changes are made."""
        self._status: os.stat_result | None = None

    def prepare(self, mode: int | None) -> None:
        """Compare what is there with what should be, and write the new content."""
        attributes: dict[str, bytes] = {}
        if self.change.before is None:
            if self._folder.stat() is not None:
                raise self._make_stale("there is a file of that name by now")
        else:
            attributes = self._check_current()
        if self.change.after is not None:
            self._write(self.change.after, mode, attributes)

    def _check_current(self) -> dict[str, bytes]:
        """Check that the file is still what it was; returns its extended attributes."""
        try:
            descriptor = self._folder.open_file()
        except FileNotFoundError as error:
            raise self._make_stale("it is gone by now") from error
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
            self._status = os.fstat(descriptor)
            if not self._status.st_mode & 0o222:
                raise self._make_stale("its mode makes it read-only", "Ask the user to change that (chmod u+w)")
            if (
                not has_same_content(self.change.status, self._status)
                and hashlib.file_digest(file, "sha256").hexdigest() != self.change.before
            ):
                raise self._make_stale("it has changed meanwhile")
            return _read_attributes(descriptor) if self.change.after is not None else {}

    def _write(self, content: bytes | SplicedBytes, mode: int | None, attributes: dict[str, bytes]) -> None:
        self._descriptor = self._open_temporary()
        with open(self._descriptor, "wb", closefd=False) as file:
            file.writelines([content] if isinstance(content, bytes) else content.parts)
        status = self._status
        if status is not None:
            own = os.fstat(self._descriptor)
            if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
                with suppress(OSError):  # only root may
                    os.fchown(self._descriptor, status.st_uid, status.st_gid)
            mode = stat.S_IMODE(status.st_mode)
        for name, value in attributes.items():
            with suppress(OSError):
                os.setxattr(self._descriptor, name, value)
        if mode is not None:
            os.fchmod(self._descriptor, mode)
        os.fsync(self._descriptor)

    def _open_temporary(self) -> int:
        """A new file without a name, where the file system has such; otherwise with one, which `close` removes."""
        mode = 0o666 if self._status is None else 0o600
        if _TEMPORARY_FILE and os.path.exists("/proc/self/fd"):  # noqa: PTH110
            try:
                flags = _TEMPORARY_FILE | os.O_RDWR | os.O_CLOEXEC
                return os.open(".", flags, mode, dir_fd=self._folder.descriptor)
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    raise
        name = self._make_name()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, mode, dir_fd=self._folder.descriptor)
        self._temporary = name
        return descriptor

    def commit(self, *, is_only: bool) -> None:
        """Make the change visible. The old file is kept for `roll_back`, unless this is the only change."""
        check_location(self._folder.descriptor, os.path.dirname(self.change.real))  # noqa: PTH120
        self._check_unchanged()
        folder, name = self._folder.descriptor, self._folder.name
        if self._status is not None and not is_only:
            self._keep()
        if self.change.after is None:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
        elif self._status is None:
            self._link_as(name)
        else:
            if self._temporary is None:
                self._link_as(temporary := self._make_name())
                self._temporary = temporary
            os.replace(self._temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            self._temporary = None

    def _keep(self) -> None:
        folder, kept = self._folder.descriptor, self._make_name()
        try:
            os.link(self._folder.name, kept, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError:  # a file system without hard links
            os.rename(self._folder.name, kept, src_dir_fd=folder, dst_dir_fd=folder)
        self._kept = kept

    def _check_unchanged(self) -> None:
        status = self._folder.stat()
        if self._status is None:
            if status is not None:
                raise self._make_stale("there is a file of that name by now")
        elif status is None:
            raise self._make_stale("it is gone by now")
        elif _identify(status) != _identify(self._status):
            raise self._make_stale("it has changed meanwhile")

    def _link_as(self, name: str) -> None:
        """Give the new file a name that nothing has; raises OSError if something does."""
        folder = self._folder.descriptor
        if self._temporary is None:
            # With the link followed: the descriptor's file itself.
            os.link(f"/proc/self/fd/{self._descriptor}", name, dst_dir_fd=folder, follow_symlinks=True)
            return
        try:
            os.link(self._temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP):
                raise
            os.rename(self._temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            os.unlink(self._temporary, dir_fd=folder)
        self._temporary = None

    def roll_back(self) -> None:
        """Undo `commit`, since a later change of the same call failed."""
        folder, name = self._folder.descriptor, self._folder.name
        # If it can't be given its name back, `close` must not remove it.
        kept, self._kept = self._kept, None
        if kept is not None:
            os.replace(kept, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)

    def finish(self) -> None:
        """Let go of the old file, after all changes were made."""
        if self._kept is not None:
            with suppress(OSError):
                os.unlink(self._kept, dir_fd=self._folder.descriptor)
            self._kept = None

    def close(self) -> None:
        """Remove what is temporary."""
        if self._temporary is not None:
            with suppress(OSError):
                os.unlink(self._temporary, dir_fd=self._folder.descriptor)
        self.finish()
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def _make_stale(self, what: str, advice: str = "Read it again, then decide") -> ToolFailed:
        return ToolFailed(f"{self.change.path} was not changed: {what}. {advice}")

    def _make_name(self) -> str:
        return f".ferrule-{secrets.token_hex(8)}.tmp"


def has_same_content(known: os.stat_result | None, now: os.stat_result | None) -> bool:
    """Whether a file that had one status, which every change alters, and now has another has the same content."""
    if known is None or now is None:
        return False
    return _identify(known) == _identify(now) and known.st_ctime_ns == now.st_ctime_ns


def _identify(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode


def _read_attributes(descriptor: int) -> dict[str, bytes]:
    """The extended attributes of a file, where the system has such."""
    if not hasattr(os, "listxattr"):
        return {}
    found: dict[str, bytes] = {}
    with suppress(OSError):
        for name in os.listxattr(descriptor):
            with suppress(OSError):
                found[name] = os.getxattr(descriptor, name)
    return found
