"""Time, order and retries of calls: with real threads."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress

import pytest
from running_tools import answer, answers, call

from ferrule.conversation import ToolCall
from ferrule.errors import ToolFailed, ToolRetry
from ferrule.execution import Executor, FileJournal, find_interrupted
from ferrule.execution.journal import read_entries
from ferrule.execution.threads import GRACE_SECONDS
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope
from ferrule.tools.toolset import Toolset


@tool(timeout=0.05)
async def sleeps(seconds: float = 10) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return "slept"


def test_an_async_tool_is_stopped_at_its_timeout():
    result = answer(sleeps, call("sleeps"))
    assert result.status == "timeout"
    assert result.text == "error: timed out; it was stopped, and may have had some of its effects"
    assert answer(sleeps, call("sleeps", seconds=0)).text == "slept"


@pytest.mark.parametrize("ending", ["returns", "raises"])
def test_an_async_tool_that_catches_its_cancellation_has_timed_out(ending):
    @tool(timeout=0.05)
    async def catches() -> str:
        """Catch the cancellation."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if ending == "raises":
                raise ValueError("caught") from None
        return "as if nothing had happened"

    result = answer(catches, call("catches"))
    assert (result.status, result.text) == (
        "timeout",
        "error: timed out; it was stopped, and may have had some of its effects",
    )


def test_an_async_tool_that_ignores_cancellation_is_abandoned_and_recorded_late(tmp_path):
    ends = asyncio.Event()

    class Slow(Toolset):
        @tool(timeout=0.05)
        async def ignores(self) -> str:
            """Ignore every cancellation, until told to end."""
            while not ends.is_set():
                with suppress(asyncio.CancelledError):
                    await ends.wait()
            return "ended after all"

        @tool(timeout=0.05)
        async def waits(self) -> str:
            """Share the state."""
            return "free"

    async def run(journal):
        async with ToolRegistry([Slow()]).open() as bound:
            executor = Executor(bound, journal=journal)
            began = time.monotonic()
            abandoned = await executor.run(call("ignores"), CallScope())
            held = time.monotonic() - began
            busy = await executor.run(call("waits", "call_2"), CallScope())
            ends.set()
            while len(read_entries(tmp_path / "j")) < 4:
                await asyncio.sleep(0.01)
            return abandoned, held, busy, await executor.run(call("waits", "call_3"), CallScope())

    with FileJournal(tmp_path / "j") as journal:
        abandoned, held, busy, free = asyncio.run(run(journal))
    assert abandoned.text == "error: timed out; it was abandoned but is still running, and may yet take effect"
    assert (abandoned.status, held < 0.05 + GRACE_SECONDS + 5) == ("timeout", True)
    assert busy.text == "error: not started: an earlier call of the same tools is still running; it had no effect"
    assert free.text == "free"
    late = [line for line in read_entries(tmp_path / "j") if line["event"] == "late"]
    assert [(line["status"], line["text"]) for line in late] == [("ok", "ended after all")]


async def test_a_caller_cancelled_while_a_tool_may_still_end_is_cancelled_and_its_state_stays_locked():
    ends, is_cancelled = asyncio.Event(), asyncio.Event()

    class Slow(Toolset):
        @tool(timeout=0.05)
        async def ignores(self) -> str:
            """Ignore every cancellation, until told to end."""
            while not ends.is_set():
                try:
                    await ends.wait()
                except asyncio.CancelledError:
                    is_cancelled.set()
            return "ended after all"

        @tool(timeout=0.05)
        async def waits(self) -> str:
            """Share the state."""
            return "free"

    async with ToolRegistry([Slow()]).open() as bound:
        executor = Executor(bound)
        running = asyncio.create_task(executor.run(call("ignores"), CallScope()))
        await is_cancelled.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        busy = await executor.run(call("waits", "call_2"), CallScope())
        ends.set()
    assert busy.text == "error: not started: an earlier call of the same tools is still running; it had no effect"


