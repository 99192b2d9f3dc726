"""Collects the matches that ripgrep reports as JSON lines, and writes them for a model with what was left out."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line
from ferrule.coding.files.encodings import ESCAPED, decode_with
from ferrule.coding.files.text_files import show_bad_bytes

__all__ = ["FoundLine", "MatchCollector", "fingerprint_line", "render_matches"]

MOST_COUNTED: Final = 20_000
"""Matching lines after which a search is stopped."""
MOST_IN_A_FILE: Final = 5
"""Matching lines shown of each file where not all can be shown."""
_LINE_WIDTH: Final = 300
_BEFORE_MATCH: Final = 100
_MOST_KEPT_IN_A_FILE: Final = 2_000
_PATH: Final = re.compile(rb'"path":\{"text":("(?:[^"\\]|\\.)*")')


@dataclass(slots=True)
class FoundLine:
    """A line that matches, or is around one that does; its number is 0 if it is too long to be reported."""

    number: int
    is_match: bool
    text: str
    """As it is shown: the part around the match of a long one."""
    fingerprint: int
    """That of the whole line: see `fingerprint_line`."""


@dataclass(slots=True)
class FileMatches:
    """The matching lines of one file, and those around them."""

    lines: list[FoundLine] = field(default_factory=list)
    count: int = 0
    is_binary: bool = False


@dataclass(slots=True)
class MatchCollector:
    """Takes ripgrep's messages. `is_allowed` decides whether a file, by its path, may be shown."""

    is_allowed: Callable[[str], bool]
    files: dict[str, FileMatches] = field(default_factory=dict)
    count: int = 0
    is_full: bool = False
    """Whether there are more matches than are counted."""
    _refused: set[str] = field(default_factory=set)

    def take(self, line: bytes) -> bool:
        """Take one message; false if no more are wanted."""
        try:
            message = json.loads(line)
        except ValueError:  # a line of a file so long that its message was cut
            self._take_cut(line)
            return not self.is_full
        kind, data = message.get("type"), message.get("data", {})
        if kind in ("match", "context"):
            self._take_line(_read_path(data["path"]), data, is_match=kind == "match")
        elif kind == "end" and data["binary_offset"] is not None:
            path = _read_path(data["path"])
            if path in self.files:
                self.files[path].is_binary = True
        return not self.is_full

    def _take_line(self, path: str, data: dict[str, Any], *, is_match: bool) -> None:
        found = self._find(path)
        if found is None:
            return
        if is_match:
            self._count(found)
        if len(found.lines) < _MOST_KEPT_IN_A_FILE:
            text = _read_bytes(data["lines"])
            start = data["submatches"][0]["start"] if is_match and data["submatches"] else 0
            shown = cut_line(text.rstrip(b"\r\n"), start)
            found.lines.append(FoundLine(data["line_number"] or 0, is_match, shown, fingerprint_line(text)))

    def _take_cut(self, line: bytes) -> None:
        named = _PATH.search(line[:100_000])
        found = self._find(json.loads(named[1])) if named and b'"type":"match"' in line[:100] else None
        if found is not None:
            self._count(found)
            found.lines.append(FoundLine(0, True, "[a line of more than 8 MB matches]", 0))

    def _count(self, found: FileMatches) -> None:
        found.count += 1
        self.count += 1
        self.is_full = self.count >= MOST_COUNTED

    def _find(self, path: str) -> FileMatches | None:
        if path in self._refused:
            return None
        if path not in self.files:
            if not self.is_allowed(path):
                self._refused.add(path)
                return None
            self.files[path] = FileMatches()
        return self.files[path]


def _read_path(value: dict[str, str]) -> str:
    return os.fsdecode(_read_bytes(value))


def _read_bytes(value: dict[str, str]) -> bytes:
    return value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])


def fingerprint_line(text: bytes) -> int:
    """A number that tells a line from others, in this process; its end and bytes that aren't UTF-8 don't count."""
    return hash(text.decode("utf-8", "replace").rstrip("\r\n").removeprefix("\ufeff"))


