"""Objects and arrays that fit all of several schemas."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ferrule._util.patterns import PatternRefused, compile_pattern
from ferrule.dialects.grammar import NOTHING, Grammar, LiteralText
from ferrule.dialects.value_grammar.any_values import make_any_value, make_string
from ferrule.dialects.value_grammar.patterns import PatternUnsupported
from ferrule.dialects.value_grammar.schema_parts import LoweringContext, Parts, SchemaPart
from ferrule.dialects.value_grammar.strings import exclude_each_other, make_pattern_key
from ferrule.dialects.value_grammar.terms import Unsatisfiable, choose, join, join_list, repeat

_UNENFORCED = ("propertyNames", "dependentRequired", "dependentSchemas", "dependencies")


def lower_object(parts: Parts, context: LoweringContext) -> Grammar:
    """An object: with the keys that the schemas name, or with any if they name none. Raises `Unsatisfiable`."""
    for part in parts:
        for word in _UNENFORCED:
            if word in part.schema:
                context.note_loss(part, word, "")
    minimum = max((int(part.schema.get("minProperties", 0)) for part in parts), default=0)
    bounds = [int(part.schema["maxProperties"]) for part in parts if "maxProperties" in part.schema]
    required = {name: None for part in parts for name in part.schema.get("required", ())}
    named = {name: None for part in parts for name in part.schema.get("properties", ())}
    if named or required or not _is_open(parts, minimum):
        entries = _collect_entries({**named, **required}, required, parts, context)
        try:
            return make_object(entries, minimum, min(bounds, default=len(entries)))
        except Unsatisfiable as error:
            raise Unsatisfiable(f"{parts[0].place or 'the schema'}: {error}") from None
    return _lower_open_object(parts, minimum, min(bounds, default=None), context)


def _is_open(parts: Parts, minimum: int) -> bool:
    """Whether keys that the schemas don't name are written: not if they name that there are none."""
    words = frozenset[str]().union(*(part.schema for part in parts))
    is_stated = any(part.schema.get("additionalProperties", False) for part in parts)
    return "properties" not in words or "patternProperties" in words or is_stated or minimum > 0


def _collect_entries(
    names: Mapping[str, None], required: Mapping[str, None], parts: Parts, context: LoweringContext
) -> list[ObjectEntry]:
    """The entries with these keys, without those optional ones that no value fits."""
    entries = []
    for name in names:
        try:
            value = _lower_value(_collect_parts(name, parts, context), context)
        except Unsatisfiable:
            if name in required:
                raise
            continue
        entries.append(ObjectEntry(join(write_key(name), value), name in required))
    return entries


def write_key(name: str) -> str:
    """A key and the colon after it."""
    return f"{json.dumps(name, ensure_ascii=False)}: "


def _lower_value(parts: Parts, context: LoweringContext) -> Grammar:
    if not parts:
        return make_any_value(context.limits, context.is_python, max(context.limits.value_depth - 1, 0))
    return context.lower(parts)


def _collect_parts(name: str, parts: Parts, context: LoweringContext) -> Parts:
    """What the value with this key must fit."""
    inner: list[SchemaPart] = []
    for part in parts:
        schema = part.schema
        found = [part.descend(schema["properties"][name], name)] if name in schema.get("properties", {}) else []
        is_matched = bool(found)
        for pattern, one in schema.get("patternProperties", {}).items():
            matches = _matches(pattern, name)
            if matches is None:
                context.note_loss(part, "patternProperties", f"{pattern!r} can't be searched")
            elif matches:
                found.append(part.descend(one, f"patternProperties.{pattern}"))
            is_matched = is_matched or matches is not False
        if not is_matched and "additionalProperties" in schema:
            found.append(part.descend(schema["additionalProperties"], "additionalProperties"))
        inner += found
    return tuple(inner)


def _matches(pattern: str, name: str) -> bool | None:
    """Whether a key matches a pattern; None if the pattern can't be searched."""
    try:
        return compile_pattern(pattern).matches(name)
    except PatternRefused:
        return None


def _lower_open_object(parts: Parts, minimum: int, stated: int | None, context: LoweringContext) -> Grammar:
    """An object with keys that the schemas don't name."""
    maximum = max(context.limits.object_keys, minimum) if stated is None else stated
    if minimum > maximum:
        raise Unsatisfiable(f"{parts[0].place or 'the schema'}: at least {minimum} keys, at most {maximum}")
    patterns = _read_patterns(parts, context)
    inner = [_collect_pattern_parts(pattern, patterns, parts) for pattern in patterns]
    keys = list(patterns.values())
    if not patterns:
        others = [part for part in parts if "additionalProperties" in part.schema]
        inner = [tuple(part.descend(part.schema["additionalProperties"], "additionalProperties") for part in others)]
        keys = [make_string(0, context.limits.key_characters, context.is_python)]
    entries: list[Grammar] = []
    for key, one in zip(keys, inner, strict=True):
        try:
            entries.append(join(key, ": ", _lower_value(one, context)))
        except Unsatisfiable:
            if minimum > 0 and len(keys) == 1:
                raise
    if minimum > 0 and not entries:
        raise Unsatisfiable(f"{parts[0].place or 'the schema'}: no value fits any of its keys")
    if minimum > 1:
        part = next(part for part in parts if part.schema.get("minProperties") == minimum)
        context.note_loss(part, "minProperties", "a key may be written twice")
    return join_list("{", choose(entries) if entries else None, minimum, maximum, "}")


