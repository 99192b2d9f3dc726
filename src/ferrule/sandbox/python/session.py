"""Sessions: runs that share their variables, and can be forked and rolled back."""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ferrule._util.async_closing import AsyncClosing
from ferrule._util.background import run_on_background_loop, run_synchronously, submit_to_background
from ferrule.sandbox.checks import CheckProfile
from ferrule.sandbox.python.parent.execute import run_with_checks
from ferrule.sandbox.python.parent.request import check_timeout, encode_request_in_thread
from ferrule.sandbox.python.parent.session_process import SessionProcess
from ferrule.sandbox.python.result import PythonResult


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A state of a session that it can be rolled back to, any number of times."""

    number: int


class SandboxSession(AsyncClosing):
    """Runs that share their variables and folder, contained like any run. Created by `PythonSandbox.session`.

    Full tier: after a run that is ended (a timeout, too much output, a crash) the session is as it was before that
    run; between runs all of its processes are stopped. A session and its forks are one security domain: they have
    separate processes, variables and folders, but can read each other's files. In the other tiers a session can't be
    forked or rolled back, and such a run ends it.
    """

    def __init__(
        self,
        process: SessionProcess,
        checks: CheckProfile,
        run_in_slot: Callable[[Callable[[], Awaitable[PythonResult]]], Coroutine[Any, Any, PythonResult]],
    ) -> None:
        self._process = process
        self._checks = checks
        self._run_in_slot = run_in_slot
        self._runs = 0
        # For programs that don't close it; at the program's exit it ends anyway.
        weakref.finalize(self, _close_forgotten, process).atexit = False

    @property
    def can_fork(self) -> bool:
        """Can it be forked and rolled back? Only in the full tier."""
        return self._process.lineage.may_fork

    async def run(self, code: str, inputs: Mapping[str, Any] | None = None, *, timeout: float = 10.0) -> PythonResult:
        """`PythonSandbox.run`, in this session. Raises the same, and `SandboxUnavailable` if the session has ended."""
        seconds = check_timeout(timeout)
        self._runs += 1
        request = await encode_request_in_thread(code, inputs, f"<run {self._runs}>")
        # The coroutine is created once a slot is free: a run that is cancelled earlier leaves none unawaited.
        work = partial(self._run_in_slot, partial(self._process.run, request, seconds))
        return await run_on_background_loop(run_with_checks(code, self._checks, seconds, work))

    def run_sync(self, code: str, inputs: Mapping[str, Any] | None = None, *, timeout: float = 10.0) -> PythonResult:
        """`run`, for programs without an event loop."""
        return run_synchronously(self.run(code, inputs, timeout=timeout))

    async def checkpoint(self) -> Checkpoint:
        """Save the present variables and files. Raises `SandboxUnavailable` if that fails."""
        return Checkpoint(await run_on_background_loop(self._process.checkpoint()))

    async def rollback(self, to: Checkpoint | None = None) -> None:
        """Restore a checkpoint, or the state before the last run (once, until there is another run).

        Raises `SandboxInputError` if there is no such state, `SandboxUnavailable` if this session can't roll back.
        """
        await run_on_background_loop(self._process.rollback(to.number if to else None))

    async def fork(self) -> SandboxSession:
        """Create another session that continues from the present state, without the checkpoints of this one.

        Raises `SandboxUnavailable` if this session can't fork.
        """
        fork = await run_on_background_loop(self._process.fork())
        return SandboxSession(fork, self._checks, self._run_in_slot)

    async def aclose(self) -> None:
        """End the session's process. Its forks continue. Can be called again."""
        await run_on_background_loop(self._process.aclose())


def _close_forgotten(process: SessionProcess) -> None:
    submit_to_background(process.aclose())
