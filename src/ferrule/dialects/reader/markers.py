"""Finding markers in a text that arrives in pieces, without keeping more of it than a marker is long."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache


class MarkerSet:
    """Some markers, and where the next of them stands in a text.

    `held` are texts that are kept back at the end of a piece although they are no markers: what stands before one.
    """

    def __init__(self, markers: Iterable[str], held: Iterable[str] = ()) -> None:
        known = sorted(set(markers), key=len, reverse=True)
        # A pattern that never matches stands for no markers at all.
        self._pattern = re.compile("|".join(re.escape(m) for m in known) if known else r"(?!)")
        kept = set(held)
        self._prefixes = {m[:n] for m in known for n in range(1, len(m))} | {
            h[:n] for h in kept for n in range(1, len(h) + 1)
        }
        firsts = {text[0] for text in (*known, *kept)}
        # Most text holds no character that a marker begins with, and one look tells.
        self.first = re.compile(f"[{''.join(map(re.escape, sorted(firsts)))}]" if firsts else r"(?!)")
        self._longest = max((len(prefix) for prefix in self._prefixes), default=0)
        self._nested = any(one in other[1:-1] for one in known for other in known)

    def find_next(self, text: str, start: int, limit: int | None = None, *, final: bool = False) -> tuple[int, int]:
        """(end of what is surely text, end of the marker that follows it), looking from `start` up to `limit`.

        Where no marker is found both are equal, and what follows them may be the beginning of one. `final`: nothing
        comes after `limit`, so a marker that could have been the beginning of a longer one is none but itself.
        """
        limit = len(text) if limit is None else limit
        first = self.first.search(text, start, limit)
        if first is None:
            return limit, limit
        start = first.start()
        match = self._pattern.search(text, start, limit)
        if match is not None:
            if final:
                return match.span()
            if not self._nested:
                begins = match.start()
                return (begins, begins) if text[begins:limit] in self._prefixes else match.span()
        # A marker inside of a longer one, or at its beginning, is none while that one may still come.
        before = limit if match is None else match.start() + 1
        for at in range(max(start, limit - self._longest), before):
            if text[at:limit] in self._prefixes:
                return at, at
        return match.span() if match is not None else (limit, limit)


class Stops:
    """Markers that end a run of text. `leads` gives, for a marker, the texts before it that belong to it."""

    def __init__(self, markers: Collection[str], leads: Iterable[tuple[str, str]], spelled_out: frozenset[str]) -> None:
        self._marker_of = {marker: marker for marker in markers}
        self._marker_of.update({lead + marker: marker for marker, lead in leads})
        by_name = {text for text, marker in self._marker_of.items() if marker in spelled_out}
        held = {text.removesuffix(marker) for text, marker in self._marker_of.items() if text not in by_name}
        self.by_text = MarkerSet(self._marker_of)
        self.by_id = MarkerSet(by_name, held - {""})

    def match_marker(self, text: str) -> str | None:
        """The marker that a text is, with what stood before it; None where it is none."""
        return self._marker_of.get(text)


@lru_cache(maxsize=4096)
def make_stops(markers: tuple[str, ...], leads: tuple[tuple[str, str], ...], spelled_out: frozenset[str]) -> Stops:
    return Stops(markers, leads, spelled_out)
