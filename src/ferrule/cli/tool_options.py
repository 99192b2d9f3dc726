"""A tool's parameters as command-line options: listed for people, and parsed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ferrule._util.terminal_text import escape_line
from ferrule.errors import SettingsError
from ferrule.toolspec import JSONSchema

_DEEPEST = 8
_MOST_CHOICES = 8
_FORMATS = {"date": "YYYY-MM-DD", "date-time": "YYYY-MM-DDTHH:MM:SS", "time": "HH:MM:SS", "duration": "PT1H30M"}
"""What values of a JSON Schema's formats look like, for those that aren't known to everybody."""


def format_parameters(schema: JSONSchema) -> list[str]:
    """Format a line for each parameter: its option, its type and values, its default, and its description."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    lines = []
    for name, one in properties.items():
        notes = [
            "|".join(sorted(_list_json_types(one, schema))) or "any",
            *_describe_values(one, schema),
            "required" if name in required else _describe_default(one, schema),
        ]
        about = one.get("description", "") if isinstance(one, Mapping) else ""
        lines.append(escape_line(f"    --{name}  ({', '.join(notes)})  {' '.join(about.split())}".rstrip()))
    return lines


def _describe_values(schema: Any, root: JSONSchema) -> Iterator[str]:
    """Describe which values a parameter takes, or its list, where its types don't say: some only, or of one format."""
    items = _find_item_schema(schema, root) if isinstance(schema, Mapping) else {}
    for one, words in ((schema, ""), (items, "each ")):
        kinds = [kind for kind in _list_alternatives(one, root) if kind.keys() & {"type", "enum", "const"}]
        kinds = [kind for kind in kinds if kind.get("type") != "null"]
        if kinds and all("enum" in kind or "const" in kind for kind in kinds):
            values = [value for kind in kinds for value in kind.get("enum", [kind.get("const")])]
            shown = [value if isinstance(value, str) else json.dumps(value) for value in values[:_MOST_CHOICES]]
            yield f"{words}one of {'|'.join(shown)}{'|…' if len(values) > _MOST_CHOICES else ''}"
        else:
            formats = [kind["format"] for kind in kinds if kind.get("format") in _FORMATS]
            yield from (f"{words}{name} {_FORMATS[name]}" for name in formats)


def _describe_default(schema: Any, root: JSONSchema) -> str:
    """Describe the default of an optional parameter, which its schema may lack: it is null, or JSON can't hold it."""
    if isinstance(schema, Mapping) and "default" in schema:
        return f"default {json.dumps(schema['default'], ensure_ascii=False)}"
    return "default null" if "null" in _list_json_types(schema, root) else "optional"


def parse_tool_options(
    words: Sequence[str], schema: JSONSchema, check_unlisted: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Parse `--name value`, `--name=value`, `--flag` and `--no-flag` into arguments of the schema's types.

    What may be a string by the schema stays one; other values are parsed as JSON if possible. A list is a JSON array,
    or a repeated option. The executor validates the arguments. `check_unlisted` is called with each option that is no
    parameter of a schema that allows no others. Raises `SettingsError` for a word that isn't an option,
    or an option without a value.
    """
    arguments: dict[str, Any] = {}
    for name, text in _split_options(list(words), schema, check_unlisted):
        one = schema.get("properties", {}).get(name, {})
        kinds = _list_json_types(one, schema)
        if "array" in kinds and not str(text).lstrip().startswith("["):
            arguments.setdefault(name, []).append(
                _parse_value(text, _list_json_types(_find_item_schema(one, schema), schema))
            )
        elif name in arguments:
            raise SettingsError(f"--{name} is given twice, and it takes one value")
        else:
            arguments[name] = _parse_value(text, kinds)
    return arguments


def _split_options(
    words: list[str], schema: JSONSchema, check_unlisted: Callable[[str], None]
) -> Iterator[tuple[str, str | bool]]:
    properties = schema.get("properties", {})
    allows_others = schema.get("additionalProperties") or schema.get("patternProperties")
    while words:
        word = words.pop(0)
        if not word.startswith("--") or len(word) < 3:
            raise SettingsError(
                f"{word!r} is not an option; write arguments as --name value, or all as --json-arguments '{{…}}'"
            )
        option, has_value, text = word[2:].partition("=")
        name = _find_parameter(option, properties)
        negated = _find_parameter(option[3:], properties) if option.startswith("no-") else ""
        if not (allows_others or {name, negated} & properties.keys()):
            check_unlisted(f"--{option}")
        is_flag = "boolean" in _list_json_types(properties.get(name, {}), schema)
        if has_value:
            yield name, text
        elif name not in properties and negated in properties:
            yield negated, False
        elif is_flag and (not words or words[0].casefold() not in ("true", "false")):
            yield name, True
        elif words:
            yield name, words.pop(0)
        else:
            raise SettingsError(f"--{option} needs a value")


def _find_parameter(option: str, properties: Mapping[str, Any]) -> str:
    if option in properties:
        return option
    return next((name for name in properties if name.replace("_", "-") == option), option)


def _parse_value(text: str | bool, kinds: set[str]) -> Any:
    if isinstance(text, bool) or "string" in kinds:
        return text
    try:
        return json.loads(text.lower() if kinds == {"boolean"} else text)
    except (ValueError, RecursionError):
        return text


def _list_json_types(schema: Any, root: JSONSchema) -> set[str]:
    """List the JSON types of a schema, of its alternatives and references too; empty if any type is allowed."""
    found: set[str] = set()
    for one in _list_alternatives(schema, root):
        named = one.get("type", ())
        found |= {named} if isinstance(named, str) else set(named)
        for value in (*one.get("enum", ()), *([one["const"]] if "const" in one else ())):
            found |= {"string"} if isinstance(value, str) else set()
    return found


def _list_alternatives(schema: Any, root: JSONSchema, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """List a schema, its alternatives, and those that they refer to."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return
    yield schema
    for alternative in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _list_alternatives(alternative, root, depth + 1)
    if "$ref" in schema:
        yield from _list_alternatives(_resolve_reference(schema["$ref"], root), root, depth + 1)


def _find_item_schema(schema: Any, root: JSONSchema) -> Any:
    """Find the schema of a list's elements."""
    for one in (schema, *schema.get("anyOf", ()), _resolve_reference(schema.get("$ref", ""), root)):
        if isinstance(one, Mapping) and "items" in one:
            return one["items"]
    return {}


def _resolve_reference(reference: str, root: JSONSchema) -> Any:
    return root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})
