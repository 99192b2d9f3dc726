"""The values that a schema lists (`enum`, `const`) and the types that it allows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

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
