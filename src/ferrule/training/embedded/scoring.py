"""The questions of an evaluation, and the scoring of answers.

Held-out problems are newly drawn, and their answers must match the template exactly. The two hand-written lists of
requests have no replies, so the right number or text decides. `evaluation.py` asks the questions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from importlib.resources import files
from typing import Literal

from ferrule.training.synth import CALCULATOR_ALONE, Turn, draw_examples, load_shipped_grammar


@dataclass(frozen=True, slots=True)
class CalculatorCall:
    """A call as made, the text of its result, and whether it failed."""

    expression: str
    result: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What one request led to. `is_finished` is False if the model was cut off, or never ended its turn."""

    calls: tuple[CalculatorCall, ...]
    reply: str
    is_finished: bool = True


@dataclass(frozen=True, slots=True)
class Score:
    """Which parts of the answers to a question were right."""

    right_call: bool
    right_answer: bool

    @property
    def is_right(self) -> bool:
        """Whether both were."""
        return self.right_call and self.right_answer


@dataclass(frozen=True, slots=True)
class HandwrittenRequest:
    """A request from the hand-written lists; `answer` is a number or a text, None if nothing should be computed."""

    id: str
    kind: str
    prompt: str
    answer: str | None


_WRONG = Score(right_call=False, right_answer=False)
_TIMES = {"once": Fraction(1), "twice": Fraction(2)}
_IMPOSSIBLE = re.compile(r"\b(?:can['’]t|cannot|can not) be (?:computed|worked out)\b")
# A minus is a sign only if it can't be a subtraction.
_NUMBER = re.compile(
    r"(?:(?<![\w.)])([-−]?)[$€£]([-−]?)|(?<![\w.)])([-−])|(?<![\w.]))(\d{1,3}(?:,\d{3})+(?!\d)|\d+)(\.\d+)?"
)


def score_turns(turns: Sequence[Turn], answers: Sequence[ModelAnswer]) -> Score:
    """Every call and every reply must match the template exactly; an extra call counts as wrong."""
    if len(answers) != len(turns):
        return _WRONG
    pairs = list(zip(turns, answers, strict=True))
    return Score(
        all(tuple(call.expression for call in answer.calls) == _list_expected_calls(turn) for turn, answer in pairs),
        all(answer.is_finished and answer.reply == turn.reply for turn, answer in pairs),
    )


def score_phrasing(phrasing: HandwrittenRequest, answer: ModelAnswer, refusals: Collection[str]) -> Score:
    """The last call must give the answer, and the reply must contain it, in any wording.

    Without an answer, by kind: an `error` needs a failed call and a reply that says so; `chat` and `refusal` need no
    call, and a `refusal` one of the replies in `refusals`, which a `chat` must not get.
    """
    last = answer.calls[-1] if answer.calls else None
    if phrasing.answer is not None:
        is_called = last is not None and not last.is_error and _is_same(last.result, phrasing.answer, phrasing.kind)
        is_told = states_answer(answer.reply, phrasing.answer, phrasing.kind)
    elif phrasing.kind == "error":
        is_called = last is not None and last.is_error
        is_told = _IMPOSSIBLE.search(answer.reply) is not None
    else:
        is_called = last is None
        is_told = bool(answer.reply.strip()) and (answer.reply in refusals) == (phrasing.kind == "refusal")
    return Score(is_called, is_told and answer.is_finished)


def states_answer(reply: str, answer: str, kind: str) -> bool:
    """Whether a reply contains the answer: as a number in any notation, or exactly for a `reverse`."""
    number = None if kind == "reverse" else _parse_number(answer)
    if number is None:
        return re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", reply) is not None
    if kind == "count" and any(_TIMES.get(word) == number for word in re.findall(r"[a-z]+", reply.lower())):
        return True
    return number in find_numbers(reply)


def find_numbers(text: str) -> list[Fraction]:
    """The numbers in a text, without thousands separators, currency signs and per cent signs."""
    found = []
    for *signs, whole, fraction in _NUMBER.findall(text):
        value = Fraction(whole.replace(",", "") + fraction)
        found.append(-value if any(signs) else value)
    return found


def _list_expected_calls(turn: Turn) -> tuple[str, ...]:
    return tuple(step.call for step in turn.steps)


def _is_same(result: str, answer: str, kind: str) -> bool:
    number = None if kind == "reverse" else _parse_number(answer)
    return result == answer if number is None else _parse_number(result) == number


def _parse_number(text: str) -> Fraction | None:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


ListName = Literal["steering", "final"]


@dataclass(frozen=True, slots=True)
class Question:
    """Requests made one after another in one conversation, and the scoring of their answers."""

    id: str
    kind: str
    prompts: tuple[str, ...]
    score: Callable[[Sequence[ModelAnswer]], Score]


def draw_held_out_questions(count: int, seed: int) -> Iterator[Question]:
    """Problems from the templates with words, and numbers of four digits or more, that training never uses.

    An id names the template sections of a problem.
    """
    for example in draw_examples(seed, count, held_out=True, mix=CALCULATOR_ALONE):
        prompts = tuple(turn.user for turn in example.turns)
        yield Question(example.section, example.kind, prompts, partial(score_turns, example.turns))


def read_handwritten_requests(name: ListName) -> list[HandwrittenRequest]:
    """A hand-written list of wordings that no template could have produced."""
    text = (files("ferrule.embedded") / "phrasings" / f"{name}.jsonl").read_text("utf-8")
    return [HandwrittenRequest(**json.loads(line)) for line in text.splitlines()]


def make_questions(phrasings: Sequence[HandwrittenRequest]) -> list[Question]:
    """Phrasings as questions with one request."""
    return [
        Question(phrasing.id, phrasing.kind, (phrasing.prompt,), partial(_score_one, phrasing))
        for phrasing in phrasings
    ]


def list_refusals() -> frozenset[str]:
    """The replies with which the templates refuse a request."""
    replies = (section.reply for section in load_shipped_grammar().sections if section.kind == "refusal")
    return frozenset("".join(piece for piece in reply if isinstance(piece, str)) for reply in replies)


def _score_one(phrasing: HandwrittenRequest, answers: Sequence[ModelAnswer]) -> Score:
    return score_phrasing(phrasing, answers[0], list_refusals())
