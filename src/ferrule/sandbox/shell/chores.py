"""What a coder does in a repository, and what becomes of it in each tier: the table `load_chores.toml`.

Tests run every line of it, `ferrule sandbox doctor` sums it up, and the documents show it, so that all three agree.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["Chore", "ChoreRefusal", "load_chores"]


@dataclass(frozen=True, slots=True)
class ChoreRefusal:
    """Why a tier refuses a command."""

    why: str
    says: str
    """What programs say then."""


@dataclass(frozen=True, slots=True)
class Chore:
    """One command in the top folder of a repository. It passes in the full tier."""

    name: str
    command: str
    """`{python}` in it stands for an interpreter."""
    shows: str
    """Among what it prints."""
    refused: ChoreRefusal | None
    """Why the container tier refuses it; None where it passes."""
    needs: Sequence[str] = ()
    """Programs without which it can't be tried."""
    writable: Sequence[str] = ()
    """Protected places that it is given."""


@cache
def load_chores() -> tuple[Chore, ...]:
    """All of them, in the order of the table."""
    with Path(__file__).with_name("chores.toml").open("rb") as file:
        table = tomllib.load(file)
    refusals = {name: ChoreRefusal(**row) for name, row in table["refused"].items()}
    return tuple(_make_chore(row, refusals) for row in table["chore"])


def _make_chore(row: Mapping[str, Any], refusals: Mapping[str, ChoreRefusal]) -> Chore:
    given = {key: value for key, value in row.items() if key != "container"}
    return Chore(**given, refused=None if row["container"] == "passes" else refusals[row["container"]])
