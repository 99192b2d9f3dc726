"""A command that runs on while others do."""

from __future__ import annotations

import asyncio
from typing import Literal

from ferrule.sandbox.scheduling import run_on_background_loop
from ferrule.sandbox.shell.command import Command, CommandResult

__all__ = ["BackgroundCommand"]


class BackgroundCommand:
    """A handle on a background command. It ends with its sandbox at the latest.

    Where the sandbox could not be set up, or what watched the command was lost, its status is `failed`, and asking for
    its end raises `SandboxUnavailable`.
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
        """Its end, None while it runs. Raises `SandboxUnavailable` where it has failed."""
        return self._running.task.result() if self._running.task.done() else None

    async def read(self) -> str:
        """What it wrote since the last reading; of very much only the end, and it says how much is missing."""

        async def read() -> str:
            return self._running.capture.read_new()

        return await run_on_background_loop(read())

    async def wait(self, timeout: float | None = None) -> CommandResult | None:
        """Wait for its end, for at most `timeout` seconds: None where it still runs then, as it goes on doing."""

        async def wait() -> CommandResult | None:
            await asyncio.wait([self._running.task], timeout=timeout)
            return self.done

        return await run_on_background_loop(wait())

    async def stop(self) -> CommandResult:
        """End it: SIGTERM to its group, then SIGKILL to all that is left of it. Returns at once where it has ended."""

        async def stop() -> CommandResult:
            if not self._running.task.done():
                self._running.stop("killed")
            return await asyncio.shield(self._running.task)

        return await run_on_background_loop(stop())
