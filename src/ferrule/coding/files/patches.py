"""Applies a patch to the text of a file: each hunk is found by its lines, never by line numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ferrule.coding.files.edits import EditedText
from ferrule.coding.files.indentation import indent_runs
from ferrule.coding.files.line_matching import LEVELS, LineIndex, describe_difference, describe_nearest
from ferrule.coding.files.patch_notation import Hunk
from ferrule.coding.files.text_files import TextFile, split_lines
from ferrule.errors import ToolFailed

__all__ = ["patch_text"]

_MOST_NAMED = 10
_ORDER = "before the place of the hunk above, and not every hunk matches only one place: order hunks as in the file"


@dataclass(frozen=True, slots=True)
class _Match:
    """Where a hunk is in the file: its first line (from 0), how many it has there, and what there is to say of it."""

    first: int
    count: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    """Lines `first` to `last` (exclusive, from 0) become `new`."""

    first: int
    last: int
    new: Sequence[str]


def patch_text(file: TextFile, hunks: Sequence[Hunk]) -> EditedText:
    """Apply the hunks of one file. Raises `ToolFailed` if the lines of one aren't there."""
    lines = split_lines(file.text)
    places: list[_Place] = []
    notes: list[str] = []
    for number, (hunk, match) in enumerate(zip(hunks, _match_hunks(LineIndex(lines), hunks), strict=True), 1):
        try:
            places += _list_places(hunk, lines, match.first, match.count)
        except ToolFailed as error:
            raise _name_hunk(hunks, number, error) from error
        name = f"hunk {number}" if len(hunks) > 1 else "the hunk"
        notes += [f"{name}: {'; '.join(match.notes)}"] if match.notes else []
    places.sort(key=lambda place: place.first)
    for place in reversed(places):
        file = _replace_lines(file, lines, place)
    return EditedText(file, tuple(notes))


def _match_hunks(index: LineIndex, hunks: Sequence[Hunk]) -> list[_Match]:
    """Find each hunk after the one before it, or in any order if each is in the file only once."""
    matches: list[_Match] = []
    at = 0
    for number, hunk in enumerate(hunks, 1):
        try:
            matches.append(_find_hunk(index, hunk, at))
        except ToolFailed as error:
            matches = _match_unordered(index, hunks) if len(hunks) > 1 else []
            if not matches:
                raise _name_hunk(hunks, number, error) from error
            return matches
        at = matches[-1].first + matches[-1].count
    return matches


def _name_hunk(hunks: Sequence[Hunk], number: int, error: ToolFailed) -> ToolFailed:
    name = f"hunk {number}" if len(hunks) > 1 else "the hunk"
    return ToolFailed(f"{name} (line {hunks[number - 1].line} of the patch): {error.reason}")


def _match_unordered(index: LineIndex, hunks: Sequence[Hunk]) -> list[_Match]:
    """Find hunks in any order; empty unless each is in the file only once, and none in another one's place."""
    matches: list[_Match] = []
    for number, hunk in enumerate(hunks, 1):
        try:
            match = _find_hunk(index, hunk, 0, is_only=True)
        except ToolFailed:
            return []
        if matches and match.first < matches[-1].first:
            note = f"it is at line {match.first + 1}, before the place of hunk {number - 1}"
            match = replace(match, notes=(note, *match.notes))
        matches.append(match)
    end = 0
    for match in sorted(matches, key=lambda match: match.first):
        if match.first < end:
            return []
        end = match.first + match.count
    return matches


