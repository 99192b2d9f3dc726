"""What `read_file` answers: numbered lines up to a limit, an image, or what else a file is and what to do."""

from __future__ import annotations

from typing import Final

from ferrule.coding.files.loading import LoadedFile, describe_size
from ferrule.coding.files.text_files import TextFile, show_bad_bytes, split_lines
from ferrule.conversation import Image, Text
from ferrule.errors import ToolFailed, ToolRetry
from ferrule.media import find_image_type

__all__ = ["render_file"]

_MOST_CHARACTERS: Final = 28_000
"""Below the executor's limit, so that whole lines are left out and the next offset can be named."""
_LONGEST_LINE: Final = 2_000
_LARGEST_IMAGE: Final = 5_000_000  # what providers take


def render_file(file: LoadedFile, offset: int, limit: int | None) -> str | list[Text | Image]:
    """The answer for a file from line `offset` (from 1) on. Raises `ToolRetry` or `ToolFailed` if there is none."""
    media_type = find_image_type(file.data) or ("image/webp" if file.data[8:12] == b"WEBP" else None)
    if media_type is not None:
        return _render_image(file, media_type)
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
            f"{file.path} has {_count(lines)}, so there is no line {offset:,}: give an offset up to {len(lines)}"
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
        more = f"{len(lines) - end:,} more lines; go on with offset={end + 1}"
        notes.insert(0, f"lines {offset:,} to {end:,} of {len(lines):,}; {more}")
    elif not text.text.endswith("\n"):
        notes.append("no newline at the end of the file")
    return "\n".join([*shown, *([f"[{'; '.join(notes)}]"] if notes else [])])


def _render_line(number: int, line: str) -> str:
    if len(line) > _LONGEST_LINE:
        line = f"{line[:_LONGEST_LINE]}… [{len(line) - _LONGEST_LINE:,} more characters in this line]"
    return f"{number}\t{show_bad_bytes(line)}"


def _render_image(file: LoadedFile, media_type: str) -> list[Text | Image]:
    if len(file.data) > _LARGEST_IMAGE:
        raise ToolFailed(
            f"{file.path} is an image of {describe_size(len(file.data))}, more than the "
            f"{describe_size(_LARGEST_IMAGE)} that can be shown: make it smaller with bash first"
        )
    return [Text(f"{file.path}: {media_type}, {describe_size(len(file.data))}"), Image(file.data, media_type)]


def _count(lines: list[str]) -> str:
    return "1 line" if len(lines) == 1 else f"{len(lines):,} lines"
