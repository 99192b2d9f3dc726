"""The keywords of one schema: the values that it lists (`enum`, `const`), the types that it allows, and the form that
each keyword needs, so that a wrong one is named instead of failing later.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ferrule.errors import DialectError

JSON_TYPES = frozenset({"string", "integer", "fraction", "boolean", "null", "object", "array"})
"""The types that are told apart: a number is an integer or a fraction."""
_TYPES: Mapping[str, frozenset[str]] = {
    **{one: frozenset({one}) for one in JSON_TYPES - {"fraction"}},
    "number": frozenset({"integer", "fraction"}),
}
TYPE_NAMES = frozenset(_TYPES)
"""The types of JSON Schema."""


def list_type_names(types: Any) -> list[Any]:
    """The names in the `type` of a schema, which may be a single one."""
    return list(types) if isinstance(types, list | tuple) else [types]


def list_types(schemas: Iterable[Any], default: frozenset[str]) -> frozenset[str]:
    """The types that fit all of these schemas, `default` if none has a `type`."""
    found: frozenset[str] | None = None
    for schema in schemas:
        if "type" not in schema:
            continue
        types = frozenset[str]().union(*(_TYPES[name] for name in list_type_names(schema["type"])))
        found = types if found is None else found & types
    return default if found is None else found


def list_values(schemas: Iterable[Any]) -> dict[str, Any] | None:
    """The values that all of these schemas list, by what tells them apart; None if no schema lists any."""
    found: dict[str, Any] | None = None
    for schema in schemas:
        lists = [schema["enum"]] if "enum" in schema else []
        lists += [[schema["const"]]] if "const" in schema else []
        for listed in lists:
            values = {_identify(value): value for value in listed}
            found = values if found is None else {key: found[key] for key in found if key in values}
    return found


def name_type(value: Any) -> str:
    """The type of a value, as `list_types` names them."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) or value.is_integer() else "fraction"
    return "string" if isinstance(value, str) else "object" if isinstance(value, Mapping) else "array"


def _identify(value: Any) -> str:
    """A text that is the same for equal values only: 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(value, str):
        return f'"{value}'
    return json.dumps(_normalize(value), sort_keys=True)


def _normalize(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {name: _normalize(inner) for name, inner in value.items()}
    return [_normalize(inner) for inner in value] if isinstance(value, list | tuple) else value


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
