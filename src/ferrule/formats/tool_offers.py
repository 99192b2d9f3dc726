"""Tools as hosted APIs expect them: their names, their JSON Schemas, and the offers in conversation files.

OpenAI, Anthropic and Google allow different names; all three accept letters, digits, `_` and `-`, starting with a
letter or `_`, and at most 64 characters. Such a name is unchanged. Any other is replaced by one that depends only on
the names that are offered, so that a conversation is always written the same way.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ferrule.errors import ConversationError
from ferrule.tools.schema_types import standardize_type
from ferrule.toolspec import JSONSchema, ToolSpec

_ALLOWED = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 64


class ToolNames:
    """Encodes the names of the offered tools for a provider, and decodes them."""

    def __init__(self, specs: Iterable[ToolSpec] = ()) -> None:
        names = list(dict.fromkeys(spec.name for spec in specs))
        self._wire = {name: name for name in names if _ALLOWED.fullmatch(name)}
        self._own = dict(self._wire)
        # Sorted, so that a tool's name doesn't depend on the order of the offers.
        for name in sorted(set(names) - set(self._wire)):
            plain = _spell(name)
            chosen = plain if plain not in self._own and len(name) <= _LONGEST else self._add_hash(name)
            self._wire[name] = chosen
            self._own[chosen] = name

    def encode(self, name: str) -> str:
        """The provider's name for a tool, even if it is no longer offered."""
        known = self._wire.get(name)
        if known is not None:
            return known
        return name if _ALLOWED.fullmatch(name) and name not in self._own else self._add_hash(name)

    def decode(self, wire_name: str) -> str:
        """The tool's own name for one that a provider uses; a name that was not offered is returned unchanged."""
        return self._own.get(wire_name, wire_name)

    def _add_hash(self, name: str) -> str:
        """A name with part of its hash, longer if that is taken."""
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        spelled = _spell(name)
        for length in range(8, _LONGEST):
            marked = f"{spelled[: _LONGEST - length - 1]}_{digest[:length]}"
            if marked not in self._own:
                break
        return marked


def _spell(name: str) -> str:
    """The name with invalid characters replaced by `_`, cut to the maximum length."""
    spelled = _REFUSED.sub("_", name) or "tool"
    return (spelled if spelled[0].isalpha() or spelled[0] == "_" else f"_{spelled}")[:_LONGEST]


_SCHEMAS_BY_NAME = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


def make_parameters_schema(schema: JSONSchema) -> dict[str, Any]:
    """A tool's parameters as a schema that a strict validator accepts: of an object, with `properties`.

    Types with other names (`schema_types.py`) become standard ones, an unknown type is removed, and a list gets an item
    type, without which OpenAI refuses it. A schema that already conforms is returned with the same content.
    """
    fitted = _fit(schema)
    if not isinstance(fitted, dict):
        fitted = {}
    fitted["type"] = "object"
    if not isinstance(fitted.get("properties"), dict):
        fitted["properties"] = {}
    return fitted


def _fit(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema if isinstance(schema, bool) else {}
    fitted = dict(standardize_type(schema))
    for key in _SCHEMAS_BY_NAME:
        if isinstance(fitted.get(key), Mapping):
            fitted[key] = {name: _fit(inner) for name, inner in fitted[key].items()}
    for key in _LISTS_OF_SCHEMAS:
        if isinstance(fitted.get(key), list | tuple):
            fitted[key] = [_fit(inner) for inner in fitted[key]]
    for key in _SCHEMAS:
        if key in fitted:
            fitted[key] = _fit(fitted[key])
    if isinstance(fitted.get("required"), bool):
        del fitted["required"]  # draft 3, where each property has its own `required`
    if fitted.get("type") == "array" and "items" not in fitted and "prefixItems" not in fitted:
        fitted["items"] = {}
    return fitted


_STRICT_WORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "description"}
    | {"$ref", "$defs", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"multipleOf", "minItems", "maxItems"}
)
_SAYS_NOTHING = frozenset({"title", "default", "examples", "$schema", "$id", "$comment"})


