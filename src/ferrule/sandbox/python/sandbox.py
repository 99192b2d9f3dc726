"""`PythonSandbox`, which runs model-written Python in contained children of a warm zygote."""

from __future__ import annotations

import asyncio
import math
import os
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

from ferrule._util.background import run_in_thread, run_on_background_loop, run_synchronously, submit_to_background
from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.checks import CheckProfile, resolve_profile
from ferrule.sandbox.containment import RunLimits
from ferrule.sandbox.mounted_files import MountedFile
from ferrule.sandbox.python.mounts import Mount, read_mounts, resolve_mounts
from ferrule.sandbox.python.parent.execute import execute_once, run_with_checks
from ferrule.sandbox.python.parent.mounted_pools import MountedPools
from ferrule.sandbox.python.parent.request import MAX_TIMEOUT, check_memory, check_timeout, encode_request_in_thread
from ferrule.sandbox.python.parent.session_process import SessionProcess
from ferrule.sandbox.python.parent.zygote_pool import ZygotePool, ZygoteSettings
from ferrule.sandbox.python.result import MB, PythonResult
from ferrule.sandbox.python.session import SandboxSession
from ferrule.sandbox.tiers import Tier

PACKAGES: Final = ("numpy", "pandas")
"""What a zygote loads by default."""
_NAME: Final = "<run>"
_CORES: Final = os.cpu_count() or 1
_CPU_SECONDS: Final = 3600
"""Of a run, over all threads. Only a backstop: the parent enforces the wall-clock timeout."""


