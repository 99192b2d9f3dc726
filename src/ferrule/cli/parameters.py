"""A tool's parameters for people: as lines of a listing, and read from the options of a command line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ferrule.errors import SettingsError
from ferrule.execution.showing import visible
from ferrule.toolspec import JSONSchema

_DEEPEST = 8


def parameter_lines(schema: JSONSchema) -> list[str]:
    """A line for each parameter: its option, its type, whether it is needed, and what it is."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    needed = schema.get("required", ())
    lines = []
    for name, one in properties.items():
        kind = "|".join(sorted(_types(one, schema))) or "any"
        notes = [kind, "needed" if name in needed else f"default {json.dumps(one.get('default'), ensure_ascii=False)}"]
        about = one.get("description", "") if isinstance(one, Mapping) else ""
        lines.append(visible(f"    --{name}  ({', '.join(notes)})  {' '.join(about.split())}".rstrip()))
    return lines


def arguments_from(words: Sequence[str], schema: JSONSchema) -> dict[str, Any]:
    """Arguments from `--name value`, `--name=value`, `--flag` and `--no-flag`, in the types that the schema asks for.

    What the schema takes as text stays text; other values are read as JSON where they are that. A list is a JSON
    array, or the option repeated. Whether the arguments are right is for the executor to say. Raises `SettingsError`
    where a word is no option, or has no value.
    """
    arguments: dict[str, Any] = {}
    for name, text in _options(list(words), schema):
        one = schema.get("properties", {}).get(name, {})
        kinds = _types(one, schema)
        if "array" in kinds and not str(text).lstrip().startswith("["):
            arguments.setdefault(name, []).append(_value(text, _types(_items(one, schema), schema)))
        elif name in arguments:
            raise SettingsError(f"--{name} is given twice, and it takes one value")
        else:
            arguments[name] = _value(text, kinds)
    return arguments


def _options(words: list[str], schema: JSONSchema) -> Iterator[tuple[str, str | bool]]:
    properties = schema.get("properties", {})
    while words:
        word = words.pop(0)
        if not word.startswith("--") or len(word) < 3:
            raise SettingsError(f"{word!r} belongs to no option; write arguments as --name value")
        option, has_value, text = word[2:].partition("=")
        name = _name(option, properties)
        is_flag = "boolean" in _types(properties.get(name, {}), schema)
        if has_value:
            yield name, text
        elif name not in properties and option.startswith("no-") and _name(option[3:], properties) in properties:
            yield _name(option[3:], properties), False
        elif is_flag and (not words or words[0].casefold() not in ("true", "false")):
            yield name, True
        elif words:
            yield name, words.pop(0)
        else:
            raise SettingsError(f"--{option} needs a value")


def _name(option: str, properties: Mapping[str, Any]) -> str:
    if option in properties:
        return option
    return next((name for name in properties if name.replace("_", "-") == option), option)


def _value(text: str | bool, kinds: set[str]) -> Any:
    if isinstance(text, bool) or "string" in kinds:
        return text
    try:
        return json.loads(text.lower() if kinds == {"boolean"} else text)
    except (ValueError, RecursionError):
        return text


def _types(schema: Any, root: JSONSchema, depth: int = 0) -> set[str]:
    """The JSON types that a schema names, its alternatives and what it refers to included; empty for any."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return set()
    found: set[str] = set()
    named = schema.get("type", ())
    found |= {named} if isinstance(named, str) else set(named)
    for value in (*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())):
        found |= {"string"} if isinstance(value, str) else set()
    for alternative in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        found |= _types(alternative, root, depth + 1)
    if "$ref" in schema:
        found |= _types(_referred(schema["$ref"], root), root, depth + 1)
    return found


def _items(schema: Any, root: JSONSchema) -> Any:
    """The schema of a list's elements."""
    for one in (schema, *schema.get("anyOf", ()), _referred(schema.get("$ref", ""), root)):
        if isinstance(one, Mapping) and "items" in one:
            return one["items"]
    return {}


def _referred(reference: str, root: JSONSchema) -> Any:
    return root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})
