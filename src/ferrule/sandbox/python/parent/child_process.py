"""One child, as the parent controls it: its channel, output and end. On the background loop.

A child is hostile once it has code: whatever it sends, omits or closes only ends its own run.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Final

from ferrule.sandbox.python.parent.channel import ChildChannel
from ferrule.sandbox.python.parent.output import ChildOutput

START_SECONDS: Final = 20.0
"""To contain a child; a zygote that takes longer is stuck."""
_END_SECONDS: Final = 5.0
"""To reap a killed child; a zygote that takes longer is stuck."""


class ZygoteLost(Exception):  # noqa: N818 - what happened
    """The zygote has ended, and with it every child."""


class ChildNotStarted(Exception):  # noqa: N818 - what happened
    """A child couldn't be created or contained; nothing was run."""


@dataclass(frozen=True, slots=True)
class ChildExit:
    """How a child ended, as the zygote saw it: exit status (or minus a signal), CPU seconds, peak memory in bytes."""

    status: int
    cpu: float
    peak_memory: int


class ChildProcess:
    """One child, from the request for it until it is reaped."""

    def __init__(self, channel: ChildChannel, output: ChildOutput) -> None:
        self._loop = asyncio.get_running_loop()
        self.channel = channel
        self._handle: int | None = None
        self._is_killed = False
        self.output = output
        self.pid = 0
        self.started: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[ChildExit] = self._loop.create_future()
        # Retrieves exceptions that are never awaited, so that asyncio doesn't log them.
        for future in (self.started, self.ended):
            future.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def wait_until_confined(self) -> int:
        """Wait until the child is contained and waits for code, and return its pid.

        Raises `ZygoteLost`, `ChildNotStarted` with the reason, or `TimeoutError` if the zygote is stuck.
        """
        async with asyncio.timeout(START_SECONDS):
            await asyncio.shield(self.started)
            greeting = await self.channel.receive_greeting()
            if greeting is None:
                ended = await asyncio.shield(self.ended)
                raise ChildNotStarted(f"its process ended with status {ended.status} before it was contained")
        message, self.pid = greeting
        if message != {"confined": True}:
            raise ChildNotStarted(str(message.get("failed")))
        return self.pid

    def begin(self) -> None:
        """Called when its run begins. Does nothing here: the kernel enforces the limits."""

    def kill(self) -> None:
        """Kill the process, or as soon as the zygote announces it."""
        self._is_killed = True
        if self._handle is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    async def wait_until_gone(self) -> ChildExit:
        """Kill the process and wait until it is reaped. Raises `ZygoteLost`, `TimeoutError` if the zygote is stuck."""
        self.kill()
        async with asyncio.timeout(_END_SECONDS):
            return await asyncio.shield(self.ended)

    def close(self) -> None:
        """Kill the process and close this end. Can be called again."""
        self.kill()
        self.output.close()
        self.channel.close()

    # Called with the zygote's messages.

    def on_started(self, handle: int) -> None:
        """Handle the start of the process; takes ownership of its descriptor `handle`."""
        self._handle = handle
        if not self.started.done():
            self.started.set_result(None)
        if self._is_killed:
            self.kill()

    def on_ended(self, how: ChildExit | ZygoteLost | ChildNotStarted) -> None:
        """Handle the end of the process: reaped, never started, or lost with its zygote."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        if isinstance(how, ChildExit):
            self.ended.set_result(how)
            return
        for future in (self.started, self.ended):
            if not future.done():
                future.set_exception(how)


def open_ends(ours: ExitStack, theirs: ExitStack, output_limit: int) -> tuple[ChildChannel, ChildOutput, list[int]]:
    """Open the parent's ends, which `ours` closes, and the child's descriptors, which `theirs` closes.

    Raises `OSError` if no descriptors are left; the two stacks close what was opened until then.
    """
    end, other = socket.socketpair()
    ours.callback(end.close)
    theirs.callback(other.close)
    output = ChildOutput(output_limit)
    ours.callback(output.close)
    descriptors = [other.fileno()]
    for _ in ("stdout", "stderr"):
        descriptors.append(output.open())
        theirs.callback(os.close, descriptors[-1])
    return ChildChannel(end), output, descriptors
