"""One command, from the request to its result: its processes, its output, its timeout and how it ended."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ferrule._util.background import run_on_background_loop
from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.shell.access_plan import Mode
from ferrule.sandbox.shell.host_rules import HostRules
from ferrule.sandbox.shell.streams import OutputCapture, OutputPipe

__all__ = [
    "BackgroundCommand",
    "CommandRequest",
    "CommandResult",
    "ContainedProcess",
    "EndReason",
    "RunningCommand",
]

EndReason = Literal["exit", "signal", "timeout", "output", "killed"]
"""`exit`: by itself. `signal`: killed by a signal from within or from the kernel. `timeout`, `output`: ended by the
sandbox for exceeding that limit. `killed`: ended by the sandbox on request."""

_REPORTED_AFTER, _REPORTED_EVERY = 1.0, 0.5
"""When a command's output is first reported while it runs, and how often then, in seconds."""
_REPORTED_BYTES = 1000
_SIGNALLED, _MAX_SIGNAL = 128, 64


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """What is to run, as its caller asked for it; see `ShellSandbox.run`."""

    command: str
    folder: str | None = None
    input: str | bytes | None = None
    writable: tuple[str, ...] = ()
    separate: bool = False
    timeout: float | None = None
    mode: Mode | None = None
    hosts: HostRules | None = None
    """What it may reach, None for what the sandbox's settings say."""
    on_stopped: Callable[[CommandResult], None] | None = None
    watch: Callable[[str], None] | None = None
    environment: dict[str, str] = field(default_factory=dict, repr=False)
    """Its variables, which the sandbox sets."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command that has ended."""

    exit_code: int | None
    """The shell's status, with 128 + N for a program killed by signal N; None if it has none."""
    output: str
    """Standard output and errors interleaved, or only standard output if they were requested separately."""
    ended: EndReason
    errors: str | None = None
    """Standard error, if it was requested separately."""
    signal: int | None = None
    """The signal that ended it. A program that exits with 128 + N by itself looks the same."""
    is_cut: bool = False
    """Whether the middle of the output was left out."""
    spilled: Path | None = None
    """The file with the whole output, up to its limit; deleted with the sandbox."""
    spilled_errors: Path | None = None
    seconds: float = 0.0
    refused: tuple[str, ...] = ()
    """Hosts, with ports, that it requested from the proxy and no rule allows; the first hundred."""
    refused_left_out: int = 0
    """How many more requests were refused, for hosts not in `refused`."""
    appeared: tuple[str, ...] = ()
    """Protected paths that didn't exist and that the command created: inspect them before anything trusts them."""
    repositories: tuple[str, ...] = ()
    """Sentences on repositories in which git would have run programs or taken settings that the command left there,
    and what was done about it."""
    unsearched: tuple[str, ...] = ()
    """Workspace folders that were hidden entirely, since they hold too many folders to search for secrets."""
    hint: str = ""
    """Why it failed and what to do instead, if it tried to write what is protected or to use a hidden file."""


@dataclass(frozen=True, slots=True)
class ContainedProcess:
    """A process tree that ends as a whole, and how the back end that started it follows and ends it."""

    wait: Callable[[], Coroutine[Any, Any, int]]
    """Wait for the command, end whatever it left behind and return its status, or the negative signal that ended it.
    Raises `SandboxUnavailable` if none ran."""
    send_signal: Callable[[int], None]
    """Send SIGTERM to its group, or SIGKILL to the whole tree."""
    close: Callable[[], None]
    """Close its descriptors."""


