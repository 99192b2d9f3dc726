"""What a call that fits a signature can be, as a grammar; its texts and numbers may be kept to what was told."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from types import MappingProxyType

from ferrule.dialects.copy_boundaries import NameRules
from ferrule.dialects.copying import count_copied_words, make_copy_grammar
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
from ferrule.dialects.relevance import find_stems, list_descriptions
from ferrule.dialects.signatures import SignatureParameter, list_parameters
from ferrule.dialects.told_numbers import count_told_numbers, find_told_numbers, make_number_grammar
from ferrule.toolspec import ToolSpec

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
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?!\w)")


class CopySource:
    """The texts that the arguments of calls are copied from: all that a model was told, with the user's `request`.

    Grammars are made where a tool needs them: a conversation with the calculator alone needs none.
    """

    def __init__(self, texts: Sequence[str] = (), request: str = "") -> None:
        self._texts = texts
        self._copies: dict[NameRules, Grammar | None] = {}
        self._rules: dict[str, NameRules] = {}
        self._request_numbers = len(_NUMBER.findall(request))

    def make_literals(self, spec: ToolSpec) -> Mapping[str, Grammar]:
        """The literals of a tool's calls by the names of a signature; without anything to copy they are any."""
        copy = self._make_copies(self._get_rules(spec)) or make_copy_grammar(self._texts)
        if copy is None:
            return _LITERALS
        text = GrammarSequence((LiteralText('"'), copy, LiteralText('"')))
        return {"bool": _LITERALS["bool"], "str": text, **self._numbers}

    def has_what_is_needed(self, spec: ToolSpec) -> bool:
        """Whether as many words and numbers were told as the tool requires; without any text, arguments may be any."""
        required = [one for one in list_parameters(spec) if one.is_required]
        texts, numbers = sum(one.takes_text for one in required), sum(one.takes_number for one in required)
        return not any(self._texts) or (
            all(one.shape.type in self._numbers for one in required if one.takes_number)
            and sum(map(count_told_numbers, self._texts)) >= numbers
            and count_copied_words(self._texts, self._get_rules(spec)) >= texts
        )

    @cached_property
    def _numbers(self) -> Mapping[str, Grammar]:
        """The numbers that were told, by the type of the parameter; without any there is none."""
        told = set[Decimal]().union(*map(find_told_numbers, self._texts))
        found = {name: make_number_grammar(told, is_whole=name == "int") for name in ("int", "float")}
        return {name: grammar for name, grammar in found.items() if grammar is not None}

    @cached_property
    def _stems(self) -> set[str]:
        return find_stems(self._texts)

    def _make_copies(self, rules: NameRules) -> Grammar | None:
        """One grammar for all tools with the same rules: of a long text it takes a while to make."""
        if rules not in self._copies:
            self._copies[rules] = make_copy_grammar(self._texts, rules)
        return self._copies[rules]

    def _get_rules(self, spec: ToolSpec) -> NameRules:
        if spec.name not in self._rules:
            self._rules[spec.name] = self._make_rules(spec)
        return self._rules[spec.name]

    def _make_rules(self, spec: ToolSpec) -> NameRules:
        """No copy has the tool's own words at its ends, or a number where each one of the request is needed as such."""
        parameters = list_parameters(spec)
        named = find_stems([spec.name, *(one.name for one in parameters)])
        needed = sum(one.is_required and one.takes_number for one in parameters)
        return NameRules(
            frozenset(find_stems(list_descriptions(spec)) & self._stems),
            frozenset(named & self._stems),
            may_be_numbers=not 0 < self._request_numbers <= needed,
        )


def make_call_grammar(spec: ToolSpec, literals: Mapping[str, Grammar] = _LITERALS) -> Grammar:
    """What a call that fits the signature can be: arguments by name in their order, those that may be left out or not.

    Values have the types of the signature, written as one of the `literals`; numbers are in decimal. A default may be
    written too. An argument is left out where there is no literal for its type. Raises as `write_signature` does.
    """
    parameters, arguments = [], []
    for one in list_parameters(spec):
        value = _make_value_grammar(one, literals)
        if value is not None:
            parameters.append(one)
            arguments.append(GrammarSequence((LiteralText(f"{one.name}="), value)))
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


def _make_value_grammar(parameter: SignatureParameter, literals: Mapping[str, Grammar]) -> Grammar | None:
    """The values of a parameter; None if it has none."""
    shape, schema = parameter.shape, parameter.schema
    choices = tuple(LiteralText(write_literal(choice)) for choice in shape.choices)
    value = GrammarChoice(choices) if choices else literals.get(shape.type)
    default = LiteralText(write_literal(schema["default"])) if "default" in schema else None
    if value is None:
        return LiteralText("[]") if shape.is_list and default is None else default
    if shape.is_list:
        more = Repetition(GrammarSequence((LiteralText(", "), value)))
        entries = GrammarChoice((GrammarSequence((value, more)), NOTHING))
        value = GrammarSequence((LiteralText("["), entries, LiteralText("]")))
    return value if default is None else GrammarChoice((value, default))
