"""Writes output: to a file that is replaced as a whole, to a device or a pipe, or to standard output."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

STANDARD_OUTPUT = "-"
_SUFFIX = ".ferrule-part"


def is_standard_output(path: Path) -> bool:
    """Whether `path` names standard output: as `-`, or as the file or device that standard output goes to."""
    if str(path) == STANDARD_OUTPUT:
        return True
    try:
        return sys.stdout is not None and os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # `path` doesn't exist yet, or standard output is no file
        return False


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Open a file for output, as bytes.

    `-` is standard output. A device or a pipe is written to. Any other file is replaced once the block has ended
    without an error, so an interruption leaves the old one; of a symbolic link, that is the file that it leads to.
    Raises `OSError`, with `path` as its file name.
    """
    if is_standard_output(path):
        with _open_standard_output() as stream:
            yield stream
        return
    try:
        before = _find_status(path)
        if before is not None and not stat.S_ISREG(before.st_mode):
            with path.open("wb") as stream:
                yield stream
            return
        with _open_replacement(path, before) as stream:
            yield stream
    except OSError as error:
        is_own = error.filename is None or error.filename == str(path) or str(error.filename).endswith(_SUFFIX)
        if isinstance(error, BrokenPipeError) or not is_own:
            raise
        raise OSError(error.errno, _describe_reason(error, path), str(path)) from error


def write_output(path: Path, data: bytes) -> None:
    """Write `data` to a file: see `open_output`. Raises `OSError`."""
    with open_output(path) as stream:
        stream.write(data)


def check_parent_folder(path: Path) -> None:
    """Raise `OSError` if the folder in which a file is to be made doesn't exist; `-` and an empty path have none."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {str(path.parent)!r}; make it first", str(path))


@contextmanager
def _open_standard_output() -> Iterator[BinaryIO]:
    sys.stdout.flush()
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


def _find_status(path: Path) -> os.stat_result | None:
    """Find what a path leads to; None if nothing is there. Raises `OSError` for what can't be written."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    # Renaming over a file asks only for the rights to its folder.
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return found


@contextmanager
def _open_replacement(path: Path, before: os.stat_result | None) -> Iterator[BinaryIO]:
    """Open a temporary file in the folder of `path`, which takes its place, with the rights of the old file."""
    target = Path(os.path.realpath(path))
    check_parent_folder(target)
    # Not after the file's own name, which may be as long as a name can be.
    beside = target.with_name(f".{os.getpid()}-{os.urandom(4).hex()}{_SUFFIX}")
    try:
        with beside.open("xb") as stream:
            if before is not None:
                os.fchmod(stream.fileno(), stat.S_IMODE(before.st_mode))
            yield stream
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _describe_reason(error: OSError, path: Path) -> str:
    if isinstance(error, FileNotFoundError) and not path.parent.exists():
        return f"there is no folder {str(path.parent)!r}; make it first"
    return error.strerror or str(error)
