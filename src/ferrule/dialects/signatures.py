"""Tools as Python signatures, one line each: `get_weather(city: str, days: int = 1)  # Weather forecast for a city.`

A short form of an offer, for models with a short context. What a signature has no place for, descriptions of parameters
and limits of values, is left out. So is an optional parameter that takes a nested object; a required one is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from ferrule.dialects.grammar import (
    NOTHING,
    CharacterSet,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    LiteralText,
    Repetition,
)
from ferrule.dialects.notations.pythonic import write_literal
from ferrule.dialects.reader.parameters import find_subschema, read_parameter_type
from ferrule.dialects.told_numbers import find_told_numbers, make_number_grammar
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec

_LONGEST_DESCRIPTION = 120
_ABBREVIATIONS = ("e.g", "i.e", "vs", "ca", "Dr", "Mr", "Mrs")
_SENTENCE_END = re.compile("".join(rf"(?<!\b{re.escape(one)})" for one in _ABBREVIATIONS) + r"\.\s+(?=[^\W\d_a-z])")
_PARAMETER_NAME = re.compile(r"[\w\-]+")
_NAMES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_DIGIT = CharacterSet("0123456789")
_DIGITS = Repetition(_DIGIT)
_WHOLE = GrammarSequence((
    GrammarChoice((LiteralText("-"), NOTHING)),
    GrammarChoice((LiteralText("0"), GrammarSequence((CharacterSet("123456789"), _DIGITS)))),
))  # fmt: skip
_DECIMALS = GrammarSequence((LiteralText("."), _DIGIT, _DIGITS))
_HEX = CharacterSet("0123456789abcdef")
_CONTROL = "".join(map(chr, range(0x20)))
_ESCAPE = GrammarChoice((CharacterSet('"\\/bfnrt'), GrammarSequence((LiteralText("u"), _HEX, _HEX, _HEX, _HEX))))
_IN_TEXT = GrammarChoice((
    CharacterSet(f'"\\{_CONTROL}', is_excluded=True),
    GrammarSequence((LiteralText("\\"), _ESCAPE)),
))  # fmt: skip
_LITERALS: dict[str, Grammar] = {
    "str": GrammarSequence((LiteralText('"'), Repetition(_IN_TEXT), LiteralText('"'))),
    "int": _WHOLE,
    "float": GrammarSequence((_WHOLE, GrammarChoice((_DECIMALS, NOTHING)))),
    "bool": GrammarChoice((LiteralText("True"), LiteralText("False"))),
}
"""What a call writes, by the names of a signature."""


def write_signature(spec: ToolSpec) -> str:
    """The line of a tool.

    An optional parameter without a default has `= None`. Of the description the first sentence is written, without its
    full stop and up to 120 characters. Raises `DialectError`, naming tool and parameter, for a type that isn't text, a
    number, true or false, a choice of these, or a list of them.
    """
    written = []
    for one in _list_parameters(spec):
        parameter = f"{one.name}: {one.shape.write()}"
        written.append(parameter if one.is_required else f"{parameter} = {write_literal(one.schema.get('default'))}")
    about = _shorten(spec.description)
    return f"{spec.name}({', '.join(written)})" + (f"  # {about}" if about else "")


def make_copied_literals(texts: Sequence[str], copy: Grammar | None) -> Mapping[str, Grammar]:
    """The literals of a call whose texts and numbers are copied from these texts, by the names of a signature.

    `copy` is their `make_copy_grammar`; without anything to copy the literals are any.
    """
    if copy is None:
        return _LITERALS
    numbers = set[Decimal]().union(*map(find_told_numbers, texts))
    return {
        **_LITERALS,
        "str": GrammarSequence((LiteralText('"'), copy, LiteralText('"'))),
        "int": make_number_grammar(numbers, is_whole=True),
        "float": make_number_grammar(numbers, is_whole=False),
    }


def make_call_grammar(spec: ToolSpec, literals: Mapping[str, Grammar] = MappingProxyType(_LITERALS)) -> Grammar:
    """What a call that fits the signature can be: arguments by name in their order, those that may be left out or not.

    Values have the types of the signature, written as one of the `literals`; numbers are in decimal. A default may be
    written too. Raises as `write_signature` does.
    """
    parameters = _list_parameters(spec)
    arguments = [
        GrammarSequence((LiteralText(f"{one.name}="), _make_value_grammar(one, literals))) for one in parameters
    ]
    following = [
        GrammarChoice((GrammarSequence((LiteralText(", "), argument)), *([] if one.is_required else [NOTHING])))
        for argument, one in zip(arguments, parameters, strict=True)
    ]
    # Any argument up to the first required one may be the first that is written.
    required = next((place for place, one in enumerate(parameters) if one.is_required), None)
    firsts = range(len(parameters) if required is None else required + 1)
    beginnings = tuple(GrammarSequence((arguments[place], *following[place + 1 :])) for place in firsts)
    written = GrammarChoice((*beginnings, NOTHING) if required is None else beginnings)
    return GrammarSequence((LiteralText(f"{spec.name}("), written, LiteralText(")")))


def _make_value_grammar(parameter: _Parameter, literals: Mapping[str, Grammar]) -> Grammar:
    value, schema = parameter.shape.make_grammar(literals), parameter.schema
    return GrammarChoice((value, LiteralText(write_literal(schema["default"])))) if "default" in schema else value


def list_left_out(spec: ToolSpec) -> list[str]:
    """The optional parameters that a signature has no place for."""
    offered = {one.name for one in _list_parameters(spec)}
    return [name for name in _get_properties(spec) if name not in offered]


def _list_parameters(spec: ToolSpec) -> list[_Parameter]:
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
        found.append(_Parameter(name, schema, shape, name in required))
    return found


def _get_properties(spec: ToolSpec) -> Mapping[str, Any]:
    properties = spec.parameters.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _check_name(spec: ToolSpec, name: str) -> None:
    if not _PARAMETER_NAME.fullmatch(name):
        raise DialectError(
            f"the tool {spec.name!r} can't be offered as a signature: the name of its parameter {name!r} has other "
            "signs than letters, digits, - and _"
        )


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a parameter takes: one of `choices`, or values of a Python type; `is_list`: a list of these."""

    choices: tuple[Any, ...] = ()
    type: str = "str"
    is_list: bool = False

    def write(self) -> str:
        """As in a signature."""
        one = " | ".join(map(write_literal, self.choices)) if self.choices else self.type
        return f"list[{one}]" if self.is_list else one

    def make_grammar(self, literals: Mapping[str, Grammar]) -> Grammar:
        """What a call may write."""
        choices = tuple(LiteralText(write_literal(choice)) for choice in self.choices)
        one = GrammarChoice(choices) if choices else literals[self.type]
        if not self.is_list:
            return one
        more = Repetition(GrammarSequence((LiteralText(", "), one)))
        entries = GrammarChoice((GrammarSequence((one, more)), NOTHING))
        return GrammarSequence((LiteralText("["), entries, LiteralText("]")))


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A parameter that can be offered."""

    name: str
    schema: Mapping[str, Any]
    shape: _Shape
    is_required: bool


def _read_shape(spec: ToolSpec, name: str, schema: Any, *, is_item: bool = False) -> _Shape:
    known = read_parameter_type(schema, spec.parameters)
    if known.choices:
        return _Shape(tuple(choice for choice in known.choices if choice is not None))
    types = known.types - {"null"}
    if not types or "string" in types:
        return _Shape()
    if types == {"array"} and not is_item and "prefixItems" not in schema:
        items = find_subschema(schema, None, spec.parameters)
        return replace(_read_shape(spec, name, items, is_item=True), is_list=True)
    if types & {"object", "array"}:
        found = "an object" if "object" in types else "a list of fixed places"
        if is_item:
            found = "a list of lists or of objects"
        raise DialectError(
            f"the tool {spec.name!r} can't be offered as a signature: its parameter {name!r} takes {found}; "
            "possible are text, numbers, true or false, choices of these, and lists of them"
        )
    return _Shape(type=_NAMES["number" if "number" in types else min(types)])


def _shorten(description: str) -> str:
    first = _SENTENCE_END.split(description.strip().split("\n")[0])[0].strip().removesuffix(".")
    return first if len(first) <= _LONGEST_DESCRIPTION else first[: _LONGEST_DESCRIPTION - 1] + "…"