class PythonSandbox:
    """Runs model-written Python, contained by the operating system to the extent of its tier.

    `packages` are loaded once, before any run, if they are installed. `readable` are further paths that runs may read
    (if the program is root, runs are not, so such paths must be world-readable). `tier=None` is the best that this
    machine has; `"none"` contains nothing, and only the user may choose it, never anything that a model controls.
    `checks` is the profile of the advice attached to each run; `strict` refuses code with findings. `max_output` is in
    bytes, for standard output and error together; a run that writes more is ended. `memory` is what a run may use
    besides the loaded packages, in bytes. At most `parallel` runs execute at a time, the others wait.

    Creating it starts nothing. Can be used from any event loop of the process that created it, and without one.
    """

    def __init__(
        self,
        *,
        packages: Iterable[str] = PACKAGES,
        readable: Iterable[Path | str] = (),
        tier: Tier | str | None = None,
        checks: CheckProfile | Literal["seed"] = "advise",
        max_output: int = MB,
        memory: int = 512 * MB,
        parallel: int = 16,
    ) -> None:
        self.checks = resolve_profile(checks)
        paths = tuple(str(Path(path).resolve()) for path in readable)
        self._settings = ZygoteSettings(tuple(packages), paths, None if tier is None else Tier(tier), max_output)
        self._limits = RunLimits(memory=check_memory(memory), cpu=_CPU_SECONDS)
        self._parallel = parallel
        if min(max_output, parallel) < 1:
            raise SandboxInputError(f"max_output and parallel must be at least 1, not {max_output} and {parallel}")
        self._process = os.getpid()
        self._pool: ZygotePool | None = None
        self._mounted = MountedPools(self._settings, self._limits)
        self._slots: asyncio.Semaphore | None = None

    async def run(
        self,
        code: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        timeout: float = 10.0,
        memory: int | None = None,
        mounts: Sequence[Mount | Path | str] = (),
    ) -> PythonResult:
        """Run `code` in a fresh contained process; the value is that of its last expression.

        `inputs` named like variables are variables (JSON values, bytes, dates, arrays, data frames …); those with
        other names (`data.csv`) are files in the run's folder, given as bytes, text or a `Path` to read. `timeout` is
        in seconds of wall clock, `memory` in bytes besides the loaded packages (None: the sandbox's own limit).
        `mounts` are files, as paths or `Mount`s, that the code reads in place, without a copy; the first run with a new
        set of files takes as long as a start.

        An error in the code is the result's `error`. Raises `SandboxInputError` for invalid code, inputs or limits, and
        `SandboxUnavailable` if the code can't be contained; nothing has run then.
        """
        seconds = check_timeout(timeout)
        limits = self._make_limits(memory)
        if seconds * _CORES > limits.cpu:
            limits = replace(limits, cpu=math.ceil(seconds) * _CORES)
        request = await encode_request_in_thread(code, inputs, _NAME)
        files = await self._resolve(mounts, inputs)
        return await run_on_background_loop(
            run_with_checks(code, self.checks, seconds, partial(self._run, request, limits, seconds, files))
        )

    def run_sync(
        self,
        code: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        timeout: float = 10.0,
        memory: int | None = None,
        mounts: Sequence[Mount | Path | str] = (),
    ) -> PythonResult:
        """`run`, for programs without an event loop."""
        return run_synchronously(self.run(code, inputs, timeout=timeout, memory=memory, mounts=mounts))

    async def session(
        self, *, memory: int | None = None, mounts: Sequence[Mount | Path | str] = (), checkpoints: bool = True
    ) -> SandboxSession:
        """Start a session: runs that share their variables, and can all read `mounts`.

        Without `checkpoints` nothing is saved before each run, which takes less time and memory: a run that is ended
        ends the session, and there is no state before the last run to roll back to.

        Raises `SandboxUnavailable`, always in the seatbelt tier, and `SandboxInputError` for the memory or a mount.
        """
        # A session's CPU limit covers all of its runs.
        limits = replace(self._make_limits(memory), cpu=math.ceil(MAX_TIMEOUT) * _CORES)
        process = await run_on_background_loop(self._start_session(limits, await self._resolve(mounts, None)))
        process.saves_runs = checkpoints
        return SandboxSession(process, self.checks, self._run_in_slot)

    async def start(self) -> None:
        """Start the zygote, as the first run would. Raises `SandboxUnavailable` if that fails."""
        await run_on_background_loop(self._start())

    async def aclose(self) -> None:
        """End the zygote and all runs. Can be called again."""
        await run_on_background_loop(self._close())

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
        """The tier that was given, or that was detected at the start; None before that."""
        return self._settings.tier or (self._pool.tier if self._pool else None)

    @property
    def readable(self) -> tuple[str, ...]:
        """The further paths that runs may read."""
        return self._settings.readable

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that were given; after the start, those of them that are loaded."""
        ready = self._pool.ready if self._pool else None
        return ready.packages if ready else self._settings.packages

    @property
    def canary_results(self) -> Mapping[str, str]:
        """The result of each canary at the start, by name; empty before that, and without a tier."""
        ready = self._pool.ready if self._pool else None
        return ready.canary_results if ready else {}

    def _make_limits(self, memory: int | None) -> RunLimits:
        return self._limits if memory is None else replace(self._limits, memory=check_memory(memory))

    async def _resolve(
        self, mounts: Sequence[Mount | Path | str], inputs: Mapping[str, Any] | None
    ) -> tuple[MountedFile, ...]:
        return await run_in_thread(resolve_mounts, read_mounts(mounts), tuple(inputs or ())) if mounts else ()

    # On the background loop.

    async def _run(
        self, request: bytes, limits: RunLimits, seconds: float, files: tuple[MountedFile, ...]
    ) -> PythonResult:
        pool = self._get_pool()
        assert self._slots is not None
        async with self._slots:
            if not files:
                return await execute_once(await pool.acquire_child(limits), request, seconds)
            with self._mounted.use(files) as mounted:
                return await execute_once(await mounted.acquire_child(limits), request, seconds)

    async def _start_session(self, limits: RunLimits, files: tuple[MountedFile, ...]) -> SessionProcess:
        pool = self._get_pool()
        if not files:
            return await pool.start_session(limits)
        with ExitStack() as releasing:
            process = await releasing.enter_context(self._mounted.use(files)).start_session(limits)
            process.lineage.on_end = releasing.pop_all().close
        return process

    async def _run_in_slot(self, work: Callable[[], Awaitable[PythonResult]]) -> PythonResult:
        self._get_pool()
        assert self._slots is not None
        async with self._slots:
            return await work()

    async def _start(self) -> None:
        await self._get_pool().get_zygote()

    async def _close(self) -> None:
        if self._process == os.getpid():
            await self._get_pool().aclose()
            await self._mounted.aclose()

    def _get_pool(self) -> ZygotePool:
        if self._process != os.getpid():
            raise SandboxUnavailable("this sandbox belongs to the parent process of this fork: create another one")
        if self._pool is None:
            self._slots = asyncio.Semaphore(self._parallel)
            self._pool = ZygotePool(self._settings, self._limits)
            # For programs that don't close it; at the program's exit it ends anyway.
            weakref.finalize(self, _close_forgotten, self._pool, self._mounted).atexit = False
        return self._pool


def _close_forgotten(pool: ZygotePool, mounted: MountedPools) -> None:
    submit_to_background(pool.aclose())
    submit_to_background(mounted.aclose())
