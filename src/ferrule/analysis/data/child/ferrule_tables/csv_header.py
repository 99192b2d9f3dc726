"""Tells which lines of CSV are the header. Runs in the sandbox.

The first line is a header if one of these holds:

1. It has a word where most of the lines below have numbers or dates.
2. It has words only, none of them a value: "true", "n/a", an address, or what stands in the same column again.
3. Its numbers are periods or ranges, and most of the cells below aren't: 2019, 2019/20, 2020-01, 31.12.2020, 18-24.
4. Its numbers are a sequence, such as 1, 2, 3 or 0.1, 0.2, 0.3, and most of the lines below aren't.
5. It has whole numbers next to an empty first cell, and no line below has one there, as pandas writes an index.
6. It has words, and three or more whole numbers above columns of decimals.

Otherwise it is a line of data. A header with numbers (3 to 6) is named in a note, since it is a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from .forms import DATE, NAMED_DATE, NUMBER
from .wording import MISSING, PLACEHOLDERS, quote_column

NUMERIC = re.compile(r"[-+]?[\d.,:/ -]*\d[\d.,:/ -]*(?:[eE][-+]?\d+|%)?|[-+]?inf(?:inity)?", re.IGNORECASE)
VALUE = re.compile(
    r"\S+@\S+\.\w+|\w+://\S*|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|"
    + "|".join(map(re.escape, ("true", "false", *MISSING[1:], *PLACEHOLDERS))),
    re.IGNORECASE,
)
"""What is a value wherever it stands, and no name of a column."""
PERIOD = re.compile(
    r"(?:1[5-9]|2[01])\d\d(?:\.0| ?[-/–] ?(?:\d\d|\d{4}))?"  # 2019, 2019.0, 2019/20, 2019-01
    r"|(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])?"  # 202001, 20200131
    r"|(?:0?[1-9]|1[0-2])[-/.](?:19|20)\d\d"  # 01/2020
    r"|\d{1,2}:\d\d|\d{1,3} ?[-–] ?\d{1,3}"  # 10:00, 18-24
)
WHOLE = re.compile(r"[-+]?\d{1,9}(?:\.0)?")
DECIMAL = re.compile(r"[-+]?\d{0,9}[.,]\d+")
MOST_BELOW = 0.8
"""The share of the cells of a column that counts as most of them."""
SEQUENCE = 6
"""How many numbers of a line without words make a sequence that is no chance."""


def looks_like_header(first: Sequence[str], rows: Sequence[Sequence[str]], notes: list[str]) -> bool:
    """Is a line the names of columns, by the lines below it? See the top of the module; adds a note of a guess."""
    cells = [cell.strip() for cell in first]
    words = [place for place, cell in enumerate(cells) if cell and not is_number(cell) and not VALUE.fullmatch(cell)]
    if any(_count_share(is_number, _take_below(place, rows)) >= MOST_BELOW for place in words):
        return True
    if numbers := [place for place, cell in enumerate(cells) if is_number(cell)]:
        are_names = _are_names(cells, numbers, bool(words), rows)
        if are_names:
            named = quote_column(cells[numbers[0]])
            notes.append(f"the first line is taken as the header, though it has numbers such as {named}")
        return are_names
    others = [row for row in rows if [cell.strip() for cell in row] != cells]
    recurs = any(cells[place] in _take_below(place, others) for place in words)
    return bool(words) and not recurs and len(words) == sum(map(bool, cells))


def is_number(cell: str) -> bool:
    """Is a cell a number or a date, in any form?"""
    return any(form.fullmatch(cell) for form in (NUMERIC, NUMBER, DATE, NAMED_DATE))


def is_period(cell: str) -> bool:
    """Is a cell a year, a month, a day, a time of day, or a range of numbers?"""
    return any(form.fullmatch(cell) for form in (PERIOD, DATE, NAMED_DATE))


def _take_below(place: int, rows: Sequence[Sequence[str]]) -> list[str]:
    return [cell for row in rows if place < len(row) and (cell := row[place].strip())]


def _count_share(condition: Callable[[str], bool], cells: Sequence[str]) -> float:
    return sum(map(condition, cells)) / len(cells) if cells else 0.0


def _are_names(cells: Sequence[str], places: Sequence[int], has_words: bool, rows: Sequence[Sequence[str]]) -> bool:
    """Are the numbers of a line, at these places, names of columns?"""
    numbers = [cells[place] for place in places]
    if len(set(numbers)) < len(numbers) or any(map(VALUE.fullmatch, cells)):
        return False
    if are_periods(cells, places, rows) and (has_words or len(numbers) > 1):
        return True
    if _is_sequence(numbers, has_words, [[row[place] for place in places if place < len(row)] for row in rows]):
        return True
    if not all(map(WHOLE.fullmatch, numbers)):
        return False
    has_corner = not cells[0] and bool(rows) and all(row[0].strip() for row in rows)
    decimals = [
        _count_share(lambda cell: DECIMAL.fullmatch(cell) is not None, _take_below(one, rows)) for one in places
    ]
    return has_corner or (has_words and len(decimals) > 2 and min(decimals) >= MOST_BELOW)


def are_periods(cells: Sequence[str], places: Sequence[int], rows: Sequence[Sequence[str]]) -> bool:
    """Are cells periods, above cells that aren't?"""
    below = (_count_share(is_period, _take_below(place, rows)) for place in places)
    return all(is_period(cells[place].strip()) for place in places) and all(share <= 1 - MOST_BELOW for share in below)


