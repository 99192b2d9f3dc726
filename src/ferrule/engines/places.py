"""The places in a grammar where a text can be, as an automaton without backtracking would follow them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

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
from ferrule.errors import EngineError

UNCOUNTED = 65_536
"""Repetitions of at most so many, or more, are followed as those without an end: counting makes each step slower, and
no message is that long."""
Leaf: TypeAlias = LiteralText | CharacterSet | TextUntil | ControlToken


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a grammar: in `leaf`, of which `read` was read, before `rest`. At the end, `leaf` is None.

    Of a `TextUntil`, `read` is only the end that decides how it may go on.
    """

    leaf: Leaf | None
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
            return self.read == encode(self.leaf.text)
        if isinstance(self.leaf, TextUntil):
            return _may_end(self.leaf.closers, self.read)
        return isinstance(self.leaf, CharacterSet) and _is_character(self.read)

    @property
    def only_next(self) -> str | int | None:
        """The only control token or byte that the leaf goes on with; None if there are several, or none."""
        if isinstance(self.leaf, ControlToken):
            return self.leaf.name
        return encode(self.leaf.text)[len(self.read)] if isinstance(self.leaf, LiteralText) else None

    def read_byte(self, byte: bytes) -> Place | None:
        """The place after one more byte of the leaf; None if it can't be one."""
        read: bytes | None = self.read + byte
        if isinstance(self.leaf, LiteralText):
            fits = encode(self.leaf.text).startswith(self.read + byte)
        elif isinstance(self.leaf, CharacterSet):
            fits = _fits(self.leaf, self.read + byte)
        elif isinstance(self.leaf, TextUntil):
            read = _find_tail(self.leaf.closers, self.read + byte)
            fits = read is not None
        else:
            return None
        return Place(self.leaf, self.rest, read) if fits and read is not None else None


@lru_cache(2**14)
def encode(text: str) -> bytes:
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


@lru_cache(2**14)
def _find_tail(closers: tuple[str, ...], read: bytes) -> bytes | None:
    """The end of a text before closers that decides how it goes on: what may begin a closer, or the beginning of a
    character. None if the text holds a closer, or isn't UTF-8."""
    written = [encode(closer) for closer in closers]
    if any(read.endswith(closer) for closer in written):
        return None
    start = _find_open_character(read)
    if start is None:
        return None
    longest = max(map(len, written), default=1) - 1
    for at in range(max(0, min(start, len(read) - longest)), start):
        if any(closer.startswith(read[at:]) for closer in written):
            return read[at:]
    return read[start:]


def _find_open_character(read: bytes) -> int | None:
    """Where an incomplete character at the end begins: the length if there is none. None if it isn't UTF-8."""
    try:
        read.decode()
    except UnicodeDecodeError as error:
        return error.start if error.reason == "unexpected end of data" else None
    return len(read)


@lru_cache(2**12)
def _may_end(closers: tuple[str, ...], tail: bytes) -> bool:
    """Whether a closer may follow this: not inside a character, nor where an earlier one would be found with it."""
    if _find_open_character(tail) != len(tail):
        return False
    written = [encode(closer) for closer in closers]
    for text, closer in ((tail + after, closer) for after in written for closer in written):
        # One that ends where the other does makes no difference: a line break before `</a>` belongs to `\n</a>`.
        if 0 <= text.find(closer) < min(len(tail), len(text) - len(closer)):
            return False
    return True


