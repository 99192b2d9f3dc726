"""Questions for what a tool requires and a request doesn't tell: `Which city and date?`

A small model asks more often than it must, and for more than a tool takes. So a question names required parameters, in
their order, and none that was surely told: a number beside the parameter's name (`12 kg`), as many numbers as the tool
takes, or a choice. Of 788 such questions in the embedded model's drawn conversations this forbids 6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations

from ferrule.dialects.grammar import Grammar, make_text_choice
from ferrule.dialects.named_numbers import find_amounts, find_named_numbers
from ferrule.dialects.relevance import find_stems
from ferrule.dialects.signatures import SignatureParameter, list_parameters
from ferrule.toolspec import ToolSpec

BEGINNING = "Which"
_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+|-+|\.+")
_MOST_ASKED = 3


@lru_cache(maxsize=4096)
def split_name(name: str) -> str:
    """A name as words in lower case: `getWeather` is `get weather`, `due_date` is `due date`."""
    return " ".join(word for word in _BOUNDARY.split(name) if word).lower()


def write_question(names: Iterable[str]) -> str:
    """The question for the parameters of these names."""
    words = [split_name(name) for name in names]
    listed = f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]
    return f"{BEGINNING} {listed}?"


def make_question_grammar(tools: Iterable[ToolSpec], request: str) -> Grammar | None:
    """One of the questions that a request leaves open; None if there is none."""
    questions = {question for spec in tools for question in _list_questions(spec, request)}
    return make_text_choice(questions) if questions else None


def _list_questions(spec: ToolSpec, request: str) -> Iterator[str]:
    required = [one for one in list_parameters(spec) if one.is_required]
    missing = [one.name for one in required if not _is_told(one, spec, request)]
    for size in range(1, min(len(missing), _MOST_ASKED) + 1):
        yield from map(write_question, combinations(missing, size))


def _is_told(parameter: SignatureParameter, spec: ToolSpec, request: str) -> bool:
    if parameter.takes_number:
        numbers = sum(one.takes_number for one in list_parameters(spec))
        return len(find_amounts(request)) >= numbers or parameter.name in find_named_numbers(spec, request)
    choices = parameter.shape.choices
    if not choices or parameter.shape.is_list:
        return False
    told = find_stems([request])
    alike = sum(one.is_required and one.shape.choices == choices for one in list_parameters(spec))
    return sum(bool(stems) and stems <= told for stems in map(_find_choice_stems, choices)) >= alike


def _find_choice_stems(choice: object) -> set[str]:
    return find_stems([str(choice)])
