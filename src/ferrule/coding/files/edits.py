"""Replaces quoted parts of a text: exactly if possible, otherwise forgivingly and saying so, never at a guess."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final, NotRequired, TypedDict

from ferrule._util.line_diff import find_changes
from ferrule.coding.files.indentation import Run, indent_runs
from ferrule.coding.files.line_matching import LEVELS, LineIndex, describe_difference, describe_nearest
from ferrule.coding.files.text_files import TextFile, split_lines
from ferrule.errors import ToolFailed

__all__ = ["Edit", "EditedText", "apply_edits"]

_NUMBERED: Final = re.compile(r" *\d+\t")
_MOST_NAMED: Final = 20


class Edit(TypedDict):
    """One replacement in a file."""

    old: Annotated[str, "The text to replace, exactly as it is in the file, with enough lines to occur only once"]
    new: Annotated[str, "The text to put in its place; empty to delete"]
    replace_all: NotRequired[Annotated[bool, "Replace every occurrence, not only one"]]


@dataclass(frozen=True, slots=True)
class EditedText:
    """A file after its edits, and what was ignored to find the places."""

    file: TextFile
    notes: tuple[str, ...]


def apply_edits(file: TextFile, edits: list[Edit], *, exact_only: bool = False) -> EditedText:
    """Apply edits in order, each to the result of the one before. Raises `ToolFailed` if one can't be: none then is."""
    notes: list[str] = []
    for number, edit in enumerate(edits, 1):
        name = f"edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        try:
            file, note = _apply_edit(file, edit, exact_only)
        except ToolFailed as error:
            nothing = " Nothing was changed." if len(edits) > 1 else ""
            raise ToolFailed(f"{name}{error.reason}{nothing}") from error
        if note:
            notes.append(f"{name}{note}")
    return EditedText(file, tuple(notes))


def _apply_edit(file: TextFile, edit: Edit, exact_only: bool) -> tuple[TextFile, str]:
    old, new = edit["old"].replace("\r\n", "\n"), edit["new"].replace("\r\n", "\n")
    if not old:
        raise ToolFailed("`old` is empty: give the text to replace, or use write_file for a whole file")
    if old == new:
        raise ToolFailed("`old` and `new` are the same, so nothing would change")
    start = file.find(old)
    if start >= 0 and file.find(old, start + len(old)) < 0:
        return file.replace(start, start + len(old), new), ""
    count = file.text.count(old) if start >= 0 else 0
    if count and edit.get("replace_all"):
        return file.replace_all(old, new), f"{count} occurrences were replaced"
    if count:
        raise ToolFailed(_describe_several(_list_lines(file.text, old), count))
    shown = file.read_shown(old) if file.bad_bytes else old
    if shown != old and shown in file.text:
        changed, note = _apply_edit(file, {**edit, "old": shown, "new": file.read_shown(new)}, exact_only)
        return changed, "; ".join(filter(None, ("\\x.. was taken for the invalid bytes that it stands for", note)))
    if exact_only:
        raise ToolFailed(f"`old` isn't in the file as you gave it. Read the file first. {_describe(file, old)}")
    return _apply_forgivingly(file, old, new)


def _apply_forgivingly(file: TextFile, old: str, new: str) -> tuple[TextFile, str]:
    wanted, added, note = _strip_numbers(split_lines(old), split_lines(new))
    if not any(line.strip() for line in wanted):
        raise ToolFailed("`old` is only white space, which isn't in the file as you gave it: quote a line next to it")
    lines = split_lines(file.text)
    index = LineIndex(lines)
    for level, (ignored, _) in enumerate(LEVELS):
        found = index.find(wanted, level)
        if len(found) > 1:
            numbers = [number + 1 for number in found]
            raise ToolFailed(_describe_several(numbers, len(numbers), f", ignoring {ignored}" if ignored else ""))
        if found:
            break
    else:
        raise ToolFailed(f"`old` isn't in the file. {_describe(file, old)}")
    [first] = found
    last = first + len(wanted)
    added = _fit_lines(lines, first, wanted, added)
    ignored = " and ".join(filter(None, (note, ignored)))
    where = f"line {first + 1}" if len(wanted) == 1 else f"lines {first + 1} to {last}"
    return _replace_lines(
        file, lines, first, last, added
    ), f"{where} matched only after ignoring {ignored or 'the end'}"


def _fit_lines(lines: list[str], first: int, wanted: list[str], added: list[str]) -> list[str]:
    """The new lines for those that match `wanted`: lines that stay are the file's own, others are indented like it."""
    found = lines[first : first + len(wanted)]
    runs: list[Run] = [(a, b, added[c:d]) for a, b, c, d in find_changes(wanted, added)]
    indented = indent_runs(wanted, found, runs)
    if indented is None:
        raise ToolFailed(
            "`old` matches only after ignoring indentation, which differs by more in some lines than in others, so "
            f"that of `new` is unclear: quote `old` as it is at {describe_difference(lines, wanted, first)}"
        )
    for (start, end, _), new in zip(reversed(runs), reversed(indented), strict=True):
        found[start:end] = new
    return found


def _replace_lines(file: TextFile, lines: list[str], first: int, last: int, added: list[str]) -> TextFile:
    start = sum(len(line) + 1 for line in lines[:first])
    end = start + sum(len(line) + 1 for line in lines[first:last])
    has_end = end <= len(file.text)
    text = "".join(f"{line}\n" for line in added)
    return file.replace(start, min(end, len(file.text)), text if has_end else text.removesuffix("\n"))


def _strip_numbers(wanted: list[str], added: list[str]) -> tuple[list[str], list[str], str]:
    """Remove the line numbers that `read_file` writes, if every line has one."""
    if not wanted or not all(_NUMBERED.match(line) for line in wanted):
        return wanted, added, ""
    return (
        [_NUMBERED.sub("", line, count=1) for line in wanted],
        [_NUMBERED.sub("", line, count=1) for line in added],
        "the line numbers",
    )


def _list_lines(text: str, old: str) -> list[int]:
    """The numbers (from 1) of the first lines in which a text occurs."""
    numbers: list[int] = []
    offset, line = 0, 1
    while len(numbers) < _MOST_NAMED:
        found = text.find(old, offset)
        if found < 0:
            break
        line += text.count("\n", offset, found)
        numbers.append(line)
        line += text.count("\n", found, found + len(old))
        offset = found + len(old)
    return numbers


def _describe_several(lines: list[int], count: int, how: str = "") -> str:
    named = ", ".join(map(str, lines[:_MOST_NAMED])) + (", …" if count > _MOST_NAMED else "")
    return (
        f"`old` occurs {count} times{how}, at lines {named}: quote more lines so that it occurs once, or set "
        "replace_all to true"
    )


def _describe(file: TextFile, old: str) -> str:
    return describe_nearest(split_lines(file.text), split_lines(old))