def cut_line(text: bytes, start: int) -> str:
    """A line with the match at the byte `start`; of a long one, the part around the match.

    Bytes that aren't valid UTF-8 are kept as surrogates.
    """
    if len(text) <= _LINE_WIDTH:
        return text.decode("utf-8", "surrogateescape")
    first = max(0, min(start - _BEFORE_MATCH, len(text) - _LINE_WIDTH))
    last = first + _LINE_WIDTH
    shown = _strip_cut(text[first:last]).decode("utf-8", "surrogateescape")
    before = f"[{first:,} bytes] … " if first else ""
    after = f" … [{len(text) - last:,} bytes]" if last < len(text) else ""
    return f"{before}{shown}{after}"


def _strip_cut(text: bytes) -> bytes:
    """A part of a text without what is left of the characters at its ends."""
    text = re.sub(rb"^[\x80-\xbf]{1,3}", b"", text)
    return re.sub(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})$", b"", text)


def render_matches(
    collector: MatchCollector,
    most: int,
    show_path: Callable[[str], str],
    find_encoding: Callable[[str], str],
    is_there: Callable[[str, Sequence[FoundLine]], bool],
) -> str:
    """The matches, at most `most`, and lines that say how many were left out. Empty if there are none.

    Lines that aren't UTF-8 are decoded by the encoding that `find_encoding` gives for the file. `is_there` says whether
    a file has these lines: if not, none of it is shown.
    """
    texts = {path: found for path, found in sorted(collector.files.items()) if not found.is_binary and found.count}
    binaries = [path for path, found in sorted(collector.files.items()) if found.is_binary]
    total = sum(found.count for found in texts.values())
    shown, shown_files, changed, lines = 0, 0, 0, list[str]()
    for path, found in texts.items():
        room = most - shown if total <= most else min(most - shown, MOST_IN_A_FILE)
        if room <= 0:
            break
        name = escape_line(show_path(path))
        kept = _choose_lines(found, room)
        if not is_there(path, kept):
            changed, total = changed + 1, total - found.count
            continue
        lines += _write_lines(name, kept, path, find_encoding)
        shown += sum(line.is_match for line in kept)
        shown_files += 1
    if shown < total or collector.is_full:
        lines.append(_describe_rest(shown, total, shown_files, len(texts) - changed, is_full=collector.is_full))
    if changed:
        files = pluralize(changed, "file")
        lines.append(f"[not shown: matches in {files} that changed during the search; search again]")
    if binaries:
        named = ", ".join(escape_line(show_path(path)) for path in binaries[:5])
        more = f" and {len(binaries) - 5} more" if len(binaries) > 5 else ""
        lines.append(f"[not shown: matches in {pluralize(len(binaries), 'binary file')}: {named}{more}]")
    return "\n".join(lines)


def _choose_lines(found: FileMatches, room: int) -> list[FoundLine]:
    """The lines up to the match after the last one that there is room for, without that match's context."""
    kept: list[FoundLine] = []
    for line in found.lines:
        if line.is_match:
            if room == 0:
                break
            room -= 1
        kept.append(line)
    return kept


def _write_lines(name: str, lines: list[FoundLine], path: str, find_encoding: Callable[[str], str]) -> list[str]:
    texts = [line.text for line in lines]
    if any(map(ESCAPED.search, texts)):
        encoding = find_encoding(path)
        texts = [show_bad_bytes(decode_with(text.encode("utf-8", "surrogateescape"), encoding)) for text in texts]
    return [
        f"{name}:{line.number or '?'}: {text}" if line.is_match else f"{name}-{line.number}- {text}"
        for line, text in zip(lines, texts, strict=True)
    ]


def _describe_rest(shown: int, total: int, shown_files: int, files: int, *, is_full: bool) -> str:
    of = f"more than {total:,}" if is_full else f"{total:,}"
    return (
        f"[{shown:,} of {of} matches shown, in {shown_files:,} of {files:,}{' or more' if is_full else ''} files; "
        "narrow the pattern, path or glob, or raise max_results]"
    )
