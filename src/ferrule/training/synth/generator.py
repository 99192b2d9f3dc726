"""Draws conversations from all template files, in a mix of kinds, identical for a seed on every machine."""

import random
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import Generic, TypeVar

from ferrule.training.synth.example import Example, Turn, write_examples
from ferrule.training.synth.grammar import KINDS, GrammarError, Phrasing, Section
from ferrule.training.synth.parsing import parse_templates
from ferrule.training.synth.replies import is_number
from ferrule.training.synth.turns import Plan, draw_turn, plan_section

Item = TypeVar("Item")
_FOLLOW_SHARE = 0.45
_LONGEST_FOLLOWED = 14
_TRIES = 200


@dataclass(frozen=True, slots=True)
class Mix:
    """What is drawn. `kinds` are relative weights; `several_turns` is the share of conversations with 2 to 4 turns;
    `most_characters` limits the text of a conversation (requests, calls, outputs and replies)."""

    kinds: Mapping[str, float] = field(
        default_factory=lambda: {
            "symbols": 16,
            "words": 24,
            "percent": 12,
            "count": 13,
            "length": 5,
            "reverse": 8,
            "problem": 22,
            "error": 2,
            "chat": 5,
            "refusal": 8,
        }
    )
    several_turns: float = 0.16
    most_characters: int = 600


FULL = Mix()
"""The mix that the embedded model is trained on."""
EARLY = Mix(several_turns=0.0, most_characters=160)
"""A mix of short conversations of one turn, for the start of training."""


class Wheel(Generic[Item]):
    """Items drawn in proportion to their weights."""

    __slots__ = ("_bounds", "_items", "_total")

    def __init__(self, weighted: Iterable[tuple[Item, float]]) -> None:
        pairs = list(weighted)
        self._items = [item for item, _ in pairs]
        self._bounds = list(accumulate(weight for _, weight in pairs))
        self._total = self._bounds[-1] if pairs else 0.0

    def __bool__(self) -> bool:
        return bool(self._items)

    def draw(self, rng: random.Random) -> Item:
        """One item."""
        return self._items[bisect(self._bounds, rng.random() * self._total, 0, len(self._items) - 1)]


@dataclass(frozen=True, slots=True)
class _Source:
    """A section prepared for drawing."""

    plan: Plan
    phrasings: Wheel[Phrasing]


class TemplateGrammar:
    """Sections of all template files, prepared for drawing."""

    def __init__(self, sections: Iterable[Section]) -> None:
        self.sections = tuple(sections)
        self._by_kind = {
            kind: Wheel(
                (_make_source(section), section.share)
                for section in self.sections
                if section.kind == kind and not section.follow
            )
            for kind in KINDS
        }
        self._following = Wheel((_make_source(section), section.share) for section in self.sections if section.follow)

    def draw_examples(self, seed: int, count: int, *, held_out: bool = False, mix: Mix = FULL) -> Iterator[Example]:
        """Draw `count` conversations. Kinds without a section are left out of the mix."""
        rng = random.Random(seed)
        kinds = Wheel((kind, weight) for kind, weight in mix.kinds.items() if weight and self._by_kind[kind])
        if not kinds:
            raise ValueError("no section has a kind of the mix")
        for _ in range(count):
            yield self._draw_example(rng, kinds, held_out, mix)

    def _draw_example(self, rng: random.Random, kinds: Wheel[str], held_out: bool, mix: Mix) -> Example:
        for _ in range(_TRIES):
            turns = 2 + int(rng.random() * 3) if rng.random() < mix.several_turns else 1
            example = self._draw_conversation(rng, kinds, turns, held_out)
            if example.characters <= mix.most_characters:
                return example
        raise ValueError(f"no conversation of at most {mix.most_characters} characters can be drawn")

    def _draw_conversation(self, rng: random.Random, kinds: Wheel[str], length: int, held_out: bool) -> Example:
        turns: list[Turn] = []
        names: list[str] = []
        previous: str | None = None
        kind = ""
        for _ in range(length):
            follows = previous is not None and bool(self._following) and rng.random() < _FOLLOW_SHARE
            kind, section, turn = self._draw_turn(rng, kinds, previous if follows else None, held_out)
            turns.append(turn)
            names.append(section.name)
            previous = _find_answered_number(turn, section)
        return Example(kind if length == 1 else "turns", "+".join(names), tuple(turns))

    def _draw_turn(
        self, rng: random.Random, kinds: Wheel[str], previous: str | None, held_out: bool
    ) -> tuple[str, Section, Turn]:
        for _ in range(_TRIES):
            wheel = self._following if previous is not None else self._by_kind[kinds.draw(rng)]
            source = wheel.draw(rng)
            phrasing = source.phrasings.draw(rng)
            turn = draw_turn(rng, source.plan, phrasing, held_out=held_out, previous=previous)
            if turn is not None:
                return source.plan.section.kind, source.plan.section, turn
        raise ValueError("no section gives a turn: their conditions are never met")


def _make_source(section: Section) -> _Source:
    return _Source(plan_section(section), Wheel((phrasing, phrasing.weight) for phrasing in section.phrasings))


def _find_answered_number(turn: Turn, section: Section) -> str | None:
    """The number that a follow-up turn may use: a short result that is not a text of digits."""
    output = turn.output
    if output is None or section.kind == "reverse" or len(output) > _LONGEST_FOLLOWED or not is_number(output):
        return None
    return output


def parse_grammar(texts: Mapping[str, str]) -> TemplateGrammar:
    """The grammar of template files given as texts by name. Raises GrammarError with every problem in them."""
    sections, problems = parse_templates(texts)
    if problems:
        raise GrammarError(problems)
    return TemplateGrammar(sections)


def load_template_texts() -> dict[str, str]:
    """The package's template files by name."""
    folder = files("ferrule.training.synth") / "templates"
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".txt")), key=lambda entry: entry.name)
    return {entry.name: entry.read_text("utf-8") for entry in found}


@cache
def load_shipped_grammar() -> TemplateGrammar:
    """The grammar of the package's template files. Raises GrammarError."""
    return parse_grammar(load_template_texts())


def draw_examples(
    seed: int, count: int, *, held_out: bool = False, mix: Mix = FULL, grammar: TemplateGrammar | None = None
) -> Iterator[Example]:
    """Draw `count` conversations, identical for the same seed, mix and grammar.

    With `held_out`, words and numbers of four digits or more are ones that are never drawn without it.
    Raises GrammarError if a template file is invalid.
    """
    return (grammar or load_shipped_grammar()).draw_examples(seed, count, held_out=held_out, mix=mix)


def write_jsonl(
    path: Path,
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
    return write_examples(path, draw_examples(seed, count, held_out=held_out, mix=mix, grammar=grammar), progress)
