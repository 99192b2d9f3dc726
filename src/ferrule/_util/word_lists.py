"""Lists as people write them."""

from __future__ import annotations

from collections.abc import Sequence


def show_list(entries: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`; an empty list is `none`."""
    if not entries:
        return "none"
    return f"{', '.join(entries[:-1])} and {entries[-1]}" if len(entries) > 1 else entries[0]
