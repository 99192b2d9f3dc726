"""The operations of a session: runs, checkpoints, rollbacks, forks. On the background loop, one at a time.

Before each run the session's process forks a checkpoint, which is kept stopped, so a run that ends the process (by a
timeout or a crash) loses only that run. Between runs the parent stops every process of the session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.python.parent.answer import ChildAnswer
from ferrule.sandbox.python.parent.channel import ChildChannel
from ferrule.sandbox.python.parent.child_process import START_SECONDS, open_ends
from ferrule.sandbox.python.parent.execute import build_result, check_output_limit, read_answer
from ferrule.sandbox.python.parent.lineage import SessionLineage
from ferrule.sandbox.python.parent.output import ChildOutput
from ferrule.sandbox.python.parent.process_handle import ProcessHandle, read_cpu_seconds, read_peak_memory
from ferrule.sandbox.python.result import PythonResult, ResourceUsage, RunError
from ferrule.sandbox.python.wire.frames import WireError, pack_frame

Result = TypeVar("Result")

MAX_CHECKPOINTS: Final = 16


@dataclass(slots=True)
class SessionProcess:
    """The current process of a session, and the checkpoints that it can be rolled back to."""

    lineage: SessionLineage
    channel: ChildChannel
    output: ChildOutput
    current: ProcessHandle | None
    checkpoints: dict[int, ProcessHandle] = field(default_factory=dict)
    before_run: ProcessHandle | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_closed: bool = False
    saves_runs: bool = True
    """Is a checkpoint made before each run?"""
    number: int = 0
    """Of a fork, which names its folder; 0 for a session that isn't one."""
    source: SessionProcess | None = None
    """The session that it was forked from."""
    _count: int = 0
    closed_forks: list[int] = field(default_factory=list)
    """Forks whose folders the next fork removes."""
    _dropped: list[int] = field(default_factory=list)
    _dying: list[ProcessHandle] = field(default_factory=list)

    async def run(self, request: bytes, seconds: float) -> PythonResult:
        """Run a request. Raises `SandboxUnavailable` if the session has ended."""
        async with self.lock:
            current = await self._wake_current()
            if self.lineage.may_fork and self.saves_runs and (undone := await self._renew_before_run()) is not None:
                return undone
            self.output.begin()
            begin, used = asyncio.get_running_loop().time(), read_cpu_seconds(current.pid)
            try:
                answer = await self._answer(current, request, seconds)
            except BaseException:
                self._lose_current()
                raise
            wall = asyncio.get_running_loop().time() - begin
            usage = ResourceUsage(wall, max(read_cpu_seconds(current.pid) - used, 0.0), read_peak_memory(current.pid))
            current.stop()
            self.output.drain()
            answer = check_output_limit(self.output) or answer
            if not isinstance(answer, ChildAnswer):
                self._lose_current()
            return build_result(self.output, self._explain_failure(answer), usage)

    def _explain_failure(self, answer: ChildAnswer | RunError | None) -> ChildAnswer | RunError:
        """Return the answer, or an error that says what happened to the session."""
        if isinstance(answer, ChildAnswer):
            return answer
        if answer is None and self.lineage.child.ended.done():
            answer = RunError("lost", "the session's processes have ended: start another session")
        found = answer or RunError("killed", "its process ended before it gave an answer: its own doing, or a crash")
        after = "the session is over"
        if self.before_run is not None:
            after = "the session is as it was before this run"
            after += "" if self.before_run.keeps_files else ", but for its files, which had no room to be kept twice"
        return RunError(found.kind, f"{found.message}; {after}", found.traceback, found.line)

    async def _answer(self, current: ProcessHandle, request: bytes, seconds: float) -> ChildAnswer | RunError | None:
        return await _race_death(current, read_answer(self.channel, request, seconds, current.stop))

    async def _wake_current(self) -> ProcessHandle:
        """Resume the current process; if it has ended, the checkpoint from before the run that ended it."""
        if self.is_closed:
            raise SandboxUnavailable("this session is closed: start another one")
        if self.current is None or self.current.died.done():
            self._lose_current()
            if self.before_run is None:
                raise SandboxUnavailable("this session's process has ended: start another session")
            await self._take_over(self.before_run)
            self.before_run = None
        assert self.current is not None
        self.current.resume()
        return self.current

    async def _renew_before_run(self) -> PythonResult | None:
        """Save the present state as a checkpoint; if that fails, restore the last one and return the error's result.

        A thread that an earlier run left may read the process's messages, or keep it from answering.
        """
        old, self.before_run = self.before_run, None
        if old is not None:
            # Its files are dropped to make room for the next one's; its process is kept until that one exists.
            self._dropped.append(old.number)
        try:
            self.before_run = await self._checkpoint()
        except SandboxUnavailable as error:
            if old is None:
                raise
            await self._take_over(old)
            assert self.current is not None
            self.current.stop()
            why = f"{error}: a thread that an earlier run left may be the cause; this run was not started, and "
            why += "the session is as it was before the last one, except for its files"
            return PythonResult(error=RunError("killed", why))
        if old is not None:
            old.kill()
        return None

    async def checkpoint(self) -> int:
        """Save the present state and return the checkpoint's number."""
        async with self.lock:
            self._require_forking()
            if len(self.checkpoints) >= MAX_CHECKPOINTS:
                raise SandboxInputError(f"a session can have at most {MAX_CHECKPOINTS} checkpoints")
            current = await self._wake_current()
            process = await self._checkpoint()
            self.checkpoints[process.number] = process
            current.stop()
            return process.number

    async def rollback(self, number: int | None) -> None:
        """Restore a checkpoint, or the state before the last run. Raises `SandboxInputError` if there is none."""
        async with self.lock:
            self._require_forking()
            process = self.before_run if number is None else self.checkpoints.get(number)
            if process is None:
                what = "run" if number is None else f"checkpoint {number}"
                raise SandboxInputError(f"this session has no {what} to roll back to")
            if not process.keeps_files:
                raise SandboxInputError(
                    "the files of that checkpoint had no room to be kept twice: start a new session"
                )
            self._lose_current()
            await self._take_over(process)
            if number is None:
                self.before_run = None
            else:
                # The checkpoint's process is the session now, so another checkpoint is made.
                self.checkpoints[number] = await self._checkpoint()
            assert self.current is not None
            self.current.stop()

    async def fork(self) -> SessionProcess:
        """Create another session with the same state. Raises `SandboxUnavailable`."""
        async with self.lock:
            self._require_forking()
            current = await self._wake_current()
            with ExitStack() as ours, ExitStack() as theirs:
                channel, output, descriptors = open_ends(ours, theirs, self.output.limit)
                process, greeting = await self._fork_uncancelled("twin", channel, descriptors)
                ours.callback(process.close)
                if problem := greeting.get("problem"):
                    raise SandboxUnavailable(f"this session can't be forked: {str(problem)[:200]}")
                fork = SessionProcess(self.lineage, channel, output, process, saves_runs=self.saves_runs)
                fork.source, fork.number = self, process.number
                output.overflow = fork.kill
                self.lineage.join()
                ours.pop_all()
            process.stop()
            current.stop()
            return fork

    def _require_forking(self) -> None:
        if self.is_closed:
            raise SandboxUnavailable("this session is closed: start another one")
        if not self.lineage.may_fork:
            raise SandboxUnavailable(
                "sessions can be forked and rolled back only in the full tier: no other tier can end forks"
            )

    async def _checkpoint(self) -> ProcessHandle:
        process, greeting = await self._fork_uncancelled("checkpoint", self.channel, ())
        process.stop()
        process.keeps_files = greeting.get("files") is True
        return process

    async def _fork_uncancelled(
        self, kind: str, channel: ChildChannel, descriptors: Sequence[int]
    ) -> tuple[ProcessHandle, dict[str, Any]]:
        """Fork the current process; returns the fork and its greeting. Raises `SandboxUnavailable`."""
        return await _finish_uncancelled(self._fork(kind, channel, descriptors))

    async def _fork(
        self, kind: str, channel: ChildChannel, descriptors: Sequence[int]
    ) -> tuple[ProcessHandle, dict[str, Any]]:
        assert self.current is not None
        self._count += 1
        closed, self.closed_forks = self.closed_forks, []
        request = {"fork": kind, "number": self._count, "drop": self._dropped, "closed": closed}
        try:
            async with asyncio.timeout(START_SECONDS), self.lineage.allow_one_fork(descriptors, self.current.pid):
                await self.channel.send(pack_frame(request, []))
                greeting, pid = await _race_death(self.current, channel.receive_greeting()) or ({}, 0)
                if not isinstance(greeting, dict) or greeting.get("forked") != self._count:
                    raise WireError("the greeting is not a fork's")
                self.lineage.admit(pid, self.current.pid)
                self._dropped = []
                return ProcessHandle(pid, self._count), greeting
        except (WireError, TimeoutError, OSError) as error:
            self._lose_forker()
            raise SandboxUnavailable(f"this session's process doesn't fork ({error or 'no answer'})") from None

    async def _take_over(self, process: ProcessHandle) -> None:
        """Make a checkpoint the current process. Raises `SandboxUnavailable`."""
        await _finish_uncancelled(self._wake(process))

    async def _wake(self, process: ProcessHandle) -> None:
        try:
            async with asyncio.timeout(START_SECONDS):
                # Until the last one is dead, it could read the messages for this one.
                while self._dying:
                    await asyncio.shield(self._dying[-1].died)
                    self._dying.pop()
                self.channel.drain()
                process.wake()
                if await _race_death(process, self.channel.receive_greeting()) is None:
                    raise WireError("it has ended")
        except (WireError, TimeoutError) as error:
            process.close()
            raise SandboxUnavailable(f"this session's checkpoint doesn't wake ({error or 'no answer'})") from None
        self.current = process

    def _lose_forker(self) -> None:
        """Kill a process that failed to fork, and any children that it made."""
        if self.current is not None:
            # Stopped, it can't fork while its children are listed.
            self.current.stop()
            self.lineage.kill_unknown_children(self.current.pid)
        self._lose_current()

    def _lose_current(self) -> None:
        if self.current is not None:
            self.current.kill()
            self._dying.append(self.current)
            self.current = None

    def kill(self) -> None:
        """Kill the current process, because it wrote too much."""
        if self.current is not None:
            self.current.kill()

    async def aclose(self) -> None:
        """`close`, after the current operation."""
        async with self.lock:
            self.close()

    def close(self) -> None:
        """Kill the session's processes, and leave the lineage. Can be called again."""
        if self.is_closed:
            return
        self.is_closed = True
        for process in (self.current, self.before_run, *self.checkpoints.values()):
            if process is not None:
                process.close()
        self.current = self.before_run = None
        self.checkpoints.clear()
        self.channel.close()
        self.output.close()
        if self.source is not None:
            self.source.closed_forks.append(self.number)
        self.lineage.leave()


async def _race_death(process: ProcessHandle, work: Coroutine[Any, Any, Result | None]) -> Result | None:
    """Await `work`; None if the process that it depends on dies first."""
    task = asyncio.ensure_future(work)
    waiting: set[asyncio.Future[Any]] = {task, process.died}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        task.cancel()


async def _finish_uncancelled(work: Coroutine[Any, Any, Result]) -> Result:
    """Await `work` to its end, even if cancelled; the cancellation takes effect afterwards."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with suppress(asyncio.CancelledError, Exception):
            await task
        raise
