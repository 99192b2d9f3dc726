"""Names, cells and counts as notes write them. Runs in the sandbox.

A cell in a note is always written by `quote_cell`, so that `sharing` can leave it out where no cell may be shown.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

SHOWN = 5
TITLES_SHOWN = 3
CELL_LENGTH = 60
ONE = {"numbers": "a number", "dates": "a date", "times": "a time"}
MISSING = ("", "#N/A", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "<NA>", "#NA", "-nan", "-NaN")
"""The texts that mean a missing value, as for pandas."""

PLACEHOLDERS = ("-", "--", "–", "—", ".", "..", "...", "…", ":", "?")
"""What stands for a missing value among numbers or dates, and nowhere else."""
TOTALS = {"total", "totals", "grand total", "sum", "summe", "gesamt", "gesamtsumme", "somme", "totale", "suma"}


def quote_column(name: str) -> str:
    """Write the name of a column, in single quotation marks: double ones are those of cells."""
    return repr(name).replace('"', "\\x22")


def quote_cell(value: object) -> str:
    """Write a value, in double quotation marks."""
    text = str(value)
    text = text if len(text) <= CELL_LENGTH else f"{text[: CELL_LENGTH - 1]}…"
    return json.dumps(text, ensure_ascii=False)


def list_columns(names: Sequence[str]) -> str:
    """Write the names of some columns."""
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(map(quote_column, names[:SHOWN])) + more


def write_count(number: int, singular: str, plural: str = "") -> str:
    """Write a number and what it counts."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def make_unique(names: Sequence[str]) -> list[str]:
    """Add a number to each name that, apart from case, was there before."""
    found: list[str] = []
    seen: set[str] = set()
    for name in names:
        number, new = 1, name
        while new.casefold() in seen:
            new, number = f"{name}_{number}", number + 1
        seen.add(new.casefold())
        found.append(new)
    return found


def describe_renamed(names: Sequence[str], unique: Sequence[str]) -> list[str]:
    """Return a note of the names that `make_unique` changed."""
    changed = [
        f"{quote_column(old)} is {quote_column(new)}" for old, new in zip(names, unique, strict=True) if old != new
    ]
    if not changed:
        return []
    more = f" and {len(changed) - SHOWN:,} more" if len(changed) > SHOWN else ""
    return [f"columns with the same name have a number added: {', '.join(changed[:SHOWN])}{more}"]


def describe_missing(name: str, number: int, marker: str) -> str:
    """Say how many values are missing since they are written as `marker`."""
    values = write_count(number, "value")
    return f"{quote_column(name)}: {values} written {marker} {'is' if number == 1 else 'are'} missing"


def describe_misfits(name: str, misfits: int, total: int, what: str, value: object, place: str = "") -> str:
    """Say which values made a column text: `misfits` of `total` aren't `what`; the first is `value`, at `place`."""
    first, rest = what.partition(" ")[::2]
    one = f"{ONE.get(first, first)} {rest}".strip()
    verb = f"is not {one}" if misfits == 1 else f"are not {what}"
    lead = "such as" if not place else f"{place}:" if misfits == 1 else f"the first is in {place}:"
    return f"{quote_column(name)} is text: {misfits:,} of {total:,} values {verb} ({lead} {quote_cell(value)})"


def describe_title(texts: Sequence[str], what: str) -> str:
    """Say which texts stand above the header, each in a `what` of its own."""
    shown = ", ".join(map(quote_cell, texts[:TITLES_SHOWN]))
    more = f" and {len(texts) - TITLES_SHOWN:,} more" if len(texts) > TITLES_SHOWN else ""
    left_out = write_count(len(texts), f"{what} above the header isn't", f"{what}s above the header aren't")
    return f"{left_out} part of the table: {shown}{more}"


def describe_total(cells: Sequence[object], place: str, below: int = 0) -> list[str]:
    """Return a note if a row seems to be the sum of those above; `below`: how many rows of remarks follow."""
    total = next((cell for cell in cells if isinstance(cell, str) and cell.strip(" :").casefold() in TOTALS), None)
    if total is None:
        return []
    what = "the last row may be a total of the others"
    if below:
        remarks = "the row below it is a remark" if below == 1 else f"the {below} rows below it are remarks"
        what = f"the last row but {below} may be a total of the others, where {remarks}"
    return [f"{what} ({place}: {quote_cell(total)})"]
