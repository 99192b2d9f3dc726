"""What a tool requires and the model wasn't told: the tool isn't called, and only this is asked: `Which city and date?`

A small model asks more often than it must, and for more than a tool takes. So a question names required parameters, in
their order, and none that was surely told: a number beside the parameter's name (`12 kg`), as many numbers as the tool
takes, or a choice. Of 788 such questions in the embedded model's drawn conversations this forbids 6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

from ferrule._util.word_lists import show_list
from ferrule.dialects.grammar import Grammar, make_text_choice
from ferrule.dialects.signatures import SignatureParameter, list_parameters
from ferrule.embedded.copying import count_copied_words
from ferrule.embedded.named_numbers import find_amounts, find_named_numbers
from ferrule.embedded.relevance import find_stems
from ferrule.embedded.told_numbers import count_told_numbers
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.embedded.copy_source import CopySource

BEGINNING = "Which"
_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+|-+|\.+")
_MOST_ASKED = 3


@lru_cache(maxsize=4096)
def split_name(name: str) -> str:
    """A name as words in lower case: `getWeather` is `get weather`, `due_date` is `due date`."""
    return " ".join(word for word in _BOUNDARY.split(name) if word).lower()


def write_question(names: Iterable[str]) -> str:
    """The question for the parameters of these names."""
    return f"{BEGINNING} {show_list([split_name(name) for name in names])}?"


def has_what_is_needed(spec: ToolSpec, source: CopySource) -> bool:
    """Whether as many words and numbers were told as the tool requires; without any text, arguments may be any."""
    required = [one for one in list_parameters(spec) if one.is_required]
    texts, numbers = sum(one.takes_text for one in required), sum(one.takes_number for one in required)
    return not any(source.texts) or (
        all(one.shape.type in source.numbers for one in required if one.takes_number)
        and sum(map(count_told_numbers, source.texts)) >= numbers
        and count_copied_words(source.texts, source.get_name_rules(spec)) >= texts
    )


def make_question_grammar(tools: Iterable[ToolSpec], request: str) -> Grammar | None:
    """One of the questions that a request leaves open; None if there is none."""
    questions = {question for spec in tools for question in _list_questions(spec, request)}
    return make_text_choice(questions) if questions else None


def _list_questions(spec: ToolSpec, request: str) -> Iterator[str]:
    missing = _list_missing(spec, request)
    for size in range(1, min(len(missing), _MOST_ASKED) + 1):
        yield from map(write_question, combinations(missing, size))


def _list_missing(spec: ToolSpec, request: str) -> list[str]:
    """The required parameters that weren't surely told."""
    parameters = list_parameters(spec)
    required = [one for one in parameters if one.is_required]
    has_all_numbers = len(find_amounts(request)) >= sum(one.takes_number for one in parameters)
    named, words = find_named_numbers(spec, request), find_stems([request])

    def is_told(parameter: SignatureParameter) -> bool:
        if parameter.takes_number:
            return has_all_numbers or parameter.name in named
        choices = parameter.shape.choices
        if not choices or parameter.shape.is_list:
            return False
        told = [stems for stems in (find_stems([str(choice)]) for choice in choices) if stems and stems <= words]
        return len(told) >= sum(one.shape.choices == choices for one in required)

    return [one.name for one in required if not is_told(one)]
