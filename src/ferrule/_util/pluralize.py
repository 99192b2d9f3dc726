"""Counts in messages: `1 tool`, `2 tools`."""

from __future__ import annotations


def pluralize(count: int, noun: str, plural: str = "") -> str:
    """Write a count with its noun; `plural` is the noun's plural if that isn't made with an `s`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
