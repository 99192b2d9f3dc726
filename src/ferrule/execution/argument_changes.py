"""Describes what a person has changed in the arguments of a call, briefly, for the model that wrote them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_LONGEST_VALUE = 300
"""The most characters shown of one value before and after; only a text of several lines gets a diff."""
_MOST_LINES = 60
"""The most lines shown of one diff."""
_CONTEXT = 20


def describe_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Describe each argument that differs, one below the other; a text of several lines as a bounded diff."""
    names = dict.fromkeys((*before, *after))
    changes = [change for name in names for change in _describe_change(name, before, after)]
    return "\n".join(changes)


def _describe_change(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    if name not in after:
        yield f"{name}: removed (it was {_cut(_dump(before[name]))})"
    elif name not in before:
        yield f"{name}: added: {_cut(_dump(after[name]))}"
    elif before[name] != after[name]:
        old, new = before[name], after[name]
        if isinstance(old, str) and isinstance(new, str) and ("\n" in old.rstrip("\n") or "\n" in new.rstrip("\n")):
            yield f"{name}:"
            yield from _diff_lines(old, new)
        else:
            yield f"{name}: {' → '.join(_cut_around_change(_dump(old), _dump(new)))}"


def _diff_lines(old: str, new: str) -> Iterator[str]:
    # Slow to import, and only needed after an edit.
    from difflib import unified_diff

    lines = [_cut(line) for line in list(unified_diff(_split_lines(old), _split_lines(new), lineterm="", n=1))[2:]]
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        yield f"[… {len(lines) - _MOST_LINES:,} more lines of this difference left out …]"


def _split_lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]}\\ (no newline at the end)"]


def _cut_around_change(old: str, new: str) -> tuple[str, str]:
    """Cut two texts of one line each to the part in which they differ, if they are long."""
    if len(old) + len(new) <= _LONGEST_VALUE:
        return old, new
    shorter = min(len(old), len(new))
    start = next((place for place in range(shorter) if old[place] != new[place]), shorter)
    end = next((place for place in range(shorter - start) if old[-1 - place] != new[-1 - place]), shorter - start)
    first, last = max(0, start - _CONTEXT), max(0, end - _CONTEXT)
    return _cut_ends(old, first, last), _cut_ends(new, first, last)


def _cut_ends(text: str, first: int, last: int) -> str:
    middle = _cut(text[first : len(text) - last])
    return f"{'…' if first else ''}{middle}{'…' if last else ''}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}… ({len(text):,} characters)"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
