"""Splits questions and descriptions into the terms that are compared: lower case, stemmed, synonyms as one term."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

_WORD: Final = re.compile(r"[a-z]+|[0-9]+")
_MARKER: Final = re.compile(r"<\|[^<>]*\|>|</?[A-Za-z][\w:.|-]*/?>")
"""Tags and special tokens of models, such as `<|im_end|>` and `<tool_call>`: no words of a question."""
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LETTERS_KEPT: Final = frozenset("tfkx")
"""Single letters with a meaning: the t and F tests, k groups, a variable x."""

_STOP_WORDS: Final = """
    a an the of to in on at for from by with and or as is are was were be been it its this that these those do does did
    how what which who when where why can could should would will i my me we our you your there their them they he she
    his her if than then so not no into out up about get make have has had want need
"""
"""Words that say nothing about what is asked for."""

_SYNONYMS: Final = """
    average mean
    chart graph plot diagram draw visualize visualise picture
    remove delete drop discard rid eliminate exclude
    missing blank empty nan null hole gap na incomplete
    duplicate repeated duplicated twice
    row record
    column field
    table dataframe frame spreadsheet
    join merge combine
    forecast predict prediction
    group category class
    differ different difference
    biggest largest highest maximum max top
    smallest lowest minimum min bottom
    rate speed
    text string
    correlation correlated related relationship relation association associated linked link
    spread variability dispersion
    count frequency
    date day
    share proportion percentage percent
    similar alike
    odds chance probability likely likelihood
    sum total add
    anomaly outlier unusual strange
    subject patient person people participant respondent
"""
"""One group a line: words that lay people and documentation use for the same."""


def split_into_terms(text: str) -> list[str]:
    """The terms of a text, in order. Raises `ImportError` if the stemmer isn't installed."""
    stem, synonyms, stop_words = _load_stemmer(), _stem_synonyms(), _list_stop_words()
    words = [word for word in _WORD.findall(text.lower()) if word not in stop_words]
    stems = [stem(word) for word in words if len(word) > 1 or word in _LETTERS_KEPT or word.isdigit()]
    return [synonyms.get(one, one) for one in stems]


def split_question_into_terms(text: str) -> list[str]:
    """The terms of a question; none if no word is among them. Raises `ImportError` if the stemmer isn't installed."""
    terms = split_into_terms(_MARKER.sub(" ", text))
    return terms if any(not term.isdigit() for term in terms) else []


def split_path_into_words(path: str) -> str:
    """The names of a path without its package, as words: `stats ttest ind`."""
    return _CAPITAL.sub(" ", path.partition(".")[2].replace("_", " ").replace(".", " "))


@cache
def _list_stop_words() -> frozenset[str]:
    return frozenset(_STOP_WORDS.split())


@cache
def _load_stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english").stemWord


@cache
def _stem_synonyms() -> dict[str, str]:
    stem = _load_stemmer()
    groups = [[stem(word) for word in line.split()] for line in _SYNONYMS.strip().splitlines()]
    return {word: group[0] for group in groups for word in group}