def test_a_timeout_of_the_tools_own_is_an_error_of_it():
    @tool(timeout=5)
    async def own() -> str:
        """Time out inside."""
        async with asyncio.timeout(0.01):
            await asyncio.sleep(1)
        return ""

    assert answer(own, call("own")).text == "error: TimeoutError"


def test_a_deadline_limits_every_call_and_forbids_late_ones():
    @tool
    async def forever() -> str:
        """Wait."""
        await asyncio.sleep(60)
        return ""

    began = time.monotonic()
    result = answer(forever, call("forever"), scope=CallScope(deadline=began + 0.1))
    assert (result.status, time.monotonic() - began < 5) == ("timeout", True)
    late = answer(forever, call("forever"), scope=CallScope(deadline=began))
    assert late.text == "error: not started: no time is left; it had no effect"


def test_a_default_timeout_is_for_tools_that_name_none():
    @tool
    async def forever() -> str:
        """Wait."""
        await asyncio.sleep(60)
        return ""

    assert answer(forever, call("forever"), default_timeout=0.05).status == "timeout"


def test_a_sync_tool_is_given_up_and_its_late_result_is_journalled(tmp_path):
    release = threading.Event()

    @tool(timeout=0.05)
    def stuck() -> str:
        """Wait for the test."""
        release.wait(10)
        return "done after all"

    with FileJournal(tmp_path / "j.jsonl") as journal:
        result = answer(stuck, call("stuck"), journal=journal)
        assert result.text == "error: timed out; it was abandoned but is still running, and may yet take effect"
        release.set()
        lines = _until(lambda: read_entries(tmp_path / "j.jsonl"), 3)
    assert [line["event"] for line in lines] == ["started", "finished", "late"]
    assert len({line["key"] for line in lines}) == 1
    assert (lines[1]["status"], lines[2]["status"], lines[2]["text"]) == ("timeout", "ok", "done after all")
    assert find_interrupted(tmp_path / "j.jsonl") == []


def _until(read, count, seconds=5):
    end = time.monotonic() + seconds
    while len(found := read()) < count and time.monotonic() < end:
        time.sleep(0.01)
    return found


def test_many_stuck_tools_hold_up_nobody():
    release = threading.Event()

    @tool(timeout=0.2)
    def stuck() -> str:
        """Wait for the test."""
        release.wait(10)
        return ""

    @tool
    def quick() -> str:
        """Answer."""
        return "quick"

    began = time.monotonic()
    results = answers([stuck, quick], [*(call("stuck", f"s{n}") for n in range(60)), call("quick", "q")])
    assert time.monotonic() - began < 3
    release.set()
    assert [result.status for result in results] == ["timeout"] * 60 + ["ok"]


def test_sync_tools_run_beside_each_other():
    together = threading.Barrier(3, timeout=5)

    @tool
    def meet() -> str:
        """Wait for the two others."""
        together.wait()
        return "met"

    assert [r.text for r in answers([meet], [call("meet", f"c{n}") for n in range(3)])] == ["met"] * 3


