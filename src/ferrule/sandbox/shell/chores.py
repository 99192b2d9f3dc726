"""Typical commands in a repository and their outcome in each tier: the table `chores.toml`.

Tests run every row, `ferrule sandbox doctor` summarizes it, and the documents show it, so that all three agree.
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
    """What programs print when refused."""


@dataclass(frozen=True, slots=True)
class Chore:
    """One command run at the top of a repository; it passes in the full tier."""

    name: str
    command: str
    """`{python}` is replaced by an interpreter."""
    shows: str
    """Text in its output."""
    refused: ChoreRefusal | None
    """Why the container tier refuses it; None if it passes there."""
    needs: Sequence[str] = ()
    """Programs that it requires."""
    writable: Sequence[str] = ()
    """Protected paths that it may write."""


@cache
def load_chores() -> tuple[Chore, ...]:
    """All chores, in the order of the table."""
    with Path(__file__).with_name("chores.toml").open("rb") as file:
        table = tomllib.load(file)
    refusals = {name: ChoreRefusal(**row) for name, row in table["refused"].items()}
    return tuple(_make_chore(row, refusals) for row in table["chore"])


def _make_chore(row: Mapping[str, Any], refusals: Mapping[str, ChoreRefusal]) -> Chore:
    fields = {key: value for key, value in row.items() if key != "container"}
    return Chore(**fields, refused=None if row["container"] == "passes" else refusals[row["container"]])
