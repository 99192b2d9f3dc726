"""Strings that fit all of several schemas."""

from __future__ import annotations

from ferrule.dialects.grammar import Grammar
from ferrule.dialects.value_grammar.any_values import make_string
from ferrule.dialects.value_grammar.limits import Unsatisfiable
from ferrule.dialects.value_grammar.parts import Context, Parts


def lower_string(parts: Parts, context: Context) -> Grammar:
    """A string. Raises `Unsatisfiable`."""
    minimum = int(max((part.schema.get("minLength", 0) for part in parts), default=0))
    bounds = [int(part.schema["maxLength"]) for part in parts if "maxLength" in part.schema]
    maximum = min(bounds, default=max(context.limits.string_characters, minimum))
    if minimum > maximum:
        raise Unsatisfiable(f"{parts[0].place or 'the schema'}: at least {minimum} characters, at most {maximum}")
    for part in parts:
        for word in ("pattern", "format"):
            if word in part.schema:
                context.note_loss(part, word, "")
    return make_string(minimum, maximum, context.is_python)