class Ledger(Toolset):
    """Writes and reads, with a note of what happened when."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.inside = 0

    @tool
    async def write(self, line: str) -> str:
        """Write a line, slowly."""
        assert self.inside == 0
        self.inside += 1
        await asyncio.sleep(0.02)
        self.inside -= 1
        self.lines.append(line)
        return line

    @tool(read_only=True)
    async def read(self) -> int:
        """Count the lines."""
        await asyncio.sleep(0.001)
        return len(self.lines)


def test_tools_of_one_toolset_keep_their_order_unless_they_only_read():
    calls = [
        call("write", "c0", line="a"),
        call("read", "c1"),
        call("read", "c2"),
        call("write", "c3", line="b"),
        call("write", "c4", line="c"),
        call("read", "c5"),
    ]
    assert [result.text for result in answers([Ledger], calls)] == ["a", "1", "1", "b", "c", "3"]


def test_two_runs_that_share_an_instance_take_turns():
    ledger = Ledger()

    async def run():
        async with ToolRegistry([ledger]).open() as bound:
            executors = [Executor(bound) for _ in range(4)]
            return await asyncio.gather(*(e.run(call("write", line="x"), CallScope()) for e in executors))

    assert [result.status for result in asyncio.run(run())] == ["ok"] * 4


def test_a_serial_tool_runs_alone_in_its_place():
    happened = []

    @tool
    async def note(word: str, seconds: float = 0.0) -> str:
        """Note when it began and ended."""
        happened.append(f"{word}+")
        await asyncio.sleep(seconds)
        happened.append(f"{word}-")
        return word

    @tool(serial=True)
    async def alone() -> str:
        """Note the same."""
        happened.append("alone+")
        await asyncio.sleep(0.01)
        happened.append("alone-")
        return "alone"

    calls = [
        call("note", "c0", word="a", seconds=0.03),
        call("note", "c1", word="b"),
        call("alone", "c2"),
        call("note", "c3", word="c"),
    ]
    results = answers([note, alone], calls)
    assert [result.text for result in results] == ["a", "b", "alone", "c"]
    assert happened == ["a+", "b+", "b-", "a-", "alone+", "alone-", "c+", "c-"]


class Slow(Toolset):
    def __init__(self, release: threading.Event) -> None:
        self.release = release

    @tool(timeout=0.05)
    def change(self) -> str:
        """Wait for the test."""
        self.release.wait(10)
        return "changed"

    @tool(timeout=0.05, read_only=True)
    def look(self) -> str:
        """Wait for the test."""
        self.release.wait(10)
        return "seen"

    @tool(timeout=5)
    async def after(self) -> str:
        """Come after."""
        return "after"


@pytest.mark.parametrize(("first", "holds"), [("change", True), ("look", False)])
def test_a_tool_that_was_given_up_holds_its_toolset_unless_it_only_reads(first, holds):
    release = threading.Event()
    toolset = Slow(release)

    async def run():
        async with ToolRegistry([toolset]).open() as bound:
            executor = Executor(bound)
            await executor.run(call(first), CallScope())
            busy = await executor.run(call("after"), CallScope(deadline=time.monotonic() + 0.1))
            release.set()
            return busy, await executor.run(call("after"), CallScope())

    busy, later = asyncio.run(run())
    assert later.text == "after"
    words = "error: not started: an earlier call of the same tools is still running; it had no effect"
    assert busy.text == (words if holds else "after")


def test_retries_are_for_idempotent_tools_and_for_accidents():
    counts = {}

    def failing(name, error, **options):
        def attempt() -> str:
            """Fail twice."""
            counts[name] = counts.get(name, 0) + 1
            if counts[name] <= 2:
                raise error
            return "third time"

        return Tool.from_callable(attempt, name=name, retries=2, **options)

    tools = [
        failing("once", ValueError("x")),
        failing("idempotent", ValueError("x"), idempotent=True),
        failing("reader", ValueError("x"), read_only=True),
        failing("final", ToolFailed("no"), idempotent=True),
        failing("hint", ToolRetry("no"), idempotent=True),
        failing("foreign", ValueError("x"), idempotent=True, origin="mcp:there"),
    ]
    from ferrule.execution import Policy

    results = answers(tools, [call(one.name, one.name) for one in tools], policy=Policy(profile="all"))
    assert [result.text for result in results] == [
        "error: ValueError: x",
        "third time",
        "third time",
        "error: no",
        "error: no",
        "error: ValueError: x",
    ]
    assert counts == {"once": 1, "idempotent": 3, "reader": 3, "final": 1, "hint": 1, "foreign": 1}


def test_an_empty_argument_text_is_no_arguments():
    @tool
    async def hello() -> str:
        """Answer."""
        return "hello"

    assert answer(hello, ToolCall("c", "hello", "")).text == "hello"
