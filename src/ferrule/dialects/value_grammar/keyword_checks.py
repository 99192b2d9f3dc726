"""Whether the keywords of a schema have the form that they need, so that a wrong one is named instead of failing
later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ferrule.dialects.value_grammar.values import TYPE_NAMES, list_type_names
from ferrule.errors import DialectError


def check_keywords(schema: Mapping[str, Any], place: str) -> None:
    """Check the keywords of one schema, without those inside it. Raises `DialectError`."""
    for word in schema.keys() & _CHECKS.keys():
        needed, check = _CHECKS[word]
        if not check(schema[word]):
            where = f"{place}.{word}".removeprefix(".")
            raise DialectError(f"{where}: {schema[word]!r:.60} isn't {needed}, as JSON Schema has it")


def _is_count(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and value >= 0 and value % 1 == 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_list_of_texts(value: Any) -> bool:
    return _is_list(value) and all(isinstance(one, str) for one in value)


def _is_type(value: Any) -> bool:
    return all(isinstance(name, str) and name in TYPE_NAMES for name in list_type_names(value))


_Check = tuple[str, Callable[[Any], bool]]
_CHECKS: Mapping[str, _Check] = {
    "type": (f"a type ({', '.join(sorted(TYPE_NAMES))})", _is_type),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), ("a count", _is_count)
    ),
    # Up to draft 4 a boolean excluded the other bound.
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), ("a number", _is_number)
    ),
    **dict.fromkeys(("pattern", "format", "$ref"), ("a string", _is_text)),
    **dict.fromkeys(("properties", "patternProperties"), ("an object", _is_mapping)),
    **dict.fromkeys(("enum", "allOf", "anyOf", "oneOf", "prefixItems"), ("a list", _is_list)),
    "required": ("a list of names", _is_list_of_texts),
}
"""What each keyword needs to be."""
