"""Applies a patch to the text of a file: hunks in order, each found by its lines, never by line numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.coding.files.edits import EditedText
from ferrule.coding.files.line_matching import LEVELS, LineIndex, describe_nearest, shift_indentation
from ferrule.coding.files.patch_notation import Hunk
from ferrule.coding.files.text_files import TextFile, split_lines
from ferrule.errors import ToolFailed

__all__ = ["patch_text"]

_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class _Place:
    """Lines `first` to `last` (exclusive, from 0) become `new`."""

    first: int
    last: int
    new: Sequence[str]


def patch_text(file: TextFile, hunks: Sequence[Hunk]) -> EditedText:
    """Apply the hunks of one file. Raises `ToolFailed` if the lines of one aren't there."""
    lines = split_lines(file.text)
    index = LineIndex(lines)
    places: list[_Place] = []
    notes: list[str] = []
    at = 0
    for number, hunk in enumerate(hunks, 1):
        name = f"hunk {number}" if len(hunks) > 1 else "the hunk"
        try:
            first, count, note = _find_hunk(index, hunk, at)
        except ToolFailed as error:
            raise ToolFailed(f"{name} (line {hunk.line} of the patch): {error.reason}") from error
        places += _list_places(hunk, lines, first, count)
        at = first + count
        notes += [f"{name}: {note}"] if note else []
    for place in reversed(places):
        file = _replace_lines(file, lines, place)
    return EditedText(file, tuple(notes))


def _find_hunk(index: LineIndex, hunk: Hunk, at: int) -> tuple[int, int, str]:
    """The first line (from 0) of a hunk in the file, how many it has there, and what there is to say of it."""
    for anchor in hunk.anchors:
        found, _ = _find(index, [anchor], at)
        if not found:
            raise ToolFailed(f"the line after @@ isn't there. {_explain(index, [anchor], at)}")
        at = found[0] + 1
    old = hunk.old
    if not old:
        return (at if hunk.anchors and not hunk.is_at_end else len(index.lines)), 0, ""
    found, ignored = _find(index, old, at, is_at_end=hunk.is_at_end)
    if not found and len(old) > 1 and old[-1] == "":
        # A last empty line may stand for the newline at the end of the file.
        old = old[:-1]
        found, ignored = _find(index, old, at, is_at_end=hunk.is_at_end)
    if not found:
        raise ToolFailed(f"its lines aren't there. {_explain(index, old, at)}")
    return found[0], len(old), _describe(found, ignored)


def _find(index: LineIndex, wanted: Sequence[str], at: int, *, is_at_end: bool = False) -> tuple[list[int], str]:
    """The places of some lines from line `at` on, at the strictest level that has any, and what that ignores."""
    for level, (ignored, _) in enumerate(LEVELS):
        found = index.find(wanted, level, at)
        if is_at_end and found:
            last = index.find(wanted, level, max(at, len(index.lines) - len(wanted)))
            found = last or found[:1]
        if found:
            return found, ignored
    return [], ""


def _describe(found: Sequence[int], ignored: str) -> str:
    first = found[0] + 1
    notes = [f"matched at line {first} only after ignoring {ignored}"] if ignored else []
    if len(found) > 1:
        named = ", ".join(str(each + 1) for each in found[1 : _MOST_NAMED + 1])
        rest = ", …" if len(found) > _MOST_NAMED + 1 else ""
        notes.append(f"its lines are also at {named}{rest}; the first place, line {first}, was changed")
    return "; ".join(notes)


def _explain(index: LineIndex, wanted: Sequence[str], at: int) -> str:
    earlier = [number for number in index.find(wanted, len(LEVELS) - 1) if number < at]
    if earlier:
        return f"They are at line {earlier[0] + 1}, before the place of the hunk above: order hunks as in the file"
    return describe_nearest(index.lines, wanted)


def _list_places(hunk: Hunk, lines: Sequence[str], first: int, count: int) -> list[_Place]:
    """The runs of lines that change. Context lines stay as they are in the file, also if they were quoted otherwise."""
    added = [line for mark, line in hunk.lines if mark == "+"]
    wanted, found = hunk.old[:count], lines[first : first + count]
    if list(map(str.rstrip, wanted)) != list(map(str.rstrip, found)):
        added = shift_indentation(added, wanted, found)
    remaining = iter(added)
    places: list[_Place] = []
    at = start = first
    new: list[str] = []
    for mark, _ in [*hunk.lines, (" ", "")]:
        if mark == "+":
            new.append(next(remaining))
        elif mark == "-":
            at += 1
        else:
            if new or at > start:
                places.append(_Place(start, min(at, first + count), new))
            at += 1
            start, new = at, []
    return places


def _replace_lines(file: TextFile, lines: Sequence[str], place: _Place) -> TextFile:
    start = sum(len(line) + 1 for line in lines[: place.first])
    end = start + sum(len(line) + 1 for line in lines[place.first : place.last])
    text = "".join(f"{line}\n" for line in place.new)
    size = len(file.text)
    if start > size:  # after a last line without a newline
        return file.replace(size, size, f"\n{text}".removesuffix("\n"))
    if end > size:
        text = text.removesuffix("\n")
        start -= 1 if not place.new and start else 0
    return file.replace(start, min(end, size), text)
