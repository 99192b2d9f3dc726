"""The table of a benchmark: figures with the bounds that are promised, as text or JSON."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure, what it is, and the bound that it has to keep."""

    what: str
    figure: float
    unit: str
    bound: float
    detail: str
    is_least: bool = False
    """Whether the bound is the least that the figure may be, and not the most."""

    @property
    def is_kept(self) -> bool:
        return self.figure >= self.bound if self.is_least else self.figure <= self.bound


def print_rows(rows: Sequence[Row], *, as_json: bool) -> None:
    """Print the table, and end the program, with exit status 1 where a bound is missed."""
    if as_json:
        print(json.dumps([{**asdict(row), "is_kept": row.is_kept} for row in rows]))
    else:
        whats, units = (max(len(getattr(row, name)) for row in rows) for name in ("what", "unit"))
        for row in rows:
            bound = f"at {'least' if row.is_least else 'most'} {row.bound:g}"
            missed = "" if row.is_kept else "MISSED"
            print(f"{row.what:{whats}} {row.figure:8.2f} {row.unit:{units}} {bound:14} {missed:7}{row.detail}")
    sys.exit(not all(row.is_kept for row in rows))
