"""Objects and arrays of values whose grammars are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.dialects.grammar import NOTHING, Grammar, LiteralText
from ferrule.dialects.value_grammar.limits import Unsatisfiable
from ferrule.dialects.value_grammar.terms import choose, join, join_list, repeat


@dataclass(frozen=True, slots=True)
class Entry:
    """A key that an object may have, with its value: `"city": …`."""

    grammar: Grammar
    is_required: bool


def make_object(entries: Sequence[Entry], minimum: int, maximum: int) -> Grammar:
    """An object with `minimum` to `maximum` of these entries, in their order. Raises `Unsatisfiable`."""
    required = sum(one.is_required for one in entries)
    if max(required, minimum) > min(len(entries), maximum):
        raise Unsatisfiable(
            f"of its {len(entries)} keys {required} are required, and {minimum} to {maximum} may be there"
        )
    if minimum <= required and maximum >= len(entries):
        return join("{", _write_entries(entries), "}")
    return join("{", _count_entries(entries, minimum, maximum), "}")


def _write_entries(entries: Sequence[Entry]) -> Grammar:
    """Entries of which any number of the optional ones is there."""
    # What may follow each place: if an entry is there already, and if none is.
    after: Grammar = NOTHING
    first: Grammar | None = NOTHING
    for entry in reversed(entries):
        beginning = join(entry.grammar, after)
        if entry.is_required:
            first, after = beginning, join(", ", entry.grammar, after)
        else:
            first = choose((beginning, first)) if first is not None else beginning
            after = join(choose((join(", ", entry.grammar), NOTHING)), after)
    assert first is not None
    return first


def _count_entries(entries: Sequence[Entry], minimum: int, maximum: int) -> Grammar:
    """Entries of which `minimum` to `maximum` are there."""
    # By the number of entries that are there already: what may follow.
    following: dict[int, Grammar] = dict.fromkeys(range(minimum, maximum + 1), NOTHING)
    for place in range(len(entries) - 1, -1, -1):
        entry, later, following = entries[place], following, {}
        for count in range(place + 1):
            options = []
            if count + 1 in later:
                options.append(join(", " if count else "", entry.grammar, later[count + 1]))
            if not entry.is_required and count in later:
                options.append(later[count])
            if options:
                following[count] = choose(options)
    return following[0]


def make_array(first: Sequence[Grammar], item: Grammar | None, minimum: int, maximum: int) -> Grammar:
    """An array that begins with the items `first`, of which those after `minimum` may be missing, followed by any
    number of `item`; together there are `minimum` to `maximum`."""
    if not first:
        return join_list("[", item, minimum, maximum, "]")
    first = first[:maximum]
    count = len(first)
    rest = repeat(join(", ", item), max(minimum - count, 0), maximum - count) if item is not None else NOTHING
    for place in range(count - 1, -1, -1):
        rest = join(", " if place else "", first[place], rest)
        if place >= minimum:
            rest = choose((rest, NOTHING))
    return join(LiteralText("["), rest, LiteralText("]"))
