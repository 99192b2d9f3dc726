"""Ends a call before its budget does: by the shortest text that closes it, in as few tokens as that has.

While more of the budget is left than any place of the grammar needs to be closed, nothing is followed. From there on
the places of what was sampled are, and an id after which the call couldn't be closed any more is replaced by the next
one of what closes it now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ferrule.dialects.grammar import (
    CharacterSet,
    ControlToken,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    LiteralText,
    Repetition,
    TextUntil,
)
from ferrule.engines.constraints import VocabularyIndex
from ferrule.engines.places import GrammarPlaces, Place, encode
from ferrule.errors import EngineError

_Pieces: TypeAlias = tuple[bytes | int, ...]
"""Text and the ids of control tokens, in turns."""
_NEVER = 10**9
"""As many tokens as what can't be written takes."""
_LONGEST = 32
"""The bytes of the longest tokens that are tried. Longer ones are hardly ever what closes a call."""
_KEPT_TEXTS = 4096
_CANDIDATES = (*b"a0 ", *range(0x21, 0x7F), *range(0x80, 0xF5), *range(0x20))
"""Bytes in the order in which they are tried where many are legal: those of single characters first."""


class TokenCounter:
    """The fewest tokens that a text takes in one vocabulary."""

    def __init__(self, index: VocabularyIndex) -> None:
        self._ids = {text: token for token, text in index.texts.items() if len(text) <= _LONGEST}
        self._longest = max(map(len, self._ids), default=0)
        self._known: dict[bytes, tuple[list[int], int]] = {}

    def list_counts(self, text: bytes) -> list[int]:
        """The fewest tokens of the text from each of its bytes on, and of nothing."""
        return self._count(text)[0]

    def find_first(self, text: bytes) -> int:
        """The first id of a text in the fewest tokens."""
        return self._count(text)[1]

    def _count(self, text: bytes) -> tuple[list[int], int]:
        known = self._known.get(text)
        if known is None:
            if len(self._known) >= _KEPT_TEXTS:
                self._known.clear()
            known = self._known[text] = self._compute(text)
        return known

    def _compute(self, text: bytes) -> tuple[list[int], int]:
        length, first = len(text), 0
        counts = [_NEVER] * length + [0]
        for at in range(length - 1, -1, -1):
            for end in range(at + 1, min(length, at + self._longest) + 1):
                if counts[end] + 1 <= counts[at] and (token := self._ids.get(text[at:end])) is not None:
                    counts[at], first = counts[end] + 1, token
        return counts, first


@dataclass(frozen=True, slots=True)
class _Bound:
    """The shortest text of a part, in how many tokens, and the most that closing the part takes from a place in it."""

    pieces: _Pieces
    count: int
    most: int


class ClosingTexts:
    """What closes each place of one grammar.

    `shortest` is how many tokens its shortest text takes, `most` how many the text takes at most that closes a place;
    neither with a stop id.
    """

    def __init__(self, grammar: Grammar, index: VocabularyIndex, counter: TokenCounter) -> None:
        self.places = GrammarPlaces(grammar)
        self.index = index
        self._counter = counter
        self._bounds: dict[int, _Bound] = {}
        self._completions: dict[tuple[int, bytes], bytes] = {}
        # Parts of repetitions are made anew for each place: kept, as they are known by identity.
        self._kept: list[Grammar] = []
        whole = self._find_bound(grammar)
        self.shortest, self.most = whole.count, whole.most

    def count(self, place: Place) -> int:
        """The tokens that close a place."""
        return self._count_pieces(self._find_pieces(place))

    def find_next(self, place: Place) -> int | None:
        """The first id of what closes a place; None at its end."""
        pieces = self._find_pieces(place)
        if not pieces:
            return None
        return pieces[0] if isinstance(pieces[0], int) else self._counter.find_first(pieces[0])

    def _find_pieces(self, place: Place) -> _Pieces:
        begun: _Pieces = ()
        if isinstance(place.leaf, ControlToken):
            begun = (self.index.control[place.leaf.name],)
        elif isinstance(place.leaf, LiteralText):
            begun = (encode(place.leaf.text)[len(place.read) :],)
        elif place.leaf is not None:
            begun = (self._complete(place.leaf, place.read),)
        return _join_pieces([begun, *(self._find_bound(part).pieces for part in place.rest)])

    def _complete(self, leaf: CharacterSet | TextUntil, read: bytes) -> bytes:
        """The shortest text after which the leaf may end."""
        key = id(leaf), read
        if key not in self._completions:
            # One that is begun is ended as it would have been written.
            whole = self._complete(leaf, b"") if read and isinstance(leaf, CharacterSet) else b""
            is_begun = bool(whole) and whole.startswith(read)
            found = whole[len(read) :] if is_begun else _find_completion(leaf, read)
            if found is None:
                raise EngineError("constraint: a set of characters in the grammar is empty")
            self._completions[key] = found
        return self._completions[key]

    def _count_pieces(self, pieces: _Pieces) -> int:
        return sum(1 if isinstance(piece, int) else self._counter.list_counts(piece)[0] for piece in pieces)

    def _find_bound(self, grammar: Grammar) -> _Bound:
        bound = self._bounds.get(id(grammar))
        if bound is None:
            self._kept.append(grammar)
            bound = self._bounds[id(grammar)] = self._compute_bound(grammar)
        return bound

    def _compute_bound(self, grammar: Grammar) -> _Bound:
        if isinstance(grammar, ControlToken):
            return _Bound((self.index.control[grammar.name],), 1, 1)
        if isinstance(grammar, LiteralText):
            text = encode(grammar.text)
            counts = self._counter.list_counts(text)
            return _Bound((text,) if text else (), counts[0], max(counts))
        if isinstance(grammar, CharacterSet):
            text = self._complete(grammar, b"")
            count = self._counter.list_counts(text)[0]
            # The rest of a character is three bytes at most.
            return _Bound((text,), count, max(count, 3))
        if isinstance(grammar, TextUntil):
            return _Bound((), 0, 4)
        if isinstance(grammar, GrammarChoice):
            options = [self._find_bound(option) for option in grammar.options]
            best = min(options, key=lambda option: option.count)
            return _Bound(best.pieces, best.count, max(option.most for option in options))
        if isinstance(grammar, GrammarSequence):
            return self._join([self._find_bound(item) for item in grammar.items])
        assert isinstance(grammar, Repetition)
        if grammar.maximum == 0:
            return _Bound((), 0, 0)
        item = self._find_bound(grammar.item)
        joined = self._join([item] * grammar.minimum)
        return _Bound(joined.pieces, joined.count, item.most + item.count * max(0, grammar.minimum - 1))

    def _join(self, bounds: Sequence[_Bound]) -> _Bound:
        pieces = _join_pieces([bound.pieces for bound in bounds])
        most, after = 0, 0
        for bound in reversed(bounds):
            most, after = max(most, bound.most + after), after + bound.count
        return _Bound(pieces, self._count_pieces(pieces), most)


