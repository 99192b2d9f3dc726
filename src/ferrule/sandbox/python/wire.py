"""Frames on a run's channel: a small JSON tree, and after it the bytes that the tree speaks of.

    8 bytes    the lengths of both, big-endian
    tree       JSON; `{"$": "bytes", "n": 12}` stands for the next 12 of the bytes below
    blobs      one after the other, in the order in which the tree names them

Text and bytes of any length thus cost neither quoting nor parsing. What comes from a child is hostile: a reader checks
lengths before it keeps anything, and a blob can be named once only, so that a small frame never becomes a large value.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any, Final

HEADER: Final = struct.Struct(">II")
TREE_LIMIT: Final = 8 * 1024 * 1024
"""Bytes of JSON in one frame."""
BLOB_LIMIT: Final = 40 * 1024 * 1024
"""Bytes after the JSON in one frame."""
PARTS_LIMIT: Final = 500_000
"""Commas and brackets in the JSON of a frame from a child: what its objects can cost the parent."""
TWIN_DESCRIPTORS: Final = (61, 62, 63)
"""Where the parent puts the channel, output and error of a session's twin before it lets it be made."""


class WireError(ValueError):
    """Bytes that are no frame, or a frame that names no value."""


def frame(tree: Any, blobs: list[bytes]) -> bytes:
    """One frame as bytes. Raises `WireError` where it is too large."""
    head = json.dumps(tree, separators=(",", ":")).encode()
    size = sum(map(len, blobs))
    if len(head) > TREE_LIMIT or size > BLOB_LIMIT:
        raise WireError(f"{len(head) + size} bytes are more than a frame holds")
    return b"".join([HEADER.pack(len(head), size), head, *blobs])


def lengths(header: bytes) -> tuple[int, int]:
    """The lengths of a frame's two parts. Raises `WireError` where they are over the limits."""
    tree, blobs = HEADER.unpack(header)
    if tree > TREE_LIMIT or blobs > BLOB_LIMIT:
        raise WireError(f"a frame of {tree + blobs} bytes is more than is read")
    return tree, blobs


def tree_of(data: bytes, parts: int | None = None) -> Any:
    """The JSON of a frame. Raises `WireError` for what isn't JSON, and for more than so many parts."""
    if parts is not None and data.count(b",") + data.count(b"[") + data.count(b"{") > parts:
        raise WireError("a frame of too many parts")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise WireError(f"a frame that is not JSON: {type(error).__name__}") from None


def read_frame(read: Callable[[int], bytes]) -> tuple[Any, bytes] | None:
    """A frame by a blocking `read(size)`, which answers less at the end only; None at the end."""
    header = read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    tree_size, blob_size = lengths(header)
    body = read(tree_size + blob_size)
    return (tree_of(body[:tree_size]), body[tree_size:]) if len(body) == tree_size + blob_size else None


class Blobs:
    """The bytes of a frame, handed out once each, in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def take(self, size: Any) -> bytes:
        """The next `size` bytes. Raises `WireError` where there are fewer."""
        if type(size) is not int or not 0 <= size <= len(self._data) - self._place:
            raise WireError("a frame that names more bytes than it holds")
        self._place += size
        return self._data[self._place - size : self._place]
