"""A table that was read: where it is from, the profiles of its columns, and its copy as Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

ColumnType: TypeAlias = Literal[
    "boolean", "integer", "number", "text", "date", "timestamp", "time", "duration", "binary", "nested"
]
Cell: TypeAlias = Annotated[str, Field(max_length=200)]
"""A value as text, cut if it is long."""
Number: TypeAlias = int | float | None


class ColumnProfile(BaseModel):
    """What is known of a column. Computed inside the sandbox, from data that may be hostile: so it is validated."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    type: ColumnType
    missing: int = Field(ge=0)
    distinct: int | None = Field(default=None, ge=0)
    """Distinct values, approximate above 100,000 rows; None for nested data."""
    minimum: Number | Cell = None
    """The least value: a number, or text for dates, times and text. For text None unless all of it was compared."""
    maximum: Number | Cell = None
    mean: float | None = None
    deviation: float | None = None
    """The standard deviation."""
    infinite: int = Field(default=0, ge=0)
    """Of numbers: how many are infinite. The least, the greatest and the statistics are those of the others."""
    quantiles: tuple[Number, ...] = ()
    """Of numbers: at 5, 25, 50, 75 and 95 %, from a seeded sample of 100,000 rows; all rows if there are fewer."""
    lengths: tuple[int, int] | None = None
    """Of text: the least and the greatest number of characters."""
    common: tuple[tuple[Cell, int], ...] = ()
    """Of text: the most common values in that sample, each with its number of rows."""


class Table(BaseModel):
    """A table of an analysis."""

    model_config = ConfigDict(frozen=True)

    name: str
    """Code finds it as `tables[name]`."""
    path: Path
    """The file that it was read from."""
    kind: str
    """`csv`, `json`, `jsonl`, `parquet`, `excel` or `sqlite`."""
    part: str | None = None
    """The sheet of a workbook, or the table of a database."""
    rows: int = Field(ge=0)
    columns: tuple[ColumnProfile, ...]
    samples: tuple[tuple[Cell | None, ...], ...] = ()
    """A few rows as text, chosen by the same seed."""
    memory: int = Field(ge=0)
    """Estimated bytes as a pandas data frame."""
    parquet: Path
    """Its copy, named by its digest."""
    digest: str
    """The SHA-256 of `parquet`."""
    notes: tuple[str, ...] = ()
    """What had to be decided to read it, such as an encoding."""

    def __eq__(self, other: object) -> bool:
        """Whether all but the folder of the copy is the same: each analysis has one of its own."""
        if not isinstance(other, Table):
            return NotImplemented
        own, others = (one.model_dump(exclude={"parquet"}) for one in (self, other))
        return own == others

    def __hash__(self) -> int:
        return hash((self.name, self.path, self.digest))