class CallCloser:
    """Closes one generation in its `budget` of tokens, at the end of which a stop id is legal.

    Raises `EngineError` for a budget in which no text of the grammar ends.
    """

    def __init__(self, texts: ClosingTexts, stop_ids: Sequence[int], budget: int) -> None:
        self._texts = texts
        self._stop_ids = stop_ids
        self._left = budget
        self._stop_count = 1 if stop_ids else 0
        self._places: list[Place] | None = None
        self._chosen: list[int] = []
        needed = texts.shortest + self._stop_count
        if needed >= _NEVER:
            raise EngineError("constraint: the tokenizer has no tokens for some text of the grammar")
        if needed > budget:
            raise EngineError(
                f"constraint: its shortest message takes {needed} tokens, and max_tokens or the context leaves {budget}"
            )

    def choose(self, token: int) -> int:
        """A legal id, or the one that closes the call where it wouldn't end in time after that."""
        self._left -= 1
        if self._left > self._texts.most + self._stop_count:
            self._chosen.append(token)
            return token
        places = self._places
        if places is None:
            places = self._texts.places.start()
            for chosen in self._chosen:
                places = self._follow(places, chosen)
        self._places = self._follow(places, token)
        if token not in self._stop_ids and not any(map(self._fits, self._texts.places.list_entered(self._places))):
            token = self._find_closing(places)
            self._places = self._follow(places, token)
        return token

    def _fits(self, place: Place) -> bool:
        """Whether it can be closed in time, or needn't be."""
        if isinstance(place.leaf, TextUntil) and place.leaf.may_be_cut:
            return True
        return self._texts.count(place) + self._stop_count <= self._left

    def _find_closing(self, places: list[Place]) -> int:
        best = min(self._texts.places.list_entered(places), key=self._texts.count)
        token = self._texts.find_next(best)
        return self._stop_ids[0] if token is None else token

    def _follow(self, places: list[Place], token: int) -> list[Place]:
        name = self._texts.index.names.get(token)
        if name is not None:
            return self._texts.places.pass_control(places, name)
        return self._texts.places.read(places, self._texts.index.texts.get(token, b""))


def _join_pieces(parts: Sequence[_Pieces]) -> _Pieces:
    """Pieces one after the other, those of text joined."""
    joined: list[bytes | int] = []
    for piece in (piece for part in parts for piece in part if piece != b""):
        if isinstance(piece, bytes) and joined and isinstance(joined[-1], bytes):
            joined[-1] += piece
        else:
            joined.append(piece)
    return tuple(joined)


def _find_completion(leaf: CharacterSet | TextUntil, read: bytes) -> bytes | None:
    """A shortest text after which a leaf may end, of which some bytes were read; None if there is none."""
    place = Place(leaf, (), read)
    if place.is_complete:
        return b""
    if isinstance(leaf, CharacterSet) and not leaf.is_excluded:
        written = map(encode, leaf.characters)
        return min((one[len(read) :] for one in written if one.startswith(read)), key=len, default=None)
    for byte in _CANDIDATES:
        after = place.read_byte(bytes((byte,)))
        rest = None if after is None else _find_completion(leaf, after.read)
        if rest is not None:
            return bytes((byte,)) + rest
    return None
