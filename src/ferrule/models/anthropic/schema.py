"""The subset of JSON Schema that Anthropic enforces for answers. The rest goes into the description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"})
_LISTS = {"anyOf": "anyOf", "oneOf": "anyOf", "allOf": "allOf"}


def fit_answer_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as Anthropic accepts it: objects are closed, and what it refuses (`minimum`, `pattern`, …) is
    described.

    Anthropic's own package converts schemas like this. The caller must check what is only described.
    """
    rest = dict(schema)
    fitted: dict[str, Any] = {}
    if isinstance(definitions := rest.pop("$defs", None), Mapping):
        fitted["$defs"] = {name: fit_answer_schema(inner) for name, inner in definitions.items()}
    if "$ref" in rest:
        return {**fitted, "$ref": rest["$ref"]}  # nothing is allowed next to it
    for key in ("enum", "const", "title"):
        if key in rest:
            fitted[key] = rest.pop(key)
    kind = rest.pop("type", None)
    for key, written in _LISTS.items():
        if isinstance(rest.get(key), list) and written not in fitted:
            fitted[written] = [fit_answer_schema(inner) for inner in rest.pop(key)]
    if kind is not None and not {"enum", "const", "anyOf", "allOf"} & set(fitted):
        fitted["type"] = kind
        _fit_inside(kind, rest, fitted)
    if description := _describe(rest.pop("description", None), rest):
        fitted["description"] = description
    return fitted


def _fit_inside(kind: Any, rest: dict[str, Any], fitted: dict[str, Any]) -> None:
    """Move what a type supports from `rest` to `fitted`."""
    if kind == "object":
        properties = rest.pop("properties", None) or {}
        fitted["properties"] = {name: fit_answer_schema(inner) for name, inner in properties.items()}
        rest.pop("additionalProperties", None)
        fitted["additionalProperties"] = False
        if "required" in rest:
            fitted["required"] = rest.pop("required")
    elif kind == "array":
        if isinstance(rest.get("items"), Mapping):
            fitted["items"] = fit_answer_schema(rest.pop("items"))
        if rest.get("minItems") in (0, 1):
            fitted["minItems"] = rest.pop("minItems")
    elif kind == "string" and rest.get("format") in _FORMATS:
        fitted["format"] = rest.pop("format")


def _describe(description: Any, rest: Mapping[str, Any]) -> str:
    """A description with everything that the model is asked for, but that isn't enforced."""
    described = "{" + ", ".join(f"{key}: {value}" for key, value in rest.items()) + "}" if rest else ""
    return "\n\n".join(filter(None, (description, described)))
