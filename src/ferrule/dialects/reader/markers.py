"""Finds markers in a text that arrives in pieces, buffering at most the length of a marker."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache


class MarkerSet:
    """A set of markers, and the search for the next one in a text.

    `held` are texts that are kept back at the end of a piece although they are not markers: what may precede one.
    `ahead` are patterns of what must follow a marker of one character, unless nothing has arrived after it.
    """

    def __init__(self, markers: Iterable[str], held: Iterable[str] = (), ahead: Sequence[tuple[str, str]] = ()) -> None:
        known = sorted(set(markers), key=len, reverse=True)
        followed = {marker: rf"(?={pattern}|\Z)" for marker, pattern in ahead}
        # Without markers, a pattern that never matches.
        self._pattern = re.compile("|".join(re.escape(m) + followed.get(m, "") for m in known) if known else r"(?!)")
        kept = set(held)
        self._prefixes = {m[:n] for m in known for n in range(1, len(m))} | {
            h[:n] for h in kept for n in range(1, len(h) + 1)
        }
        firsts = {text[0] for text in (*known, *kept)}
        # Most text contains no character that begins a marker, and one search tells.
        self.first = re.compile(f"[{''.join(map(re.escape, sorted(firsts)))}]" if firsts else r"(?!)")
        if followed:
            after = "".join(rf"|(?<={re.escape(marker)}){pattern}" for marker, pattern in followed.items())
            rest = "".join(map(re.escape, followed))
            self.first = re.compile(f"{self.first.pattern}(?:(?<![{rest}]){after})")
        self._longest = max((len(prefix) for prefix in self._prefixes), default=0)
        self._nested = any(one in other[1:-1] for one in known for other in known)

    def find_next(self, text: str, start: int, limit: int | None = None, *, final: bool = False) -> tuple[int, int]:
        """(end of what is certainly text, end of the marker that follows it), searching from `start` up to `limit`.

        Without a marker both are equal, and the rest may be the beginning of one. `final`: nothing follows `limit`, so
        a marker that could have begun a longer one is complete.
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
        # A marker inside a longer one, or at its beginning, doesn't count while the longer one is still possible.
        before = limit if match is None else match.start() + 1
        for at in range(max(start, limit - self._longest), before):
            if text[at:limit] in self._prefixes:
                return at, at
        return match.span() if match is not None else (limit, limit)


class Stops:
    """Markers that end a run of text. `leads` maps a marker to the texts before it that belong to it."""

    def __init__(
        self,
        markers: Collection[str],
        leads: Iterable[tuple[str, str]],
        spelled_out: frozenset[str],
        ahead: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._marker_of = {marker: marker for marker in markers}
        self._marker_of.update({lead + marker: marker for marker, lead in leads})
        by_name = {text for text, marker in self._marker_of.items() if marker in spelled_out}
        held = {text.removesuffix(marker) for text, marker in self._marker_of.items() if text not in by_name}
        self.by_text = MarkerSet(self._marker_of, ahead=ahead)
        self.by_id = MarkerSet(by_name, held - {""}, ahead)

    def match_marker(self, text: str) -> str | None:
        """The marker that a text is, with what precedes it; None if it is not one."""
        return self._marker_of.get(text)


@lru_cache(maxsize=4096)
def make_stops(
    markers: tuple[str, ...],
    leads: tuple[tuple[str, str], ...],
    spelled_out: frozenset[str],
    ahead: tuple[tuple[str, str], ...] = (),
) -> Stops:
    return Stops(markers, leads, spelled_out, ahead)
