"""Shows how an analysis goes on: a live tree on a terminal, plain lines anywhere else; always on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol

from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    from ferrule.analysis.events import AnalysisEvent
    from ferrule.analysis.limits import Spending
    from ferrule.analysis.plan import Plan, PlanTask
    from ferrule.analysis.result import TaskExecution

_SHOWN = 100
_MARKS = {"done": "✓", "failed": "✗", "skipped": "–", "cancelled": "–"}
_STAGES = {
    "complexity": "assessing the question",
    "candidates": "making plans",
    "evaluation": "comparing plans",
    "iteration": "deciding whether to go on",
    "synthesis": "writing the answer",
    "focused_answer": "giving the answer as one value",
}
"""What the stages of the whole analysis do."""
_STYLES = {"done": "green", "failed": "red", "skipped": "dim", "cancelled": "dim"}


class AnalysisProgress(Protocol):
    """Shows events."""

    def show(self, event: AnalysisEvent) -> None:
        """Show one event."""

    def paused(self) -> AbstractContextManager[None]:
        """A block in which the terminal is for something else."""
        ...


class NoProgress:
    """Shows nothing but what leaves the machine: the output is JSON."""

    def __init__(self, receiver: str | None) -> None:
        self._receiver = receiver

    def show(self, event: AnalysisEvent) -> None:
        """Print what a receiver gets of the data; nothing else."""
        from ferrule.analysis.events import DataShared

        if isinstance(event, DataShared):
            for line in describe_event(event, self._receiver):
                print(line, file=sys.stderr, flush=True)

    def paused(self) -> AbstractContextManager[None]:
        """Nothing is shown anyway."""
        return nullcontext()


class ProgressLines:
    """Shows a line for each plan, task and retry. `receiver` gets what is shown of the data, unless it is None."""

    def __init__(self, receiver: str | None) -> None:
        self._receiver = receiver

    def show(self, event: AnalysisEvent) -> None:
        """Print the event, if it is one for people."""
        for line in describe_event(event, self._receiver):
            print(line, file=sys.stderr, flush=True)

    def paused(self) -> AbstractContextManager[None]:
        """Lines are printed whole, so nothing has to end."""
        return nullcontext()


class ProgressTree:
    """Shows the plan as a tree in which tasks change their marks, with what runs now and what it cost so far."""

    def __init__(self, console: Console, receiver: str | None) -> None:
        from rich.live import Live

        self._receiver = receiver
        self._console = console
        self._tasks: dict[str, PlanTask] = {}
        self._ended: dict[str, TaskExecution] = {}
        self._running: dict[str, str] = {}
        self._retries: dict[str, int] = {}
        self._stage = "reading the data"
        self._usage = [0, 0]
        self.live = Live(self._draw(), console=console, refresh_per_second=8, transient=True)

    def show(self, event: AnalysisEvent) -> None:
        """Take the event into the tree; a notice is printed above it."""
        from ferrule.analysis import events

        if isinstance(event, events.PlanMade):
            self._tasks |= {task.id: task for task in event.plan.tasks}
        elif isinstance(event, events.StageStarted):
            self._set_stage(event.key.task, event.key.stage)
        elif isinstance(event, events.StageFinished):
            self._usage[0] += event.calls
            self._usage[1] += event.usage.prompt_tokens + event.usage.sampled_tokens
        elif isinstance(event, events.TaskStarted):
            self._running[event.task.id] = ""
        elif isinstance(event, events.TaskProgress):
            self._set_stage(event.task, event.stage)
        elif isinstance(event, events.TaskRetried):
            self._retries[event.task] = self._retries.get(event.task, 0) + 1
        elif isinstance(event, events.TaskFinished):
            self._running.pop(event.execution.id, None)
            self._ended[event.execution.id] = event.execution
        # A failed attempt is still there to read when the tree is gone.
        if isinstance(event, events.DataShared | events.Notice | events.TaskRetried):
            for line in describe_event(event, self._receiver):
                self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        self.live.update(self._draw())

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the tree away while a person is asked."""
        self.live.stop()
        try:
            yield
        finally:
            self.live.start()

    def _set_stage(self, task: str, stage: str) -> None:
        if task in self._tasks:
            if task not in self._ended:
                self._running[task] = stage
        else:
            self._stage = stage

    def _draw(self) -> Tree:
        from rich.text import Text
        from rich.tree import Tree

        calls, tokens = self._usage
        asked = f"  {pluralize(calls, 'request')}, {tokens:,} tokens" if calls else ""
        doing = "" if self._running else _name_stage(self._stage)
        tree = Tree(Text.assemble("analysis", (f"  {doing}" if doing else "", "cyan"), (asked, "dim")))
        for task in self._tasks.values():
            tree.add(self._draw_task(task))
        return tree

    def _draw_task(self, task: PlanTask) -> Text:
        from rich.text import Text

        ended, stage = self._ended.get(task.id), self._running.get(task.id)
        retries = self._retries.get(task.id, 0)
        mark = _choose_mark(ended) if ended is not None else "▸" if stage is not None else "·"
        style = _style(ended) if ended is not None else "cyan" if stage is not None else "dim"
        state = stage.replace("_", " ") if stage else ""
        if ended is not None:
            state = f"{ended.ended - ended.started:.1f} s"
        notes = [state, pluralize(retries, "retry", "retries") if retries else ""]
        notes += [f"after {', '.join(task.needs)}" if task.needs and ended is None and stage is None else ""]
        shown = ", ".join(filter(None, notes))
        return Text.assemble(
            (f"{mark} {escape_line(task.id)} ", style), f"{escape_line(task.tool)}  ",
            (f"{shown}  " if shown else "", "dim"), _shorten(task.query), overflow="ellipsis", no_wrap=True,
        )  # fmt: skip


