"""One running command: its output taken as it comes, its time watched, its end reported as what it was."""

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
"""`exit`: by itself. `signal`: something in it, or the kernel, ended it by a signal. `timeout`, `output`: we ended it,
because it took longer or wrote more than it may. `killed`: we ended it, because we were asked to."""

_PIPE_SIZE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A command that has ended."""

    exit_code: int | None
    """The shell's status, in which 128 + N stands for a program that signal N ended; None where it has none."""
    output: str
    """Standard output and errors as they came, or standard output alone where they were asked for apart."""
    ended: EndReason
    errors: str | None = None
    """Standard errors, where they were asked for apart."""
    signal: int | None = None
    """The number of the signal that ended it. A program may also exit with 128 + N by itself; that reads the same."""
    is_cut: bool = False
    """Whether output was left out of the middle."""
    spilled: Path | None = None
    """The file that holds the whole output, up to its limit; it goes with the sandbox."""
    spilled_errors: Path | None = None
    seconds: float = 0.0
    refused: tuple[str, ...] = ()
    """Hosts, with their ports, that it asked the proxy for and that no rule allows; the first hundred of them."""
    refused_left_out: int = 0
    """How many more requests of it were refused, for hosts that are not in `refused`."""
    appeared: tuple[str, ...] = ()
    """Protected places that didn't exist and that the command made: look at them before anything believes them."""
    unsearched: tuple[str, ...] = ()
    """Folders of the workspace that were hidden from it as a whole: too many to be searched for secrets lie in them."""
    hint: str = ""
    """Why it failed and what to do instead, where it tried to write what ferrule itself is started from."""


class OutputPipe:
    """The reading end of a pipe that a command writes to, emptied into a capture."""

    def __init__(self, capture: OutputCapture) -> None:
        self.capture = capture
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)
        # Fewer and longer reads, where the user's pipes may still be long, and where Linux is.
        with suppress(OSError, AttributeError):
            fcntl.fcntl(self._reading, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        self._when_over: Callable[[], None] | None = None
        self._is_open = True

    def begin(self, when_over: Callable[[], None]) -> None:
        """The command has its own copy of the writing end: read, and call back when more came than may be kept."""
        os.close(self.writing)
        self.writing = -1
        self._when_over = when_over
        asyncio.get_running_loop().add_reader(self._reading, self._read)

    def _read(self) -> bool:
        """Take one piece; False where there is none for now, or never again."""
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
        """Take what is left in the pipe: whoever still holds its other end is not waited for."""
        while self._is_open and self._read():
            pass

    def close(self) -> None:
        """Take what is left, and give the descriptors back."""
        self.drain()
        self._stop()
        self._when_over = None  # which leads back to us: what was written would wait for the collector
        os.close(self._reading)
        if self.writing >= 0:
            os.close(self.writing)
        self.capture.close()


class Command:
    """A command from its start to its `CommandResult`; everything in it ends with its shell."""

    task: asyncio.Task[CommandResult]
    """Set by whoever starts it: what follows it to its end."""

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

    def stop(self, reason: EndReason, *, at_once: bool = False) -> None:
        """End it: SIGTERM to its group, SIGKILL to all of it after the grace, or at once."""
        if self._reason is None:
            self._reason = reason
        if at_once:
            self._grace = 0.0
        self._stopping.set()

    async def wait(self) -> CommandResult:
        """Its end; by then nothing of it is left. Raises `SandboxUnavailable` where it could not be contained."""
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
        """Wait for the grace, which a second and harder stop cuts short."""
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
