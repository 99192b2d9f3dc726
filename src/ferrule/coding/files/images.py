"""Checks that an image is complete before a model is sent it: a provider would refuse the whole request.

Formats are read as far as it takes to know their size and whether something is missing; no pixel is drawn. PNG is
checked by the checksums of its parts and by decompressing it (https://www.w3.org/TR/png-3/).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from ferrule._util.file_size import describe_size
from ferrule.media import find_image_type

__all__ = ["ShownImage", "check_image", "find_image", "find_shown_type"]

LARGEST: Final = 5 * 1024 * 1024
"""The bytes of an image that providers take."""
MOST_PIXELS: Final = 8_000
"""The longest side of an image that providers take."""
_CHUNK: Final = 65_536
_CUT_OFF: Final = "it is damaged: it ends too early"
_LARGEST_DECOMPRESSED: Final = 16 * MOST_PIXELS * MOST_PIXELS
_CHANNELS: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""The values of a pixel for each colour type of PNG."""
_JPEG_FRAMES: Final = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_JPEG_SCAN: Final = 0xDA
_JPEG_END: Final = b"\xff\xd9"
_JPEG_ALONE: Final = {0x01, *range(0xD0, 0xD8)}
"""Markers without a length."""


@dataclass(frozen=True, slots=True)
class ShownImage:
    """What an image is that models can be shown."""

    media_type: str
    width: int
    height: int


def find_image(name: str, data: bytes) -> ShownImage | None:
    """What kind of image a file is; None if it is none.

    Raises `ValueError`, whose text says of the file, as `name` names it, why it can't be shown.
    """
    media_type = find_shown_type(data)
    if media_type is None:
        return None
    if len(data) > LARGEST:
        raise ValueError(
            f"{name} is an image of {describe_size(len(data))}, more than the {describe_size(LARGEST)} that can be "
            "shown: make it smaller first"
        )
    try:
        return ShownImage(media_type, *check_image(data, media_type))
    except ValueError as error:
        raise ValueError(f"{name} begins as {media_type}, but can't be shown: {error}") from error


def find_shown_type(data: bytes) -> str | None:
    """The media type of an image that models are shown: PNG, JPEG, GIF or WebP; None for anything else."""
    is_webp = data.startswith(b"RIFF") and data[8:12] == b"WEBP"
    return "image/webp" if is_webp else find_image_type(data)


def check_image(data: bytes, media_type: str) -> tuple[int, int]:
    """The width and height of an image. Raises `ValueError`, whose text says why it can't be shown."""
    try:
        width, height = _CHECKS[media_type](data)
    except IndexError as error:
        raise ValueError(_CUT_OFF) from error
    if not width or not height:
        raise ValueError(f"it is damaged: its size is {width} × {height}")
    if max(width, height) > MOST_PIXELS:
        raise ValueError(f"it has {width:,} × {height:,} pixels, more than {MOST_PIXELS:,} on a side: make it smaller")
    return width, height


def _check_png(data: bytes) -> tuple[int, int]:
    width = height = expected = 0
    kinds: list[bytes] = []
    pixels = _PixelCounter()
    for kind, content in _list_png_chunks(data):
        if kind == b"IHDR" and len(content) == 13:
            width, height = _read_int(content, 0, 4), _read_int(content, 4, 4)
            expected = height * (1 + width * _CHANNELS.get(content[9], 1) * content[8] // 8)
            if not width * height or max(width, height) > MOST_PIXELS:
                return width, height
        elif kind == b"IDAT":
            pixels.feed(content)
        kinds.append(kind)
    if kinds[:1] != [b"IHDR"] or b"IDAT" not in kinds:
        raise ValueError("it is damaged: its header or its pixels are missing")
    # Interlaced images have a few more bytes.
    if pixels.count < expected:
        raise ValueError("it is damaged: pixels are missing")
    return width, height


def _list_png_chunks(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """The parts of a PNG, up to the last. Raises `ValueError` if there is no last one, or a checksum is wrong."""
    at, view = 8, memoryview(data)
    while at + 12 <= len(data):
        size = _read_int(data, at, 4)
        end = at + 8 + size
        if end + 4 > len(data):
            break
        kind = data[at + 4 : at + 8]
        if zlib.crc32(view[at + 4 : end]) != _read_int(data, end, 4):
            raise ValueError("it is damaged: a checksum is wrong")
        yield kind, view[at + 8 : end]
        if kind == b"IEND":
            return
        at = end + 4
    raise ValueError(_CUT_OFF)


class _PixelCounter:
    """Counts the bytes that the parts of a compressed stream give, without keeping them."""

    def __init__(self) -> None:
        self.count = 0
        self._unpacker = zlib.decompressobj()

    def feed(self, content: memoryview) -> None:
        """Decompress a part. Raises `ValueError` if it can't be."""
        rest: bytes | memoryview = content
        try:
            while rest and self.count <= _LARGEST_DECOMPRESSED:
                self.count += len(self._unpacker.decompress(rest, _CHUNK))
                rest = self._unpacker.unconsumed_tail
        except zlib.error as error:
            raise ValueError("it is damaged: its pixels can't be decompressed") from error


def _check_jpeg(data: bytes) -> tuple[int, int]:
    at, size = 2, None
    while data[at] == 0xFF and data[at + 1] != _JPEG_SCAN:
        marker = data[at + 1]
        if marker in _JPEG_FRAMES:
            size = _read_int(data, at + 7, 2), _read_int(data, at + 5, 2)
        if marker == 0xFF:
            at += 1
        else:
            at += 2 if marker in _JPEG_ALONE else 2 + _read_int(data, at + 2, 2)
    if size is None or data[at] != 0xFF:
        raise ValueError("it is damaged: its header is missing")
    if data.find(_JPEG_END, at) < 0:  # one before is that of a small image in the header
        raise ValueError(_CUT_OFF)
    return size


def _check_gif(data: bytes) -> tuple[int, int]:
    if data.rfind(b"\x3b") < max(13, len(data) - _CHUNK):
        raise ValueError(_CUT_OFF)
    return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")


def _check_webp(data: bytes) -> tuple[int, int]:
    if len(data) < 30 or int.from_bytes(data[4:8], "little") + 8 > len(data):
        raise ValueError(_CUT_OFF)
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    raise ValueError("it is damaged: its header is missing")


def _read_int(data: bytes | memoryview, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big")


_CHECKS: Final[dict[str, Callable[[bytes], tuple[int, int]]]] = {
    "image/png": _check_png,
    "image/jpeg": _check_jpeg,
    "image/gif": _check_gif,
    "image/webp": _check_webp,
}
