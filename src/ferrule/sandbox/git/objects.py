"""The contents that checkpoints keep, as objects of a bare git repository.

Single objects are written as loose files, many at once by `git fast-import`, which makes one pack of them. Without git
all are loose. An object is complete or absent: files are renamed to their names once they are whole. Nothing is
flushed to the disk, so after a power cut an object can be damaged; each is checked against its id when it is read.
"""

# Paths are strings here, as in the scan that calls this for each file.
# ruff: noqa: PTH103, PTH104, PTH108, PTH110, PTH118, PTH123, PTH208

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO

from ferrule.sandbox.git.program import Git

__all__ = ["CHUNK", "ObjectDamaged", "ObjectStore", "StoreFailed", "hash_content", "hash_stream"]

CHUNK = 4 * 1024 * 1024
"""Files up to this length (bytes) are read at once, longer ones in pieces of it."""
_LEVEL = 1
_IMPORT = ("-c", "core.compression=1", "-c", "pack.compression=1", "-c", "fastimport.unpackLimit=1")


class ObjectDamaged(Exception):  # noqa: N818 - a state
    """A content that is missing in the store or isn't what its id says; the text names it."""


def hash_content(content: bytes, kind: bytes = b"blob") -> str:
    """The id that git gives a content, in a repository whose hash is SHA-256."""
    return hashlib.sha256(b"%b %d\0" % (kind, len(content)) + content).hexdigest()


def hash_stream(chunks: Iterable[bytes], size: int) -> str:
    """The id of a content that comes in pieces and has `size` bytes in all."""
    digest = hashlib.sha256(b"blob %d\0" % size)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


class StoreFailed(OSError):  # noqa: N818 - an event
    """The store couldn't be written. A class of its own: not to be taken for a missing file of the workspace."""


