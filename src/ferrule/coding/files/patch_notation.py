"""Reads the patch notation that OpenAI's models are trained on (`*** Begin Patch`), as forgivingly as codex does.

*** Begin Patch
*** Update File: src/app.py
*** Move to: src/main.py
@@ def greet():
-    print("Hi")
+    print("Hello")
*** Add File: notes.txt
+one line
*** Delete File: old.txt
*** End Patch

Lines of a unified diff that models add to it, and a missing end marker, are accepted where they are unambiguous.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal

from ferrule.errors import ToolRetry

__all__ = ["FilePatch", "Hunk", "list_patched", "parse_patch"]

_BEGIN, _END, _END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
_HEADERS: Final[dict[str, Literal["add", "delete", "update"]]] = {
    "*** Add File:": "add",
    "*** Delete File:": "delete",
    "*** Update File:": "update",
}
_MOVE = "*** Move to:"
_HEREDOC: Final = re.compile(r"(?:cat\s+|apply_patch\s+)?<<-?\s*(['\"]?)(\w+)\1\s*")
_UNIFIED: Final = re.compile(
    r"diff --git |index [0-9a-f]+\.\.|(old|new|new file|deleted file) mode \d|similarity index |rename (from|to) |"
    r"\\ No newline at end of file"
)
"""Lines of a unified diff that can't be mistaken for lines of a file."""
_IGNORED: Final = "lines of a unified diff in its section, such as headers, were ignored"


@dataclass(slots=True)
class Hunk:
    """One change within a file, after the lines in `anchors`."""

    anchors: list[str] = field(default_factory=list)
    """What `@@` lines name, one after the other: lines that come before the change."""
    lines: list[tuple[str, str]] = field(default_factory=list)
    """Each with its mark: ' ' for one that stays, '-' or '+'."""
    is_at_end: bool = False
    line: int = 0
    """The number of its first line in the patch."""
    empty_lines: int = 0
    """Those at its end that have no mark, and so may only separate it from what follows."""

    @property
    def old(self) -> list[str]:
        """The lines that must be there."""
        return [line for mark, line in self.lines if mark != "+"]


@dataclass(slots=True)
class FilePatch:
    """What a patch does to one file."""

    kind: Literal["add", "delete", "update"]
    path: str
    line: int
    move_to: str | None = None
    content: str = ""
    """Of a file to add."""
    hunks: list[Hunk] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What isn't as the notation has it, and was accepted."""


def parse_patch(text: str) -> list[FilePatch]:
    """Parse a patch. Raises `ToolRetry` that names the line and what is expected there."""
    lines, first, has_end = _find_body(text)
    patches: list[FilePatch] = []
    for number, line in enumerate(lines, first):
        # In a hunk, a line that begins with a space is one of the file, whatever it says.
        is_context = bool(patches and patches[-1].hunks and line.startswith(" "))
        header = next((each for each in _HEADERS if line.strip().startswith(each)), None)
        if header is not None and not is_context:
            path = line.strip()[len(header) :].strip()
            if not path:
                raise _make_error(number, line, f"{header} is followed by a path")
            patches.append(FilePatch(_HEADERS[header], path, number))
        elif patches:
            _READERS[patches[-1].kind](patches[-1], line, number)
        elif line.strip():
            raise _make_error(number, line, f"a patch begins with one of {', '.join(_HEADERS)}")
    if not patches:
        raise ToolRetry(f"the patch changes nothing: between {_BEGIN} and {_END} comes {', '.join(_HEADERS)}")
    for patch in patches:
        _check(patch)
    if not has_end:
        _check_end(patches[-1], lines)
    return patches


def list_patched(patches: Iterable[FilePatch]) -> list[str]:
    """List the paths that a patch names, of files that it moves both."""
    return [path for each in patches for path in (each.path, each.move_to) if path]


def _find_body(text: str) -> tuple[list[str], int, bool]:
    """The lines between the markers, the number of the first, and whether the end is marked."""
    text = text.replace("\r\n", "\n")
    heredoc = _find_heredoc(text)
    lines = (text if heredoc is None else heredoc).split("\n")
    stripped = [line.strip() for line in lines]
    if _BEGIN not in stripped:
        raise ToolRetry(f"the patch has no line {_BEGIN!r}, with which it begins")
    begin = stripped.index(_BEGIN)
    ends = [at for at in range(begin, len(lines)) if stripped[at] == _END]
    if not ends:
        return lines[begin + 1 :], begin + 2, heredoc is not None
    # One after a space may be a line of a file that says the same.
    end = max((at for at in ends if not lines[at].startswith(" ")), default=ends[-1])
    for number, line in enumerate(lines[end + 1 :], end + 2):
        if line.startswith(tuple(_HEADERS)):
            raise _make_error(number, line, f"nothing comes after {_END!r}")
    return lines[begin + 1 : end], begin + 2, True


def _find_heredoc(text: str) -> str | None:
    """The text between the lines of a shell that make it a program's input; None if there are none."""
    first, _, rest = text.strip().partition("\n")
    body, _, last = rest.rpartition("\n")
    opened = _HEREDOC.fullmatch(first)
    return body if opened is not None and opened[2] == last.strip() else None


