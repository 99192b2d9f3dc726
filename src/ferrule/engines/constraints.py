"""Keeps what is sampled to a grammar: which ids may come next, given those that came before.

A grammar is followed as a set of places in it, as an automaton without backtracking would be: a token is legal if at
least one place can read all of its bytes. Only the ids that a sampler would choose are tried, likeliest first, so the
size of a vocabulary doesn't matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, cast

from ferrule.dialects.grammar import (
    CharacterSet,
    ControlToken,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    JsonValue,
    LiteralText,
    MarkerText,
    Repetition,
    TextUntil,
)
from ferrule.errors import EngineError, TokenizerError


class Vocabulary(Protocol):
    """What an engine must know of a tokenizer to follow a grammar; every `Tokenizer` has it."""

    @property
    def control(self) -> Mapping[str, int]:
        """Every added token and its id."""
        ...

    @property
    def vocabulary_size(self) -> int:
        """One more than the largest id."""
        ...

    def decode_token(self, token: int) -> bytes:
        """The bytes that a token represents."""
        ...


class VocabularyIndex:
    """A vocabulary by what its tokens are: control tokens by id, the others by their first byte."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.names = {token: name for name, token in vocabulary.control.items()}
        self.texts: dict[int, bytes] = {}
        self.by_first_byte: dict[int, list[int]] = defaultdict(list)
        for token in range(vocabulary.vocabulary_size):
            if token in self.names:
                continue
            try:
                text = vocabulary.decode_token(token)
            except TokenizerError:  # an id without a token: no text continues with it
                continue
            if text:
                self.texts[token] = text
                self.by_first_byte[text[0]].append(token)


_END = -1
"""Stands for a stop id among bytes."""
_Leaf = LiteralText | CharacterSet | ControlToken


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in a grammar: in `leaf`, of which `read` was read, before `rest`. At the end, `leaf` is None."""

    leaf: _Leaf | None
    rest: tuple[Grammar, ...] = ()
    read: bytes = b""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for the same place: comparing grammars themselves would take long."""
        return id(self.leaf), tuple(map(id, self.rest)), self.read

    @property
    def is_complete(self) -> bool:
        """Whether the leaf may end here."""
        if isinstance(self.leaf, LiteralText):
            return self.read == _encode(self.leaf.text)
        return isinstance(self.leaf, CharacterSet) and _is_character(self.read)

    @property
    def only_next(self) -> str | int | None:
        """The only control token or byte that the leaf goes on with; None if there are several, or none."""
        if isinstance(self.leaf, ControlToken):
            return self.leaf.name
        return _encode(self.leaf.text)[len(self.read)] if isinstance(self.leaf, LiteralText) else None

    def read_byte(self, byte: bytes) -> _Place | None:
        """The place after one more byte of the leaf; None if it can't be one."""
        read = self.read + byte
        if isinstance(self.leaf, LiteralText):
            fits = _encode(self.leaf.text).startswith(read)
        elif isinstance(self.leaf, CharacterSet):
            fits = _fits(self.leaf, read)
        else:
            return None
        return _Place(self.leaf, self.rest, read) if fits else None


@lru_cache(2**14)
def _encode(text: str) -> bytes:
    """The bytes of a text that a grammar has in many places, each of which is asked for them at every step."""
    return text.encode()


def _is_character(read: bytes) -> bool:
    try:
        return len(read.decode()) == 1
    except UnicodeDecodeError:
        return False


def _fits(leaf: CharacterSet, read: bytes) -> bool:
    """Whether bytes are a character of the set, or the beginning of one."""
    if _is_character(read):
        return (read.decode() in leaf.characters) is not leaf.is_excluded
    if not _is_beginning(read):
        return False
    return leaf.is_excluded or any(one.encode().startswith(read) for one in leaf.characters)


def _is_beginning(read: bytes) -> bool:
    """Whether bytes are the beginning of a character in UTF-8."""
    try:
        read.decode()
    except UnicodeDecodeError as error:
        return error.start == 0 and error.reason == "unexpected end of data"
    return False


