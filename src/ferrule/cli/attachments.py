"""Files that are sent with a question: images, audio and documents as such, text files as text with their names."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from ferrule.conversation import Audio, File, Image, Text
from ferrule.errors import SettingsError
from ferrule.media import find_image_type, frame_text

_SIGNATURES = (
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
Attachment: TypeAlias = Text | Image | Audio | File
_LARGEST = 20 * 1024 * 1024
"""The most bytes of one file: no provider takes a longer image, and no model reads a longer text."""


def read_attachments(names: Iterable[str]) -> tuple[Attachment, ...]:
    """Read files; `-` is standard input. Raises `SettingsError` for a file of an unknown kind, and `OSError`."""
    return tuple(map(_read_attachment, names))


def _read_attachment(name: str) -> Attachment:
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
    media_type = _find_media_type(data, label)
    if media_type is not None:
        return _make_part(data, media_type, Path(label).name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise SettingsError(f"--attachment {label}: neither UTF-8 text nor an image, PDF, audio or video file")
    if not text.strip():
        raise SettingsError(f"--attachment {label}: the file is empty")
    return Text(f"\n\n{frame_text(Path(label).name, text)}")


def _make_part(data: bytes, media_type: str, name: str) -> Attachment:
    if media_type.startswith("image/"):
        return Image(data, media_type)
    return Audio(data, media_type) if media_type.startswith("audio/") else File(data, media_type, name)


def _find_media_type(data: bytes, name: str) -> str | None:
    """Find the type by how the data begin, and of audio and video by the name; None for anything else."""
    import mimetypes

    if data[:4] == b"RIFF" and data[8:12] in _RIFF:
        return _RIFF[data[8:12]]
    if data[4:11] == b"ftypM4A":
        return "audio/mp4"
    found = find_image_type(data) or next((kind for signature, kind in _SIGNATURES if data.startswith(signature)), None)
    guessed = mimetypes.guess_type(name)[0] or ""
    # A text may have such a name as well: `.ts` is TypeScript, or video.
    is_named_so = guessed.startswith(("audio/", "video/")) and b"\0" in data
    return found or (guessed if is_named_so else None)
