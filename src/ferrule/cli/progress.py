"""Bars on stderr, for people who watch; nothing where nobody does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Bar(Protocol):
    """How far something is."""

    def __call__(self, done: int, note: str = "", total: int | None = None) -> None:
        """Show that `done` of all is done, and a note behind the bar; `total` where it is known by now only."""


@contextmanager
def bar(title: str, total: int) -> Iterator[Bar]:
    """A bar until the end of the block, which leaves it on the screen."""
    if not sys.stderr.isatty():
        yield _unseen
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True, highlight=False)) as progress:
        task = progress.add_task(title, total=total, note="")

        def show(done: int, note: str = "", total: int | None = None) -> None:
            progress.update(task, completed=done, note=note, total=total)

        yield show


def _unseen(done: int, note: str = "", total: int | None = None) -> None:
    """Nobody watches."""
