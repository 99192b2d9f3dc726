"""What happens to a session: runs, checkpoints, rolling back, twins. On the background loop, one thing at a time.

Before each run the session's process forks a checkpoint, which sleeps, stopped; a run that ends the process (a timeout,
a crash) so costs the session that run only. Between runs nothing of it runs: the parent stops every process of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.python.accounting import cpu_seconds, peak_memory
from ferrule.sandbox.python.answers import Answer
from ferrule.sandbox.python.channel import Channel
from ferrule.sandbox.python.conversing import overflow, read_answer, run_of
from ferrule.sandbox.python.ends import opened_ends
from ferrule.sandbox.python.lineage import Lineage
from ferrule.sandbox.python.member import Member
from ferrule.sandbox.python.output import Output
from ferrule.sandbox.python.process import START_SECONDS
from ferrule.sandbox.python.run import Run, RunError, Usage
from ferrule.sandbox.python.wire import WireError, frame

Result = TypeVar("Result")

MAX_CHECKPOINTS: Final = 16


@dataclass(slots=True)
class SessionProcess:
    """The process that a session is at present, and the checkpoints that it can go back to."""

    lineage: Lineage
    channel: Channel
    output: Output
    current: Member | None
    kept: dict[int, Member] = field(default_factory=dict)
    before_run: Member | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_closed: bool = False
    _count: int = 0
    _dropped: list[int] = field(default_factory=list)
    _dying: list[Member] = field(default_factory=list)

    async def run(self, request: bytes, seconds: float) -> Run:
        """Run a request. Raises `SandboxUnavailable` where the session is over."""
        async with self.lock:
            current = await self._awake()
            if self.lineage.may_fork:
                await self._renew_before_run()
            self.output.begin()
            begin, used = asyncio.get_running_loop().time(), cpu_seconds(current.pid)
            try:
                answer = await self._answer(current, request, seconds)
            except BaseException:
                self._lose_current()
                raise
            wall = asyncio.get_running_loop().time() - begin
            usage = Usage(wall, max(cpu_seconds(current.pid) - used, 0.0), peak_memory(current.pid))
            current.stop()
            self.output.drain()
            answer = overflow(self.output) or answer
            if not isinstance(answer, Answer):
                self._lose_current()
            return run_of(self.output, self._told(answer), usage)

    def _told(self, answer: Answer | RunError | None) -> Answer | RunError:
        """The answer, or what became of the session without one."""
        if isinstance(answer, Answer):
            return answer
        if answer is None and self.lineage.child.ended.done():
            answer = RunError("lost", "the session's processes have ended: start another session")
        found = answer or RunError("killed", "its process ended before it gave an answer: its own doing, or a crash")
        after = "the session is over"
        if self.before_run is not None:
            after = "the session is as it was before this run"
            after += "" if self.before_run.keeps_files else ", but for its files, which had no room to be kept twice"
        return RunError(found.kind, f"{found.message}; {after}", found.traceback, found.line)

    async def _answer(self, current: Member, request: bytes, seconds: float) -> Answer | RunError | None:
        return await _unless_dead(current, read_answer(self.channel, request, seconds))

    async def _awake(self) -> Member:
        """The process, able to run; where it has ended, the checkpoint from before the run that ended it."""
        if self.is_closed:
            raise SandboxUnavailable("this session is closed: start another one")
        if self.current is None or self.current.died.done():
            self._lose_current()
            if self.before_run is None:
                raise SandboxUnavailable("this session's process has ended: start another session")
            await self._take_over(self.before_run)
            self.before_run = None
        assert self.current is not None
        self.current.go_on()
        return self.current

    async def _renew_before_run(self) -> None:
        if self.before_run is not None:
            self._dropped.append(self.before_run.number)
            self.before_run.kill()
            self.before_run = None
        self.before_run = await self._checkpoint()

    async def checkpoint(self) -> int:
        """Keep the present state; its number."""
        async with self.lock:
            self._demand_forks()
            if len(self.kept) >= MAX_CHECKPOINTS:
                raise SandboxInputError(f"a session keeps at most {MAX_CHECKPOINTS} checkpoints")
            current = await self._awake()
            member = await self._checkpoint()
            self.kept[member.number] = member
            current.stop()
            return member.number

    async def rollback(self, number: int | None) -> None:
        """Go back to a checkpoint, or to before the last run. Raises `SandboxInputError` where there is none."""
        async with self.lock:
            self._demand_forks()
            member = self.before_run if number is None else self.kept.get(number)
            if member is None:
                what = "run" if number is None else f"checkpoint {number}"
                raise SandboxInputError(f"this session has no {what} to go back to")
            if not member.keeps_files:
                raise SandboxInputError(
                    "the files of that checkpoint had no room to be kept twice: start a new session"
                )
            self._lose_current()
            await self._take_over(member)
            if number is None:
                self.before_run = None
            else:
                # The process that was the checkpoint is the session now: it is kept anew.
                self.kept[number] = await self._checkpoint()
            assert self.current is not None
            self.current.stop()

    async def twin(self) -> SessionProcess:
        """Another session, which goes on from the same state. Raises `SandboxUnavailable`."""
        async with self.lock:
            self._demand_forks()
            current = await self._awake()
            with ExitStack() as ours, ExitStack() as theirs:
                channel, output, descriptors = opened_ends(ours, theirs, self.output.limit)
                member, said = await self._forked("twin", channel, descriptors)
                ours.callback(member.close)
                if problem := said.get("problem"):
                    raise SandboxUnavailable(f"this session can't be forked: {str(problem)[:200]}")
                twin = SessionProcess(self.lineage, channel, output, member)
                output.overflow = twin.kill
                self.lineage.join()
                ours.pop_all()
            member.stop()
            current.stop()
            return twin

    def _demand_forks(self) -> None:
        if self.is_closed:
            raise SandboxUnavailable("this session is closed: start another one")
        if not self.lineage.may_fork:
            raise SandboxUnavailable(
                "sessions are forked and rolled back in the full tier only: nothing else ends forks"
            )

    async def _checkpoint(self) -> Member:
        member, said = await self._forked("checkpoint", self.channel, ())
        member.stop()
        member.keeps_files = said.get("files") is True
        return member

    async def _forked(self, kind: str, channel: Channel, descriptors: Sequence[int]) -> tuple[Member, dict[str, Any]]:
        """A fork of the current process, and what it said of itself. Raises `SandboxUnavailable`."""
        return await _to_its_end(self._fork(kind, channel, descriptors))

    async def _fork(self, kind: str, channel: Channel, descriptors: Sequence[int]) -> tuple[Member, dict[str, Any]]:
        assert self.current is not None
        self._count += 1
        asked = {"fork": kind, "number": self._count, "drop": self._dropped}
        try:
            async with asyncio.timeout(START_SECONDS), self.lineage.one_fork(descriptors):
                await self.channel.send(frame(asked, []))
                said, pid = await _unless_dead(self.current, channel.greeting()) or ({}, 0)
                if not isinstance(said, dict) or said.get("forked") != self._count:
                    raise WireError("another greeting than a fork's")
                self._dropped = []
                return Member(pid, self._count), said
        except (WireError, TimeoutError, OSError) as error:
            self._lose_current()
            raise SandboxUnavailable(f"this session's process doesn't fork ({error or 'no answer'})") from None

    async def _take_over(self, member: Member) -> None:
        """Let a checkpoint be the session. Raises `SandboxUnavailable`."""
        await _to_its_end(self._wake(member))

    async def _wake(self, member: Member) -> None:
        try:
            async with asyncio.timeout(START_SECONDS):
                # Until the last one is dead, it could read what is meant for this one.
                while self._dying:
                    await asyncio.shield(self._dying[-1].died)
                    self._dying.pop()
                self.channel.drain()
                member.wake()
                if await _unless_dead(member, self.channel.greeting()) is None:
                    raise WireError("it is gone")
        except (WireError, TimeoutError) as error:
            member.close()
            raise SandboxUnavailable(f"this session's checkpoint doesn't wake ({error or 'no answer'})") from None
        self.current = member

    def _lose_current(self) -> None:
        if self.current is not None:
            self.current.kill()
            self._dying.append(self.current)
            self.current = None

    def kill(self) -> None:
        """End the current process, because it wrote too much."""
        if self.current is not None:
            self.current.kill()

    async def aclose(self) -> None:
        """`close`, after what is being done."""
        async with self.lock:
            self.close()

    def close(self) -> None:
        """End the session's processes, and the lineage with its last session. Can be called again."""
        if self.is_closed:
            return
        self.is_closed = True
        for member in (self.current, self.before_run, *self.kept.values()):
            if member is not None:
                member.close()
        self.current = self.before_run = None
        self.kept.clear()
        self.channel.close()
        self.output.close()
        self.lineage.leave()


async def _unless_dead(member: Member, work: Coroutine[Any, Any, Result | None]) -> Result | None:
    """What some work comes to, None where the process that it waits for dies first."""
    task = asyncio.ensure_future(work)
    waiting: set[asyncio.Future[Any]] = {task, member.died}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        task.cancel()


async def _to_its_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Do something that must not be left half done: being cancelled meanwhile takes effect after it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with suppress(asyncio.CancelledError, Exception):
            await task
        raise