class ObjectStore:
    """The objects of one store. `close` ends the git process that reads packs.

    Several threads may write, and ask whether there is an object; only one may read while no other does either.
    """

    def __init__(self, folder: str, git: Git | None) -> None:
        self.folder = folder
        self._objects = os.path.join(folder, "objects")
        self._git = git
        self._reader: subprocess.Popen[bytes] | None = None
        self._asking = threading.Lock()

    def close(self) -> None:
        """End the process that reads packs, if one runs."""
        reader, self._reader = self._reader, None
        if reader is not None and reader.stdin is not None and reader.stdout is not None:
            with suppress(OSError):
                reader.stdin.close()
            reader.stdout.close()
            reader.wait()

    def write(self, content: bytes, kind: bytes = b"blob") -> str:
        """Store a content and return its id. Raises `StoreFailed`."""
        oid = hash_content(content, kind)
        if not os.path.exists(self._loose_path(oid)):
            self._write_loose(oid, zlib.compress(b"%b %d\0" % (kind, len(content)) + content, _LEVEL))
        return oid

    def write_stream(self, chunks: Iterable[bytes], size: int) -> str:
        """Store a content of `size` bytes that comes in pieces, and return its id.

        Raises `StoreFailed`, and `OSError` from the pieces.
        """
        temporary = self._name_temporary()
        digest, packer = hashlib.sha256(), zlib.compressobj(_LEVEL)
        try:
            with _create(temporary) as file:
                for chunk in _prepend(b"blob %d\0" % size, chunks):
                    digest.update(chunk)
                    _write(file, packer.compress(chunk))
                _write(file, packer.flush())
            self._put(temporary, digest.hexdigest())
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        return digest.hexdigest()

    @property
    def can_import(self) -> bool:
        """Whether many contents can be written as one pack."""
        return self._git is not None

    def write_many(self, contents: Iterable[tuple[int, Iterable[bytes]]]) -> None:
        """Store contents, each its size and its pieces, as one pack. Raises `StoreFailed`."""
        assert self._git is not None
        importer = self._git.start(*_IMPORT, "fast-import", "--quiet", "--done", "--depth=0", "--force")
        assert importer.stdin is not None
        assert importer.stdout is not None
        try:
            with importer.stdin as pipe:
                for size, chunks in contents:
                    pipe.write(b"blob\ndata %d\n" % size)
                    pipe.writelines(chunks)
                pipe.write(b"done\n")
        except BrokenPipeError:
            pass  # its exit status says that it failed
        except BaseException:
            importer.kill()
            raise
        finally:
            importer.stdout.close()
            importer.wait()
        if importer.returncode != 0:
            raise StoreFailed("git fast-import couldn't write to the store: the disk may be full")

    def has(self, oid: str) -> bool:
        """Whether there is an object of that id."""
        if os.path.exists(self._loose_path(oid)):
            return True
        with self._asking:
            try:
                _, size = self._ask(oid)
                for _ in self._receive(size):
                    pass
            except ObjectDamaged:
                return False
        return True

    def read(self, oid: str) -> bytes:
        """The content of an object. Raises `ObjectDamaged` and `OSError`."""
        return b"".join(self.stream(oid))

    def stream(self, oid: str) -> Iterator[bytes]:
        """The content of an object in pieces; raises `ObjectDamaged` after the last one if it isn't what it was."""
        try:
            file = open(self._loose_path(oid), "rb")  # noqa: SIM115 - closed below
        except FileNotFoundError:
            kind, size = self._ask(oid)
            digest = hashlib.sha256(b"%b %d\0" % (kind, size))
            for chunk in self._receive(size):
                digest.update(chunk)
                yield chunk
        else:
            digest = hashlib.sha256()
            with file:
                yield from _read_loose(file.fileno(), digest, oid)
        if digest.hexdigest() != oid:
            raise ObjectDamaged(f"the stored content {oid[:12]} is damaged")

    def list_packs(self) -> list[str]:
        """The names of the packs."""
        with suppress(OSError):
            return sorted(name for name in os.listdir(os.path.join(self._objects, "pack")) if name.endswith(".pack"))
        return []

    def repack(self, kept: Iterable[str]) -> None:
        """Keep only these objects, in one pack. No other process may use the store. Raises `OSError`."""
        assert self._git is not None
        self.close()
        folder = os.path.join(self._objects, "pack")
        old = self.list_packs()
        wanted = "".join(f"{oid}\n" for oid in kept).encode()
        checked = self._git.run("cat-file", "--batch-check=%(objectname)", input=wanted).splitlines(keepends=True)
        listed = b"".join(line for line in checked if not line.endswith(b" missing\n"))
        options = ("--window=0", "--depth=0", "--compression=1", "-q", f"{folder}/pack")
        new = self._git.run("pack-objects", *options, input=listed).split() if listed else []
        names = {f"pack-{each.decode()}.pack" for each in new}
        for name in set(old) - names:
            for suffix in (".idx", ".pack", ".rev", ".keep"):
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(folder, name.removesuffix(".pack") + suffix))
        self.remove_loose()

    def remove_loose(self) -> None:
        """Remove all loose objects, and temporary files of processes that were killed."""
        for name in os.listdir(self._objects):
            path = os.path.join(self._objects, name)
            if len(name) == 2:
                for inner in os.listdir(path):
                    os.unlink(os.path.join(path, inner))
            elif name.startswith("tmp_"):
                os.unlink(path)

    def _loose_path(self, oid: str) -> str:
        return f"{self._objects}/{oid[:2]}/{oid[2:]}"

    def _name_temporary(self) -> str:
        return f"{self._objects}/tmp_obj_{os.urandom(8).hex()}"

    def _write_loose(self, oid: str, packed: bytes) -> None:
        temporary = self._name_temporary()
        try:
            with _create(temporary) as file:
                _write(file, packed)
            self._put(temporary, oid)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise

    def _put(self, temporary: str, oid: str) -> None:
        path = self._loose_path(oid)
        try:
            os.rename(temporary, path)
        except FileNotFoundError:
            with _explained():
                os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH120
                os.rename(temporary, path)

    def _ask(self, oid: str) -> tuple[bytes, int]:
        """Ask the reading process for an object: its kind and size. Its content has to be received next."""
        if self._git is None:
            raise ObjectDamaged(f"the stored content {oid[:12]} is missing, or in a pack, which only git can read")
        if self._reader is None:
            self._reader = self._git.start("cat-file", "--batch")
        assert self._reader.stdin is not None
        assert self._reader.stdout is not None
        try:
            self._reader.stdin.write(f"{oid}\n".encode())
            self._reader.stdin.flush()
            answer = self._reader.stdout.readline().split()
        except OSError:
            answer = []
        if len(answer) != 3:
            self.close()  # it may have seen a pack that is gone, or not the newest one
            raise ObjectDamaged(f"the stored content {oid[:12]} is missing")
        return answer[1], int(answer[2])

    def _receive(self, size: int) -> Iterator[bytes]:
        assert self._reader is not None
        assert self._reader.stdout is not None
        left, is_done = size, False
        try:
            while left:
                chunk = self._reader.stdout.read(min(left, CHUNK))
                if not chunk:
                    raise ObjectDamaged("git stopped while it read the store")
                left -= len(chunk)
                yield chunk
            self._reader.stdout.read(1)
            is_done = True
        finally:
            if not is_done:
                self.close()


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreFailed(error.errno, error.strerror) from error


def _create(path: str) -> FileIO:
    with _explained():
        return FileIO(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400), "wb")


def _write(file: FileIO, content: bytes) -> None:
    view = memoryview(content)
    with _explained():
        while view:
            view = view[file.write(view) :]


def _prepend(first: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _read_loose(file: int, digest: hashlib._Hash, oid: str) -> Iterator[bytes]:
    """The content of a loose object, without its header; `digest` is updated with both."""
    unpacker = zlib.decompressobj()
    is_header = True
    try:
        while packed := os.read(file, CHUNK):
            while packed:
                chunk = unpacker.decompress(packed, CHUNK)
                packed = unpacker.unconsumed_tail
                digest.update(chunk)
                if is_header:
                    chunk = chunk[chunk.index(b"\0") + 1 :]
                    is_header = False
                yield chunk
                if unpacker.eof:
                    return
    except (zlib.error, ValueError) as error:
        raise ObjectDamaged(f"the stored content {oid[:12]} is damaged") from error
