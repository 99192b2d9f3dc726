"""Progress bars on stderr; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class ProgressBar(Protocol):
    """Shows how far something is."""

    def __call__(self, done: int, note: str = "", total: int | None = None) -> None:
        """Show that `done` steps are done, with a note behind the bar; `total` where it became known only now."""


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[ProgressBar]:
    """A bar until the end of the block; it stays on the screen."""
    if not sys.stderr.isatty():
        yield _show_nothing
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


def _show_nothing(done: int, note: str = "", total: int | None = None) -> None:
    """For when there is no terminal."""
