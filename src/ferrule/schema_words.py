"""A JSON Schema in words: what is wanted at some place, as a model should read it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_LISTED = 20
_DEPTH = 4
_HOPS = 8


def schema_at(schema: Mapping[str, Any], path: Sequence[str | int]) -> Mapping[str, Any] | None:
    """The schema of the value at `path`, or None where the way there isn't plain (a choice of several)."""
    here: Any = _followed(schema, schema)
    for part in path:
        if isinstance(part, int):
            prefix = here.get("prefixItems", ())
            here = prefix[part] if part < len(prefix) else here.get("items")
        else:
            fields = here.get("properties", {})
            here = fields[part] if part in fields else here.get("additionalProperties")
        if not isinstance(here, Mapping):
            return None
        here = _followed(here, schema)
    return here if isinstance(here, Mapping) else None


def _followed(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema behind local references and "this or null"; words beside a reference are kept."""
    for _ in range(_HOPS):
        target = _target(schema.get("$ref"), root)
        choices = [c for c in schema.get("anyOf", ()) if isinstance(c, Mapping) and c.get("type") != "null"]
        if target is not None:
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        elif len(choices) == 1 and "properties" not in schema:
            schema = choices[0]
        else:
            break
    return schema


def _target(reference: Any, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    target: Any = root
    for step in reference[2:].split("/"):
        target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
    return target if isinstance(target, Mapping) else None


def wanted_words(schema: Any, root: Mapping[str, Any], depth: int = 0) -> str:
    """A schema in words: "an integer from 1 to 10", "one of "km", "miles"", "a list, each item a string".

    Schemas may hold themselves, so what lies deeper than `depth` 4 is only "a JSON value".
    """
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return "nothing" if schema is False else "a JSON value"
    nullable = any(isinstance(c, Mapping) and c.get("type") == "null" for c in schema.get("anyOf", ()))
    words = _kind_words(_followed(schema, root), root, depth)
    return f"{words}, or null" if nullable and not words.endswith("null") else words


def _kind_words(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if "const" in schema or "enum" in schema:
        allowed = schema.get("enum", [schema.get("const")])
        values = [json.dumps(value, ensure_ascii=False) for value in allowed[:_LISTED]]
        if len(allowed) > _LISTED:
            values.append("…")
        return values[0] if len(values) == 1 else "one of " + ", ".join(values)
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return " or ".join(dict.fromkeys(wanted_words(option, root, depth + 1) for option in schema[choice]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(_kind_words({**schema, "type": one}, root, depth + 1) for one in kind)
    if kind in ("integer", "number"):
        return ("an integer" if kind == "integer" else "a number") + _range_words(schema)
    if kind == "string":
        return _string_words(schema)
    if kind == "array":
        return _list_words(schema, root, depth)
    if kind == "object":
        return _object_words(schema, root, depth)
    return {"boolean": "true or false", "null": "null"}.get(str(kind), "a JSON value")


def _range_words(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        words = [f"from {low} to {high}"]
    else:
        words = [f"of at least {low}"] if low is not None else []
        words += [f"of at most {high}"] if high is not None else []
    if (above := schema.get("exclusiveMinimum")) is not None:
        words.append(f"above {above}")
    if (below := schema.get("exclusiveMaximum")) is not None:
        words.append(f"below {below}")
    if (step := schema.get("multipleOf")) is not None:
        words.append(f"that is a multiple of {step}")
    return "".join(f" {word}" for word in words)


_FORMATS = {
    "date": "a date as the string YYYY-MM-DD",
    "date-time": "a date and time as the string YYYY-MM-DDTHH:MM:SS",
    "time": "a time as the string HH:MM:SS",
    "duration": "a duration as the string PT1H30M",
    "uuid": "a UUID as a string",
    "uri": "a URL as a string",
    "email": "an e-mail address as a string",
}


def _string_words(schema: Mapping[str, Any]) -> str:
    words = _FORMATS.get(schema.get("format", ""), "a string")
    low, high = schema.get("minLength"), schema.get("maxLength")
    if low is not None or high is not None:
        words += f" of {_count_words(low, high)} characters"
    if pattern := schema.get("pattern"):
        words += f" that matches {pattern}"
    return words


def _count_words(low: int | None, high: int | None) -> str:
    if low == high:
        return str(low)
    if low is None:
        return f"at most {high}"
    return f"at least {low}" if high is None else f"{low} to {high}"


def _list_words(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if prefix := schema.get("prefixItems"):
        return f"a list of {len(prefix)}: " + ", ".join(wanted_words(one, root, depth + 1) for one in prefix)
    low, high = schema.get("minItems"), schema.get("maxItems")
    words = "a list" if low is None and high is None else f"a list of {_count_words(low, high)} items"
    items = schema.get("items")
    if isinstance(items, Mapping) and items and depth < _DEPTH - 1:
        words += f", each item {wanted_words(items, root, depth + 1)}"
    return words


def _object_words(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    fields = schema.get("properties", {})
    if fields and depth < _DEPTH - 1:
        required = schema.get("required", ())
        listed = [
            f"{name} ({'' if name in required else 'optional, '}{wanted_words(one, root, depth + 1)})"
            for name, one in list(fields.items())[:_LISTED]
        ]
        return "an object with " + ", ".join([*listed, *(["…"] if len(fields) > _LISTED else [])])
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping) and values and depth < _DEPTH - 1:
        return f"an object, each value {wanted_words(values, root, depth + 1)}"
    return "an object"
