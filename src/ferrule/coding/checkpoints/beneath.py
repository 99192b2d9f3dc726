"""Opens folders and reads entries below a root without following any link, however paths are changed meanwhile."""

# Descriptors and names in them, for which pathlib has no counterpart.

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ferrule.coding.checkpoints.entries import UNREADABLE, Entry
from ferrule.sandbox.git.objects import CHUNK, ObjectStore, StoreFailed, hash_content, hash_stream
from ferrule.sandbox.open_beneath import FILE_FLAGS, FOLDER_FLAGS

__all__ = ["find_stat", "open_folder", "read_chunks", "read_entry", "split_path", "stat_entry"]


def split_path(root: str, path: str) -> tuple[str, str, str]:
    """The root of a path, its folder below that, and its name. An absolute path has the root `/`."""
    folder, name = os.path.split(path)
    return ("/", folder.lstrip("/"), name) if path.startswith("/") else (root, folder, name)


@contextmanager
def open_folder(root: str, folder: str, *, create: bool = False) -> Iterator[int]:
    """Open a folder below a root, name by name; `create` makes those that are missing.

    Raises `OSError`, also if a link is on the way.
    """
    descriptor = os.open(root, FOLDER_FLAGS)
    try:
        for name in folder.split("/") if folder else ():
            if create:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=descriptor)
            inner = os.open(name, FOLDER_FLAGS, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def find_stat(folder: int, name: str) -> os.stat_result | None:
    """The status of an entry, of a link itself; None if there is none."""
    with suppress(FileNotFoundError):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    return None


def read_entry(folder: int, name: str, status: os.stat_result, store: ObjectStore | None, known: str = "") -> Entry:
    """Read what lies at a name, and keep its content in `store` if there is one, unless its id is `known`.

    What can't be read is `UNREADABLE`. Raises `StoreFailed`, and `FileNotFoundError` if the entry is gone.
    """
    mode = status.st_mode
    if stat.S_ISLNK(mode):
        content = os.fsencode(os.readlink(name, dir_fd=folder))
        return Entry(mode, store.write(content) if store else hash_content(content))
    if not stat.S_ISREG(mode):
        return Entry(mode)
    try:
        file = os.open(name, FILE_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError:
        return Entry(mode, UNREADABLE)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            return Entry(mode, UNREADABLE)
        return Entry(found.st_mode, _read_file(file, found.st_size, store, known))
    except StoreFailed:
        raise
    except OSError:
        return Entry(mode, UNREADABLE)
    finally:
        os.close(file)


def stat_entry(folder: int, name: str) -> tuple[os.stat_result | None, Entry | None]:
    """What lies at a name now, with its status and its id; nothing is kept."""
    status = find_stat(folder, name)
    try:
        return status, read_entry(folder, name, status, None) if status else None
    except FileNotFoundError:
        return None, None


def read_chunks(file: int, size: int) -> Iterator[bytes]:
    """Exactly `size` bytes of a file, with zeros in place of what a file has lost since it was measured."""
    left = size
    while left:
        chunk = os.read(file, min(left, CHUNK)) or bytes(min(left, CHUNK))
        left -= len(chunk)
        yield chunk


def _read_file(file: int, size: int, store: ObjectStore | None, known: str) -> str:
    if size <= CHUNK:
        content = b"".join(read_chunks(file, size))
        oid = hash_content(content)
        return oid if store is None or oid == known else store.write(content)
    oid = hash_stream(read_chunks(file, size), size)
    if store is None or oid == known or store.has(oid):
        return oid
    os.lseek(file, 0, os.SEEK_SET)
    return store.write_stream(read_chunks(file, size), size)
