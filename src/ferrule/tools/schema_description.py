"""A JSON Schema in words: what is expected at some place, as a model should read it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

_MAX_LISTED = 20
"""How many values, choices or fields are named; half as many at each level of nesting."""
_MAX_DEPTH = 4
_MAX_HOPS = 8


def find_schema(schema: Mapping[str, Any], path: Sequence[str | int]) -> Mapping[str, Any] | None:
    """The schema of the value at `path`, or None if the way there is ambiguous (several alternatives)."""
    here: Any = _resolve(schema, schema)
    for part in path:
        if isinstance(part, int):
            prefix = here.get("prefixItems", ())
            here = prefix[part] if part < len(prefix) else here.get("items")
        else:
            fields = here.get("properties", {})
            here = fields[part] if part in fields else here.get("additionalProperties")
        if not isinstance(here, Mapping):
            return None
        here = _resolve(here, schema)
    return here if isinstance(here, Mapping) else None


def _resolve(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema behind local references and "this or null"; keywords next to a reference are kept."""
    for _ in range(_MAX_HOPS):
        target = _find_reference(schema.get("$ref"), root)
        choices = [c for c in schema.get("anyOf", ()) if isinstance(c, Mapping) and c.get("type") != "null"]
        if target is not None:
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        elif len(choices) == 1 and "properties" not in schema:
            schema = choices[0]
        else:
            break
    return schema


def _find_reference(reference: Any, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    target: Any = root
    for step in reference[2:].split("/"):
        target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
    return target if isinstance(target, Mapping) else None


def describe_schema(schema: Any, root: Mapping[str, Any], depth: int = 0) -> str:
    """A schema in words: "an integer from 1 to 10", "one of "km", "miles"", "a list, each item a string".

    Schemas may be recursive, so anything deeper than `depth` 4 is only "a JSON value".
    """
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return "nothing" if schema is False else "a JSON value"
    nullable = any(isinstance(c, Mapping) and c.get("type") == "null" for c in schema.get("anyOf", ()))
    words = _describe_kind(_resolve(schema, root), root, depth)
    return f"{words}, or null" if nullable and not words.endswith("null") else words


def _describe_kind(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if "const" in schema or "enum" in schema:
        allowed = schema.get("enum", [schema.get("const")])
        values = [json.dumps(value, ensure_ascii=False) for value in allowed[:_MAX_LISTED]]
        if len(allowed) > _MAX_LISTED:
            values.append("…")
        return values[0] if len(values) == 1 else "one of " + ", ".join(values)
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            options = (describe_schema(option, root, depth + 1) for option in schema[choice][: _MAX_LISTED >> depth])
            return " or ".join(
                [*dict.fromkeys(options), *(["…"] if len(schema[choice]) > _MAX_LISTED >> depth else [])]
            )
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(_describe_kind({**schema, "type": one}, root, depth + 1) for one in kind)
    if kind in ("integer", "number"):
        return ("an integer" if kind == "integer" else "a number") + _describe_range(schema)
    if kind == "string":
        return _describe_string(schema)
    if kind == "array":
        return _describe_list(schema, root, depth)
    if kind == "object":
        return _describe_object(schema, root, depth)
    return {"boolean": "true or false", "null": "null"}.get(str(kind), "a JSON value")


def _describe_range(schema: Mapping[str, Any]) -> str:
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


def _describe_string(schema: Mapping[str, Any]) -> str:
    words = _FORMATS.get(schema.get("format", ""), "a string")
    low, high = schema.get("minLength"), schema.get("maxLength")
    if low is not None or high is not None:
        words += f" of {_describe_count(low, high)} characters"
    if pattern := schema.get("pattern"):
        words += f" that matches {pattern}"
    return words


def _describe_count(low: int | None, high: int | None) -> str:
    if low == high:
        return str(low)
    if low is None:
        return f"at most {high}"
    return f"at least {low}" if high is None else f"{low} to {high}"


def _describe_list(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if prefix := schema.get("prefixItems"):
        return f"a list of {len(prefix)}: " + ", ".join(
            [describe_schema(one, root, depth + 1) for one in prefix[: _MAX_LISTED >> depth]]
            + (["…"] if len(prefix) > _MAX_LISTED >> depth else [])
        )
    low, high = schema.get("minItems"), schema.get("maxItems")
    words = "a list" if low is None and high is None else f"a list of {_describe_count(low, high)} items"
    items = schema.get("items")
    if isinstance(items, Mapping) and items and depth < _MAX_DEPTH - 1:
        words += f", each item {describe_schema(items, root, depth + 1)}"
    return words


def _describe_object(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    fields = schema.get("properties", {})
    if fields and depth < _MAX_DEPTH - 1:
        required = schema.get("required", ())
        listed = [
            f"{name} ({'' if name in required else 'optional, '}{describe_schema(one, root, depth + 1)})"
            for name, one in islice(fields.items(), _MAX_LISTED >> depth)
        ]
        return "an object with " + ", ".join([*listed, *(["…"] if len(fields) > _MAX_LISTED >> depth else [])])
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping) and values and depth < _MAX_DEPTH - 1:
        return f"an object, each value {describe_schema(values, root, depth + 1)}"
    return "an object"