class RunningCommand:
    """A command from its start to its `CommandResult`; everything in it ends with its shell."""

    task: asyncio.Task[CommandResult]
    """Set by the starter: the task that follows it to its end."""

    def __init__(
        self,
        contained: ContainedProcess,
        output: OutputPipe,
        errors: OutputPipe | None,
        timeout: float | None,
        grace: float,
    ) -> None:
        self._contained, self._output, self._errors = contained, output, errors
        self._timeout, self._grace = timeout, grace
        self._reason: EndReason | None = None
        self._stopping = asyncio.Event()
        self._began = time.monotonic()

    @property
    def capture(self) -> OutputCapture:
        """Its output so far."""
        return self._output.capture

    async def report_output(self, watch: Callable[[str], None]) -> None:
        """Call `watch` with the last lines of its output, errors among them, whenever there is more. Never ends."""
        captures = [stream.capture for stream in (self._output, self._errors) if stream is not None]
        seen = [0 for _ in captures]
        await asyncio.sleep(_REPORTED_AFTER)
        while True:
            totals = [capture.total for capture in captures]
            if totals != seen:
                # What was written last stands last.
                grown = sorted(range(len(captures)), key=lambda at: totals[at] != seen[at])
                watch("\n".join(filter(None, (captures[at].read_tail(_REPORTED_BYTES) for at in grown))))
            seen = totals
            await asyncio.sleep(_REPORTED_EVERY)

    def stop(self, reason: EndReason, *, at_once: bool = False) -> None:
        """End it: SIGTERM to its group, SIGKILL to everything after the grace period, or at once."""
        if self._reason is None:
            self._reason = reason
        if at_once:
            self._grace = 0.0
        self._stopping.set()

    async def wait(self) -> CommandResult:
        """Wait until nothing of it is left; returns its result. Raises `SandboxUnavailable` if it wasn't contained."""
        ended = asyncio.create_task(self._contained.wait())
        try:
            await self._wait_until_ended_or_stopped(ended)
            if not ended.done() and self._grace:
                self._contained.send_signal(signal.SIGTERM)
                await self._wait_out_grace(ended)
            self._contained.send_signal(signal.SIGKILL)
            status = await ended
        except SandboxUnavailable as error:
            self._output.drain()
            raise SandboxUnavailable(f"{error}: {self.capture.render().strip()}") from error
        finally:
            self._contained.send_signal(signal.SIGKILL)
            await asyncio.wait([ended])
            for stream in (self._output, self._errors):
                if stream is not None:
                    stream.close()
            self._contained.close()
        return self._make_result(status)

    async def _wait_until_ended_or_stopped(self, ended: asyncio.Task[int]) -> None:
        stopped = asyncio.create_task(self._stopping.wait())
        finished, _ = await asyncio.wait([ended, stopped], timeout=self._timeout, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not finished:
            self.stop("timeout")

    async def _wait_out_grace(self, ended: asyncio.Task[int]) -> None:
        """Wait for the grace period, which a second stop `at_once` cuts short."""
        over = time.monotonic() + self._grace
        while not ended.done() and self._grace and time.monotonic() < over:
            await asyncio.wait([ended], timeout=min(0.05, self._grace))

    def _make_result(self, status: int) -> CommandResult:
        # A shell reports the signal N that ended its program as 128 + N.
        number = -status if status < 0 else status - _SIGNALLED
        ended_by = number if 0 < number <= _MAX_SIGNAL else None
        errors = self._errors.capture if self._errors is not None else None
        return CommandResult(
            exit_code=status if status >= 0 else None,
            output=self.capture.render(),
            ended=self._reason or ("signal" if ended_by is not None else "exit"),
            errors=errors.render() if errors is not None else None,
            signal=ended_by,
            is_cut=self.capture.is_cut or (errors is not None and errors.is_cut),
            spilled=self.capture.spilled,
            spilled_errors=errors.spilled if errors is not None else None,
            seconds=time.monotonic() - self._began,
        )


class BackgroundCommand:
    """A handle on a background command, which ends with its sandbox at the latest.

    If the sandbox could not be set up, or the supervising process was lost, its status is `failed` and reading its
    result raises `SandboxUnavailable`.
    """

    def __init__(self, command: str, running: RunningCommand) -> None:
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
