"""Draws conversations from all template files, in a mix of kinds, identical for a seed on every machine."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from ferrule._util.word_lists import show_list
from ferrule.training.synth.example import Example, Turn, join_turns, write_examples
from ferrule.training.synth.grammar import KINDS, GrammarError, Phrasing, Section
from ferrule.training.synth.parsing import parse_templates
from ferrule.training.synth.replies import is_number
from ferrule.training.synth.tool_use.conversations import PlainKind, ToolConversations
from ferrule.training.synth.tool_use.template_parsing import parse_tool_templates
from ferrule.training.synth.tool_use.templates import ToolTemplate
from ferrule.training.synth.tool_use.withheld_calculations import withhold_calculation
from ferrule.training.synth.turns import TurnPlan, draw_turns, plan_section
from ferrule.training.synth.wheel import Wheel

_FOLLOW_SHARE = 0.45
_CALCULATIONS = {
    "symbols": 30,
    "words": 24,
    "percent": 16,
    "count": 10,
    "length": 4,
    "reverse": 6,
    "problem": 8,
    "average": 3,
    "sum": 3,
    "compare": 4,
    "power": 4,
    "two": 4,
    "letter": 4,
    "words_count": 3,
    "time": 5,
}
_PLAIN_KINDS: dict[PlainKind, Mapping[str, float]] = {
    "calculator": _CALCULATIONS,
    "chat": {"chat": 1},
    "refusal": {"refusal": 1},
}
_PAIRED = {"symbols": 30, "words": 24, "percent": 12, "count": 10, "length": 5, "reverse": 5, "time": 5, "power": 5}
_PAIR_SHARE = 0.7
_OPENED_SHARE = 0.2
_TEXT_KINDS = frozenset({"reverse", "letter"})
_LONGEST_FOLLOWED = 14
_TRIES = 200


@dataclass(frozen=True, slots=True)
class Mix:
    """What is drawn. `kinds` are relative weights; `several_turns` is the share of conversations with 2 to 4 turns;
    `most_characters` limits the text of a conversation (requests, calls, outputs and replies).

    `withheld` is about the share, of those without foreign tools, in which a calculation is withheld first.

    `tools` is the share of conversations with foreign tools; these are longer, and have limits of their own:
    `most_tool_characters` with the offer, and one turn each where `tools_in_one_turn`.
    """

    kinds: Mapping[str, float] = field(
        default_factory=lambda: {
            "symbols": 16,
            "words": 24,
            "percent": 12,
            "count": 13,
            "length": 5,
            "reverse": 8,
            "problem": 24,
            "average": 4,
            "sum": 4,
            "compare": 6,
            "power": 5,
            "two": 13,
            "letter": 5,
            "words_count": 4,
            "time": 6,
            "error": 2,
            "chat": 5,
            "refusal": 8,
        }
    )
    several_turns: float = 0.16
    withheld: float = 0.0
    most_characters: int = 600
    tools: float = 0.35
    most_tool_characters: int = 1200
    tools_in_one_turn: bool = False


FULL = Mix(withheld=0.02)
"""The mix that the embedded model is trained on."""
CALCULATOR_ALONE = Mix(tools=0.0)
"""The mix without foreign tools, which every model of the calculator alone is measured on."""
EARLY = Mix(several_turns=0.0, most_characters=160, tools=0.5, most_tool_characters=360, tools_in_one_turn=True)
"""A mix of short conversations of one turn, for the start of training."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A section prepared for drawing."""

    plan: TurnPlan
    phrasings: Wheel[Phrasing]


