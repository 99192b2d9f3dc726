"""The front: `PythonSandbox`, which runs model-written Python in contained children of a warm zygote."""

from __future__ import annotations

import asyncio
import math
import os
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from ferrule.background import on_background, run_synchronously
from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.checks import CheckProfile, check
from ferrule.sandbox.contain import Limits
from ferrule.sandbox.loops import in_background
from ferrule.sandbox.python.conversing import run_once
from ferrule.sandbox.python.pool import Pool, Settings
from ferrule.sandbox.python.requests import MAX_TIMEOUT, check_memory, check_timeout, request
from ferrule.sandbox.python.run import MB, Run, refusal
from ferrule.sandbox.python.session import Session
from ferrule.sandbox.python.session_process import SessionProcess
from ferrule.sandbox.tier import Tier

PACKAGES: Final = ("numpy", "pandas")
"""What a zygote loads unless it is told otherwise."""
_NAME: Final = "<run>"
_CORES: Final = os.cpu_count() or 1
_CPU_SECONDS: Final = 3600
"""Of a run, over all threads: what ends runs is their wall clock, which the parent watches."""


class PythonSandbox:
    """Runs model-written Python, contained by the operating system as far as its tier says.

    `packages` are loaded once, before any run, where they are installed. `readable` are further paths that runs may
    read (where the program is root, runs are not: such paths have to be readable by everybody). `tier` None is the
    best that this machine has, and `"none"` contains nothing: that is the user's to say, and nothing that a model
    controls may. `checks` is the profile of the advice that goes with each run; under `seed` what is found refuses it.
    `max_output` is in bytes, for standard output and error together; a run that writes more is ended. `memory` is what
    a run may use beyond the loaded packages, in bytes. At most `parallel` runs go at a time, the others wait.

    Made without starting anything. Can be used from any event loop of the process that made it, and without one.
    """

    def __init__(
        self,
        *,
        packages: Iterable[str] = PACKAGES,
        readable: Iterable[Path | str] = (),
        tier: Tier | str | None = None,
        checks: CheckProfile = "advise",
        max_output: int = MB,
        memory: int = 512 * MB,
        parallel: int = 16,
    ) -> None:
        self.checks = checks
        paths = tuple(str(Path(path).resolve()) for path in readable)
        self._settings = Settings(tuple(packages), paths, None if tier is None else Tier(tier), max_output)
        self._limits = Limits(memory=check_memory(memory), cpu=_CPU_SECONDS)
        self._parallel = parallel
        if min(max_output, parallel) < 1:
            raise SandboxInputError(f"max_output and parallel are 1 at least, not {max_output} and {parallel}")
        self._process = os.getpid()
        self._pool: Pool | None = None
        self._places: asyncio.Semaphore | None = None
        check("", profile=checks)

    async def run(
        self,
        code: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        timeout: float = 10.0,
        memory: int | None = None,
    ) -> Run:
        """Run `code` in a fresh contained process; the value is that of its last expression.

        `inputs` with a variable's name are variables (what JSON has, bytes, dates, arrays, data frames …), those with
        another name (`data.csv`) are files in the run's folder, given as bytes, text or a `Path` to read. `timeout` is
        in seconds of wall clock, `memory` in bytes beyond what the loaded packages take (None: the sandbox's own).

        What goes wrong in the code is the `error` of what this returns. Raises `SandboxInputError` for code, inputs or
        limits that can't be used, and `SandboxUnavailable` where it can't be contained; nothing has run then.
        """
        seconds = check_timeout(timeout)
        limits = self._limits_with(memory)
        if seconds * _CORES > limits.cpu:
            limits = replace(limits, cpu=math.ceil(seconds) * _CORES)
        asked = request(code, inputs, _NAME)
        findings = check(code, profile=self.checks)
        refused = refusal(findings)
        if refused is not None:
            return refused
        return replace(await in_background(self._run(asked, limits, seconds)), findings=findings)

    def run_sync(
        self,
        code: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        timeout: float = 10.0,
        memory: int | None = None,
    ) -> Run:
        """`run`, for programs without an event loop."""
        return run_synchronously(self.run(code, inputs, timeout=timeout, memory=memory))

    async def session(self, *, memory: int | None = None) -> Session:
        """Runs that share their variables. Raises `SandboxUnavailable`, and `SandboxInputError` for the memory.

        The seatbelt tier has none, and raises.
        """
        # A session's processor time is that of all its runs.
        limits = replace(self._limits_with(memory), cpu=math.ceil(MAX_TIMEOUT) * _CORES)
        process = await in_background(self._session(limits))
        return Session(process, self.checks, self._in_place)

    async def start(self) -> None:
        """Start the zygote, which the first run does otherwise. Raises `SandboxUnavailable` where it can't be."""
        await in_background(self._start())

    async def aclose(self) -> None:
        """End the zygote and whatever runs. Can be called again."""
        await in_background(self._close())

    def close(self) -> None:
        """`aclose`, for programs without an event loop."""
        run_synchronously(self.aclose())

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def tier(self) -> Tier | None:
        """The tier that was asked for, or that was found at the start; None before that."""
        return self._settings.tier or (self._pool.tier if self._pool else None)

    @property
    def readable(self) -> tuple[str, ...]:
        """The further paths that runs may read."""
        return self._settings.readable

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that were asked for and, from the start on, those of them that are loaded."""
        ready = self._pool.ready if self._pool else None
        return ready.packages if ready else self._settings.packages

    @property
    def canaries(self) -> Mapping[str, str]:
        """What each canary of the start came to, by its name; empty before that, and where there is no tier."""
        ready = self._pool.ready if self._pool else None
        return ready.canaries if ready else {}

    def _limits_with(self, memory: int | None) -> Limits:
        return self._limits if memory is None else replace(self._limits, memory=check_memory(memory))

    # On the background loop.

    async def _run(self, asked: bytes, limits: Limits, seconds: float) -> Run:
        pool = self._on_loop()
        assert self._places is not None
        async with self._places:
            return await run_once(await pool.child(limits), asked, seconds)

    async def _session(self, limits: Limits) -> SessionProcess:
        return await self._on_loop().session(limits)

    async def _in_place(self, work: Callable[[], Awaitable[Run]]) -> Run:
        self._on_loop()
        assert self._places is not None
        async with self._places:
            return await work()

    async def _start(self) -> None:
        await self._on_loop().zygote()

    async def _close(self) -> None:
        if self._process == os.getpid():
            await self._on_loop().aclose()

    def _on_loop(self) -> Pool:
        if self._process != os.getpid():
            raise SandboxUnavailable("this sandbox belongs to the process that this one was forked from: make another")
        if self._pool is None:
            self._places = asyncio.Semaphore(self._parallel)
            self._pool = Pool(self._settings, self._limits)
            # For a program that forgets to close it; the end of the program ends it anyway.
            weakref.finalize(self, _close_forgotten, self._pool).atexit = False
        return self._pool


def _close_forgotten(pool: Pool) -> None:
    on_background(pool.aclose())