def _is_sequence(numbers: Sequence[str], has_words: bool, others: Sequence[Sequence[str]]) -> bool:
    """Have numbers the same distances, as most of the `others` haven't?"""
    steps = _list_steps(numbers)
    if len(set(steps)) != 1 or 0 in steps:
        return False
    is_index = WHOLE.fullmatch(numbers[0]) is not None and float(numbers[0]) == 0
    if len(numbers) < (3 if has_words or is_index else SEQUENCE):
        return False
    found = [_list_steps(row) for row in others]
    if len(numbers) > 3 or (has_words and all(map(is_period, numbers))):
        return sum(len(set(one)) == 1 for one in found) <= len(found) / 2
    # Three numbers of few values, or of lines that all rise, are a sequence by chance.
    rising = sum(bool(one) and all(step * steps[0] > 0 for step in one) for one in found)
    return rising <= len(found) / 2 and not {cell.strip() for row in others for cell in row} <= {*numbers, ""}


def _list_steps(numbers: Sequence[str]) -> list[float]:
    """Return the distances of numbers; none if one of them isn't a whole or decimal number."""
    stripped = [number.strip() for number in numbers]
    if not all(WHOLE.fullmatch(number) or DECIMAL.fullmatch(number) for number in stripped):
        return []
    values = [float(number.replace(",", ".")) for number in stripped]
    return [round(after - before, 9) for before, after in pairwise(values)]


def has_second_header(rows: Sequence[Sequence[str]]) -> bool:
    """Are the first two lines names, the first with gaps over names or periods that have numbers below?"""
    if len(rows) < 3:
        return False
    first, second = ([cell.strip() for cell in row] for row in rows[:2])
    gaps = [place for place, cell in enumerate(second) if cell and place and not "".join(first[place : place + 1])]
    numbers = [place for place, cell in enumerate(second) if is_number(cell)]
    if not gaps or not are_periods(second, numbers, rows[2:]):
        return False
    below = [cell for place in gaps for cell in _take_below(place, rows[2:])]
    return bool(below) and all(map(is_number, below))


def join_header(first: Sequence[str], second: Sequence[str], notes: list[str]) -> list[str]:
    """Join two lines of names: a gap of the first has the name to its left."""
    names, name = [], ""
    for place in range(max(len(first), len(second))):
        above = "".join(first[place : place + 1]).strip()
        below = "".join(second[place : place + 1]).strip()
        name = above or (name if below else "")
        names.append(f"{name} {below}".strip())
    example = next(one for one in names if " " in one)
    notes.append(f"the 2 lines of the header are joined, as in {quote_column(example)}")
    return names


def count_comments(rows: Sequence[Sequence[str]]) -> int:
    """Count the first lines that begin with "#", if the line below them is the header.

    It is not where the last of them may be the header itself: "#id,name" above lines with as many cells.
    """
    count = next((place for place, row in enumerate(rows) if not row[0].lstrip().startswith("#")), 0)
    if not count or not looks_like_header(rows[count], rows[count + 1 :], []):
        return 0
    last = rows[count - 1]
    is_table = len(last) in map(len, rows[count:])
    return 0 if is_table and not last[0].lstrip().startswith("# ") else count


def count_filled(cells: Sequence[str]) -> int:
    """Count cells without the empty ones at the end."""
    for width in range(len(cells), 0, -1):
        if cells[width - 1].strip():
            return width
    return 0
