"""Files that are sent with a question: images as images, text files as text with their names."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from ferrule.conversation import Image, Text
from ferrule.errors import SettingsError

_IMAGES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_LARGEST = 20 * 1024 * 1024
"""The most bytes of one file: no provider takes a longer image, and no model reads a longer text."""


def read_attachments(names: Iterable[str]) -> tuple[Text | Image, ...]:
    """Read files; `-` is standard input. Raises `SettingsError` for what is no image and no text, and `OSError`."""
    return tuple(map(_read_attachment, names))


def _read_attachment(name: str) -> Text | Image:
    if name.startswith(("http://", "https://")):
        raise SettingsError(f"--attachment {name}: give a file; addresses are not fetched")
    if name == "-":
        data, label = sys.stdin.buffer.read(_LARGEST + 1), "standard input"
    else:
        label = name
        with Path(name).open("rb") as file:
            data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise SettingsError(f"--attachment {label}: longer than {_LARGEST >> 20} MB")
    media_type = _find_media_type(data)
    if media_type is not None:
        return Image(data, media_type)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise SettingsError(f"--attachment {label}: neither an image (PNG, JPEG, GIF, WebP) nor UTF-8 text")
    if not text.strip():
        raise SettingsError(f"--attachment {label}: the file is empty")
    return Text(f'\n\n<file name="{Path(label).name}">\n{text.rstrip()}\n</file>')


def _find_media_type(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _IMAGES if data.startswith(signature)), None)
