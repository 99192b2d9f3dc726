"""Byte strings through a pipe, each with its length before it."""

from __future__ import annotations

import struct
from typing import Protocol

_LENGTH = struct.Struct(">Q")


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes | None: ...


class _Writable(Protocol):
    def write(self, data: bytes, /) -> int | None: ...


def write_frame(stream: _Writable, data: bytes) -> None:
    """Write one byte string. Raises `OSError` where nobody reads."""
    rest = memoryview(_LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[stream.write(bytes(rest)) or 0 :]


def read_frame(stream: _Readable) -> bytes | None:
    """The next byte string; None where the stream ends before it is whole."""
    head = _read_exactly(stream, _LENGTH.size)
    return None if head is None else _read_exactly(stream, _LENGTH.unpack(head)[0])


def _read_exactly(stream: _Readable, size: int) -> bytes | None:
    pieces: list[bytes] = []
    while size:
        piece = stream.read(size)
        if not piece:
            return None
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
