"""How this project's own XML tells a model of its tools and of what they gave: the words around `native` calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ferrule.conversation import ToolResult
from ferrule.dialects.parameters import parameter_of
from ferrule.toolspec import ToolSpec

_BEFORE = """# Tool Use
You have tools that you can use before you answer.

## Tool Call Format
<tool-calls>
   <tool-call tool="$TOOL" function="$FUNCTION">
      <parameter name="$NAME">value</parameter>
   </tool-call>
</tool-calls>

## Available Tools
<tool-description-list>
"""
_AFTER = """</tool-description-list>

Answer in the format above to call some of them, as many as you like; write <, > and & as XML does. The calls are
independent of each other and take plain values, no placeholders. Their results are given to you, not to the user,
before you go on: call what you need first, then answer."""


@dataclass(frozen=True, slots=True)
class NativeOffer:
    """The tools in XML, the functions of one owner (`owner.function`) together."""

    def write(self, tools: Sequence[ToolSpec]) -> str:
        """The block that goes into the system message."""
        owners: dict[str, list[ToolSpec]] = {}
        for spec in tools:
            owners.setdefault(spec.name.rpartition(".")[0] or spec.name, []).append(spec)
        return _BEFORE + "".join(_tool(owner, specs) for owner, specs in owners.items()) + _AFTER


def _tool(owner: str, specs: Sequence[ToolSpec]) -> str:
    functions = "".join(_function(spec) for spec in specs)
    return (
        f'   <tool-description name="{escape(owner)}">\n      <functions>\n{functions}      </functions>\n'
        "   </tool-description>\n"
    )


def _function(spec: ToolSpec) -> str:
    properties = spec.parameters.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    required = spec.parameters.get("required") or ()
    parameters = "".join(_parameter(key, found, spec, key in required) for key, found in properties.items())
    inside = f"            <parameters>\n{parameters}            </parameters>\n" if parameters else ""
    name = spec.name.rpartition(".")[2]
    description = escape(spec.description)
    opening = f'<tool-function name="{escape(name)}" description="{description}">'
    return f"         {opening}\n{inside}         </tool-function>\n"


def _parameter(key: str, schema: Any, spec: ToolSpec, is_required: bool) -> str:
    types = "|".join(sorted(parameter_of(schema, spec.parameters).types)) or "any"
    described = schema.get("description") if isinstance(schema, Mapping) else None
    optional = "" if is_required else ' required="false"'
    told = f' description="{escape(str(described))}"' if described else ""
    return f'               <tool-parameter name="{escape(key)}" type="{types}"{told}{optional} />\n'


@dataclass(frozen=True, slots=True)
class NativeResults:
    """The results of one group of calls, which say whether they are errors."""

    def write(self, results: Sequence[ToolResult], texts: Sequence[str]) -> str:
        """The results, their text escaped."""
        written = (_result(result, text) for result, text in zip(results, texts, strict=True))
        return f"<tool-results>\n{''.join(written)}</tool-results>"


def _result(result: ToolResult, text: str) -> str:
    owner, _, name = result.name.rpartition(".")
    error = str(result.is_error).lower()
    attributes = f'tool="{escape(owner or name)}" function="{escape(name)}" error="{error}"'
    return f"   <tool-result {attributes}>\n{escape(text, quote=False)}\n   </tool-result>\n"
