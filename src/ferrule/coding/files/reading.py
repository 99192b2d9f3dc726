"""Reads files for the file tools, and says in one line why one can't be read.

`read_file` answers numbered lines up to a limit, an image, or what else a file is and what to do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Final

from ferrule._util.file_size import describe_size
from ferrule._util.pluralize import pluralize
from ferrule.coding.files.changes import describe_os_error
from ferrule.coding.files.editor_config import find_charset
from ferrule.coding.files.images import ShownImage, find_image
from ferrule.coding.files.records import FileRecord, hash_content
from ferrule.coding.files.text_files import TextFile, decode_file, show_bad_bytes, split_lines
from ferrule.coding.workspace import Workspace
from ferrule.conversation import Image, Text
from ferrule.errors import FerruleError, FileAccessRefused, SandboxInputError, SandboxUnavailable, ToolFailed, ToolRetry
from ferrule.sandbox.file_access import AccessSnapshot, describe_path
from ferrule.sandbox.file_versions import is_settled

__all__ = ["LoadedFile", "explain_errors", "load_file", "render_file", "suggest_names"]

MOST_BYTES: Final = 64 * 1024 * 1024
"""The longest file that is read whole."""

_MOST_FOLDERS: Final = 500
_KINDS: Final = (
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a zip archive, or a document in one"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"(\xb5/\xfd", "zstandard data"),
    (b"\x7fELF", "a program or library"),
    (b"\xcf\xfa\xed\xfe", "a program or library"),
    (b"MZ", "a Windows program or library"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x00asm", "WebAssembly"),
    (b"\xca\xfe\xba\xbe", "a Java class or a program"),
    (b"RIFF", "sound, video or a WebP image"),
    (b"OggS", "sound or video"),
    (b"ID3", "sound"),
    (b"PAR1", "a Parquet table"),
    (b"\x93NUMPY", "a NumPy array"),
)


@dataclass(frozen=True)
class LoadedFile:
    """A file as it was at one moment."""

    path: str
    """As it is shown: relative to the workspace if it is in it."""
    real: str
    data: bytes
    status: os.stat_result
    settled: os.stat_result | None
    """The status, if every change since then alters it; None if the file was changed just before it was read."""
    record: FileRecord | None
    """What the model knows of it."""
    charset: str | None = None
    """What an `.editorconfig` says of its encoding."""

    @cached_property
    def digest(self) -> str:
        """The hash of the content."""
        if self.record is not None and self.record.matches(self.status):
            return self.record.digest
        return hash_content(self.data)

    @cached_property
    def text(self) -> TextFile | None:
        """Its text; None if it is binary."""
        return decode_file(self.data, self.charset)

    @property
    def is_as_known(self) -> bool:
        """Whether it is what the model read or wrote last."""
        return self.record is not None and self.record.digest == self.digest

    @property
    def origin(self) -> str:
        """The hash of the content that the model's own changes started from."""
        return self.record.origin if self.record is not None and self.is_as_known else self.digest

    @property
    def kind(self) -> str:
        """What it is, if it is binary."""
        return next((kind for start, kind in _KINDS if self.data.startswith(start)), "binary data")


@contextmanager
def explain_errors(verb: str, path: str) -> Iterator[None]:
    """Turn the errors of a file tool into `ToolFailed` with one line; `verb` as in "reading"."""
    try:
        yield
    except (FileAccessRefused, SandboxUnavailable, SandboxInputError) as error:
        raise ToolFailed(str(error)) from error
    except FerruleError:
        raise
    except OSError as error:
        raise ToolFailed(f"Error {verb} {describe_path(path)}: {describe_os_error(error)}") from error


def load_file(workspace: Workspace, path: str, snapshot: AccessSnapshot | None = None) -> LoadedFile:
    """Load a whole file, with a snapshot if one has just been taken.

    Raises `ToolFailed` if it is too long, `FileAccessRefused` and OSError.
    """
    real = workspace.access.resolve(path)
    shown = workspace.access.describe(real)
    with open(workspace.access.open_file(path, snapshot=snapshot), "rb") as file:  # noqa: PTH123 - a descriptor
        status = os.fstat(file.fileno())
        settled = status if is_settled(status.st_ctime_ns) else None
        if status.st_size > MOST_BYTES:
            raise ToolFailed(
                f"{shown} has {describe_size(status.st_size)}, too much to read at once: look at parts of it with bash "
                "(head, tail, sed -n '100,200p') or search in it"
            )
        charset = find_charset(workspace.access, real, snapshot)
        return LoadedFile(shown, real, file.read(), status, settled, workspace.files.get(real), charset)


