"""The questions of an evaluation, and the scoring of answers to the calculator's.

Held-out problems are newly drawn, and their answers must match the template exactly. The hand-written lists of requests
have no replies, so the right number or text decides. `handwritten.py` reads these lists, `asking.py` asks.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from typing import Any

from ferrule.builtin_tools import calculator
from ferrule.formats.tool_offers import read_offers
from ferrule.toolspec import ToolSpec
from ferrule.training.synth import CALCULATOR_ALONE, FULL, Example, Turn, draw_examples, load_shipped_grammar


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call as the model writes it (`12 * 34`, `get_weather(city="Paris")`), the text of its result, and whether it
    failed; `arguments` are None for what isn't an object, and `confidence` for a model that has none."""

    text: str
    result: str
    is_error: bool = False
    name: str = calculator.name
    arguments: Mapping[str, Any] | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What one request led to. `is_finished` is False if the model was cut off, or never ended its turn."""

    calls: tuple[MadeCall, ...]
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
    """A request to the calculator from the hand-written lists, after others in the same conversation.

    `answer` is a number or a text, or several; None if nothing should be computed.
    """

    id: str
    kind: str
    prompts: tuple[str, ...]
    answer: str | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class EvaluationQuestion:
    """Requests made one after another in one conversation, and the scoring of their answers.

    `tools` are offered in place of the calculator, and `results` are what they return, in order. `given` has the
    replies that are written in the model's place, by the number of their request.
    """

    id: str
    kind: str
    prompts: tuple[str, ...]
    score: Callable[[Sequence[ModelAnswer]], Score]
    tools: tuple[ToolSpec, ...] = ()
    results: tuple[str, ...] = ()
    given: Mapping[int, str] = field(default_factory=dict)


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
        all(tuple(call.text for call in answer.calls) == _list_expected_calls(turn) for turn, answer in pairs),
        all(answer.is_finished and answer.reply == turn.reply for turn, answer in pairs),
    )


def score_phrasing(phrasing: HandwrittenRequest, answer: ModelAnswer, refusals: Collection[str]) -> Score:
    """The last call must give the answer, and the reply must contain it, in any wording.

    Of several answers, each must be the result of a call. In a `compare`, which the calculator can't do, the reply
    alone decides. Without an answer, by kind: an `error` needs a failed call and a reply that says so; `chat` and
    `refusal` need no call, and a `refusal` one of the replies in `refusals`, which a `chat` must not get.
    """
    last = answer.calls[-1] if answer.calls else None
    if isinstance(phrasing.answer, tuple):
        results = [call.result for call in answer.calls if not call.is_error]
        is_called = all(any(_is_same(one, wanted, phrasing.kind) for one in results) for wanted in phrasing.answer)
        is_told = all(states_answer(answer.reply, wanted, phrasing.kind) for wanted in phrasing.answer)
    elif phrasing.answer is not None and phrasing.kind == "compare":
        is_called = is_told = states_answer(answer.reply, phrasing.answer, phrasing.kind)
    elif phrasing.answer is not None:
        is_called = last is not None and not last.is_error and _is_same(last.result, phrasing.answer, phrasing.kind)
        is_told = states_answer(answer.reply, phrasing.answer, phrasing.kind)
    elif phrasing.kind == "error":
        is_called = last is not None and last.is_error
        is_told = says_impossible(answer.reply)
    else:
        is_called = last is None
        is_told = bool(answer.reply.strip()) and (answer.reply in refusals) == (phrasing.kind == "refusal")
    return Score(is_called, is_told and answer.is_finished)


def says_impossible(reply: str) -> bool:
    """Whether a reply says that something can't be computed."""
    return _IMPOSSIBLE.search(reply) is not None


def states_answer(reply: str, answer: str, kind: str) -> bool:
    """Whether a reply contains the answer: as a number in any notation, or exactly for a `reverse`."""
    number = None if kind == "reverse" else _parse_number(answer)
    if number is None or "/" in answer:
        return re.search(rf"(?<![\w/]){re.escape(answer)}(?![\w/])", reply) is not None
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


def draw_held_out_questions(count: int, seed: int, *, has_tools: bool = False) -> Iterator[EvaluationQuestion]:
    """Problems from the templates with words, and numbers of four digits or more, that training never uses.

    An id names the template sections of a problem. With `has_tools` there are conversations with tools among them,
    of the kind `tools`.
    """
    for example in draw_examples(seed, count, held_out=True, mix=FULL if has_tools else CALCULATOR_ALONE):
        yield _make_question(example)


def _make_question(example: Example) -> EvaluationQuestion:
    tools = tuple(read_offers({"tools": [dict(tool) for tool in example.tools or ()]}))
    foreign = {spec.name for spec in tools} - {calculator.name}
    steps = [step for turn in example.turns for step in turn.steps if step.call.partition("(")[0] in foreign]
    return EvaluationQuestion(
        example.section,
        example.kind,
        tuple(turn.user for turn in example.turns),
        partial(score_turns, example.turns),
        tools,
        tuple(step.output for step in steps),
        {place: turn.reply for place, turn in enumerate(example.turns) if not turn.is_trained},
    )


def make_questions(phrasings: Sequence[HandwrittenRequest]) -> list[EvaluationQuestion]:
    """Requests to the calculator as questions."""
    return [EvaluationQuestion(one.id, one.kind, one.prompts, partial(_score_last, one)) for one in phrasings]


def draw_long_results(count: int, seed: int) -> Iterator[EvaluationQuestion]:
    """Products with long results, `count` of each kind: of 24 digits, and of 5 to 12, whose digits a reply groups."""
    rng = random.Random(seed)
    for number in range(count):
        yield from make_questions(
            [_draw_product(rng, f"long{number}", 24), _draw_product(rng, f"grouped{number}", rng.randint(5, 12))]
        )


def _draw_product(rng: random.Random, name: str, digits: int) -> HandwrittenRequest:
    """A request for a product of so many digits."""
    result, left, right = 0, 0, 0
    while len(str(result)) != digits:
        left, right = (rng.randrange(10 ** (size - 1), 10**size) for size in (digits // 2, digits - digits // 2))
        result = left * right
    sign = rng.choice(("*", "×", "times", "x"))
    kind = "24 digits" if digits == 24 else "5 to 12 digits"
    return HandwrittenRequest(name, kind, (f"{left} {sign} {right}",), str(result))


@cache
def list_refusals() -> frozenset[str]:
    """The replies with which the templates refuse a request."""
    replies = (section.reply for section in load_shipped_grammar().sections if section.kind == "refusal")
    return frozenset("".join(piece for piece in reply if isinstance(piece, str)) for reply in replies)


def _score_last(phrasing: HandwrittenRequest, answers: Sequence[ModelAnswer]) -> Score:
    if len(answers) < len(phrasing.prompts):
        return _WRONG
    return score_phrasing(phrasing, answers[-1], list_refusals())