class GrammarMatcher:
    """The places of one generation in its grammar, at whose end a stop id is legal.

    Raises `EngineError` for a grammar that it can't follow.
    """

    def __init__(self, grammar: Grammar, vocabulary: VocabularyIndex, stop_ids: Collection[int] = ()) -> None:
        _check(grammar)
        self._vocabulary = vocabulary
        self._stop_ids = stop_ids
        # Its places are compared by their identity, so it has to live as long as they do.
        self._grammar = grammar
        self._places = _make_unique(_enter((grammar,)))
        self._tried: dict[int, list[_Place]] = {}

    def allows(self, token: int) -> bool:
        """Whether the grammar can go on with this id."""
        if token not in self._tried:
            self._tried[token] = self._find_places_after(token)
        return bool(self._tried[token]) or (token in self._stop_ids and self._is_complete)

    def advance(self, token: int) -> None:
        """Go on with this id, which must be a legal one."""
        self._places = self._tried.get(token) or self._find_places_after(token)
        self._tried = {}

    @property
    def is_forced(self) -> bool:
        """Whether only one id is legal."""
        following: set[str | int | None] = set()
        for one in self._list_entered():
            if not one.is_complete:  # what follows a complete one is entered too
                following.add(_END if one.leaf is None else one.only_next)
            if len(following) > 1 or None in following:
                return False
        (only,) = following
        if only == _END:
            return len(self._stop_ids) == 1
        return isinstance(only, str) or sum(map(self.allows, self._vocabulary.by_first_byte[cast(int, only)])) == 1

    @property
    def _is_complete(self) -> bool:
        return any(place.leaf is None for place in self._list_entered())

    def _list_entered(self) -> Iterator[_Place]:
        return (entered for place in self._places for entered in _leave(place))

    def _find_places_after(self, token: int) -> list[_Place]:
        name = self._vocabulary.names.get(token)
        if name is not None:
            ends = (place for place in self._list_entered() if place.leaf == ControlToken(name))
            return _make_unique(after for place in ends for after in _enter(place.rest))
        places = self._places if token in self._vocabulary.texts else []
        for byte in self._vocabulary.texts.get(token, b""):
            places = _make_unique(_read_byte(places, bytes((byte,))))
        return places


def _check(grammar: Grammar) -> None:
    """Refuse a grammar at once, and not when a generation comes to what can't be followed."""
    # Parts may be shared, and lie deep.
    waiting, seen = [grammar], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, JsonValue):
            raise EngineError("constraint: this engine can't keep a text to a JSON schema")
        if isinstance(part, MarkerText | TextUntil) or (
            isinstance(part, Repetition) and (part.minimum, part.maximum) != (0, None)
        ):
            raise EngineError(f"constraint: this engine can't follow a {type(part).__name__}")
        if isinstance(part, GrammarSequence):
            waiting += part.items
        elif isinstance(part, GrammarChoice):
            waiting += part.options
        elif isinstance(part, Repetition):
            waiting.append(part.item)


def _make_unique(places: Iterable[_Place]) -> list[_Place]:
    return list({place.key: place for place in places}.values())


def _read_byte(places: Iterable[_Place], byte: bytes) -> Iterator[_Place]:
    for place in places:
        for entered in _leave(place):
            after = entered.read_byte(byte)
            if after is not None:
                yield after


def _leave(place: _Place) -> Iterator[_Place]:
    """The place itself, and if its leaf may end here, those that follow it."""
    yield place
    if place.is_complete:
        for entered in _enter(place.rest):
            yield from _leave(entered)


def _enter(grammars: tuple[Grammar, ...]) -> Iterator[_Place]:
    """The places at the beginning of these, one after the other."""
    if not grammars:
        yield _Place(None)
        return
    first, rest = grammars[0], grammars[1:]
    if isinstance(first, GrammarSequence):
        yield from _enter((*first.items, *rest))
    elif isinstance(first, GrammarChoice):
        for option in first.options:
            yield from _enter((option, *rest))
    elif isinstance(first, Repetition):
        yield from _enter((first.item, first, *rest))
        yield from _enter(rest)
    elif isinstance(first, _Leaf):  # others were refused before
        yield _Place(first, rest)
