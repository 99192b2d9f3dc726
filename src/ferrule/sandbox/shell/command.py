"""One running command: collects its output, enforces its timeout and reports how it ended."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.shell.output import OutputCapture
from ferrule.sandbox.shell.process import ContainedProcess, ShellExit

__all__ = ["Command", "CommandResult", "EndReason", "OutputPipe"]

EndReason = Literal["exit", "signal", "timeout", "output", "killed"]
"""`exit`: by itself. `signal`: killed by a signal from within or from the kernel. `timeout`, `output`: ended by the
sandbox for exceeding that limit. `killed`: ended by the sandbox on request."""

_PIPE_SIZE = 1024 * 1024
_REPORTED_AFTER, _REPORTED_EVERY = 1.0, 0.5
"""When a command's output is first reported while it runs, and how often then, in seconds."""
_REPORTED_BYTES = 1000


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


class OutputPipe:
    """The reading end of a pipe that a command writes to, drained into a capture."""

    def __init__(self, capture: OutputCapture) -> None:
        self.capture = capture
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)
        # For fewer, longer reads; only on Linux, and within the user's limit for pipes.
        with suppress(OSError, AttributeError):
            fcntl.fcntl(self._reading, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        self._when_over: Callable[[], None] | None = None
        self._is_open = True

    def begin(self, when_over: Callable[[], None]) -> None:
        """Start reading, once the command has its copy of the writing end; `when_over` is called past the limit."""
        os.close(self.writing)
        self.writing = -1
        self._when_over = when_over
        asyncio.get_running_loop().add_reader(self._reading, self._read)

    def _read(self) -> bool:
        """Take one chunk; False if there is none now, or at the end."""
        try:
            more = self.capture.take(self._reading)
        except BlockingIOError:
            return False
        if not more:
            self._stop()
            if self.capture.is_over and self._when_over is not None:
                self._when_over()
        return more

    def _stop(self) -> None:
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_reader(self._reading)

    def drain(self) -> None:
        """Take what is left in the pipe, without waiting for processes that hold its other end."""
        while self._is_open and self._read():
            pass

    def close(self) -> None:
        """Take what is left and close the descriptors."""
        self.drain()
        self._stop()
        self._when_over = None  # breaks a reference cycle, which would keep the output until garbage collection
        os.close(self._reading)
        if self.writing >= 0:
            os.close(self.writing)
        self.capture.close()


class Command:
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
        ended = asyncio.create_task(self._contained.wait_until_ended())
        try:
            await self._wait_until_ended_or_stopped(ended)
            if not ended.done() and self._grace:
                self._contained.terminate()
                await self._wait_out_grace(ended)
            self._contained.kill()
            ending = await ended
        except SandboxUnavailable as error:
            self._output.drain()
            raise SandboxUnavailable(f"{error}: {self.capture.render().strip()}") from error
        finally:
            self._contained.kill()
            await asyncio.wait([ended])
            for stream in (self._output, self._errors):
                if stream is not None:
                    stream.close()
            self._contained.close()
        return self._make_result(ending)

    async def _wait_until_ended_or_stopped(self, ended: asyncio.Task[ShellExit]) -> None:
        stopped = asyncio.create_task(self._stopping.wait())
        finished, _ = await asyncio.wait([ended, stopped], timeout=self._timeout, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not finished:
            self.stop("timeout")

    async def _wait_out_grace(self, ended: asyncio.Task[ShellExit]) -> None:
        """Wait for the grace period, which a second stop `at_once` cuts short."""
        over = time.monotonic() + self._grace
        while not ended.done() and self._grace and time.monotonic() < over:
            await asyncio.wait([ended], timeout=min(0.05, self._grace))

    def _make_result(self, ending: ShellExit) -> CommandResult:
        errors = self._errors.capture if self._errors is not None else None
        return CommandResult(
            exit_code=ending.exit_code,
            output=self.capture.render(),
            ended=self._reason or ("signal" if ending.signal is not None else "exit"),
            errors=errors.render() if errors is not None else None,
            signal=ending.signal,
            is_cut=self.capture.is_cut or (errors is not None and errors.is_cut),
            spilled=self.capture.spilled,
            spilled_errors=errors.spilled if errors is not None else None,
            seconds=time.monotonic() - self._began,
        )
