"""Reads the numbers of what an answer may have come from, each with the words and units of its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ferrule.analysis.numbers import patterns
from ferrule.analysis.numbers.bounds import Bound
from ferrule.analysis.numbers.context import Context, read_words
from ferrule.analysis.numbers.finding import FoundNumber, find_numbers
from ferrule.analysis.numbers.units import Unit, find_units

SourceKind = Literal["run", "question", "profile", "model"]
Statistic = Literal["", "extreme", "mean", "deviation", "quantile"]
P_WORD: Final = "p-value"
"""What a number of a source is near if it is a p-value."""
_P_VALUE = re.compile(
    r"(?:(?<![A-Za-z0-9])p(?:[-_ ]?(?:val|adj|corr|holm|bonf|bh|fdr|unc|raw)\w*)?(?=[^\w]|[ ]*$)"
    r"|\bp[-_ ]?val(?:ue)?s?\b|pvalue|p_value|_p(?=[\"']?\s*[:=])|\bPr\b|\bprob\b)[^0-9,;]{0,30}$",
    re.IGNORECASE,
)
_P_COLUMN = re.compile(r"P>\|[tz]\||(?<![\w.])(?:p|p[-_]?val\w*|p[-_](?:adj|holm)\w*)(?=\s|$)", re.IGNORECASE)
"""The head of a column of p-values in a table that is printed: the numbers below end where it does."""
_THRESHOLD = re.compile(
    r"\b(?:thresholds?|cut[-_ ]?offs?|limits?|alpha|targets?|levels?|bounds?|bins?|edges?|criteri\w+)\b[^0-9]{0,12}$"
    r"|\bp[0-9]{1,2}\s+$|\b(?:quantiles?|percentiles?|median)\b[^0-9]{0,12}$|[0-9]%\s+$",
    re.IGNORECASE,
)
"""What says, before a number of an output, that others are below or above it."""
_INTERVAL = re.compile(r"[\[(]\s*[-−]?[0-9.]+\s*,\s*[-−]?[0-9.]+\s*[\])]")
_LEGEND = re.compile(r"quantiles \([^)]*\)")
"""What a profile says its quantiles are of: numbers that stand in no data."""
_CROWD = 40
"""With more numbers than these in a source, one of two digits may be found there by chance."""
_STATISTIC = re.compile(
    r"\b(?:(?P<extreme>min(?:imum)?|max(?:imum)?)|(?P<mean>mean|average)|(?P<deviation>std|sd|(?:standard )?deviation)"
    r"|(?P<quantile>quantiles?|median|percentiles?))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class NumberSource:
    """A text that an answer's numbers may have come from.

    `id` is a task's ("t1"), "question", or of a profile ("sales.profile"). A "run" is of code; a "model" wrote the
    text without running any. `values` are numbers of the same source that its text may show rounded.
    """

    id: str
    kind: SourceKind
    text: str
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceNumber:
    """A number of a source: its value as a plain number, how exactly it is known, and what stands around it."""

    value: float
    last_digit: float
    source: NumberSource
    order: int
    context: Context
    is_percent: bool
    is_crowded: bool
    role: str
    text: str
    days: frozenset[str] = frozenset()
    statistic: Statistic = ""
    is_range: bool = False
    """Whether it is one end of a range of whole numbers, as the name of a group is: "18-49"."""
    bound: Bound = ""
    """What other values are to it, as the output says itself: ">" for "games > 40"."""
    is_threshold: bool = False
    """Whether the output says that other values are below or above it."""


@dataclass(frozen=True, slots=True)
class _Header:
    """What the last line without a quantity says of the lines below it, as the head of a table does."""

    words: frozenset[str] = frozenset()
    units: frozenset[Unit] = frozenset()
    is_share: bool = False


def read_source(order: int, source: NumberSource) -> Iterator[SourceNumber]:
    """The numbers of a source, which is the one of this place among all, with what their lines say of them."""
    # A person writes a question as a model writes an answer, with spaces and commas within numbers.
    is_output = source.kind in ("run", "profile")
    lines = [(line, find_numbers(line, is_output=is_output)) for line in source.text.splitlines()]
    is_crowded = len(source.values) + sum(len(numbers) for _, numbers in lines) > _CROWD
    header, p_columns = _Header(), set[int]()
    for line, numbers in lines:
        p_columns = {one.end() for one in _P_COLUMN.finditer(line)} or p_columns
        said = _Header(
            read_words(line), find_units(line), is_share=patterns.SHARE.search(line.replace("_", " ")) is not None
        )
        if said.words and all(number.role != "quantity" for number in numbers):
            header = said
        for number, context in zip(
            numbers, _read_contexts(line, numbers, source, said, header, p_columns), strict=True
        ):
            yield SourceNumber(
                number.value,
                number.last_digit,
                source,
                order,
                context,
                is_percent=number.percent == 1e-2,
                is_crowded=is_crowded,
                role=number.role,
                text=number.text,
                days=number.days,
                statistic=_find_statistic(line, number) if source.kind == "profile" else "",
                is_range=source.kind == "run" and _is_end_of_range(line, number),
                bound=number.bound,
                is_threshold=_is_threshold(line, number),
            )
    for value in source.values:
        yield SourceNumber(value, 0.0, source, order, Context(), False, is_crowded, "quantity", "")


def _read_contexts(
    line: str, numbers: Sequence[FoundNumber], source: NumberSource, said: _Header, header: _Header, p_columns: set[int]
) -> Iterator[Context]:
    """What stands around each number of a line, which says `said`, below a `header`; `p_columns` are those of it."""
    is_decrease = patterns.DECREASE.search(line) is not None
    spaced = line.replace("_", " ")
    is_changed = patterns.CHANGED.search(spaced) is not None
    is_fraction = patterns.OF_ONE.search(spaced) is not None and not patterns.OF_HUNDRED.search(spaced)
    legend = _LEGEND.search(line) if source.kind == "profile" else None
    for number in numbers:
        near = read_words(line[max(0, number.start - 30) : number.end + 15])
        if number.end in p_columns or _P_VALUE.search(line[max(0, number.start - 40) : number.start]):
            near |= {P_WORD}
        yield Context(
            said.words | header.words,
            near,
            is_decrease=is_decrease,
            is_changed=is_changed,
            is_fraction=is_fraction,
            is_share=said.is_share or header.is_share,
            is_chosen=legend is not None and legend.start() < number.start < legend.end(),
            units=said.units | header.units,
        )


def _find_statistic(line: str, number: FoundNumber) -> Statistic:
    """Which statistic of a column a number of a profile is."""
    if re.match(r" (?:to|\.\.) |\.\.", line[number.end :]) or re.search(r" to $|\.\. ?$", line[: number.start]):
        return "extreme"
    found = list(_STATISTIC.finditer(line, max(0, number.start - 150), number.start))
    name = found[-1].lastgroup if found and ";" not in line[found[-1].end() : number.start] else None
    between = line[found[-1].end() : number.start] if found else ""
    if name == "quantile" or not re.search(r"[0-9]", between):
        return name or ""  # type: ignore[return-value]
    return ""


def _is_threshold(line: str, number: FoundNumber) -> bool:
    if number.bound or _THRESHOLD.search(line[max(0, number.start - 40) : number.start]):
        return True
    around = line[max(0, number.start - 30) : number.end + 30]
    place = number.start - max(0, number.start - 30)
    return any(one.start() <= place < one.end() for one in _INTERVAL.finditer(around))


def _is_end_of_range(line: str, number: FoundNumber) -> bool:
    around = line[max(0, number.start - 5) : number.end + 5]
    place = number.start - max(0, number.start - 5)
    ranges = re.finditer(r"(?<![0-9.,-])[0-9]{1,3}[-–][0-9]{1,3}(?![0-9.,-])", around)
    return any(one.start() <= place < one.end() for one in ranges)
