"""Progress bars on stderr, if it is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class ProgressBar(Protocol):
    """Shows the progress of a task."""

    def __call__(self, done: int, note: str = "", total: int | None = None) -> None:
        """Show that `done` steps are done, with a note after the bar; `total` updates the number of steps."""


@contextmanager
def open_progress_bar(title: str, total: int) -> Iterator[ProgressBar]:
    """Show a progress bar, which stays on the screen after the block."""
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
    """Do nothing: there is no terminal."""
