"""Many runs at once: a bounded number of them, in order, with what went wrong kept or raised."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from typing import Literal, Protocol, TypeVar

from ferrule.conversation import Conversation
from ferrule.errors import SettingsError
from ferrule.runs.run import Run
from ferrule.runs.steps import Meeting


class _Begun(Protocol):
    """What has a conversation to go on from."""

    @property
    def conversation(self) -> Conversation: ...


Begun = TypeVar("Begun", bound=_Begun)


async def run_together(
    pipelines: Sequence[Begun],
    work: Callable[[Begun, Run, Meeting], Awaitable[None]],
    concurrency: int | None,
    errors: Literal["raise", "keep"],
) -> list[Run]:
    """A run of each pipeline, in their order; `work` keeps its run up to date. See `Pipeline.run_batch`."""
    if concurrency is not None and concurrency < 1:
        raise SettingsError(f"concurrency must be at least 1, not {concurrency}")
    slots = None if concurrency is None else asyncio.Semaphore(concurrency)
    meeting = Meeting(len(pipelines), slots)
    runs = meeting.runs = [Run(pipeline.conversation) for pipeline in pipelines]

    async def one(pipeline: Begun, run: Run) -> None:
        try:
            async with slots or nullcontext():
                await work(pipeline, run, meeting)
        except Exception as error:
            if errors == "raise":
                raise
            run.error, run.stopped = error, "error"
        finally:
            await meeting.leave()

    try:
        async with asyncio.TaskGroup() as tasks:
            for pipeline, run in zip(pipelines, runs, strict=True):
                tasks.create_task(one(pipeline, run))
    except BaseExceptionGroup as several:
        # The first as it is: who runs many gets the same error as who runs one.
        raise several.exceptions[0] from several
    return runs
