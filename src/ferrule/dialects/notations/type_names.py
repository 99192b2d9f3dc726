"""A JSON Schema as a type in the words of Python: `str`, `list[int]`, `{city: str, age?: int | None}`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ferrule.dialects.parameters import resolved

_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_ANY = "Any"
_DEEPEST = 6


def type_name(schema: Any, root: Mapping[str, Any], depth: int = 0) -> str:
    """The type that a schema allows. A schema may hold itself: what lies deeper than `depth` 6 is `Any`."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return _ANY
    if isinstance(schema.get("$ref"), str):
        return type_name(resolved(schema["$ref"], root), root, depth + 1)
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(choices, list):
        return f"Literal[{', '.join(map(repr, choices))}]"
    for word in ("anyOf", "oneOf"):
        if schema.get(word):
            return _union([type_name(one, root, depth + 1) for one in schema[word]])
    named = schema.get("type", "object" if "properties" in schema else None)
    kinds = named if isinstance(named, list) else [named]
    return _union([_of_kind(str(kind), schema, root, depth + 1) for kind in kinds])


def _union(names: list[str]) -> str:
    """Alternatives, None last as people write it."""
    found = dict.fromkeys(names)
    is_nullable = found.pop("None", "") is None
    return " | ".join((*found, "None") if is_nullable else found)


def _of_kind(kind: str, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if kind == "array":
        return _list_name(schema, root, depth)
    if kind == "object":
        return _object_name(schema, root, depth)
    return _PLAIN.get(kind, _ANY)


def _list_name(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    first = schema.get("prefixItems")
    if isinstance(first, list) and first:
        return f"tuple[{', '.join(type_name(one, root, depth) for one in first)}]"
    items = schema.get("items")
    return f"list[{type_name(items, root, depth)}]" if isinstance(items, Mapping) and items else "list"


def _object_name(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    """Its fields, those that may be left out marked as TypeScript does, Python having no mark for them."""
    fields, required = schema.get("properties"), schema.get("required") or ()
    if isinstance(fields, Mapping) and fields:
        named = (f"{key}{'' if key in required else '?'}: {type_name(s, root, depth)}" for key, s in fields.items())
        return f"{{{', '.join(named)}}}"
    values = schema.get("additionalProperties")
    return f"dict[str, {type_name(values, root, depth)}]" if isinstance(values, Mapping) and values else "dict"


def told_within(schema: Any, root: Mapping[str, Any], path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """(path, description) of what is described within a schema: `filters.city`, `people[].name`."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return
    if isinstance(schema.get("$ref"), str):
        yield from told_within(resolved(schema["$ref"], root), root, path, depth + 1)
    for word in ("anyOf", "oneOf"):
        for one in schema.get(word) or ():
            yield from told_within(one, root, path, depth + 1)
    inner = [(f"{path}.{key}" if path else key, one) for key, one in (schema.get("properties") or {}).items()]
    inner += [(f"{path}[]", schema[word]) for word in ("items", "additionalProperties") if word in schema]
    for name, one in inner:
        if isinstance(one, Mapping) and isinstance(one.get("description"), str):
            yield name, one["description"]
        yield from told_within(one, root, name, depth + 1)
