"""Commands that a model runs in the background: started by the shell tool, listed, read and stopped by tools here.

They end with their sandbox at the latest. The end of one is announced once, with its exit status, unless the model has
read it already.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from ferrule.builtin_tools.shell_runs import describe_end
from ferrule.errors import FerruleError, ToolFailed, ToolRetry
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.scope import CallScope
from ferrule.toolspec import Annotations

if TYPE_CHECKING:
    from ferrule.builtin_tools.shell_plan import CommandPlan
    from ferrule.sandbox.shell import BackgroundCommand, ShellSandbox

__all__ = ["JobState", "ShellJobs"]

MOST_RUNNING: Final = 16
LONGEST_WAIT: Final = 60.0
_RUNNING: Final = "running"
_PAUSE: Final = 0.05
_MOST_SHOWN: Final = 200
_TAIL_BYTES: Final = 4000
# Stopping a job ends nothing but what the model itself has started.
_HARMLESS: Final = Annotations(read_only=True, destructive=False, idempotent=False, open_world=False)

JobId = Annotated[str, "The job's id, such as job_1"]


@dataclass(frozen=True, slots=True)
class JobState:
    """A background job, and how it is going."""

    name: str
    status: str
    """Such as `running` or `ended: exit status 0`."""
    command: str

    @property
    def is_running(self) -> bool:
        """Whether it ran when this was asked for."""
        return self.status == _RUNNING


@dataclass(slots=True)
class _Job:
    name: str
    running: BackgroundCommand
    is_end_known: bool = False
    """Whether the model has been told how it ended."""

    @property
    def is_running(self) -> bool:
        return self.running.status == _RUNNING

    def describe(self) -> str:
        """Its command on one line, and how it is going; a job that can't be said to have ended well never is."""
        command = " ".join(self.running.command.split())
        shown = command if len(command) <= _MOST_SHOWN else f"{command[:_MOST_SHOWN]}…"
        return f"{self.name}: {self.describe_status()}: {shown}"

    def describe_status(self) -> str:
        if self.is_running:
            return _RUNNING
        try:
            done = self.running.done
        except FerruleError as error:
            return f"failed: {error}"
        return f"ended: {describe_end(done)}" if done is not None else _RUNNING


class ShellJobs:
    """The background commands of one sandbox's users, by ids `job_1`, `job_2`, …"""

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}

    async def start(
        self, sandbox: ShellSandbox, command: str, *, writable: Sequence[str] = (), hosts: Sequence[str] = ()
    ) -> str:
        """Start a command without a time limit and return its id.

        Raises `ToolFailed` if too many are running, and what `ShellSandbox.start` raises.
        """
        running = [job.name for job in self._jobs.values() if job.is_running]
        if len(running) >= MOST_RUNNING:
            raise ToolFailed(f"{len(running)} jobs are running, and more can't; stop one first: {', '.join(running)}")
        name = f"job_{len(self._jobs) + 1}"
        self._jobs[name] = _Job(name, await sandbox.start(command, writable=writable, hosts=hosts))
        return name

    async def start_planned(self, sandbox: ShellSandbox, command: str, plan: CommandPlan) -> str:
        """Start a command of the shell tool and say by which id it can be found. Raises `ToolFailed`."""
        try:
            name = await self.start(sandbox, command, writable=plan.writable, hosts=plan.hosts)
        except FerruleError as error:
            raise ToolFailed(f"not run: {error}") from error
        return f"started as {name}; job_output reads what it writes, stop_job stops it"

    def list_states(self) -> list[JobState]:
        """The jobs so far, for a person to see."""
        return [JobState(job.name, job.describe_status(), job.running.command) for job in self._jobs.values()]

    async def read_tail(self, name: str) -> str:
        """The last lines of a job's output, which the model still reads. Raises `ToolRetry` for an unknown one."""
        return await self._find(name).running.read_tail(_TAIL_BYTES)

    async def stop(self, name: str) -> str:
        """Stop a job, and say how it ended; the model is told. Raises `ToolRetry` for an unknown one."""
        job = self._find(name)
        if job.is_running:
            await job.running.stop()
        return job.describe_status()

    def take_announcements(self) -> list[str]:
        """Which jobs have ended since the last call, and how; see `coding.announcements`."""
        ended = [job for job in self._jobs.values() if not (job.is_running or job.is_end_known)]
        for job in ended:
            job.is_end_known = True
        return [f"The background job {job.describe()}\njob_output has what it wrote." for job in ended]

    async def aclose(self) -> None:
        """Stop all jobs. Can be called again."""
        running = [job.running for job in self._jobs.values() if job.is_running]
        await asyncio.gather(*(each.stop() for each in running), return_exceptions=True)

    def make_tools(self) -> list[Tool]:
        """The tools `job_output`, `stop_job` and `list_jobs`."""

        @tool(annotations=_HARMLESS)
        async def job_output(
            id: JobId,  # noqa: A002 - the model's word
            scope: CallScope,
            wait: Annotated[float, "Seconds to wait for new output or the end, at most 60"] = 0.0,
        ) -> str:
            """Read what a background job has written since it was last read, and whether it is still running."""
            job = self._find(id)
            output = await _read_output(job, _limit_wait(wait, scope))
            job.is_end_known = job.is_end_known or not job.is_running
            return f"{output.rstrip(chr(10)) or '(no new output)'}\n[{job.name} {job.describe_status()}]"

        @tool(annotations=_HARMLESS)
        async def stop_job(id: JobId) -> str:  # noqa: A002
            """Stop a background job and everything that it started, and read the rest of its output."""
            job = self._find(id)
            was_running = job.is_running
            try:
                await job.running.stop()
            except FerruleError as error:
                raise ToolFailed(f"{job.name} had failed: {error}") from error
            job.is_end_known = True
            output = (await job.running.read()).rstrip("\n")
            end = "stopped" if was_running else f"had ended before: {job.describe_status()}"
            return f"{output or '(no new output)'}\n[{job.name} {end}]"

        @tool(annotations=_HARMLESS)
        async def list_jobs() -> str:
            """List the background jobs, and how each is going."""
            return "\n".join(job.describe() for job in self._jobs.values()) or "(no background jobs)"

        return [job_output, stop_job, list_jobs]

    def _find(self, name: str) -> _Job:
        job = self._jobs.get(name)
        if job is None:
            known = f"there are: {', '.join(self._jobs)}" if self._jobs else "none was started"
            raise ToolRetry(f"there is no background job {name!r}; {known}")
        return job


async def _read_output(job: _Job, seconds: float) -> str:
    ends = time.monotonic() + seconds
    while True:
        is_running = job.is_running
        output = await job.running.read()
        if output.strip() or not is_running or time.monotonic() >= ends:
            return output
        await asyncio.sleep(_PAUSE)


def _limit_wait(wait: float, scope: CallScope) -> float:
    if not 0 <= wait <= LONGEST_WAIT:
        raise ToolRetry(f"wait must be a number of seconds from 0 to {LONGEST_WAIT:g}, not {wait:g}")
    return wait if scope.seconds_left is None else min(wait, max(0.0, scope.seconds_left - 1.0))
