"""JSON Schemas as hosted models take them: of a tool's parameters, and of an answer that must have a shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ferrule.toolspec import JSONSchema

# Words that are found in the wild where JSON Schema has others: Python's, and those of the BFCL documents.
_TYPES = {
    "dict": "object",
    "hashmap": "object",
    "list": "array",
    "tuple": "array",
    "set": "array",
    "arraylist": "array",
    "float": "number",
    "double": "number",
    "long": "integer",
    "int": "integer",
    "bool": "boolean",
    "str": "string",
    "char": "string",
    "none": "null",
}
_KNOWN = frozenset({"object", "array", "number", "integer", "boolean", "string", "null"})
_SCHEMAS_BY_NAME = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


def parameters_schema(schema: JSONSchema) -> dict[str, Any]:
    """A tool's parameters as a schema that a strict validator accepts: of an object, with `properties`.

    Types by other names get the standard one, a type that no validator knows goes, and a list says what it is of,
    without which OpenAI refuses it. A schema that has all that comes back with the same content.
    """
    fitted = _fitted(schema)
    if not isinstance(fitted, dict):
        fitted = {}
    fitted["type"] = "object"
    if not isinstance(fitted.get("properties"), dict):
        fitted["properties"] = {}
    return fitted


def _fitted(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema if isinstance(schema, bool) else {}
    fitted = dict(schema)
    _fit_type(fitted)
    for key in _SCHEMAS_BY_NAME:
        if isinstance(fitted.get(key), Mapping):
            fitted[key] = {name: _fitted(inner) for name, inner in fitted[key].items()}
    for key in _LISTS_OF_SCHEMAS:
        if isinstance(fitted.get(key), list | tuple):
            fitted[key] = [_fitted(inner) for inner in fitted[key]]
    for key in _SCHEMAS:
        if key in fitted:
            fitted[key] = _fitted(fitted[key])
    if isinstance(fitted.get("required"), bool):
        del fitted["required"]  # draft 3, where each property said it of itself
    if fitted.get("type") == "array" and "items" not in fitted and "prefixItems" not in fitted:
        fitted["items"] = {}
    return fitted


def _fit_type(schema: dict[str, Any]) -> None:
    given = schema.get("type")
    if given is None:
        schema.pop("type", None)
        return
    kinds = [given] if isinstance(given, str) else list(given) if isinstance(given, list | tuple) else []
    standard = [_TYPES.get(str(kind).lower(), str(kind).lower()) for kind in kinds]
    if not standard or not set(standard) <= _KNOWN:
        del schema["type"]
    else:
        schema["type"] = standard[0] if isinstance(given, str) else list(dict.fromkeys(standard))


_STRICT_WORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "description"}
    | {"$ref", "$defs", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"multipleOf", "minItems", "maxItems"}
)
_SAYS_NOTHING = frozenset({"title", "default", "examples", "$schema", "$id", "$comment"})


def strict_schema(schema: JSONSchema) -> dict[str, Any] | None:
    """The schema in the part of JSON Schema that OpenAI holds a model to, or None where it can't be said in that.

    Every property is required and no other is allowed. That only narrows: whatever fits the answer, fits `schema`.
    """
    if schema.get("type") != "object":
        return None
    return _strict(schema)


def _strict(schema: Any) -> dict[str, Any] | None:
    if not isinstance(schema, Mapping):
        return None
    strict = {key: value for key, value in schema.items() if key not in _SAYS_NOTHING}
    if set(strict) - _STRICT_WORDS:
        return None
    if "$ref" in strict:
        strict = {"$ref": strict["$ref"]}  # nothing may stand beside it
    if strict.get("type") == "object" or "properties" in strict:
        # An object whose keys are the model's to choose can't be said.
        if strict.get("additionalProperties") not in (None, False) or not strict.get("properties"):
            return None
        strict["required"] = list(strict["properties"])
        strict["additionalProperties"] = False
    return strict if _is_strict_inside(strict) else None


def _is_strict_inside(schema: dict[str, Any]) -> bool:
    """Put the strict schemas into the place of those inside; False where one of them has none."""
    for key in ("properties", "$defs"):
        if key in schema:
            schema[key] = {name: _strict(inner) for name, inner in schema[key].items()}
            if None in schema[key].values():
                return False
    if "anyOf" in schema:
        schema["anyOf"] = [_strict(inner) for inner in schema["anyOf"]]
        if None in schema["anyOf"]:
            return False
    if "items" in schema:
        schema["items"] = _strict(schema["items"])
        return schema["items"] is not None
    return True