def _read_patterns(parts: Parts, context: LoweringContext) -> dict[str, Grammar]:
    """The patterns of keys, and the keys that are written for each."""
    keys = {}
    for part in parts:
        for pattern in part.schema.get("patternProperties", ()):
            try:
                keys[pattern] = make_pattern_key(pattern, context.limits.key_characters, context.is_python)
            except PatternUnsupported as reason:
                context.note_loss(part, "patternProperties", f"{pattern!r}: {reason}")
    return keys


def _collect_pattern_parts(pattern: str, known: Collection[str], parts: Parts) -> Parts:
    """What the value with a key of this pattern must fit: also what other patterns that the key may have ask for."""
    inner: list[SchemaPart] = []
    for part in parts:
        patterns = part.schema.get("patternProperties", {})
        inner += (
            part.descend(one, f"patternProperties.{other}")
            for other, one in patterns.items()
            if other == pattern or (other in known and not exclude_each_other(pattern, other))
        )
        if pattern not in patterns and "additionalProperties" in part.schema:
            inner.append(part.descend(part.schema["additionalProperties"], "additionalProperties"))
    return tuple(inner)


def lower_array(parts: Parts, context: LoweringContext) -> Grammar:
    """An array. Raises `Unsatisfiable`."""
    minimum = max((int(part.schema.get("minItems", 0)) for part in parts), default=0)
    bounds = [int(part.schema["maxItems"]) for part in parts if "maxItems" in part.schema]
    count = max((len(_split_items(part.schema)[0]) for part in parts), default=0)
    if count and all(_split_items(part.schema)[1] is None for part in parts):
        bounds.append(max(count, minimum))
    maximum = min(bounds, default=max(context.limits.array_items, minimum))
    _note_losses(parts, maximum, context)
    first: list[Grammar] = []
    item: Grammar | None = None
    try:
        # Those before one that nothing fits are kept.
        for place in range(min(count, maximum)):
            first.append(_lower_item(parts, place, context))  # noqa: PERF401
        if maximum > count:
            item = _lower_item(parts, count, context)
    except Unsatisfiable as error:
        if minimum > len(first):
            raise error
        maximum = len(first)
    if minimum > maximum:
        raise Unsatisfiable(f"{parts[0].place or 'the schema'}: at least {minimum} items, at most {maximum}")
    return make_array(first, item, minimum, maximum)


def _split_items(schema: Any) -> tuple[list[Any], Any]:
    """The schemas of the first items and that of the others, None if there is none. Up to draft 2019-09 the first ones
    were the list `items`."""
    items = schema.get("items")
    if isinstance(items, list | tuple):
        return list(items), schema.get("additionalItems")
    return list(schema.get("prefixItems", ())), items


def _lower_item(parts: Parts, place: int, context: LoweringContext) -> Grammar:
    """The item at a place."""
    inner: list[SchemaPart] = []
    for part in parts:
        first, others = _split_items(part.schema)
        if place < len(first):
            inner.append(part.descend(first[place], f"[{place}]"))
        elif others is not None:
            inner.append(part.descend(others, "[]"))
    if not inner:
        return make_any_value(context.limits, context.is_python, max(context.limits.value_depth - 1, 0))
    return context.lower(tuple(inner))


def _note_losses(parts: Parts, maximum: int, context: LoweringContext) -> None:
    for part in parts:
        if "contains" in part.schema:
            context.note_loss(part, "contains", "")
        if part.schema.get("uniqueItems") and maximum > 1:
            context.note_loss(part, "uniqueItems", "")


@dataclass(frozen=True, slots=True)
class ObjectEntry:
    """A key that an object may have, with its value: `"city": …`."""

    grammar: Grammar
    is_required: bool


def make_object(entries: Sequence[ObjectEntry], minimum: int, maximum: int) -> Grammar:
    """An object with `minimum` to `maximum` of these entries, in their order. Raises `Unsatisfiable`."""
    required = sum(one.is_required for one in entries)
    if max(required, minimum) > min(len(entries), maximum):
        raise Unsatisfiable(
            f"of its {len(entries)} keys {required} are required, and {minimum} to {maximum} may be there"
        )
    if minimum <= required and maximum >= len(entries):
        return join("{", _write_entries(entries), "}")
    return join("{", _count_entries(entries, minimum, maximum), "}")


def _write_entries(entries: Sequence[ObjectEntry]) -> Grammar:
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


def _count_entries(entries: Sequence[ObjectEntry], minimum: int, maximum: int) -> Grammar:
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
