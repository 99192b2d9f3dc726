"""Rigging's XML around `native` calls: how tools are offered to a model, and how it receives results.

A tool is identified by its group and its own name. The name alone must be unique, so that no two tools can be confused;
a tool without a group is a group of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.entities import html5
from typing import Any

from ferrule.conversation import ToolResult
from ferrule.dialects.notations.invoke import split_name
from ferrule.dialects.reader.parameters import resolve_reference
from ferrule.dialects.wording import ResultRead
from ferrule.errors import DialectError
from ferrule.tools.schema_description import describe_schema
from ferrule.tools.schema_types import standardize_type
from ferrule.toolspec import ToolGroup, ToolSpec

_BEFORE = """# Tool Use
In this environment you have access to a set of tools you can use to improve your responses.

## Tool Call Format
<tool-calls>
   <tool-call tool="$TOOL_A" function="$FUNCTION_A">
      <parameter name="$PARAMETER_NAME" />
   </tool-call>
   <tool-call tool="$TOOL_B" function="$FUNCTION_B">
      <parameter name="$PARAMETER_NAME" />
   </tool-call>
</tool-calls>

## Available Tools
<tool-description-list>
"""
_AFTER = """</tool-description-list>

You can use any of the available tools by responding in the call format above. The XML will be
parsed and the tool(s) will be executed with the parameters you provided. The results of each
tool call will be provided back to you before you continue the conversation. You can execute
multiple tool calls by continuing to respond in the format above until you are finished.
Function calls take explicit values and are independent of each other. Tool calls cannot share,
re-use, and transfer values between eachother. The use of placeholders is forbidden.

The user will not see the results of your tool calls, only the final message of your conversation.
Wait to perform your full response until after you have used any required tools. If you intend to
use a tool, please do so before you continue the conversation."""

_LIMITS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern"}
    | {"format", "minItems", "maxItems"}
)
_OPEN, _CLOSE, _CLOSE_ONE = "<tool-results>", "</tool-results>", "</tool-result>"
_RESULT = re.compile(r"\s*<tool-result\b([^>]*)>(.*)", re.DOTALL)
_ATTRIBUTE = re.compile(r'(?<![\w-])([\w-]++)="([^"]*)"')
_REFERENCE = re.compile(r"&(?:#([0-9]{1,7})|#x([0-9a-fA-F]{1,6})|(\w+));")


@dataclass(frozen=True, slots=True)
class NativeOffer:
    """The tools in XML, grouped by their `ToolGroup`."""

    def write(self, tools: Sequence[ToolSpec]) -> str:
        """The block for the system message. Raises `DialectError` if two tools have the same name."""
        groups: dict[ToolGroup, list[ToolSpec]] = {}
        named: set[str] = set()
        for spec in tools:
            if spec.name in named:
                raise DialectError(
                    f"two tools are named {spec.name!r}, so calls would be ambiguous; rename one of them"
                )
            named.add(spec.name)
            groups.setdefault(spec.group or ToolGroup(spec.name, spec.description), []).append(spec)
        return _BEFORE + "".join(_write_group(group, specs) for group, specs in groups.items()) + _AFTER


def _write_group(group: ToolGroup, specs: Sequence[ToolSpec]) -> str:
    functions = "".join(_write_function(spec) for spec in specs)
    return (
        f"   <tool-description {_write_attributes(name=group.name, description=group.description)}>\n"
        f"      <functions>\n{functions}      </functions>\n   </tool-description>\n"
    )


def _write_function(spec: ToolSpec) -> str:
    properties = spec.parameters.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    parameters = "".join(_write_parameter(key, schema, spec) for key, schema in properties.items())
    inside = f"<parameters>\n{parameters}            </parameters>" if parameters else "<parameters />"
    # A description that is also the group's, or that of a tool without a group, is written on the group.
    is_own = spec.group is not None and spec.description != spec.group.description
    opening = _write_attributes(name=spec.name, description=spec.description if is_own else "")
    return f"         <tool-function {opening}>\n            {inside}\n         </tool-function>\n"


def _write_parameter(key: str, schema: Any, spec: ToolSpec) -> str:
    """One parameter; `wants`, `required` and `default` are additions of ferrule, written only where needed."""
    root = spec.parameters
    schema = schema if isinstance(schema, Mapping) else {}
    inner = (f"{path}: {description}" for path, description in describe_nested(schema, root))
    attributes = {
        "name": key,
        "type": format_type(schema, root),
        "description": "; ".join((*filter(None, (schema.get("description"),)), *inner)),
    }
    if not _LIMITS.isdisjoint(schema):
        attributes["wants"] = describe_schema(schema, root)
    if key not in (root.get("required") or ()):
        attributes["required"] = "false"
        if schema.get("default") is not None:
            attributes["default"] = str(schema["default"])
    return f"               <tool-parameter {_write_attributes(**attributes)} />\n"


def _write_attributes(**values: str) -> str:
    return " ".join(f'{name}="{_escape(value).replace(chr(34), "&quot;")}"' for name, value in values.items())


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@dataclass(frozen=True, slots=True)
class NativeResults:
    """The results of one group of calls, which say whether they are errors. `groups`: as returned by `map_groups`."""

    groups: Mapping[str, str] = field(default_factory=dict)

    def write(self, results: Sequence[ToolResult], texts: Sequence[str]) -> str:
        """The results, each unchanged, including its white space."""
        written = (self._write_one(result, text) for result, text in zip(results, texts, strict=True))
        return f"{_OPEN}\n{''.join(written)}{_CLOSE}"

    def _write_one(self, result: ToolResult, text: str) -> str:
        group, function = split_name(result.name, self.groups)
        attributes = _write_attributes(tool=group, function=function, error=str(result.is_error).lower())
        # Beyond ASCII as character references, as rigging writes them.
        value = _escape(text).encode("ascii", "xmlcharrefreplace").decode()
        if _strip_own_lines(text) is not None:
            # Such line breaks would be confused with those that rigging's own writer adds.
            value = f"&#10;{value[1:]}"
        return f"   <tool-result {attributes}>{value}{_CLOSE_ONE}\n"

    def read(self, text: str) -> list[ResultRead] | None:
        """The results in a user message; None if the message is anything else.

        Values on lines of their own, as rigging's writer formats them, are read without the added line breaks.
        """
        stripped = text.strip()
        if not (stripped.startswith(_OPEN) and stripped.endswith(_CLOSE)):
            return None
        *pieces, rest = stripped[len(_OPEN) : -len(_CLOSE)].split(_CLOSE_ONE)
        found = [one for piece in pieces if (one := _RESULT.fullmatch(piece))]
        return None if rest.strip() or len(found) < len(pieces) else [_read(one[1], one[2]) for one in found]


def _read(written: str, value: str) -> ResultRead:
    attributes = {key: _unescape_xml(text) for key, text in _ATTRIBUTE.findall(written)}
    inner = _strip_own_lines(value)
    text = _unescape_xml(value if inner is None else inner)
    return ResultRead(attributes.get("function", ""), text, attributes.get("error") == "true")


def _strip_own_lines(value: str) -> str | None:
    """The text between a blank first and a blank last line, without its indentation; None if they are not blank."""
    first, begins, rest = value.partition("\n")
    inner, ends, last = rest.rpartition("\n")
    return None if first or not begins or not ends or last.strip(" \t") else inner.lstrip(" \t")


def _unescape_xml(text: str) -> str:
    """Unescape text as XML does; `html.unescape` maps the numbers from 128 to 159 to Windows characters."""
    return _REFERENCE.sub(_decode_character, text)


def _decode_character(reference: re.Match[str]) -> str:
    decimal, hexadecimal, name = reference.groups()
    if name:
        return html5.get(f"{name};", reference[0])
    number = int(decimal) if decimal else int(hexadecimal, 16)
    is_surrogate = 0xD800 <= number < 0xE000
    return reference[0] if number > 0x10FFFF or is_surrogate else chr(number)


_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_ANY = "Any"
_DEEPEST = 6


def format_type(schema: Any, root: Mapping[str, Any], depth: int = 0) -> str:
    """The type that a schema allows. Schemas may be recursive: beyond a `depth` of 6, everything is `Any`."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return _ANY
    schema = standardize_type(schema)
    if isinstance(schema.get("$ref"), str):
        return format_type(resolve_reference(schema["$ref"], root), root, depth + 1)
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(choices, list):
        return f"Literal[{', '.join(map(repr, choices))}]"
    for word in ("anyOf", "oneOf"):
        if schema.get(word):
            return _join_union([format_type(one, root, depth + 1) for one in schema[word]])
    named = schema.get("type", "object" if "properties" in schema else None)
    kinds = named if isinstance(named, list) else [named]
    return _join_union([_format_kind(str(kind), schema, root, depth + 1) for kind in kinds])


