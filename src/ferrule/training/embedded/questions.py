"""What a model is asked: held-out problems drawn afresh, and the two hand-written lists of phrasings.

A question knows how its answers are scored; by which rules is `scoring.py`'s business.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Literal

from ferrule.training.embedded.scoring import Answer, Phrasing, Score, score_phrasing, score_turns
from ferrule.training.synth import examples, shipped_grammar

ListName = Literal["steering", "final"]


@dataclass(frozen=True, slots=True)
class Question:
    """Requests that are made one after another in one conversation, and what becomes of the answers to them."""

    id: str
    kind: str
    prompts: tuple[str, ...]
    score: Callable[[Sequence[Answer]], Score]


def held_out(count: int, seed: int) -> Iterator[Question]:
    """Problems from the templates with words, and numbers of four digits or more, that training never draws.

    An id names the template sections that a problem is from.
    """
    for example in examples(seed, count, held_out=True):
        prompts = tuple(turn.user for turn in example.turns)
        yield Question(example.section, example.kind, prompts, partial(score_turns, example.turns))


def read_phrasings(name: ListName) -> list[Phrasing]:
    """A hand-written list, of wordings that no template could have written."""
    text = (files("ferrule.embedded") / "phrasings" / f"{name}.jsonl").read_text("utf-8")
    return [Phrasing(**json.loads(line)) for line in text.splitlines()]


def phrasing_questions(phrasings: Sequence[Phrasing]) -> list[Question]:
    """Phrasings as questions of one request."""
    return [
        Question(phrasing.id, phrasing.kind, (phrasing.prompt,), partial(_score_one, phrasing))
        for phrasing in phrasings
    ]


def refusals() -> frozenset[str]:
    """The replies with which the templates say that something can't be helped with."""
    replies = (section.reply for section in shipped_grammar().sections if section.kind == "refusal")
    return frozenset("".join(piece for piece in reply if isinstance(piece, str)) for reply in replies)


def _score_one(phrasing: Phrasing, answers: Sequence[Answer]) -> Score:
    return score_phrasing(phrasing, answers[0], refusals())
