"""The content of messages: text and reasoning; and images, recorded sound and files, with bytes, media type and hash.

`conversation.py` exports them with the other parts of messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ferrule._util.frame_tags import ANGLE, choose_tag
from ferrule._util.quick_init import checked_init
from ferrule.blobs import hash_blob
from ferrule.errors import ConversationError

MOST_BYTES = 100 * 1024 * 1024
"""The most bytes of a file or a recording; providers take less."""

_IMAGE_SIGNATURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_TEXT_TYPES = ("application/json", "application/toml", "application/xml", "application/yaml", "application/x-sh")
_FRAMED = re.compile(r'\s*<file(?:-\d+)? name="')
_SAME_TYPES = {"audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/mp3": "audio/mpeg"}
# What `mimetypes` doesn't know everywhere.
_BY_SUFFIX = {
    ".md": "text/markdown",
    ".toml": "application/toml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_BY_SUFFIX |= {".webp": "image/webp", ".flac": "audio/flac", ".ogg": "audio/ogg", ".m4a": "audio/mp4"}


def _check_text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise ConversationError(f"a Text takes a string, not {describe_value(value)}")


@checked_init(text=("text.__class__ is str", _check_text))
@dataclass(frozen=True, slots=True)
class Text:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What a model thought before its answer; `extra` of its message contains a provider's signature."""

    text: str


@dataclass(frozen=True)
class Image:
    """An encoded image: its bytes, media type (`image/png`), and the hash of its content.

    Raises `ConversationError` for anything but bytes, such as a file name.
    """

    data: bytes
    media_type: str = "image/png"

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes):
            raise ConversationError(
                f"an Image takes the bytes of an encoded image, not {describe_value(self.data)}; "
                'for a file: Image.load("cat.png")'
            )
        _check_type(self, "image/")

    @classmethod
    def load(cls, path: str | Path) -> Image:
        """An image file, of the type that its name says. Raises `ConversationError` for another file, and `OSError`."""
        data, media_type = _read_media(path)
        if not media_type.startswith("image/"):
            raise ConversationError(f"{path} is no image file by its name ({media_type}); for others: File.load(path)")
        return cls(data, media_type)

    @cached_property
    def hash(self) -> str:
        """The name under which a `BlobStore` keeps this image."""
        return hash_blob(self.data)


@dataclass(frozen=True)
class Audio:
    """Recorded sound for a model that hears: its bytes, media type (`audio/wav`, `audio/mpeg`), and hash.

    Raises `ConversationError` for anything but bytes, and for more than `MOST_BYTES`.
    """

    data: bytes
    media_type: str = "audio/wav"

    def __post_init__(self) -> None:
        _check_media(self, 'Audio.load("question.wav")')
        _check_type(self, "audio/")

    @classmethod
    def load(cls, path: str | Path) -> Audio:
        """A sound file, of the type that its name says. Raises `ConversationError` for another file, and `OSError`."""
        data, media_type = _read_media(path)
        if not media_type.startswith("audio/"):
            raise ConversationError(f"{path} is no audio file by its name ({media_type}); for others: File.load(path)")
        return cls(data, media_type)

    @cached_property
    def hash(self) -> str:
        """The name under which a `BlobStore` keeps it."""
        return hash_blob(self.data)


@dataclass(frozen=True)
class File:
    """A document for a model that reads it: its bytes, media type (`application/pdf`, `text/csv`), name, and hash.

    Raises `ConversationError` for anything but bytes, and for more than `MOST_BYTES`.
    """

    data: bytes
    media_type: str
    name: str = "file"

    def __post_init__(self) -> None:
        _check_media(self, 'File.load("report.pdf")')
        _check_type(self, "")

    @classmethod
    def load(cls, path: str | Path) -> File:
        """A file, of the type that its name says. Raises `ConversationError` for too long a file, and `OSError`."""
        data, media_type = _read_media(path)
        return cls(data, media_type, Path(path).name)

    @cached_property
    def hash(self) -> str:
        """The name under which a `BlobStore` keeps it."""
        return hash_blob(self.data)

    @property
    def text(self) -> str | None:
        """Its text, if it is one in UTF-8; otherwise None."""
        if not self.media_type.startswith("text/") and self.media_type not in _TEXT_TYPES:
            return None
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None


def find_image_type(data: bytes) -> str | None:
    """The media type of a PNG, JPEG or GIF image by how its data begin; None for anything else."""
    return next((media_type for signature, media_type in _IMAGE_SIGNATURES if data.startswith(signature)), None)


def frame_text(name: str, text: str) -> str:
    """A text file as it is written into a message; neither its name nor its text can end the frame."""
    # Quotes and line ends would let a name add lines. The text may be a program's, and stays as it is.
    plain = re.sub(r"[<&>\"\x00-\x1f\x7f\u2028\u2029]", lambda found: f"&#{ord(found[0])};", name)
    tag = choose_tag("file", text, ANGLE)
    return f'<{tag} name="{plain}">\n{text.rstrip()}\n</{tag}>'


def is_framed(text: str) -> bool:
    """Whether a text begins with a file as `frame_text` writes it."""
    return _FRAMED.match(text) is not None


def _read_media(path: str | Path) -> tuple[bytes, str]:
    """The bytes of a file and its media type, by its name. Raises `ConversationError` for an address."""
    import mimetypes

    if str(path).startswith(("http://", "https://")):
        raise ConversationError(
            f"{path} is an address, which is not fetched; download it, and give its bytes: Image(data, media_type)"
        )
    path = Path(path)
    suffix = path.suffix.lower()
    media_type = _BY_SUFFIX.get(suffix) or mimetypes.types_map.get(suffix, "application/octet-stream")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ConversationError(f"{path} has more than {MOST_BYTES >> 20} MB, the most that a message may hold")
    return data, _SAME_TYPES.get(media_type, media_type)


def _check_media(media: Audio | File, example: str) -> None:
    kind = type(media).__name__
    if not isinstance(media.data, bytes):
        raise ConversationError(
            f"{kind} takes the bytes of a file, not {describe_value(media.data)}; for a file: {example}"
        )
    if len(media.data) > MOST_BYTES:
        raise ConversationError(f"{kind} takes at most {MOST_BYTES >> 20} MB, not {len(media.data) / 2**20:.0f} MB")


def _check_type(media: Image | Audio | File, kind: str) -> None:
    given = media.media_type
    if not isinstance(given, str) or not given.startswith(kind):
        example = {"image/": "image/png", "audio/": "audio/wav"}.get(kind, "application/pdf")
        other = "; for other files: File(data, media_type, name)" if kind else ""
        raise ConversationError(f"{type(media).__name__}: the media type is such as {example!r}, not {given!r}{other}")


def describe_value(value: object) -> str:
    """A value of the wrong type for a message: its type, and a short value itself."""
    if value is None:
        return "None"
    text = repr(value)
    return f"the {type(value).__name__} {text}" if len(text) <= 100 else f"a {type(value).__name__}"


def collect_items(value: object, what: str) -> tuple[Any, ...]:
    """The items of a field that takes a tuple. Raises `ConversationError` for anything else, such as a text."""
    if not isinstance(value, Iterable) or isinstance(value, Mapping | bytes):
        raise ConversationError(f"{what} must be a tuple, not {describe_value(value)}")
    return tuple(value)
