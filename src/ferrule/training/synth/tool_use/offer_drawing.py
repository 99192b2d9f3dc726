"""Draws which tools a conversation offers: one to eight, of any domains or of one, at times with the calculator."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ferrule.embedded.missing import split_name
from ferrule.toolspec import render_openai_function
from ferrule.training.synth.tool_use.inventing import ToolInventor
from ferrule.training.synth.tool_use.offers import CALCULATOR, OfferedTool, draw_offered_tool
from ferrule.training.synth.tool_use.templates import ToolTemplate
from ferrule.training.synth.wheel import pick
from ferrule.training.synth.words import split_words

_INVENTED_SHARE = 0.42
_SAME_DOMAIN_SHARE = 0.2
_CALCULATOR_SHARE = 0.44
_TRIES = 3
# The groups of patterns that change nothing.
_READING = frozenset(("get", "list", "find", "count", "check", "history", "price", "export", "compare", "random"))
_SHORTEST_STEM, _STEM = 4, 5
_COMMON = frozenset(
    word[:_STEM]
    for word in split_words(
        "find list show gives tell returns with from that this what which your will into about have some when where"
        " then than them please need want like could would make given date name number text time item items value"
        " user tool says people something according does much many long there their other only more most also just"
    )
)


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools of a conversation in the order in which they are offered; None is the calculator."""

    tools: tuple[OfferedTool | None, ...]

    @property
    def foreign(self) -> tuple[OfferedTool, ...]:
        """All but the calculator."""
        return tuple(tool for tool in self.tools if tool is not None)

    @property
    def has_calculator(self) -> bool:
        """Whether the calculator is among them."""
        return None in self.tools

    @property
    def characters(self) -> int:
        """About how long the offer is."""
        return sum(len(CALCULATOR) + 1 if tool is None else tool.characters for tool in self.tools)

    def to_json(self) -> tuple[dict[str, Any], ...]:
        """The tools as in a training file."""
        return tuple(_describe_calculator() if tool is None else tool.to_json() for tool in self.tools)

    def find_stems(self) -> set[str]:
        """The beginnings of the words by which the tools are named and described."""
        texts = [
            f"{split_name(t.name)} {t.description} {t.template.domain} {t.template.names[0]}" for t in self.foreign
        ]
        return find_stems(" ".join(texts).replace("_", " "))


@cache
def _describe_calculator() -> dict[str, Any]:
    from ferrule.builtin_tools import calculator

    return render_openai_function(calculator.spec)


def find_stems(text: str) -> set[str]:
    """The beginnings of the longer words of a text, but for very common ones."""
    words = "".join(char if char.isalpha() else " " for char in text.lower()).split()
    return {word[:_STEM] for word in words if len(word) >= _SHORTEST_STEM} - _COMMON


class OfferDrawer:
    """Draws offers from tool templates and invented tools."""

    def __init__(self, templates: Iterable[ToolTemplate], inventor: ToolInventor) -> None:
        self._templates = tuple(templates)
        self._inventor = inventor
        by_domain: dict[str, list[ToolTemplate]] = {}
        for template in self._templates:
            by_domain.setdefault(template.domain, []).append(template)
        self._by_domain = by_domain

    def draw_tool(self, rng: random.Random) -> OfferedTool:
        """Any tool."""
        return draw_offered_tool(rng, self._draw_template(rng))

    def draw_offer(self, rng: random.Random, most_characters: float) -> Offer:
        """An offer of one to eight tools, of at most this length unless its first tool alone is longer.

        Most have several: with one, only whether to call is learned, not which.
        """
        form = rng.random()
        count = 1 if form < 0.12 else 2 + int(rng.random() * 3) if form < 0.7 else 5 + int(rng.random() * 4)
        with_calculator = count > 1 and rng.random() < _CALCULATOR_SHARE
        found = [self.draw_tool(rng)]
        room = most_characters - Offer((found[0], None) if with_calculator else (found[0],)).characters
        for _ in range(count * _TRIES):
            if len(found) >= count - with_calculator:
                break
            tool = draw_offered_tool(rng, self._draw_distractor(rng, found))
            if tool.characters <= room and all(_differ(tool, other) for other in found):
                found.append(tool)
                room -= tool.characters
        tools: list[OfferedTool | None] = [*found, None] if with_calculator else [*found]
        rng.shuffle(tools)
        return Offer(tuple(tools))

    def draw_near_miss(self, rng: random.Random, offer: Offer) -> OfferedTool | None:
        """A tool that isn't offered, for a noun that another one is for: one changes something, the other only reads.

        None where there is none.
        """
        invented = [tool.template for tool in offer.foreign if tool.template.is_invented]
        if not invented:
            return None
        offered = pick(rng, invented)
        other = self._inventor.invent(rng, like=offered)
        alike = [template for template in invented if template.domain == other.domain]
        is_reading = other.section in _READING
        if not alike or any((template.section in _READING) is is_reading for template in alike):
            return None
        return draw_offered_tool(rng, other)

    def draw_sibling(self, rng: random.Random, offer: Offer) -> OfferedTool | None:
        """A tool that isn't offered, of the domain of one that is, and named by none of the words of those offered.

        None where there is none.
        """
        offered = [tool.template for tool in offer.foreign if not tool.template.is_invented]
        if not offered:
            return None
        named = frozenset[str]().union(*map(_find_verbs, offered))
        domain = pick(rng, offered).domain
        # One without such words would otherwise be its own sibling.
        others = [one for one in self._by_domain.get(domain, ()) if one not in offered and not _find_verbs(one) & named]
        return draw_offered_tool(rng, pick(rng, others)) if others else None

    def _draw_template(self, rng: random.Random) -> ToolTemplate:
        if not self._templates or rng.random() < _INVENTED_SHARE:
            return self._inventor.invent(rng)
        return pick(rng, self._templates)

    def _draw_distractor(self, rng: random.Random, found: Sequence[OfferedTool]) -> ToolTemplate:
        first = found[0].template
        if rng.random() > _SAME_DOMAIN_SHARE:
            return self._draw_template(rng)
        if first.domain in self._by_domain:
            return pick(rng, self._by_domain[first.domain])
        return self._inventor.invent(rng, like=first)


@cache
def _find_verbs(template: ToolTemplate) -> frozenset[str]:
    """What a tool's names say beside its domain: what it does there."""
    return _name_stems(template) - find_stems(template.domain)


def _differ(left: OfferedTool, right: OfferedTool) -> bool:
    """Whether requests for one can't be meant for the other."""
    first, second = left.template, right.template
    if left.name.lower() == right.name.lower() or first is second:
        return False
    if first.is_invented is second.is_invented and first.domain == second.domain:
        # Those of one domain were written to be told apart; those of one noun are, if what they do differs.
        return first.section != second.section
    return not _name_stems(first) & _name_stems(second)


@cache
def _name_stems(template: ToolTemplate) -> frozenset[str]:
    """What a tool is about: the words of its section, names and domain, without its verb where it is invented."""
    if template.is_invented:
        return frozenset(find_stems(template.domain))
    return frozenset(find_stems(" ".join((*map(split_name, template.names), template.section, template.domain))))
