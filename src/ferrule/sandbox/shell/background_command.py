"""A command that runs in the background, alongside others."""

from __future__ import annotations

import asyncio
from typing import Literal

from ferrule.sandbox.scheduling import run_on_background_loop
from ferrule.sandbox.shell.command import Command, CommandResult

__all__ = ["BackgroundCommand"]


class BackgroundCommand:
    """A handle on a background command, which ends with its sandbox at the latest.

    If the sandbox could not be set up, or the supervising process was lost, its status is `failed` and reading its
    result raises `SandboxUnavailable`.
    """

    def __init__(self, command: str, running: Command) -> None:
        self.command = command
        self._running = running

    @property
    def status(self) -> Literal["running", "exit", "signal", "timeout", "output", "killed", "failed"]:
        """`running`, how it ended as in `CommandResult.ended`, or `failed`."""
        task = self._running.task
        if not task.done():
            return "running"
        return "failed" if task.cancelled() or task.exception() else task.result().ended

    @property
    def done(self) -> CommandResult | None:
        """Its result, None while it runs. Raises `SandboxUnavailable` if it has failed."""
        return self._running.task.result() if self._running.task.done() else None

    async def read(self) -> str:
        """Its output since the last call; if there is too much, the middle is left out and the text says how much."""

        async def read() -> str:
            return self._running.capture.read_new()

        return await run_on_background_loop(read())

    async def read_tail(self, most: int) -> str:
        """The last whole lines of its output so far, at most `most` bytes; what `read` returns next isn't changed."""

        async def read() -> str:
            return self._running.capture.read_tail(most)

        return await run_on_background_loop(read())

    async def wait(self, timeout: float | None = None) -> CommandResult | None:
        """Wait for its end, at most `timeout` seconds; None if it is still running, which it then continues to do."""

        async def wait() -> CommandResult | None:
            await asyncio.wait([self._running.task], timeout=timeout)
            return self.done

        return await run_on_background_loop(wait())

    async def stop(self) -> CommandResult:
        """End it: SIGTERM to its group, then SIGKILL to whatever is left. Returns at once if it has ended already."""

        async def stop() -> CommandResult:
            if not self._running.task.done():
                self._running.stop("killed")
            return await asyncio.shield(self._running.task)

        return await run_on_background_loop(stop())
