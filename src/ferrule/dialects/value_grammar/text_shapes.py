"""Texts by their shape, before they are written into a string: what a pattern matches, with the lengths that it may
have, so that it can be kept within others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isqrt
from typing import TypeAlias

from ferrule.dialects.grammar import Grammar
from ferrule.dialects.value_grammar.any_values import make_any_character, write_characters
from ferrule.dialects.value_grammar.terms import choose, join, repeat

UNBOUNDED = 1 << 60
"""A length or count without a bound."""
_MAX_WRITTEN_OUT = 3
_MAX_SIZE = 500
"""The maximum size of what is written out."""


@dataclass(frozen=True, slots=True)
class Characters:
    """One of these characters; with `is_excluded`, one of all others."""

    characters: str
    is_excluded: bool = False
    least: int = 1
    most: int = 1
    size: int = 1


@dataclass(frozen=True, slots=True)
class Chain:
    """These, one after the other. It has `least` to `most` characters, and is written with about `size` terms, as all
    shapes."""

    items: tuple[Shape, ...]
    least: int
    most: int
    size: int


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of these."""

    options: tuple[Shape, ...]
    least: int
    most: int
    size: int


@dataclass(frozen=True, slots=True)
class Repeated:
    """This, which isn't empty, `minimum` to `maximum` times."""

    item: Shape
    minimum: int
    maximum: int
    least: int
    most: int
    size: int


Shape: TypeAlias = "Characters | Chain | Alternation | Repeated"


def make_chain(items: Iterable[Shape]) -> Shape:
    """These, one after the other."""
    flat: list[Shape] = []
    for item in items:
        flat += item.items if isinstance(item, Chain) else (item,)
    if len(flat) == 1:
        return flat[0]
    most = min(sum(one.most for one in flat), UNBOUNDED)
    return Chain(tuple(flat), sum(one.least for one in flat), most, 1 + sum(one.size for one in flat))


EMPTY = make_chain(())
ANY_CHARACTER = Characters("", is_excluded=True)


def make_alternation(options: Iterable[Shape]) -> Shape:
    """One of these, of which there must be at least one."""
    found = tuple(options)
    if len(found) == 1:
        return found[0]
    least, most = min(one.least for one in found), max(one.most for one in found)
    return Alternation(found, least, most, 1 + sum(one.size for one in found))


def make_repeated(item: Shape, minimum: int, maximum: int) -> Shape:
    """This, `minimum` to `maximum` times; it may be empty."""
    if item.least == 0:
        filled = _leave_out_empty(item)
        if filled is None:
            return EMPTY
        item, minimum = filled, 0
    if maximum == 0 or minimum == maximum == 1:
        return item if maximum else EMPTY
    most = min(item.most * maximum, UNBOUNDED)
    return Repeated(item, minimum, maximum, item.least * minimum, most, 1 + item.size)


def _leave_out_empty(shape: Shape) -> Shape | None:
    """The same without the empty text; None if there is nothing else."""
    if shape.least > 0:
        return shape
    if isinstance(shape, Repeated):
        return make_repeated(shape.item, 1, shape.maximum)
    if isinstance(shape, Alternation):
        options = [filled for one in shape.options if (filled := _leave_out_empty(one)) is not None]
        return make_alternation(options) if options else None
    assert isinstance(shape, Chain)
    # The first item that isn't empty, and what follows it.
    chains = [
        make_chain((filled, *shape.items[place + 1 :]))
        for place, one in enumerate(shape.items)
        if (filled := _leave_out_empty(one)) is not None
    ]
    return make_alternation(chains) if chains else None


def fit_length(shape: Shape, low: int, high: int, ways: int = 1) -> Shape | None:
    """Texts of this shape that have `low` to `high` characters; None if none is found.

    A length may be shared out among parts in several ways: about `ways` of them are written out, of which each part
    inside has its share.
    """
    if shape.least > high or shape.most < low:
        return None
    if low <= shape.least and shape.most <= high:
        return shape
    if isinstance(shape, Alternation):
        options = [fitting for one in shape.options if (fitting := fit_length(one, low, high, ways)) is not None]
        return make_alternation(options) if options else None
    if isinstance(shape, Repeated):
        return _fit_repeated(shape, low, high, ways)
    assert isinstance(shape, Chain)
    return _fit_chain(shape, low, high, ways)