def suggest_names(workspace: Workspace, path: str) -> str:
    """What may have been meant by the path of a missing file: "Did you mean a.py or b.py?", or nothing."""
    from difflib import get_close_matches

    real = workspace.access.resolve(path)
    folder, name = os.path.split(real)
    candidates: list[str] = []
    if os.path.isdir(folder):  # noqa: PTH112
        near = get_close_matches(name.lower(), {each.lower(): each for each in _list_names(folder)}, n=3, cutoff=0.6)
        candidates += [f"{folder}/{each}" for each in _list_names(folder) if each.lower() in near]
    candidates += _find_by_name(str(workspace.folder), name)
    shown = [
        workspace.access.describe(each)
        for each in dict.fromkeys(candidates)
        if each != real and _may_show(workspace, each)
    ][:3]
    return f" Did you mean {' or '.join(shown)}?" if shown else ""


def _list_names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:5000]  # noqa: PTH208
    except OSError:
        return []


def _find_by_name(folder: str, name: str) -> list[str]:
    """Files of the same name, in the first folders of a workspace."""
    found: list[str] = []
    for number, (at, folders, files) in enumerate(os.walk(folder)):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each != "node_modules")
        found += [f"{at}/{each}" for each in files if each.lower() == name.lower()]
        if number >= _MOST_FOLDERS or len(found) >= 3:
            break
    return found


def _may_show(workspace: Workspace, real: str) -> bool:
    return workspace.access.can_read(real)


_MOST_CHARACTERS: Final = 28_000
"""Below the executor's limit, so that whole lines are left out and the next offset can be named."""
_LONGEST_LINE: Final = 2_000
_IMAGE_NAMES: Final = {
    ".png": "a PNG image", ".jpg": "a JPEG image", ".jpeg": "a JPEG image", ".gif": "a GIF image",
    ".webp": "a WebP image",
}  # fmt: skip


def render_file(file: LoadedFile, offset: int, limit: int | None) -> str | list[Text | Image]:
    """The answer for a file from line `offset` (from 1) on. Raises `ToolRetry` or `ToolFailed` if there is none."""
    try:
        image = find_image(file.path, file.data)
    except ValueError as error:
        raise ToolFailed(str(error)) from error
    if image is not None:
        return _render_image(file, image)
    if file.text is None and (named := _IMAGE_NAMES.get(PurePath(file.path).suffix.lower())):
        raise ToolFailed(
            f"{file.path} is named like {named}, but doesn't begin like an image: it is damaged or something else; "
            "look at its first bytes with bash (`file`, `xxd | head`)"
        )
    if file.text is None:
        raise ToolFailed(
            f"{file.path} is not text but {file.kind} ({describe_size(len(file.data))}): look at it with bash, by a "
            "program for its kind, or by `file` and `xxd | head`"
        )
    lines = split_lines(file.text.text)
    if not lines:
        return f"[{file.path} is empty]"
    if offset > len(lines):
        raise ToolRetry(
            f"{file.path} has {pluralize(len(lines), 'line')}, so there is no line {offset:,}: give an offset up to "
            f"{len(lines)}"
        )
    return _render_lines(file.text, lines, offset, limit)


def _render_lines(text: TextFile, lines: list[str], offset: int, limit: int | None) -> str:
    last = len(lines) if limit is None else min(len(lines), offset - 1 + limit)
    shown: list[str] = []
    left = _MOST_CHARACTERS
    for number in range(offset, last + 1):
        line = _render_line(number, lines[number - 1])
        left -= len(line) + 1
        if left < 0 and shown:
            break
        shown.append(line)
    end = offset - 1 + len(shown)
    notes = [text.description] if text.description else []
    if end < len(lines):
        more = f"{pluralize(len(lines) - end, 'more line')}; go on with offset={end + 1}"
        notes.insert(0, f"lines {offset:,} to {end:,} of {len(lines):,}; {more}")
    elif not text.text.endswith("\n"):
        notes.append("no newline at the end of the file")
    return "\n".join([*shown, *([f"[{'; '.join(notes)}]"] if notes else [])])


def _render_line(number: int, line: str) -> str:
    if len(line) > _LONGEST_LINE:
        line = f"{line[:_LONGEST_LINE]}… [{len(line) - _LONGEST_LINE:,} more characters in this line]"
    return f"{number}\t{show_bad_bytes(line)}"


def _render_image(file: LoadedFile, image: ShownImage) -> list[Text | Image]:
    size = f"{image.width:,} × {image.height:,} pixels, {describe_size(len(file.data))}"
    return [Text(f"{file.path}: {image.media_type}, {size}"), Image(file.data, image.media_type)]
