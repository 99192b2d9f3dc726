"""Finding markers in a text that arrives in pieces, without keeping more of it than a marker is long."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence


class MarkerScanner:
    """Splits a stream into text and markers. Costs O(piece) for each piece, whatever came before.

    What may still be the beginning of a marker is held back until the next piece decides it.
    """

    def __init__(self, markers: Sequence[str]) -> None:
        self._pattern = re.compile("|".join(re.escape(m) for m in sorted(markers, key=len, reverse=True)))
        self._prefixes = frozenset(m[:n] for m in markers for n in range(1, len(m)))
        self._longest = max(map(len, markers)) - 1
        self._firsts = frozenset(m[0] for m in markers)
        self._held = ""

    def feed(self, piece: str) -> Iterator[tuple[str, bool]]:
        """Yield (text, is_marker) pairs, no text empty."""
        text = self._held + piece
        start = 0
        for match in self._pattern.finditer(text):
            if match.start() > start:
                yield text[start : match.start()], False
            yield match.group(), True
            start = match.end()
        keep = self._held_back(text, start)
        self._held = text[len(text) - keep :] if keep else ""
        if start < len(text) - keep:
            yield text[start : len(text) - keep], False

    def flush(self) -> str:
        """What was held back, now that nothing more can make a marker of it."""
        held, self._held = self._held, ""
        return held

    def _held_back(self, text: str, start: int) -> int:
        for at in range(max(start, len(text) - self._longest), len(text)):
            if text[at] in self._firsts and text[at:] in self._prefixes:
                return len(text) - at
        return 0
