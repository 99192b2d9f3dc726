"""Checks the answer as one value against the outputs, as the numbers of the answer in full are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from ferrule.analysis.numbers.finding import LARGEST
from ferrule.analysis.numbers.matching import NumberLink, SourceIndex, match_numbers
from ferrule.analysis.numbers.patterns import find_days
from ferrule.analysis.numbers.source_numbers import NumberSource
from ferrule.analysis.result import FocusedAnswer

_LISTED: Final = ("year", "ordinal")
"""Kinds of numbers that are listed without needing a source."""


def check_focused_answer(focused: FocusedAnswer, question: str, sources: SourceIndex) -> FocusedAnswer:
    """Add where the numbers of the formatted answer come from, and what of the value is in no output."""
    links = tuple(sources.match(focused.formatted_answer))
    problems = list(_find_problems(focused, links, question, sources))
    return replace(focused, numbers=links, not_computed=tuple(dict.fromkeys(problems)))


def _find_problems(
    focused: FocusedAnswer, links: Sequence[NumberLink], question: str, sources: SourceIndex
) -> Iterator[str]:
    values = focused.answer_value if isinstance(focused.answer_value, list) else [focused.answer_value]
    for value in values:
        if focused.answer_type == "date":
            if not _has_date(value, sources.sources):
                yield f"no output has the date {value}"
        elif isinstance(value, str):
            for link in sources.match(value):
                if link.kind == "not computed":
                    yield f"no output has the value {link.text}"
        elif isinstance(value, int | float) and not isinstance(value, bool):
            if not _has_number(value, links, question, sources):
                yield f"no output has the value {value}"
            elif focused.answer_type == "number" and links and not _says(focused.formatted_answer, value, links):
                yield f"the value is {value}, which {focused.formatted_answer!r} doesn't say"


def _has_number(value: float, links: Sequence[NumberLink], question: str, sources: SourceIndex) -> bool:
    """Whether a source has the value: one that a number of the formatted answer was found in, or any."""
    if any(link.source is not None and link.kind not in _LISTED and _is_same(link, value) for link in links):
        return True
    # The words of the question choose among outputs that have the value, and "2,021" is no year.
    asked = re.sub(r"[.!?;\n]", " ", question)
    text = f"{asked}: {_write(value)}"
    found = [link for link in sources.match(text) if link.end == len(text)]
    return any(link.source is not None for link in found)


def _is_same(link: NumberLink, value: float) -> bool:
    """Whether a number of the formatted answer is the value, or the value in its own unit: 16.6 for "16.6%"."""
    digits = re.sub(r"[^0-9.]", "", link.text)
    return link.value == value or digits in (str(abs(value)), f"{min(abs(value), LARGEST):g}")


def _says(formatted: str, value: float, links: Sequence[NumberLink]) -> bool:
    source = NumberSource("value", "run", _write(value), (float(value),) if abs(value) < LARGEST else ())
    found = match_numbers(formatted, [source])
    return any(link.source is not None for link in found) or any(_is_same(link, value) for link in links)


def _write(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else repr(value)


def _has_date(value: Any, sources: Sequence[NumberSource]) -> bool:
    """Whether a source has the date, in whichever order its day, month and year are written."""
    written = str(value)[:10]
    return any(written in (day[: len(written)] for day in find_days(source.text)) for source in sources)
