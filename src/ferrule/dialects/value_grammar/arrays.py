"""Arrays that fit all of several schemas."""

from __future__ import annotations

from typing import Any

from ferrule.dialects.grammar import Grammar
from ferrule.dialects.value_grammar.any_values import make_any_value
from ferrule.dialects.value_grammar.containers import make_array
from ferrule.dialects.value_grammar.limits import Unsatisfiable
from ferrule.dialects.value_grammar.parts import Context, Part, Parts


def lower_array(parts: Parts, context: Context) -> Grammar:
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


def _lower_item(parts: Parts, place: int, context: Context) -> Grammar:
    """The item at a place."""
    inner: list[Part] = []
    for part in parts:
        first, others = _split_items(part.schema)
        if place < len(first):
            inner.append(part.descend(first[place], f"[{place}]"))
        elif others is not None:
            inner.append(part.descend(others, "[]"))
    if not inner:
        return make_any_value(context.limits, context.is_python, max(context.limits.value_depth - 1, 0))
    return context.lower(tuple(inner))


def _note_losses(parts: Parts, maximum: int, context: Context) -> None:
    for part in parts:
        if "contains" in part.schema:
            context.note_loss(part, "contains", "")
        if part.schema.get("uniqueItems") and maximum > 1:
            context.note_loss(part, "uniqueItems", "")
