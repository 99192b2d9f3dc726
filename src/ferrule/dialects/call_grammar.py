"""What a call that fits a signature can be, as a grammar. What its texts and numbers are may be given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from ferrule.dialects.grammar import (
    NOTHING,
    CharacterSet,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    JsonValue,
    LiteralText,
    Repetition,
)
from ferrule.dialects.notations.pythonic import write_literal
from ferrule.dialects.reader.parameters import find_subschema, list_alternatives
from ferrule.dialects.schema_limits import (
    find_dropped_keywords,
    find_lost_arguments,
    find_lost_keywords,
    is_limited,
)
from ferrule.dialects.signatures import SignatureParameter, list_parameters
from ferrule.dialects.value_terms import list_types, select_types
from ferrule.toolspec import JSONSchema, ToolSpec

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
_LITERALS: Mapping[str, Grammar] = MappingProxyType({
    "str": GrammarSequence((LiteralText('"'), Repetition(_IN_TEXT), LiteralText('"'))),
    "int": _WHOLE,
    "float": GrammarSequence((_WHOLE, GrammarChoice((_DECIMALS, NOTHING)))),
    "bool": GrammarChoice((LiteralText("True"), LiteralText("False"))),
})  # fmt: skip
"""What a call writes, by the names of a signature."""
_TYPES = MappingProxyType({"str": "string", "int": "integer", "float": "number"})
"""The types of JSON Schema whose values may be limited, by the names of a signature."""
_LIST_KEYWORDS = ("items", "minItems", "maxItems")
MakeLiteral: TypeAlias = "Callable[[SignatureParameter], Grammar | None]"
"""Makes what a call writes as one value of a parameter, without its choices; None if there is nothing to write."""


def make_any_literal(parameter: SignatureParameter) -> Grammar:
    """Any value of the parameter's type, without its choices."""
    return _LITERALS[parameter.shape.type]


def choose_fitting_literals(spec: ToolSpec) -> MakeLiteral:
    """Makes any value of a parameter's type that fits the keywords of its schema."""

    def make_literal(parameter: SignatureParameter) -> Grammar:
        root, schema, kind = spec.parameters, parameter.schema, parameter.shape.type
        if kind not in _TYPES:
            return make_any_literal(parameter)
        if parameter.shape.is_list:
            schema = find_subschema(schema, None, root)
        selected = select_types(schema, root, {_TYPES[kind]})
        return JsonValue(selected, is_python=True) if is_limited(selected) else make_any_literal(parameter)

    return make_literal


def find_lost_limits(spec: ToolSpec) -> tuple[str, ...]:
    """The keywords of a tool's schema, with the places of their schemas, that its calls with fitting literals may not
    fit. Raises as `write_signature` does."""
    root, parameters = spec.parameters, list_parameters(spec)
    found = list(find_lost_arguments(root, sum(one.is_required for one in parameters), len(parameters)))
    for one in parameters:
        place, schema = one.name, one.schema
        if one.shape.is_list:
            lost = {*find_dropped_keywords(schema, root), *find_lost_keywords(schema, root, "array", _LIST_KEYWORDS)}
            found += (f"{place}.{word}" for word in sorted(lost))
            place, schema = f"{place}.[]", find_subschema(schema, None, root)
        found += (f"{place}.{word}" for word in _find_lost_item_limits(one, schema, root))
    return tuple(found)


def _find_lost_item_limits(parameter: SignatureParameter, schema: Any, root: JSONSchema) -> tuple[str, ...]:
    """The keywords that a value that isn't a list may not fit."""
    kind = _TYPES.get(parameter.shape.type)
    if parameter.shape.choices:
        kinds = ("string", "number", "boolean")
        lost = {word for one in kinds for word in find_lost_keywords(schema, root, one)}
        return tuple(sorted({*lost, *find_dropped_keywords(schema, root)}))
    if kind is None:
        return tuple(sorted({*find_lost_keywords(schema, root, "boolean"), *find_dropped_keywords(schema, root)}))
    # Literals of the whole schema fit it, or name what they don't.
    return () if list_types(schema, root) <= {kind} else find_dropped_keywords(schema, root)


def make_call_grammar(spec: ToolSpec, make_literal: MakeLiteral = make_any_literal) -> Grammar:
    """What a call that fits the signature can be: arguments by name in their order, those that may be left out or not.

    Values have the types of the signature, written as what `make_literal` makes; numbers are in decimal. A default may
    be written too. An argument is left out where there is no literal for it. Raises as `write_signature` does.
    """
    parameters, arguments = [], []
    for one in list_parameters(spec):
        value = _make_value_grammar(one, make_literal, spec.parameters)
        if value is not None:
            parameters.append(one)
            arguments.append(GrammarSequence((LiteralText(f"{one.name}="), value), one.name))
    optional = [not one.is_required for one in parameters]
    written = list_arguments(arguments, optional, LiteralText(", "))
    return GrammarSequence((LiteralText(f"{spec.name}("), written, LiteralText(")")))


def list_arguments(arguments: Sequence[Grammar], is_optional: Sequence[bool], separator: Grammar = NOTHING) -> Grammar:
    """These arguments in their order with a separator between them, without those that may be left out or with them."""
    following = [
        GrammarChoice((GrammarSequence((separator, argument)), *([NOTHING] if may_miss else [])))
        for argument, may_miss in zip(arguments, is_optional, strict=True)
    ]
    # Any argument up to the first required one may be the first that is written.
    required = next((place for place, may_miss in enumerate(is_optional) if not may_miss), None)
    firsts = range(len(arguments) if required is None else required + 1)
    beginnings = tuple(GrammarSequence((arguments[place], *following[place + 1 :])) for place in firsts)
    return GrammarChoice((*beginnings, NOTHING) if required is None else beginnings)


def _make_value_grammar(parameter: SignatureParameter, make_literal: MakeLiteral, root: JSONSchema) -> Grammar | None:
    """The values of a parameter; None if it has none."""
    shape, schema = parameter.shape, parameter.schema
    choices = tuple(LiteralText(write_literal(choice)) for choice in shape.choices)
    value = GrammarChoice(choices) if choices else make_literal(parameter)
    default = LiteralText(write_literal(schema["default"])) if "default" in schema else None
    if value is None:
        return LiteralText("[]") if shape.is_list and default is None else default
    if shape.is_list:
        part = next((one for one in list_alternatives(schema, root) if "items" in one), schema)
        value = _make_list(value, int(part.get("minItems", 0)), part.get("maxItems"))
    return value if default is None else GrammarChoice((value, default))


def _make_list(item: Grammar, minimum: int, maximum: int | None) -> Grammar:
    """A list of so many items."""
    most = None if maximum is None else max(int(maximum), minimum)
    more = Repetition(
        GrammarSequence((LiteralText(", "), item)), max(minimum - 1, 0), None if most is None else max(most - 1, 0)
    )
    filled = GrammarSequence((item, more))
    options = [*([filled] if most != 0 else []), *([NOTHING] if minimum <= 0 else [])]
    return GrammarSequence((LiteralText("["), GrammarChoice(tuple(options)), LiteralText("]")))
