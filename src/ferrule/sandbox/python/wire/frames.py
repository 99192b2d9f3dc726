"""Frames on a run's channel: a small JSON tree, and after it the bytes that the tree speaks of.

    8 bytes    the lengths of both, big-endian
    tree       JSON; `{"$": "bytes", "n": 12}` stands for the next 12 of the bytes below
    blobs      one after the other, in the order in which the tree names them

Text and bytes of any length thus cost neither quoting nor parsing. What comes from a child is hostile: a reader checks
lengths before it keeps anything, and a blob can be named once only, so that a small frame never becomes a large value.
"""

from __future__ import annotations

import json
import re
import struct
import sys
from collections.abc import Callable
from itertools import accumulate
from typing import Any, Final

HEADER: Final = struct.Struct(">II")
TREE_LIMIT: Final = 8 * 1024 * 1024
"""Bytes of JSON in one frame."""
BLOB_LIMIT: Final = 40 * 1024 * 1024
"""Bytes after the JSON in one frame."""
PARTS_LIMIT: Final = 200_000
"""Separators in the JSON of a frame from a child: what its objects can cost the parent."""
SEPARATORS: Final = ",:[{"
TWIN_DESCRIPTORS: Final = (61, 62, 63)
"""Where the parent puts the channel, output and error of a session's twin before it lets it be made."""


class WireError(ValueError):
    """Bytes that are no frame, or a frame that names no value."""


def pack_frame(tree: Any, blobs: list[bytes]) -> bytes:
    """One frame as bytes. Raises `WireError` where it is too large."""
    head = json.dumps(tree, separators=(",", ":")).encode()
    size = sum(map(len, blobs))
    if len(head) > TREE_LIMIT or size > BLOB_LIMIT:
        raise WireError(f"{len(head) + size} bytes are more than a frame holds")
    return b"".join([HEADER.pack(len(head), size), head, *blobs])


def parse_lengths(header: bytes) -> tuple[int, int]:
    """The lengths of a frame's two parts. Raises `WireError` where they are over the limits."""
    tree, blobs = HEADER.unpack(header)
    if tree > TREE_LIMIT or blobs > BLOB_LIMIT:
        raise WireError(f"a frame of {tree + blobs} bytes is more than is read")
    return tree, blobs


def parse_tree(data: bytes, parts: int | None = None) -> Any:
    """The JSON of a frame. Raises `WireError` for what isn't JSON, and for more than so many parts."""
    if parts is not None and sum(data.count(one) for one in SEPARATORS.encode()) > parts:
        raise WireError("a frame of too many parts")
    try:
        # Not as bytes: those `json` decodes by a codec that takes a while for each half of a surrogate pair.
        text = data.decode("ascii")
        if sys.getrecursionlimit() > _RECURSION:
            _demand_shallow(text)
        # A program may have lifted the interpreter's own limit, and long numbers take quadratic time.
        is_limited = 0 < sys.get_int_max_str_digits() <= _DIGITS
        return json.loads(text, parse_int=None if is_limited else _integer)
    except (ValueError, RecursionError) as error:
        raise WireError(f"a frame that is not JSON: {type(error).__name__}") from None


_DIGITS: Final = sys.int_info.default_max_str_digits
_RECURSION: Final = 5000
_DEEPEST: Final = 1000
_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_STEPS: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError("a number of too many digits")
    return int(digits)


def _demand_shallow(text: str) -> None:
    """Raise `RecursionError` where a program that has raised its limit would see the parser overflow its stack."""
    brackets = _STEPS.keys()
    depth = accumulate(_STEPS[one] for one in _STRING.sub("", text) if one in brackets)
    if max(depth, default=0) > _DEEPEST:
        raise RecursionError


def read_frame(read: Callable[[int], bytes]) -> tuple[Any, bytes] | None:
    """A frame by a blocking `read(size)`, which answers less at the end only; None at the end."""
    header = read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    tree_size, blob_size = parse_lengths(header)
    body = read(tree_size + blob_size)
    return (parse_tree(body[:tree_size]), body[tree_size:]) if len(body) == tree_size + blob_size else None


class FrameBlobs:
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