def _join_union(names: list[str]) -> str:
    """A union of types, with None last as people write it."""
    found = dict.fromkeys(names)
    is_nullable = found.pop("None", "") is None
    return " | ".join((*found, "None") if is_nullable else found)


def _format_kind(kind: str, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if kind == "array":
        return _format_list(schema, root, depth)
    if kind == "object":
        return _format_object(schema, root, depth)
    return _PLAIN.get(kind, _ANY)


def _format_list(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    first = schema.get("prefixItems")
    if isinstance(first, list) and first:
        return f"tuple[{', '.join(format_type(one, root, depth) for one in first)}]"
    items = schema.get("items")
    return f"list[{format_type(items, root, depth)}]" if isinstance(items, Mapping) and items else "list"


def _format_object(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    """The fields, with optional ones marked as in TypeScript, since Python has no syntax for them."""
    fields, required = schema.get("properties"), schema.get("required") or ()
    if isinstance(fields, Mapping) and fields:
        named = (f"{key}{'' if key in required else '?'}: {format_type(s, root, depth)}" for key, s in fields.items())
        return f"{{{', '.join(named)}}}"
    values = schema.get("additionalProperties")
    return f"dict[str, {format_type(values, root, depth)}]" if isinstance(values, Mapping) and values else "dict"


def describe_nested(schema: Any, root: Mapping[str, Any], path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """(path, description) of everything described inside a schema: `filters.city`, `people[].name`."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return
    if isinstance(schema.get("$ref"), str):
        yield from describe_nested(resolve_reference(schema["$ref"], root), root, path, depth + 1)
    for word in ("anyOf", "oneOf"):
        for one in schema.get(word) or ():
            yield from describe_nested(one, root, path, depth + 1)
    inner = [(f"{path}.{key}" if path else key, one) for key, one in (schema.get("properties") or {}).items()]
    inner += [(f"{path}[]", schema[word]) for word in ("items", "additionalProperties") if word in schema]
    for name, one in inner:
        if isinstance(one, Mapping) and isinstance(one.get("description"), str):
            yield name, one["description"]
        yield from describe_nested(one, root, name, depth + 1)
