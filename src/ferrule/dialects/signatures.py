"""Tools as Python signatures, one line each: `get_weather(city: str, days: int = 1)  # Weather forecast for a city.`

A short form of an offer, for models with a short context. What a signature has no place for, descriptions of parameters
and limits of values, is left out. So is an optional parameter that takes a nested object; a required one is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ferrule.dialects.notations.pythonic import write_literal
from ferrule.dialects.reader.parameters import find_subschema, read_parameter_type
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec

_LONGEST_DESCRIPTION = 120
_ABBREVIATIONS = ("e.g", "i.e", "vs", "ca", "Dr", "Mr", "Mrs")
_SENTENCE_END = re.compile("".join(rf"(?<!\b{re.escape(one)})" for one in _ABBREVIATIONS) + r"\.\s+(?=[^\W\d_a-z])")
_PARAMETER_NAME = re.compile(r"[\w\-]+")
_NAMES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def write_signature(spec: ToolSpec) -> str:
    """The line of a tool.

    An optional parameter without a default has `= None`. Of the description the first sentence is written, without its
    full stop and up to 120 characters. Raises `DialectError`, naming tool and parameter, for a type that isn't text, a
    number, true or false, a choice of these, or a list of them.
    """
    written = []
    for one in list_parameters(spec):
        parameter = f"{one.name}: {one.shape.write()}"
        written.append(parameter if one.is_required else f"{parameter} = {write_literal(one.schema.get('default'))}")
    about = _shorten(spec.description)
    return f"{spec.name}({', '.join(written)})" + (f"  # {about}" if about else "")


def list_left_out(spec: ToolSpec) -> list[str]:
    """The optional parameters that a signature has no place for."""
    offered = {one.name for one in list_parameters(spec)}
    return [name for name in _get_properties(spec) if name not in offered]


def list_parameters(spec: ToolSpec) -> list[SignatureParameter]:
    """The parameters that can be offered. Raises `DialectError` for a required one that can't."""
    required, found = set(spec.parameters.get("required", ())), []
    for name, given in _get_properties(spec).items():
        schema = given if isinstance(given, Mapping) else {}
        try:
            _check_name(spec, name)
            shape = _read_shape(spec, name, schema)
        except DialectError:
            if name in required:
                raise
            continue
        found.append(SignatureParameter(name, schema, shape, name in required))
    return found


def _get_properties(spec: ToolSpec) -> Mapping[str, Any]:
    properties = spec.parameters.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _check_name(spec: ToolSpec, name: str) -> None:
    if not _PARAMETER_NAME.fullmatch(name):
        raise DialectError(
            f"this model can't be offered the tool {spec.name!r}: the name of its parameter {name!r} has other signs "
            "than letters, digits, - and _"
        )


@dataclass(frozen=True, slots=True)
class ValueShape:
    """What a parameter takes: one of `choices`, or values of a Python type; `is_list`: a list of these."""

    choices: tuple[Any, ...] = ()
    type: str = "str"
    is_list: bool = False

    def write(self) -> str:
        """As in a signature."""
        one = " | ".join(map(write_literal, self.choices)) if self.choices else self.type
        return f"list[{one}]" if self.is_list else one


@dataclass(frozen=True, slots=True)
class SignatureParameter:
    """A parameter that can be offered."""

    name: str
    schema: Mapping[str, Any]
    shape: ValueShape
    is_required: bool

    @property
    def takes_number(self) -> bool:
        """Whether it takes one number, of any value."""
        return self.shape.type in ("int", "float") and not (self.shape.choices or self.shape.is_list)

    @property
    def takes_text(self) -> bool:
        """Whether it takes any text, or a list of texts."""
        return self.shape.type == "str" and not self.shape.choices


def _read_shape(spec: ToolSpec, name: str, schema: Any, *, is_item: bool = False) -> ValueShape:
    known = read_parameter_type(schema, spec.parameters)
    if known.choices:
        return ValueShape(tuple(choice for choice in known.choices if choice is not None))
    types = known.types - {"null"}
    if types == {"number", "string"}:  # of an exact number, such as a Decimal, whose text is a number too
        return ValueShape(type="float")
    if not types or "string" in types:
        return ValueShape()
    if types == {"array"} and not is_item and "prefixItems" not in schema:
        items = find_subschema(schema, None, spec.parameters)
        return replace(_read_shape(spec, name, items, is_item=True), is_list=True)
    if types & {"object", "array"}:
        found = "an object" if "object" in types else "a list of fixed places"
        if is_item:
            found = "a list of lists or of objects"
        raise DialectError(
            f"this model can't be offered the tool {spec.name!r}: its parameter {name!r} takes {found}, and may take "
            "text, numbers, true or false, choices of these, and lists of them; leave the tool out, or give the "
            "parameter a default: then it is offered without it"
        )
    return ValueShape(type=_NAMES["number" if "number" in types else min(types)])


def _shorten(description: str) -> str:
    first = _SENTENCE_END.split(description.strip().split("\n")[0])[0].strip().removesuffix(".")
    return first if len(first) <= _LONGEST_DESCRIPTION else first[: _LONGEST_DESCRIPTION - 1] + "…"