def _fit_repeated(shape: Repeated, low: int, high: int, ways: int) -> Shape | None:
    item = shape.item
    most_times = min(shape.maximum, high // item.least)
    if item.least < item.most and most_times <= min(_MAX_WRITTEN_OUT, ways):
        return fit_length(_write_out(shape, most_times), low, high, ways // _MAX_WRITTEN_OUT)
    few = max(shape.minimum, 1)
    # Many short items, or few long ones: if there is the choice, as many as each is long.
    counts = [min(max(isqrt(high), few), most_times)] if item.least < item.most else []
    for times in (*counts, most_times, few):
        if not 0 < times <= most_times:
            continue
        fewest = max(shape.minimum, -(-low // item.least))
        shortest = item.least if fewest <= times else -(-low // times)
        longest = min(item.most, high // times)
        fitting = fit_length(item, shortest, longest, ways) if shortest <= longest else None
        if fitting is not None:
            return make_repeated(fitting, min(fewest, times), times)
    return EMPTY if low <= 0 and shape.minimum == 0 else None


def _write_out(shape: Repeated, most_times: int) -> Shape:
    """The same, without more than so many items, each written out."""
    return make_alternation(make_chain([shape.item] * times) for times in range(shape.minimum, most_times + 1))


def _fit_chain(shape: Chain, low: int, high: int, ways: int) -> Shape | None:
    for place, item in enumerate(shape.items):
        if isinstance(item, Repeated) and item.item.least < item.item.most and item.maximum <= _MAX_WRITTEN_OUT <= ways:
            times = range(item.minimum, item.maximum + 1)
            chains = [[*shape.items[:place], *[item.item] * count, *shape.items[place + 1 :]] for count in times]
            return fit_length(make_alternation(map(make_chain, chains)), low, high, ways // _MAX_WRITTEN_OUT)
    place = next(place for place, item in enumerate(shape.items) if item.least < item.most)
    item, rest = shape.items[place], make_chain(shape.items[place + 1 :])
    before = sum(one.least for one in shape.items[:place])
    shortest = max(item.least, low - before - rest.most)
    longest = min(item.most, high - before - rest.least)
    free = sum(one.least < one.most for one in shape.items[place + 1 :])
    count = longest - shortest + 1
    if not free or count > ways or count * shape.size > _MAX_SIZE:
        return _share_length(shape, low, high, ways)
    # Each length of the first item, and what is left for those after it.
    options = []
    for length in range(shortest, longest + 1):
        first = fit_length(item, length, length, ways // count)
        others = fit_length(rest, low - before - length, high - before - length, ways // count)
        if first is not None and others is not None:
            options.append(make_chain((*shape.items[:place], first, others)))
    found = make_alternation(options) if options else None
    return found if found is None or found.size <= _MAX_SIZE else _share_length(shape, low, high, 1)


def _share_length(shape: Chain, low: int, high: int, ways: int) -> Shape | None:
    """Share out what is missing to the longest items first, and then what is left evenly: there are other ways."""
    shortest = [one.least for one in shape.items]
    by_freedom = sorted(range(len(shortest)), key=lambda place: shape.items[place].most - shortest[place])
    missing = max(low - shape.least, 0)
    for place in reversed(by_freedom):
        more = min(missing, shape.items[place].most - shortest[place])
        shortest[place] += more
        missing -= more
    left = high - sum(shortest)
    longest = list(shortest)
    for number, place in enumerate(by_freedom):
        more = min(left // (len(shortest) - number), shape.items[place].most - shortest[place])
        longest[place] += more
        left -= more
    items = [fit_length(*one, ways) for one in zip(shape.items, shortest, longest, strict=True)]
    found = [item for item in items if item is not None]
    return make_chain(found) if len(found) == len(items) else None


def begin_differently(shape: Shape, other: Shape) -> bool:
    """Whether it is plain that no text has both shapes: they differ in a character at the same place."""
    if isinstance(shape, Alternation):
        return all(begin_differently(one, other) for one in shape.options)
    if isinstance(other, Alternation):
        return begin_differently(other, shape)
    return any(
        not (one.is_excluded or two.is_excluded) and set(one.characters).isdisjoint(two.characters)
        for one, two in zip(_list_beginning(shape), _list_beginning(other), strict=False)
    )


def _list_beginning(shape: Shape) -> list[Characters]:
    """The characters that a text begins with, as far as their places are fixed."""
    found: list[Characters] = []
    for item in shape.items if isinstance(shape, Chain) else (shape,):
        first = item.item if isinstance(item, Repeated) and item.minimum > 0 else item
        if not isinstance(first, Characters):
            break
        found.append(first)
        if first is not item:
            break
    return found


def write_shape(shape: Shape, is_python: bool) -> Grammar:
    """Texts of this shape, as they are written in a string. Its length must be bounded."""
    if isinstance(shape, Characters):
        if shape == ANY_CHARACTER:
            return make_any_character(is_python)
        written = write_characters(shape.characters, shape.is_excluded)
        assert written is not None
        return written
    if isinstance(shape, Chain):
        return join(*(write_shape(item, is_python) for item in shape.items))
    if isinstance(shape, Alternation):
        return choose(write_shape(option, is_python) for option in shape.options)
    return repeat(write_shape(shape.item, is_python), shape.minimum, shape.maximum)
