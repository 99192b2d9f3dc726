"""Finding markers in a text that arrives in pieces, without keeping more of it than a marker is long."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator


class MarkerSet:
    """Some markers, and where the next of them stands in a text."""

    def __init__(self, markers: Iterable[str]) -> None:
        known = sorted(set(markers), key=len, reverse=True)
        # A pattern that never matches stands for no markers at all.
        self._pattern = re.compile("|".join(re.escape(m) for m in known) if known else r"(?!)")
        self._prefixes = frozenset(m[:n] for m in known for n in range(1, len(m)))
        self._firsts = frozenset(m[0] for m in known)
        self._longest = len(known[0]) - 1 if known else 0

    def next(self, text: str, start: int) -> tuple[int, int]:
        """(end of what is surely text, end of the marker that follows it), looking from `start`.

        Where no marker is found both are equal, and what follows them may be the beginning of one.
        """
        match = self._pattern.search(text, start)
        if match is not None:
            return match.span()
        for at in range(max(start, len(text) - self._longest), len(text)):
            if text[at] in self._firsts and text[at:] in self._prefixes:
                return at, at
        return len(text), len(text)


class MarkerScanner:
    """Splits a stream into text and markers. Costs O(piece) for each piece, whatever came before.

    What may still be the beginning of a marker is held back until the next piece decides it.
    """

    def __init__(self, markers: Iterable[str]) -> None:
        self._markers = MarkerSet(markers)
        self._held = ""

    def feed(self, piece: str) -> Iterator[tuple[str, bool]]:
        """Yield (text, is_marker) pairs, no text empty."""
        text = self._held + piece
        start = 0
        while True:
            text_end, marker_end = self._markers.next(text, start)
            if text_end > start:
                yield text[start:text_end], False
            if marker_end == text_end:
                self._held = text[text_end:]
                return
            yield text[text_end:marker_end], True
            start = marker_end

    def flush(self) -> str:
        """What was held back, now that nothing more can make a marker of it."""
        held, self._held = self._held, ""
        return held