def _check_end(last: FilePatch, lines: Sequence[str]) -> None:
    """Note that the end isn't marked. Raises `ToolRetry` if the last section may have been cut off there."""
    hunk = last.hunks[-1] if last.hunks else None
    mark = hunk.lines[-1][0] if hunk is not None else "+"
    # Lines that replace removed ones may be missing, and any line that may go on.
    is_whole = lines[-1] == "" and mark == "+"
    if hunk is not None and any(each != " " for each, _ in hunk.lines):
        is_whole = is_whole or mark == " " or hunk.is_at_end
    ending = next(line for line in reversed(lines) if line.strip())[-100:]
    if not is_whole:
        raise ToolRetry(
            f"the patch has no line {_END!r}, with which it ends: it may have been cut off at or after {ending!r}"
        )
    last.notes.append(f"the patch has no line {_END!r}; it ends with {ending!r}")


def _read_added(patch: FilePatch, line: str, number: int) -> None:
    is_name = line[:4] in ("--- ", "+++ ") and not patch.content
    is_name = is_name and (line[4:].startswith("/dev/null") or _names_file(patch, line[4:]))
    if is_name or _UNIFIED.match(line) or (re.match(r"@@ -\d", line) and not patch.content):
        _note_unified(patch)
    elif line.startswith("+"):
        patch.content += line[1:] + "\n"
    elif line.strip():
        raise _make_error(number, line, f"each line of {patch.path}, a file to add, begins with '+'")


def _read_deleted(patch: FilePatch, line: str, number: int) -> None:
    if line.strip():
        raise _make_error(number, line, f"nothing follows the path of {patch.path}, a file to delete")


def _read_updated(patch: FilePatch, line: str, number: int) -> None:
    if line.startswith(_MOVE) and not patch.hunks:
        patch.move_to = line[len(_MOVE) :].strip()
        return
    if line.startswith("@@"):
        _start_hunk(patch, line, number)
        return
    if line.rstrip() == _END_OF_FILE and patch.hunks:
        patch.hunks[-1].is_at_end = True
        return
    if _UNIFIED.match(line):
        _note_unified(patch)
        return
    if not patch.hunks or patch.hunks[-1].is_at_end:
        patch.hunks.append(Hunk(line=number))
    hunk = patch.hunks[-1]
    mark, rest = line[:1] or " ", line[1:]
    if mark not in "+- ":
        raise _make_error(number, line, f"each line of a change to {patch.path} begins with ' ', '-', '+' or '@@'")
    hunk.lines.append((mark, rest))
    hunk.empty_lines = 0 if line else hunk.empty_lines + 1


def _start_hunk(patch: FilePatch, line: str, number: int) -> None:
    anchor = line[2:].removeprefix(" ")
    # As in a unified diff, whose line numbers mean nothing here.
    anchor = re.sub(r"^-\d+(,\d+)? \+\d+(,\d+)? @@ ?", "", anchor).removesuffix(" @@")
    if not patch.hunks or patch.hunks[-1].lines:
        patch.hunks.append(Hunk(line=number))
    if anchor.strip() and anchor.strip() != "@@":
        patch.hunks[-1].anchors.append(anchor)


def _drop_file_names(patch: FilePatch, hunk: Hunk) -> bool:
    """Remove the two lines that name the file in a unified diff, `--- a/app.py` and `+++ b/app.py`, if it has them."""
    for at, ((mark, old), (other, new)) in enumerate(pairwise(hunk.lines)):
        is_pair = (mark, other, old[:3], new[:3]) == ("-", "+", "-- ", "++ ")
        if is_pair and _names_file(patch, old[3:]) and _names_file(patch, new[3:]):
            del hunk.lines[at : at + 2]
            _note_unified(patch)
            return True
    return False


def _names_file(patch: FilePatch, name: str) -> bool:
    """Whether the header of a unified diff names the file of a section."""
    name = name.split("\t", maxsplit=1)[0].strip().strip('"')
    names = {posixpath.normpath(each) for each in (name, re.sub("^[ab]/", "", name))}
    return any(path and posixpath.normpath(path) in names for path in (patch.path, patch.move_to))


def _note_unified(patch: FilePatch) -> None:
    if _IGNORED not in patch.notes:
        patch.notes.append(_IGNORED)


_READERS: Final = {"add": _read_added, "delete": _read_deleted, "update": _read_updated}


def _check(patch: FilePatch) -> None:
    patch.hunks = [
        hunk for hunk in patch.hunks if not (_drop_file_names(patch, hunk) and len(hunk.lines) <= hunk.empty_lines)
    ]
    for hunk in patch.hunks:
        # Empty lines between two files are no context.
        if hunk is patch.hunks[-1] and hunk.empty_lines:
            del hunk.lines[-hunk.empty_lines :]
        if not hunk.lines:
            raise ToolRetry(f"line {hunk.line} of the patch begins a change to {patch.path} that has no lines")
    if patch.kind == "update" and not patch.hunks and patch.move_to is None:
        raise ToolRetry(f"line {patch.line} of the patch updates {patch.path} without a change")


def _make_error(number: int, line: str, expected: str) -> ToolRetry:
    return ToolRetry(f"line {number} of the patch, {line[:100]!r}, can't be read: {expected}")