@contextmanager
def open_progress(as_json: bool, receiver: str | None = None) -> Iterator[AnalysisProgress]:
    """Open what shows the progress; little does beside JSON. The tree is gone after the block.

    `receiver` is who gets what models are shown of the data, which is then shown first; None if nobody else does.
    """
    if as_json:
        yield NoProgress(receiver)
    elif not sys.stderr.isatty() or os.environ.get("TERM", "dumb") in ("dumb", ""):
        yield ProgressLines(receiver)
    else:
        from rich.console import Console

        tree = ProgressTree(Console(stderr=True, highlight=False), receiver)
        with tree.live:
            yield tree


def describe_event(event: AnalysisEvent, receiver: str | None = None) -> list[str]:
    """The lines of an event for people; none for one that changes nothing that they would look for."""
    from ferrule.analysis import events

    if isinstance(event, events.DataShared):
        if receiver is None or not event.text:
            return []
        title = f"what leaves this machine for {escape_line(receiver)}, besides the question and what code computes:"
        return [title, *(f"  {escape_line(line)}" for line in event.text.splitlines())]
    if isinstance(event, events.PlanMade):
        return describe_plan(event.plan, event.round)
    if isinstance(event, events.TaskRetried):
        return [f"↻ {event.task}  again after a failure ({event.failure}): {_shorten(event.message)}"]
    if isinstance(event, events.TaskFinished):
        return [_describe_execution(event.execution)]
    if isinstance(event, events.Notice):
        return [f"ferrule: {escape_line(' '.join(event.text.split()))}"]
    return []


def describe_plan(plan: Plan, number: int = 0) -> list[str]:
    """The lines of a plan: its approach, and each task with its tool and what it needs."""
    title = "plan" if not number else f"plan of round {number + 1}"
    lines = [f"{title}: {_shorten(plan.approach, 2 * _SHOWN)}"]
    for task in plan.tasks:
        needs = f"  (needs {', '.join(map(escape_line, task.needs))})" if task.needs else ""
        lines.append(f"  {escape_line(task.id)} {escape_line(task.tool)}  {_shorten(task.query)}{needs}")
    return lines


def _name_stage(stage: str) -> str:
    """What a stage of the whole analysis does, in words."""
    name = stage.rstrip("0123456789").rstrip("_")
    return _STAGES.get(name, stage.replace("_", " "))


def _style(task: TaskExecution) -> str:
    return "yellow" if task.status == "done" and has_failed_check(task) else _STYLES[task.status]


def _choose_mark(task: TaskExecution) -> str:
    """The mark of a task that ended; a result with a failed check isn't marked as good."""
    return "!" if task.status == "done" and has_failed_check(task) else _MARKS[task.status]


def has_failed_check(task: TaskExecution) -> bool:
    """Whether a check of the result is false."""
    return any(check.passed is False for check in task.checks)


def _describe_execution(task: TaskExecution) -> str:
    """One line: how a task ended."""
    line = f"{_choose_mark(task)} {escape_line(task.id)} {escape_line(task.tool)}"
    if task.status == "done" and has_failed_check(task):
        failed = [check.description for check in task.checks if check.passed is False]
        line += f"  {pluralize(len(failed), 'check')} failed: {_shorten('; '.join(failed), 2 * _SHOWN)}"
    reason = f": {_shorten(task.error, 2 * _SHOWN)}" if task.error else ""
    return line if task.status == "done" else f"{line}  {task.status}{reason}"


def describe_spending(usage: Spending) -> str:
    """What an analysis took, on one line."""
    tokens = usage.usage.prompt_tokens + usage.usage.sampled_tokens
    price = "" if not usage.cost else f", ${usage.cost:.4f}".rstrip("0").rstrip(".")
    return f"{pluralize(usage.calls, 'request')}, {tokens:,} tokens{price}, {usage.seconds:.1f} s"


def _shorten(text: str, most: int = _SHOWN) -> str:
    line = escape_line(" ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"
