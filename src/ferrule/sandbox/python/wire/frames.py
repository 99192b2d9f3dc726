"""Frames on a run's channel: a small JSON tree, followed by the blobs that it refers to.

    8 bytes    the lengths of both, big-endian
    tree       JSON; `{"$": "bytes", "n": 12}` refers to the next 12 bytes of the blobs
    blobs      concatenated, in the order in which the tree refers to them

So long text and bytes are neither quoted nor parsed. A child's frames are hostile: the reader checks lengths before
it allocates, and each blob can be used only once, so a small frame never becomes a large value.
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
"""JSON separators in a frame from a child: bounds what its objects cost the parent."""
SEPARATORS: Final = ",:[{"
TWIN_DESCRIPTORS: Final = (61, 62, 63)
"""Where the parent installs the channel, stdout and stderr of a forked session before it allows the fork."""


class WireError(ValueError):
    """The bytes aren't a valid frame, or the frame has no valid value."""


def pack_frame(tree: Any, blobs: list[bytes]) -> bytes:
    """Encode one frame. Raises `WireError` if it is too large."""
    head = json.dumps(tree, separators=(",", ":")).encode()
    size = sum(map(len, blobs))
    if len(head) > TREE_LIMIT or size > BLOB_LIMIT:
        raise WireError(f"{len(head) + size} bytes exceed the limit of a frame")
    return b"".join([HEADER.pack(len(head), size), head, *blobs])


def parse_lengths(header: bytes) -> tuple[int, int]:
    """Parse the lengths of a frame's two parts. Raises `WireError` if they exceed the limits."""
    tree, blobs = HEADER.unpack(header)
    if tree > TREE_LIMIT or blobs > BLOB_LIMIT:
        raise WireError(f"a frame of {tree + blobs} bytes exceeds the limit")
    return tree, blobs


def parse_tree(data: bytes, parts: int | None = None) -> Any:
    """Parse the JSON of a frame. Raises `WireError` if it isn't JSON or has more than `parts` separators."""
    if parts is not None and sum(data.count(one) for one in SEPARATORS.encode()) > parts:
        raise WireError("the frame has too many parts")
    try:
        # Not passed as bytes: `json` decodes those with `surrogatepass`, which is slow for each lone surrogate.
        text = data.decode("ascii")
        if sys.getrecursionlimit() > _RECURSION:
            _check_depth(text)
        # The program may have raised the interpreter's limit, and parsing long numbers takes quadratic time.
        is_limited = 0 < sys.get_int_max_str_digits() <= _DIGITS
        return json.loads(text, parse_int=None if is_limited else _parse_integer)
    except (ValueError, RecursionError) as error:
        raise WireError(f"the frame is not JSON: {type(error).__name__}") from None


_DIGITS: Final = sys.int_info.default_max_str_digits
_RECURSION: Final = 5000
_DEEPEST: Final = 1000
_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_STEPS: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


def _parse_integer(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError("an integer has too many digits")
    return int(digits)


def _check_depth(text: str) -> None:
    """Raise `RecursionError` for JSON so deep that the parser would overflow the stack under a raised limit."""
    brackets = _STEPS.keys()
    depth = accumulate(_STEPS[one] for one in _STRING.sub("", text) if one in brackets)
    if max(depth, default=0) > _DEEPEST:
        raise RecursionError


def read_frame(read: Callable[[int], bytes]) -> tuple[Any, bytes] | None:
    """Read a frame with a blocking `read(size)`, which returns fewer bytes only at the end; None at the end."""
    header = read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    tree_size, blob_size = parse_lengths(header)
    body = read(tree_size + blob_size)
    return (parse_tree(body[:tree_size]), body[tree_size:]) if len(body) == tree_size + blob_size else None


class FrameBlobs:
    """The blobs of a frame, each taken once, in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def take(self, size: Any) -> bytes:
        """Return the next `size` bytes. Raises `WireError` if there are fewer."""
        if type(size) is not int or not 0 <= size <= len(self._data) - self._place:
            raise WireError("the frame refers to more bytes than it has")
        self._place += size
        return self._data[self._place - size : self._place]