def _find_hunk(index: LineIndex, hunk: Hunk, at: int, *, is_only: bool = False) -> _Match:
    """Find a hunk from line `at` on.

    Raises `ToolFailed` if it isn't there, or loosely in several places; with `is_only`, also if exactly in several.
    """
    doubtful = ""
    for anchor in hunk.anchors:
        found, level = _find(index, [anchor], at)
        if not found:
            raise ToolFailed(f"the line after @@ isn't there. {_explain(index, [anchor], at)}")
        if (level or is_only) and len(anchors := index.find([anchor], level)) > 1:
            doubtful = f"the line after @@ is at {_name_lines(anchors, level)}: name it exactly, or another one"
        at = found[0] + 1
    old = hunk.old
    if not old and doubtful:
        raise ToolFailed(doubtful)
    if not old:
        return _Match(at if hunk.anchors and not hunk.is_at_end else len(index.lines), 0)
    found, level = _find(index, old, at, is_at_end=hunk.is_at_end)
    if not found and len(old) > 1 and old[-1] == "":
        # A last empty line may stand for the newline at the end of the file.
        old = old[:-1]
        found, level = _find(index, old, at, is_at_end=hunk.is_at_end)
    if not found:
        raise ToolFailed(f"its lines aren't there. {_explain(index, old, at)}")
    is_last = hunk.is_at_end and found[0] + len(old) == len(index.lines)
    if (level or is_only or doubtful) and not is_last:
        # Lines before an anchor are out of the question, those before another hunk aren't.
        places = index.find(old, level, at if hunk.anchors and not doubtful else 0)
        if len(places) > 1:
            raise ToolFailed(f"its lines are at {_name_lines(places, level)}: quote more of them, just as they are")
    return _Match(found[0], len(old), tuple(_describe(found, level)))


def _find(index: LineIndex, wanted: Sequence[str], at: int, *, is_at_end: bool = False) -> tuple[list[int], int]:
    """The places of some lines from line `at` on, and the strictest level that has any."""
    for level in range(len(LEVELS)):
        found = index.find(wanted, level, at)
        if is_at_end and found:
            found = index.find(wanted, level, max(at, len(index.lines) - len(wanted))) or found
        if found:
            return found, level
    return [], 0


def _describe(found: Sequence[int], level: int) -> Iterator[str]:
    first = found[0] + 1
    if level:
        yield f"matched at line {first} only after ignoring {LEVELS[level][0]}"
    elif len(found) > 1:
        yield f"its lines are also at {_name_lines(found[1:], 0)}; the first place, line {first}, was changed"


def _name_lines(numbers: Sequence[int], level: int) -> str:
    named = ", ".join(str(each + 1) for each in numbers[:_MOST_NAMED])
    rest = ", …" if len(numbers) > _MOST_NAMED else ""
    return f"{named}{rest}" + (f", ignoring {LEVELS[level][0]}" if level else "")


def _explain(index: LineIndex, wanted: Sequence[str], at: int) -> str:
    earlier = [number for number in index.find(wanted, len(LEVELS) - 1) if number < at]
    if earlier:
        return f"They are at line {earlier[0] + 1}, {_ORDER}"
    return describe_nearest(index.lines, wanted)


def _list_places(hunk: Hunk, lines: Sequence[str], first: int, count: int) -> list[_Place]:
    """The runs of lines that change. Context lines stay as they are in the file, also if they were quoted otherwise."""
    places: list[_Place] = []
    at = start = first
    new: list[str] = []
    for mark, line in [*hunk.lines, (" ", "")]:
        if mark == "+":
            new.append(line)
        elif mark == "-":
            at += 1
        else:
            if new or at > start:
                places.append(_Place(start, min(at, first + count), new))
            at += 1
            start, new = at, []
    wanted = hunk.old[:count]
    runs = [(place.first - first, place.last - first, place.new) for place in places]
    indented = indent_runs(wanted, lines[first : first + count], runs) if wanted else [place.new for place in places]
    if indented is None:
        raise ToolFailed(
            "its lines match only after ignoring indentation, which differs by more in some lines than in others, so "
            f"that of the new ones is unclear: quote {describe_difference(lines, wanted, first)}"
        )
    return [replace(place, new=new) for place, new in zip(places, indented, strict=True)]


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