class TemplateGrammar:
    """Sections of all template files, and templates of tools, prepared for drawing."""

    def __init__(self, sections: Iterable[Section], tools: Iterable[ToolTemplate] = ()) -> None:
        self.sections = tuple(sections)
        self.tools = tuple(tools)
        self._by_kind = {
            kind: Wheel(
                (_make_source(section), section.share)
                for section in self.sections
                if section.kind == kind and not section.follow and section.opening is None
            )
            for kind in KINDS
        }
        self._following = Wheel((_make_source(section), section.share) for section in self.sections if section.follow)
        self._opened = Wheel(
            (_make_source(section), section.share) for section in self.sections if section.opening is not None
        )
        self._paired = self._make_kinds(_PAIRED)
        self._plain_kinds = {name: self._make_kinds(weights) for name, weights in _PLAIN_KINDS.items()}
        self._conversations = ToolConversations(self.tools, self._draw_plain_turn) if self.tools else None

    def _make_kinds(self, weights: Mapping[str, float]) -> Wheel[str]:
        """The kinds of these weights; those without a section are left out."""
        return Wheel((kind, weight) for kind, weight in weights.items() if weight and self._by_kind[kind])

    def draw_examples(self, seed: int, count: int, *, held_out: bool = False, mix: Mix = FULL) -> Iterator[Example]:
        """Draw `count` conversations. Kinds without a section are left out of the mix, and tools without templates."""
        rng = random.Random(seed)
        kinds = self._make_kinds(mix.kinds)
        if not kinds:
            raise ValueError("no section has a kind of the mix")
        for _ in range(count):
            if self._conversations is not None and mix.tools and rng.random() < mix.tools:
                yield self._conversations.draw(
                    rng, held_out=held_out, one_turn=mix.tools_in_one_turn, most_characters=mix.most_tool_characters
                )
            else:
                yield self._draw_example(rng, kinds, held_out, mix)

    def _draw_example(self, rng: random.Random, kinds: Wheel[str], held_out: bool, mix: Mix) -> Example:
        if mix.withheld and rng.random() < mix.withheld:
            withheld = self._withhold_calculation(rng, kinds, held_out)
            # What has no call, or several, can't be withheld: something else is drawn.
            if withheld is not None and withheld.characters <= mix.most_characters:
                return withheld
        for _ in range(_TRIES):
            turns = 2 + int(rng.random() * 3) if rng.random() < mix.several_turns else 1
            example = self._draw_conversation(rng, kinds, turns, held_out)
            if example.characters <= mix.most_characters:
                return example
        raise ValueError(f"no conversation of at most {mix.most_characters} characters can be drawn")

    def _withhold_calculation(self, rng: random.Random, kinds: Wheel[str], held_out: bool) -> Example | None:
        _, section, turns = self._draw_turns(rng, kinds, None, held_out)
        withheld = withhold_calculation(rng, turns[0], held_out)
        return None if withheld is None else Example("turns", f"{section.name}+withheld", withheld)

    def _draw_plain_turn(self, rng: random.Random, kind: PlainKind, held_out: bool, tools: Sequence[str] = ()) -> Turn:
        _, section, turns = self._draw_turns(rng, self._plain_kinds[kind], None, held_out)
        if not tools or section.offering is None:
            return turns[0]
        return replace(turns[0], reply=section.offering.replace("{tools}", show_list(tools)))

    def _draw_conversation(self, rng: random.Random, kinds: Wheel[str], length: int, held_out: bool) -> Example:
        turns: list[Turn] = []
        names: list[str] = []
        previous: str | None = None
        kind = ""
        while len(turns) < length:
            follows = previous is not None and bool(self._following) and rng.random() < _FOLLOW_SHARE
            if len(turns) + 2 <= length and self._opened and rng.random() < _OPENED_SHARE:
                kind, section, drawn = self._draw_from(rng, self._opened, None, held_out)
            else:
                kind, section, drawn = self._draw_turns(rng, kinds, previous if follows else None, held_out)
            turns += drawn
            names.append(section.name)
            previous = _find_answered_number(turns[-1], section)
        return Example(kind if length == 1 else "turns", "+".join(names), tuple(turns))

    def _draw_turns(
        self, rng: random.Random, kinds: Wheel[str], previous: str | None, held_out: bool
    ) -> tuple[str, Section, tuple[Turn, ...]]:
        if previous is not None:
            return self._draw_from(rng, self._following, previous, held_out)
        for _ in range(_TRIES):
            kind = kinds.draw(rng)
            if kind != "two" or not self._paired or rng.random() > _PAIR_SHARE:
                return self._draw_from(rng, self._by_kind[kind], None, held_out)
            pair = [self._draw_from(rng, self._by_kind[self._paired.draw(rng)], None, held_out) for _ in range(2)]
            joined = join_turns(rng, pair[0][2][0], pair[1][2][0])
            if joined is not None:
                return kind, pair[1][1], (joined,)
        raise ValueError("no two requests can be joined")

    def _draw_from(
        self, rng: random.Random, wheel: Wheel[_Source], previous: str | None, held_out: bool
    ) -> tuple[str, Section, tuple[Turn, ...]]:
        for _ in range(_TRIES):
            source = wheel.draw(rng)
            phrasing = source.phrasings.draw(rng)
            turns = draw_turns(rng, source.plan, phrasing, held_out=held_out, previous=previous)
            if turns is not None:
                return source.plan.section.kind, source.plan.section, turns
        raise ValueError("no section gives a turn: their conditions are never met")


def _make_source(section: Section) -> _Source:
    return _Source(plan_section(section), Wheel((phrasing, phrasing.weight) for phrasing in section.phrasings))


def _find_answered_number(turn: Turn, section: Section) -> str | None:
    """The number that a follow-up turn may use: a short result that is not a text of digits."""
    output = turn.output if len(turn.steps) == 1 else None
    if output is None or section.kind in _TEXT_KINDS or len(output) > _LONGEST_FOLLOWED or not is_number(output):
        return None
    return output


def parse_grammar(texts: Mapping[str, str], tools: Mapping[str, str] = MappingProxyType({})) -> TemplateGrammar:
    """The grammar of template files, and of files of tool templates, given as texts by name.

    Raises GrammarError with every problem in them.
    """
    sections, problems = parse_templates(texts)
    templates, more = parse_tool_templates(tools)
    if problems or more:
        raise GrammarError(problems + more)
    return TemplateGrammar(sections, templates)


def load_template_texts(folder_name: str = "templates") -> dict[str, str]:
    """The package's template files by name: of requests to the calculator, or of `tools`."""
    folder = files("ferrule.training.synth") / folder_name
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".txt")), key=lambda entry: entry.name)
    return {entry.name: entry.read_text("utf-8") for entry in found}


@cache
def load_shipped_grammar() -> TemplateGrammar:
    """The grammar of the package's template files. Raises GrammarError."""
    return parse_grammar(load_template_texts(), load_template_texts("tools"))


def draw_examples(
    seed: int, count: int, *, held_out: bool = False, mix: Mix = FULL, grammar: TemplateGrammar | None = None
) -> Iterator[Example]:
    """Draw `count` conversations, identical for the same seed, mix and grammar.

    With `held_out`, words and numbers of four digits or more are ones that are never drawn without it.
    Raises GrammarError if a template file is invalid.
    """
    return (grammar or load_shipped_grammar()).draw_examples(seed, count, held_out=held_out, mix=mix)


def write_jsonl(
    path: Path | str,
    seed: int,
    count: int,
    progress: Callable[[int], None] | None = None,
    *,
    held_out: bool = False,
    mix: Mix = FULL,
    grammar: TemplateGrammar | None = None,
) -> int:
    """Write drawn conversations to a JSONL file and return how many; `progress` is called after every few hundred.

    An interruption leaves no incomplete file. Raises OSError and GrammarError.
    """
    return write_examples(Path(path), draw_examples(seed, count, held_out=held_out, mix=mix, grammar=grammar), progress)
