"""Unified diffs of texts that may be long: at a bounded cost, and cut to a bounded length."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ferrule._util.spliced_bytes import EncodedText, SplicedBytes, decode_text

__all__ = ["count_common_end", "count_common_start", "diff_texts", "find_changes", "make_unified_diff"]

_CONTEXT = 3
_CHUNK = 32_768
_MOST_COMPARISONS = 1_000_000
"""Beyond this product of lines before and after, a region is first split at lines that occur once in both."""

_Text = TypeVar("_Text", str, bytes)

Block = tuple[int, int, int, int]
"""Lines `before[a:b]` became `after[c:d]`."""


def diff_texts(before: EncodedText, after: EncodedText) -> list[str]:
    """The lines of a unified diff without headers. Fast if little has changed, however long the texts are.

    Of texts that are given in UTF-8, only the lines around the change are decoded.
    """
    offset = 0
    if isinstance(after, SplicedBytes) and after.base is before:
        before, after, offset = after.cut_lines(_CHUNK)
    if isinstance(before, bytes) and isinstance(after, bytes):
        window = _find_window(before, after, b"\n")
        old, new = before[window.start : window.old_end].decode(), after[window.start : window.new_end].decode()
    else:
        before, after = decode_text(before), decode_text(after)
        window = _find_window(before, after, "\n")
        old, new = before[window.start : window.old_end], after[window.start : window.new_end]
    is_last = window.old_end == len(before)
    return make_unified_diff(_split(old, is_last), _split(new, is_last), offset=offset + window.line)


def make_unified_diff(before: Sequence[str], after: Sequence[str], *, offset: int = 0) -> list[str]:
    """The lines of a unified diff without headers. `offset` is the number of lines before the given ones."""
    blocks = list(find_changes(before, after))
    return [line for group in _group(blocks) for line in _render_group(group, before, after, offset)] if blocks else []


@dataclass(frozen=True, slots=True)
class _Window:
    """The lines of two texts from the first to the last that differ, with the context around them."""

    start: int
    old_end: int
    new_end: int
    line: int
    """How many lines are before it."""


def _find_window(before: _Text, after: _Text, line_end: _Text) -> _Window:
    start = count_common_start(before, after)
    end = min(count_common_end(before, after), min(len(before), len(after)) - start)
    start, end = _widen_start(before, start, line_end), _widen_end(before, end, line_end)
    return _Window(start, len(before) - end, len(after) - end, before.count(line_end, 0, start))


def _widen_start(text: _Text, start: int, line_end: _Text) -> int:
    """The start of the line that is `_CONTEXT` lines before an offset."""
    for _ in range(_CONTEXT + 1):
        start = text.rfind(line_end, 0, start)
        if start < 0:
            return 0
    return start + 1


def _widen_end(text: _Text, end: int, line_end: _Text) -> int:
    """How much of the end is left after the line that is `_CONTEXT` lines after it begins."""
    at = len(text) - end
    if text[at - 1 : at] == line_end:
        at -= 1
    for _ in range(_CONTEXT + 1):
        at = text.find(line_end, at) + 1
        if not at:
            return 0
    return len(text) - at


def _split(text: str, is_last: bool) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"] if is_last else lines


def find_changes(
    before: Sequence[str], after: Sequence[str], old_offset: int = 0, new_offset: int = 0
) -> Iterator[Block]:
    """The changed blocks of lines, in order; the offsets are added to their numbers."""
    start = count_common_start(before, after)
    end = min(count_common_end(before, after), min(len(before), len(after)) - start)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    old_offset, new_offset = old_offset + start, new_offset + start
    if not old and not new:
        return
    if not old or not new:
        yield old_offset, old_offset + len(old), new_offset, new_offset + len(new)
    elif len(old) * len(new) <= _MOST_COMPARISONS:
        # Slow to import, and only needed for changes in several places.
        from difflib import SequenceMatcher

        for tag, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
            if tag != "equal":
                yield a + old_offset, b + old_offset, c + new_offset, d + new_offset
    else:
        anchors = _find_anchors(old, new)
        if not anchors:
            yield old_offset, old_offset + len(old), new_offset, new_offset + len(new)
            return
        a = c = 0
        for b, d in (*anchors, (len(old), len(new))):
            yield from find_changes(old[a:b], new[c:d], a + old_offset, c + new_offset)
            a, c = b, d


def _find_anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Places of lines that occur once in both, in increasing order in both: those of a patience diff."""
    once = {line for line, count in Counter(old).items() if count == 1}
    once &= {line for line, count in Counter(new).items() if count == 1}
    places = {line: number for number, line in enumerate(old) if line in once}
    pairs = [(places[line], number) for number, line in enumerate(new) if line in once]
    # The longest increasing sequence of places in `old`.
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (place, _) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [number]
    chain: list[tuple[int, int]] = []
    at = last[-1] if last else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]


def count_common_start(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many first elements, or characters, are the same."""
    length = min(len(one), len(other))
    # Comparing slices is much faster than comparing each, and short ones cost no new memory.
    for at in range(0, length, _CHUNK):
        if one[at : at + _CHUNK] != other[at : at + _CHUNK]:
            return at + _halve(one[at : at + _CHUNK], other[at : at + _CHUNK])
    return length


def count_common_end(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many last elements, or characters, are the same."""
    length = min(len(one), len(other))
    for at in range(0, length, _CHUNK):
        size = min(_CHUNK, length - at)
        first = one[len(one) - at - size : len(one) - at]
        second = other[len(other) - at - size : len(other) - at]
        if first != second:
            return at + _halve(first[::-1], second[::-1])
    return length


def _halve(one: Sequence[Any], other: Sequence[Any]) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _group(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Changes that are so near to each other that their contexts touch."""
    group = [blocks[0]]
    for block in blocks[1:]:
        if block[0] - group[-1][1] > 2 * _CONTEXT:
            yield group
            group = []
        group.append(block)
    yield group


def _render_group(group: Sequence[Block], before: Sequence[str], after: Sequence[str], offset: int) -> Iterator[str]:
    a, c = max(0, group[0][0] - _CONTEXT), max(0, group[0][2] - _CONTEXT)
    b, d = min(len(before), group[-1][1] + _CONTEXT), min(len(after), group[-1][3] + _CONTEXT)
    yield f"@@ -{_render_range(a + offset, b + offset)} +{_render_range(c + offset, d + offset)} @@"
    shown = a
    for old, old_end, new, new_end in group:
        yield from (f" {line}" for line in before[shown:old])
        yield from (f"-{line}" for line in before[old:old_end])
        yield from (f"+{line}" for line in after[new:new_end])
        shown = old_end
    yield from (f" {line}" for line in before[shown:b])


def _render_range(start: int, end: int) -> str:
    if end - start == 1:
        return str(start + 1)
    return f"{start + 1 if end > start else start},{end - start}"
