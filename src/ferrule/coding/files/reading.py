"""What `read_file` answers: numbered lines up to a limit, an image, or what else a file is and what to do."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from ferrule._util.file_size import describe_size
from ferrule._util.pluralize import pluralize
from ferrule.coding.files.images import ShownImage, find_image
from ferrule.coding.files.loading import LoadedFile
from ferrule.coding.files.text_files import TextFile, show_bad_bytes, split_lines
from ferrule.conversation import Image, Text
from ferrule.errors import ToolFailed, ToolRetry

__all__ = ["render_file"]

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