class GrammarPlaces:
    """The places in one grammar. It has to live as long as they do: they are compared by the identity of its parts."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self._shorter: dict[tuple[int, int, int], Repetition] = {}

    def start(self) -> list[Place]:
        """The places before the first byte."""
        return _make_unique(self._enter((self.grammar,)))

    def list_entered(self, places: Iterable[Place]) -> Iterator[Place]:
        """These places, and those that follow a leaf that may end."""
        for place in places:
            yield from self._leave(place)

    def read(self, places: list[Place], text: bytes) -> list[Place]:
        """The places after an ordinary token; none if no place can read it."""
        for byte in text:
            places = _make_unique(self._read_byte(places, bytes((byte,))))
        return places

    def pass_control(self, places: Iterable[Place], name: str) -> list[Place]:
        """The places after a control token."""
        ends = (place for place in self.list_entered(places) if place.leaf == ControlToken(name))
        return _make_unique(after for place in ends for after in self._enter(place.rest))

    def _read_byte(self, places: Iterable[Place], byte: bytes) -> Iterator[Place]:
        for place in places:
            for entered in self._leave(place):
                after = entered.read_byte(byte)
                if after is not None:
                    yield after

    def _leave(self, place: Place) -> Iterator[Place]:
        """The place itself, and if its leaf may end here, those that follow it."""
        yield place
        if place.is_complete:
            for entered in self._enter(place.rest):
                yield from self._leave(entered)

    def _enter(self, grammars: tuple[Grammar, ...]) -> Iterator[Place]:
        """The places at the beginning of these, one after the other."""
        if not grammars:
            yield Place(None)
            return
        first, rest = grammars[0], grammars[1:]
        if isinstance(first, GrammarSequence):
            yield from self._enter((*first.items, *rest))
        elif isinstance(first, GrammarChoice):
            for option in first.options:
                yield from self._enter((option, *rest))
        elif isinstance(first, Repetition):
            if first.maximum != 0:
                yield from self._enter((first.item, self._shorten(first), *rest))
            if first.minimum == 0:
                yield from self._enter(rest)
        elif isinstance(first, Leaf):  # others were refused before
            yield Place(first, rest)

    def _shorten(self, repetition: Repetition) -> Repetition:
        """What remains of a repetition after one more of its item: the same object each time."""
        if repetition.minimum == 0 and not is_counted(repetition):
            return repetition
        minimum = max(0, repetition.minimum - 1)
        maximum = repetition.maximum - 1 if repetition.maximum is not None and is_counted(repetition) else None
        key = id(repetition.item), minimum, -1 if maximum is None else maximum
        return self._shorter.setdefault(key, Repetition(repetition.item, minimum, maximum))


def is_counted(repetition: Repetition) -> bool:
    """Whether a repetition ends, as far as that is followed."""
    return repetition.maximum is not None and repetition.maximum < UNCOUNTED


def _make_unique(places: Iterable[Place]) -> list[Place]:
    return list({place.key: place for place in places}.values())


def resolve_markers(grammar: Grammar, control: Mapping[str, int]) -> Grammar:
    """The grammar with its markers as control tokens, where the tokenizer has them, and text.

    Raises `EngineError` for a value that wasn't made of simpler terms.
    """
    # Parts may be shared, and lie deep.
    waiting, seen, has_markers = [grammar], set[int](), False
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, JsonValue):
            raise EngineError("constraint: this engine can't keep a text to a JSON schema; lower_values describes it")
        has_markers |= isinstance(part, MarkerText)
        if isinstance(part, GrammarSequence):
            waiting += part.items
        elif isinstance(part, GrammarChoice):
            waiting += part.options
        elif isinstance(part, Repetition):
            waiting.append(part.item)
    return _MarkerResolver(control).resolve(grammar) if has_markers else grammar


class _MarkerResolver:
    """Rewrites each part once, as parts are shared; what has no marker stays the same object."""

    def __init__(self, control: Mapping[str, int]) -> None:
        self._names = sorted(control, key=len, reverse=True)
        self._resolved: dict[int, tuple[Grammar, Grammar]] = {}

    def resolve(self, grammar: Grammar) -> Grammar:
        known = self._resolved.get(id(grammar))
        if known is None:
            # The part itself is kept with it, so that no other gets its identity.
            known = self._resolved[id(grammar)] = (grammar, self._rewrite(grammar))
        return known[1]

    def _rewrite(self, grammar: Grammar) -> Grammar:
        if isinstance(grammar, MarkerText):
            items = tuple(self._split(grammar.text))
            return items[0] if len(items) == 1 else GrammarSequence(items)
        if isinstance(grammar, Repetition):
            item = self.resolve(grammar.item)
            return grammar if item is grammar.item else Repetition(item, grammar.minimum, grammar.maximum)
        if isinstance(grammar, GrammarSequence | GrammarChoice):
            parts = grammar.items if isinstance(grammar, GrammarSequence) else grammar.options
            changed = tuple(map(self.resolve, parts))
            if all(map(_is_same, parts, changed)):
                return grammar
            return GrammarSequence(changed) if isinstance(grammar, GrammarSequence) else GrammarChoice(changed)
        return grammar

    def _split(self, text: str) -> Iterator[Grammar]:
        while text:
            found = [(text.find(name), -len(name), name) for name in self._names if name and name in text]
            at, _, name = min(found, default=(len(text), 0, ""))
            if at:
                yield LiteralText(text[:at])
            if name:
                yield ControlToken(name)
            text = text[at + len(name) :]


def _is_same(one: object, other: object) -> bool:
    return one is other
