"""Sessions: runs that share their variables, can be forked, and rolled back."""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self

from ferrule._util.background import run_synchronously, submit_to_background
from ferrule.sandbox.checks import CheckProfile
from ferrule.sandbox.python.parent.execute import run_with_checks
from ferrule.sandbox.python.parent.request import check_timeout, encode_request_in_thread
from ferrule.sandbox.python.parent.session_process import SessionProcess
from ferrule.sandbox.python.result import PythonResult
from ferrule.sandbox.scheduling import run_on_background_loop


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A state of a session that it can be rolled back to, any number of times."""

    number: int


class SandboxSession:
    """Runs that share their variables and their folder, contained as any run is. Made by `PythonSandbox.session`.

    Full tier: a run that is ended (a timeout, too much output, a crash) leaves the session as it was before that run;
    between runs nothing of a session runs. A session and its forks are one security domain: they have separate
    processes, variables and folders, and are not kept from reading each other's files. In the other tiers a session
    can't be forked or rolled back, and such a run ends it.
    """

    def __init__(
        self,
        process: SessionProcess,
        checks: CheckProfile,
        place: Callable[[Callable[[], Awaitable[PythonResult]]], Coroutine[Any, Any, PythonResult]],
    ) -> None:
        self._process = process
        self._checks = checks
        self._run_in_slot = place
        self._runs = 0
        # For a program that forgets to close it; the end of the program ends it anyway.
        weakref.finalize(self, _close_forgotten, process).atexit = False

    async def run(self, code: str, inputs: Mapping[str, Any] | None = None, *, timeout: float = 10.0) -> PythonResult:
        """`PythonSandbox.run`, in this session. Raises the same, and `SandboxUnavailable` where it is over."""
        seconds = check_timeout(timeout)
        self._runs += 1
        asked = await encode_request_in_thread(code, inputs, f"<run {self._runs}>")
        # The work begins where its place is free: cancelled before that, there is no coroutine that nobody awaited.
        work = partial(self._run_in_slot, partial(self._process.run, asked, seconds))
        return await run_on_background_loop(run_with_checks(code, self._checks, seconds, work))

    def run_sync(self, code: str, inputs: Mapping[str, Any] | None = None, *, timeout: float = 10.0) -> PythonResult:
        """`run`, for programs without an event loop."""
        return run_synchronously(self.run(code, inputs, timeout=timeout))

    async def checkpoint(self) -> Checkpoint:
        """Keep the present state, variables and files. Raises `SandboxUnavailable` where that can't be."""
        return Checkpoint(await run_on_background_loop(self._process.checkpoint()))

    async def rollback(self, to: Checkpoint | None = None) -> None:
        """Go back to a checkpoint, or to before the last run that was made (once, until there is another).

        Raises `SandboxInputError` where there is no such state, `SandboxUnavailable` where this session can't.
        """
        await run_on_background_loop(self._process.rollback(to.number if to else None))

    async def fork(self) -> SandboxSession:
        """Another session that goes on from the present state; it has its own checkpoints, and none yet.

        Raises `SandboxUnavailable` where this session can't.
        """
        fork = await run_on_background_loop(self._process.fork())
        return SandboxSession(fork, self._checks, self._run_in_slot)

    async def aclose(self) -> None:
        """End the session's process. Its forks go on. Can be called again."""
        await run_on_background_loop(self._process.aclose())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _close_forgotten(process: SessionProcess) -> None:
    submit_to_background(process.aclose())
