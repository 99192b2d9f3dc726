"""Tools as Python signatures, one line each: `get_weather(city: str, days: int = 1)  # Weather forecast for a city.`

A short form of an offer, for models whose context is counted in bytes. What a signature has no place for, descriptions
of parameters and limits of values, is left out; a parameter that needs a nested object is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ferrule.dialects.notations.pythonic import write_literal
from ferrule.dialects.reader.parameters import find_subschema, read_parameter_type
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec

_LONGEST_DESCRIPTION = 120
_NAMES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def write_signature(spec: ToolSpec) -> str:
    """The line of a tool.

    An optional parameter without a default has `= None`. Of the description the first sentence is written, without its
    full stop and up to 120 characters. Raises `DialectError`, naming tool and parameter, for a type that isn't text, a
    number, true or false, a choice of these, or a list of them.
    """
    schema = spec.parameters
    properties = schema.get("properties")
    required = set(schema.get("required", ()))
    written = [
        _write_parameter(spec, name, about if isinstance(about, Mapping) else {}, is_required=name in required)
        for name, about in (properties.items() if isinstance(properties, Mapping) else ())
    ]
    about = _shorten(spec.description)
    return f"{spec.name}({', '.join(written)})" + (f"  # {about}" if about else "")


def _write_parameter(spec: ToolSpec, name: str, schema: Mapping[str, Any], *, is_required: bool) -> str:
    written = f"{name}: {_write_type(spec, name, schema)}"
    return written if is_required else f"{written} = {write_literal(schema.get('default'))}"


def _write_type(spec: ToolSpec, name: str, schema: Any, *, is_item: bool = False) -> str:
    known = read_parameter_type(schema, spec.parameters)
    if known.choices:
        return " | ".join(write_literal(choice) for choice in known.choices if choice is not None)
    types = known.types - {"null"}
    if not types or "string" in types:
        return "str"
    if types == {"array"} and not is_item:
        items = find_subschema(schema, None, spec.parameters)
        return f"list[{_write_type(spec, name, items, is_item=True)}]"
    if types & {"object", "array"}:
        found = "a list of lists or of objects" if is_item else "an object"
        raise DialectError(
            f"the tool {spec.name!r} can't be offered as a signature: its parameter {name!r} takes {found}; "
            "possible are text, numbers, true or false, choices of these, and lists of them"
        )
    return _NAMES["number" if "number" in types else min(types)]


def _shorten(description: str) -> str:
    first = description.strip().split("\n")[0].split(". ")[0].strip().removesuffix(".")
    return first if len(first) <= _LONGEST_DESCRIPTION else first[: _LONGEST_DESCRIPTION - 1] + "…"
