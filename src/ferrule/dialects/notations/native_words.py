"""How a model is told of its tools and of what they gave, in the fifth seed's XML: the words around `native` calls.

A tool is named by its group and its own name. The name alone tells tools apart, so that two can't be taken for each
other; a tool without a group is its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.entities import html5
from typing import Any

from ferrule.conversation import ToolResult
from ferrule.dialects.family import ResultRead
from ferrule.dialects.groups import split_name
from ferrule.dialects.notations.type_names import told_within, type_name
from ferrule.errors import DialectError
from ferrule.schema_words import wanted_words
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
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
_REFERENCE = re.compile(r"&(?:#([0-9]{1,7})|#x([0-9a-fA-F]{1,6})|(\w+));")


@dataclass(frozen=True, slots=True)
class NativeOffer:
    """The tools in XML, those of one group together."""

    def write(self, tools: Sequence[ToolSpec]) -> str:
        """The block that goes into the system message. Raises `DialectError` where two tools have one name."""
        groups: dict[ToolGroup, list[ToolSpec]] = {}
        named: set[str] = set()
        for spec in tools:
            if spec.name in named:
                raise DialectError(f"two tools are named {spec.name!r}, and calls name only one; rename one of them")
            named.add(spec.name)
            groups.setdefault(spec.group or ToolGroup(spec.name, spec.description), []).append(spec)
        return _BEFORE + "".join(_group(group, specs) for group, specs in groups.items()) + _AFTER


def _group(group: ToolGroup, specs: Sequence[ToolSpec]) -> str:
    functions = "".join(_function(spec) for spec in specs)
    return (
        f"   <tool-description {_attributes(name=group.name, description=group.description)}>\n"
        f"      <functions>\n{functions}      </functions>\n   </tool-description>\n"
    )


def _function(spec: ToolSpec) -> str:
    properties = spec.parameters.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    parameters = "".join(_parameter(key, schema, spec) for key, schema in properties.items())
    inside = f"<parameters>\n{parameters}            </parameters>" if parameters else "<parameters />"
    # What a tool without a group does is said of it already.
    opening = _attributes(name=spec.name, description=spec.description if spec.group else "")
    return f"         <tool-function {opening}>\n            {inside}\n         </tool-function>\n"


def _parameter(key: str, schema: Any, spec: ToolSpec) -> str:
    """One parameter; `wants`, `required` and `default` are ours, and stand only where there is something to say."""
    root = spec.parameters
    schema = schema if isinstance(schema, Mapping) else {}
    inner = (f"{path}: {told}" for path, told in told_within(schema, root))
    attributes = {
        "name": key,
        "type": type_name(schema, root),
        "description": "; ".join((*filter(None, (schema.get("description"),)), *inner)),
    }
    if not _LIMITS.isdisjoint(schema):
        attributes["wants"] = wanted_words(schema, root)
    if key not in (root.get("required") or ()):
        attributes["required"] = "false"
        if schema.get("default") is not None:
            attributes["default"] = str(schema["default"])
    return f"               <tool-parameter {_attributes(**attributes)} />\n"


def _attributes(**values: str) -> str:
    return " ".join(f'{name}="{_escaped(value).replace(chr(34), "&quot;")}"' for name, value in values.items())


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@dataclass(frozen=True, slots=True)
class NativeResults:
    """The results of one group of calls, which say whether they are errors. `groups`: as `groups_of` gives them."""

    groups: Mapping[str, str] = field(default_factory=dict)

    def write(self, results: Sequence[ToolResult], texts: Sequence[str]) -> str:
        """The results, each as it is: white space in it is its own."""
        written = (self._one(result, text) for result, text in zip(results, texts, strict=True))
        return f"{_OPEN}\n{''.join(written)}{_CLOSE}"

    def _one(self, result: ToolResult, text: str) -> str:
        group, function = split_name(result.name, self.groups)
        attributes = _attributes(tool=group, function=function, error=str(result.is_error).lower())
        # As the seed has it, beyond ASCII by number.
        value = _escaped(text).encode("ascii", "xmlcharrefreplace").decode()
        if _on_lines_of_its_own(text) is not None:
            # Such line breaks would be taken for those that the seed's own writer adds.
            value = f"&#10;{value[1:]}"
        return f"   <tool-result {attributes}>{value}{_CLOSE_ONE}\n"

    def read(self, text: str) -> list[ResultRead] | None:
        """What a user's message of results says, None where it is no such message.

        Values that stand on lines of their own, as the seed's writer puts them, are read without those.
        """
        stripped = text.strip()
        if not (stripped.startswith(_OPEN) and stripped.endswith(_CLOSE)):
            return None
        *pieces, rest = stripped[len(_OPEN) : -len(_CLOSE)].split(_CLOSE_ONE)
        found = [one for piece in pieces if (one := _RESULT.fullmatch(piece))]
        return None if rest.strip() or len(found) < len(pieces) else [_read(one[1], one[2]) for one in found]


def _read(written: str, value: str) -> ResultRead:
    attributes = {key: _unescaped(text) for key, text in _ATTRIBUTE.findall(written)}
    inner = _on_lines_of_its_own(value)
    text = _unescaped(value if inner is None else inner)
    return ResultRead(attributes.get("function", ""), text, attributes.get("error") == "true")


def _on_lines_of_its_own(value: str) -> str | None:
    """What stands between a first and a last line that are blank, without its indent; None where they are not."""
    first, begins, rest = value.partition("\n")
    inner, ends, last = rest.rpartition("\n")
    return None if first or not begins or not ends or last.strip(" \t") else inner.lstrip(" \t")


def _unescaped(text: str) -> str:
    """Text as XML means it; `html.unescape` takes the numbers from 128 to 159 for characters of Windows."""
    return _REFERENCE.sub(_character, text)


def _character(reference: re.Match[str]) -> str:
    decimal, hexadecimal, name = reference.groups()
    if name:
        return html5.get(f"{name};", reference[0])
    number = int(decimal) if decimal else int(hexadecimal, 16)
    is_surrogate = 0xD800 <= number < 0xE000
    return reference[0] if number > 0x10FFFF or is_surrogate else chr(number)
