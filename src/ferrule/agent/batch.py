"""Many concurrent runs: a bounded number of them, in order, and a barrier where they wait for each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from ferrule.agent.run import Run
from ferrule.agent.standard_hooks import CallOnce, call, replace_conversation
from ferrule.conversation import Conversation
from ferrule.errors import SettingsError

if TYPE_CHECKING:
    from ferrule.agent.hooks import RunState


class _HasConversation(Protocol):
    """A pipeline, as far as it is needed here."""

    @property
    def conversation(self) -> Conversation: ...


PipelineT = TypeVar("PipelineT", bound=_HasConversation)


async def run_together(
    pipelines: Sequence[PipelineT],
    work: Callable[[PipelineT, Run[Any], RunBarrier], Awaitable[None]],
    concurrency: int | None,
    errors: Literal["raise", "keep"],
    on_end: Callable[[int, Run[Any]], None],
) -> list[Run[Any]]:
    """Run each pipeline by `work`, which updates its `Run`; `on_end` gets each that ends. See `Pipeline.run_batch`."""
    if concurrency is not None and (not isinstance(concurrency, int) or concurrency < 1):
        raise SettingsError(f"concurrency must be a whole number of at least 1, not {concurrency!r}")
    if errors not in ("raise", "keep"):
        raise SettingsError(f"errors must be 'raise' or 'keep', not {errors!r}")
    slots = None if concurrency is None else asyncio.Semaphore(concurrency)
    runs: list[Run[Any]] = [Run(pipeline.conversation) for pipeline in pipelines]
    barrier = RunBarrier(runs, slots)

    async def run_one(index: int, pipeline: PipelineT, run: Run[Any]) -> None:
        try:
            async with slots or nullcontext():
                await work(pipeline, run, barrier)
        except Exception as error:
            if errors == "raise":
                raise
            run.error, run.stopped = error, run.stopped or "error"
        finally:
            await barrier.leave()
        on_end(index, run)

    try:
        async with asyncio.TaskGroup() as tasks:
            for index, (pipeline, run) in enumerate(zip(pipelines, runs, strict=True)):
                tasks.create_task(run_one(index, pipeline, run))
    except asyncio.CancelledError as error:
        attach(error, runs=runs)
        raise
    except BaseExceptionGroup as several:
        # The first error itself, no group: the same as when a single pipeline is run.
        first = several.exceptions[0]
        attach(first, runs=runs)
        raise first from several
    return runs


def attach(error: BaseException, **found: Any) -> None:
    """Set attributes of an exception, `run` or `runs`: what there is of them when it is raised."""
    for name, value in found.items():
        with suppress(AttributeError):  # an exception with slots
            setattr(error, name, value)


def ignore_end(_index: int, _run: Run[Any]) -> None:
    """Show nothing when a run ends."""


@contextmanager
def show_progress(total: int) -> Iterator[Callable[[int, Run[Any]], None]]:
    """Show a progress bar of runs on stderr; yields what is to be called when one ends."""
    # Only a batch that shows its progress needs it.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task, failed = bar.add_task("runs", total=total), 0

        def advance(_index: int, run: Run[Any]) -> None:
            nonlocal failed
            failed += run.error is not None
            bar.update(task, advance=1, description=f"runs, {failed} failed" if failed else "runs")

        yield advance


class RunBarrier:
    """Where runs wait for each other. A run that has ended isn't waited for, but is passed to the callback too."""

    def __init__(self, runs: Sequence[Run[Any]], slots: asyncio.Semaphore | None = None) -> None:
        self._runs = runs
        self._left = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._callback: Callable[[list[Run[Any]]], Any] | None = None
        self._slots = slots

    async def wait(self, callback: Callable[[list[Run[Any]]], Any]) -> None:
        """Wait until all runs are here and the callback was called with them."""
        here: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(here)
        self._callback = callback
        if self._slots is not None:
            self._slots.release()  # so that the others can get here
        try:
            await self._call_when_complete()
            await here
        finally:
            if self._slots is not None:
                await self._slots.acquire()

    async def leave(self) -> None:
        """Wait no longer for one run: it has ended."""
        self._left += 1
        await self._call_when_complete()

    async def _call_when_complete(self) -> None:
        if not self._waiting or len(self._waiting) + self._left < len(self._runs) or self._callback is None:
            return
        waiting, self._waiting = self._waiting, []
        callback, self._callback = self._callback, None
        try:
            self._replace_conversations(await call(callback, list(self._runs)), callback)
        except BaseException as error:
            for one in waiting:
                if not one.done():
                    one.set_exception(error)
            if isinstance(error, asyncio.CancelledError):
                raise
            return
        for one in waiting:
            if not one.done():
                one.set_result(None)

    def _replace_conversations(self, found: Any, callback: Callable[..., Any]) -> None:
        if found is None:
            return
        if not isinstance(found, Sequence) or len(found) != len(self._runs):
            name = getattr(callback, "__qualname__", repr(callback))
            raise SettingsError(
                f"the callback {name} of map must return None, or a list with a Conversation or None for each run "
                f"({len(self._runs)})"
            )
        for run, one in zip(self._runs, found, strict=True):
            replace_conversation(run, one, callback)


class CallTogether(CallOnce):
    """Calls the callback of `map` once all runs have reached its step."""

    def __init__(self, callback: Callable[[list[Run[Any]]], Any], waits: bool, barrier: RunBarrier) -> None:
        super().__init__(callback, waits)
        self._barrier = barrier

    async def call(self, state: RunState) -> None:  # noqa: ARG002 - the barrier has all runs
        """Wait for the other runs; the last one calls the callback."""
        await self._barrier.wait(self._callback)
