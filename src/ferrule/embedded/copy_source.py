"""What the arguments of a tool's calls may be: copies of the texts and numbers that the model was given.

The rules on texts and numbers come together here; each stands in a file of its own, and can be switched off.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property

from ferrule.dialects.call_grammar import MakeLiteral, make_any_literal
from ferrule.dialects.grammar import Grammar, GrammarSequence, LiteralText
from ferrule.dialects.signatures import SignatureParameter, list_parameters
from ferrule.embedded import RULES
from ferrule.embedded.copy_boundaries import NameRules, is_for_days, make_name_rules
from ferrule.embedded.copying import make_copy_grammar
from ferrule.embedded.named_numbers import choose_numbers
from ferrule.embedded.relevance import find_stems
from ferrule.embedded.told_numbers import find_told_numbers, make_number_grammar, tells_negative_number
from ferrule.toolspec import ToolSpec


class CopySource:
    """The texts that the arguments of calls are copied from: all that a model was given, with the user's `request`.

    Grammars are made where a tool needs them: a conversation with the calculator alone needs none.
    """

    def __init__(self, texts: Sequence[str] = (), request: str = "", rules: Collection[str] = RULES) -> None:
        self.texts = texts
        self._request = request
        self._rules = rules
        self._copies: dict[NameRules | None, Grammar | None] = {}
        self._name_rules: dict[str, NameRules | None] = {}

    def choose_literals(self, spec: ToolSpec) -> MakeLiteral:
        """The literals of a tool's calls; without anything to copy they are any."""
        rules = self.get_name_rules(spec)
        text = self._make_text(rules)
        if text is None:
            return make_any_literal
        # Where a parameter is for the day, a day is nothing else.
        has_day = any(one.takes_text and is_for_days(one) for one in list_parameters(spec))
        other_text = text if rules is None or not has_day else self._make_text(replace(rules, may_be_days=False))
        numbers = self._make_numbers(spec)

        def make_literal(parameter: SignatureParameter) -> Grammar | None:
            kind = parameter.shape.type
            if kind in ("int", "float") and "told_numbers" in self._rules:
                return numbers.get(parameter.name) if parameter.takes_number else self.numbers.get(kind)
            if kind == "str" and "copying" in self._rules:
                return text if is_for_days(parameter) else other_text
            return make_any_literal(parameter)

        return make_literal

    @cached_property
    def numbers(self) -> Mapping[str, Grammar]:
        """The numbers that were told, by the type of the parameter; without any there is none."""
        found = {kind: self._make_number(self._told, kind) for kind in ("int", "float")}
        return {kind: grammar for kind, grammar in found.items() if grammar is not None}

    def get_name_rules(self, spec: ToolSpec) -> NameRules | None:
        """The rules for the copies in a tool's calls; None if a copy may begin and end with any word."""
        if spec.name not in self._name_rules:
            applies = "copy_boundaries" in self._rules
            self._name_rules[spec.name] = make_name_rules(spec, self._request, self._stems) if applies else None
        return self._name_rules[spec.name]

    @cached_property
    def _stems(self) -> set[str]:
        return find_stems(self.texts)

    @cached_property
    def _told(self) -> set[Decimal]:
        return set[Decimal]().union(*map(find_told_numbers, self.texts))

    @cached_property
    def _is_signed(self) -> bool:
        return any(map(tells_negative_number, self.texts))

    def _make_number(self, numbers: set[Decimal], kind: str) -> Grammar | None:
        return make_number_grammar(numbers, is_whole=kind == "int", is_signed=self._is_signed)

    def _make_numbers(self, spec: ToolSpec) -> Mapping[str, Grammar]:
        """The numbers that each parameter may be."""
        chosen = choose_numbers(spec, self._request, self._told) if "named_numbers" in self._rules else {}
        found = dict[str, Grammar]()
        for one in list_parameters(spec):
            if not one.takes_number:
                continue
            grammar = any_ = self.numbers.get(one.shape.type)
            if one.name in chosen:
                grammar = self._make_number(chosen[one.name], one.shape.type)
            # Required parameters need a value; others are left out.
            grammar = any_ if grammar is None and one.is_required else grammar
            if grammar is not None:
                found[one.name] = grammar
        return found

    def _make_text(self, rules: NameRules | None) -> Grammar | None:
        """One grammar for all with the same rules: of a long text it takes a while to make. None without a text."""
        if rules not in self._copies:
            copy = make_copy_grammar(self.texts, rules) or make_copy_grammar(self.texts)
            quoted = None if copy is None else GrammarSequence((LiteralText('"'), copy, LiteralText('"')))
            self._copies[rules] = quoted
        return self._copies[rules]
