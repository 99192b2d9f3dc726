"""What a call that fits a signature can be, as a grammar; its texts and numbers may be kept to what was told."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias

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
from ferrule.dialects.named_numbers import NUMBER_WORDS, find_amounts, find_named_numbers
from ferrule.dialects.notations.pythonic import write_literal
from ferrule.dialects.relevance import find_stems, list_descriptions
from ferrule.dialects.signatures import SignatureParameter, list_parameters
from ferrule.dialects.told_numbers import (
    count_told_numbers,
    find_told_numbers,
    make_number_grammar,
    tells_negative_number,
)
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
_WORD = re.compile(r"[a-z]+")
_FOR_DAYS = re.compile(
    r"day|date|time|when|start|begin|from|until|till|end|due|deadline|since|week|slot", re.IGNORECASE
)
MakeLiteral: TypeAlias = "Callable[[SignatureParameter], Grammar | None]"
"""Makes what a call writes as one value of a parameter, without its choices; None if there is nothing to write."""


class CopySource:
    """The texts that the arguments of calls are copied from: all that a model was told, with the user's `request`.

    Grammars are made where a tool needs them: a conversation with the calculator alone needs none.
    """

    def __init__(self, texts: Sequence[str] = (), request: str = "") -> None:
        self._texts = texts
        self._copies: dict[NameRules, Grammar | None] = {}
        self._rules: dict[str, NameRules] = {}
        self._request = request

    def choose_literals(self, spec: ToolSpec) -> MakeLiteral:
        """The literals of a tool's calls; without anything to copy they are any."""
        rules = self._get_rules(spec)
        text = self._make_text(rules)
        if text is None:
            return _make_any_literal
        # Where a parameter is for the day, a day is nothing else.
        has_day = any(one.takes_text and _is_for_days(one) for one in list_parameters(spec))
        other_text = self._make_text(replace(rules, may_be_days=False)) if has_day else text
        numbers = self._make_numbers(spec)

        def make_literal(parameter: SignatureParameter) -> Grammar | None:
            name = parameter.shape.type
            if name in ("int", "float"):
                return numbers.get(parameter.name) if parameter.takes_number else self._numbers.get(name)
            if name == "bool":
                return _LITERALS[name]
            return text if _is_for_days(parameter) else other_text

        return make_literal

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
    def _amounts(self) -> Counter[Decimal]:
        """How often each number stands in the request."""
        return Counter(value for amount in find_amounts(self._request) for value in find_told_numbers(amount[0]))

    @cached_property
    def _request_numbers(self) -> int:
        words = (word in NUMBER_WORDS for word in _WORD.findall(self._request.lower()))
        return len(_NUMBER.findall(self._request)) + sum(words)

    @cached_property
    def _told(self) -> set[Decimal]:
        return set[Decimal]().union(*map(find_told_numbers, self._texts))

    @cached_property
    def _is_signed(self) -> bool:
        return any(map(tells_negative_number, self._texts))

    @cached_property
    def _numbers(self) -> Mapping[str, Grammar]:
        """The numbers that were told, by the type of the parameter; without any there is none."""
        found = {name: self._make_number(self._told, name) for name in ("int", "float")}
        return {name: grammar for name, grammar in found.items() if grammar is not None}

    def _make_number(self, numbers: set[Decimal], type_: str) -> Grammar | None:
        return make_number_grammar(numbers, is_whole=type_ == "int", is_signed=self._is_signed)

    def _make_numbers(self, spec: ToolSpec) -> Mapping[str, Grammar]:
        """The numbers that each parameter may be: those that the request names so, or those that no other one is."""
        named = find_named_numbers(spec, self._request)
        found = dict[str, Grammar]()
        for one in list_parameters(spec):
            if not one.takes_number:
                continue
            grammar = any_ = self._numbers.get(one.shape.type)
            if named:
                others = set[Decimal]().union(*(values for name, values in named.items() if name != one.name))
                taken = {value for value in others if self._amounts[value] == 1}
                grammar = self._make_number(named.get(one.name, self._told - taken), one.shape.type)
            # What is required has to be something; the rest is left out.
            grammar = any_ if grammar is None and one.is_required else grammar
            if grammar is not None:
                found[one.name] = grammar
        return found

    @cached_property
    def _stems(self) -> set[str]:
        return find_stems(self._texts)

    def _make_text(self, rules: NameRules) -> Grammar | None:
        """One grammar for all with the same rules: of a long text it takes a while to make. None without a text."""
        if rules not in self._copies:
            copy = make_copy_grammar(self._texts, rules) or make_copy_grammar(self._texts)
            quoted = None if copy is None else GrammarSequence((LiteralText('"'), copy, LiteralText('"')))
            self._copies[rules] = quoted
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


def _is_for_days(parameter: SignatureParameter) -> bool:
    return _FOR_DAYS.search(f"{parameter.name} {parameter.schema.get('description', '')}") is not None


def _make_any_literal(parameter: SignatureParameter) -> Grammar:
    return _LITERALS[parameter.shape.type]


def make_call_grammar(spec: ToolSpec, make_literal: MakeLiteral = _make_any_literal) -> Grammar:
    """What a call that fits the signature can be: arguments by name in their order, those that may be left out or not.

    Values have the types of the signature, written as what `make_literal` makes; numbers are in decimal. A default may
    be written too. An argument is left out where there is no literal for it. Raises as `write_signature` does.
    """
    parameters, arguments = [], []
    for one in list_parameters(spec):
        value = _make_value_grammar(one, make_literal)
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


def _make_value_grammar(parameter: SignatureParameter, make_literal: MakeLiteral) -> Grammar | None:
    """The values of a parameter; None if it has none."""
    shape, schema = parameter.shape, parameter.schema
    choices = tuple(LiteralText(write_literal(choice)) for choice in shape.choices)
    value = GrammarChoice(choices) if choices else make_literal(parameter)
    default = LiteralText(write_literal(schema["default"])) if "default" in schema else None
    if value is None:
        return LiteralText("[]") if shape.is_list and default is None else default
    if shape.is_list:
        more = Repetition(GrammarSequence((LiteralText(", "), value)))
        entries = GrammarChoice((GrammarSequence((value, more)), NOTHING))
        value = GrammarSequence((LiteralText("["), entries, LiteralText("]")))
    return value if default is None else GrammarChoice((value, default))