def make_strict_schema(schema: JSONSchema) -> dict[str, Any] | None:
    """The schema in the subset of JSON Schema that OpenAI enforces, or None if that can't express it.

    Every property is required and no other is allowed. This only restricts: whatever matches it, matches `schema`.
    """
    if schema.get("type") != "object":
        return None
    return _make_strict(schema)


def _make_strict(schema: Any) -> dict[str, Any] | None:
    if not isinstance(schema, Mapping):
        return None
    strict = {key: value for key, value in schema.items() if key not in _SAYS_NOTHING}
    if set(strict) - _STRICT_WORDS:
        return None
    if "$ref" in strict:
        strict = {"$ref": strict["$ref"]}  # nothing is allowed next to it
    if strict.get("type") == "object" or "properties" in strict:
        # The subset has no objects with arbitrary keys.
        if strict.get("additionalProperties") not in (None, False) or not strict.get("properties"):
            return None
        strict["required"] = list(strict["properties"])
        strict["additionalProperties"] = False
    return strict if _is_strict_inside(strict) else None


def _is_strict_inside(schema: dict[str, Any]) -> bool:
    """Replace nested schemas by their strict forms; False if one of them has none."""
    for key in ("properties", "$defs"):
        if key in schema:
            schema[key] = {name: _make_strict(inner) for name, inner in schema[key].items()}
            if None in schema[key].values():
                return False
    if "anyOf" in schema:
        schema["anyOf"] = [_make_strict(inner) for inner in schema["anyOf"]]
        if None in schema["anyOf"]:
            return False
    if "items" in schema:
        schema["items"] = _make_strict(schema["items"])
        return schema["items"] is not None
    return True


SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")
"""The key of a tool's schema: OpenAI's, Anthropic's and MCP's."""

OFFER_KEYS = ("tools", "functions")
"""The keys of the tools in a conversation file."""


def read_offers(data: Any) -> list[ToolSpec]:
    """The tools offered by decoded JSON of OpenAI, Anthropic or MCP, in its `tools` or `functions`.

    Training files may have them in a message, and as the JSON of a list. Duplicates count once.

    Raises `ConversationError` for a tool that is not a function: a provider's own tools can't be offered.
    """
    outer = data if isinstance(data, Mapping) else {}
    messages = outer.get("messages", outer.get("conversations")) if isinstance(data, Mapping) else data
    holders = [("", outer)]
    for at, one in enumerate(messages if isinstance(messages, list) else []):
        holders += [(f" of message {at}", one)] if isinstance(one, Mapping) else []
    found: list[ToolSpec] = []
    for where, holder in holders:
        for key in OFFER_KEYS:
            entries = _parse_entries(holder.get(key) or [], f'"{key}"{where}')
            specs = [_read_spec(entry, f"{key}[{number}]{where}") for number, entry in enumerate(entries)]
            found += [spec for spec in specs if spec not in found]
    return found


def _parse_entries(entries: Any, where: str) -> list[Any]:
    if isinstance(entries, str):
        try:
            entries = json.loads(entries)
        except (ValueError, RecursionError) as error:
            raise ConversationError(f"{where} must be a list of tools, or the JSON of one: {error}") from error
    if not isinstance(entries, list):
        raise ConversationError(f"{where} must be a list of tools")
    return entries


def _read_spec(entry: Any, where: str) -> ToolSpec:
    kind = entry.get("type", "function") if isinstance(entry, Mapping) else None
    function = entry.get("function", entry) if isinstance(entry, Mapping) else None
    if kind not in ("function", "custom", None) or not isinstance(function, Mapping):
        raise ConversationError(f"{where} is not a function, so it can't be offered here: its type is {kind!r}")
    name = function.get("name")
    schema: Any = next((function[key] for key in SCHEMA_KEYS if function.get(key)), {})
    if not isinstance(name, str) or not isinstance(schema, Mapping):
        raise ConversationError(f"{where} must have a name, and parameters that are a JSON Schema")
    return ToolSpec(name, str(function.get("description") or ""), dict(schema))
