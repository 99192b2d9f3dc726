"""Time, cancellation, order, retries, processes: with real threads and real processes."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
import running_tools
from running_tools import answer, answers, call

from ferrule.conversation import ToolCall
from ferrule.errors import ToolFailed, ToolRetry
from ferrule.execution import Executor, FileJournal, interrupted
from ferrule.execution.journal import entries
from ferrule.registry import ToolRegistry
from ferrule.scope import CallScope
from ferrule.tool import Tool, tool
from ferrule.toolset import Toolset


@tool(timeout=0.05)
async def sleeps(seconds: float = 10) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return "slept"


def test_an_async_tool_is_stopped_at_its_timeout():
    result = answer(sleeps, call("sleeps"))
    assert result.status == "timeout"
    assert result.text == "error: timed out; it was stopped and may have taken part of its effect"
    assert answer(sleeps, call("sleeps", seconds=0)).text == "slept"


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
    assert late.text == "error: not started: no time is left; it took no effect"


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
        assert result.text == "error: timed out; it was given up but still runs, and may yet take effect"
        release.set()
        lines = _until(lambda: entries(tmp_path / "j.jsonl"), 3)
    assert [line["event"] for line in lines] == ["started", "finished", "late"]
    assert len({line["key"] for line in lines}) == 1
    assert (lines[1]["status"], lines[2]["status"], lines[2]["text"]) == ("timeout", "ok", "done after all")
    assert interrupted(tmp_path / "j.jsonl") == []


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
    words = "error: not started: an earlier call of the same tools still runs; it took no effect"
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


def test_cancelling_stops_async_tools_gives_up_sync_ones_and_records_all(tmp_path):
    release = threading.Event()
    stopped = []
    told = []

    @tool
    async def waits() -> str:
        """Wait."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.append("waits")
            raise
        return ""

    @tool
    def stuck() -> str:
        """Wait for the test."""
        release.wait(10)
        return "late"

    @tool
    async def quick() -> str:
        """Answer."""
        return "quick"

    @tool(serial=True)
    async def never() -> str:
        """Come after them all."""
        return "never"

    async def run(journal):
        async with ToolRegistry([waits, stuck, quick, never]).open() as bound:
            calls = [call(name, name) for name in ("waits", "stuck", "quick", "never")]
            executor = Executor(bound, journal=journal)
            task = asyncio.create_task(executor.run_all(calls, CallScope(), on_result=told.append))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with FileJournal(tmp_path / "j") as journal:
        asyncio.run(run(journal))
        release.set()
        lines = _until(lambda: entries(tmp_path / "j"), 8)
    assert stopped == ["waits"]
    assert [result.call_id for result in told] == ["quick"]
    ends = {line["call"]: line["status"] for line in lines if line["event"] in ("finished", "refused")}
    assert ends == {"waits": "cancelled", "stuck": "cancelled", "quick": "ok", "never": "cancelled"}
    assert [line["text"] for line in lines if line["event"] == "late"] == ["late"]
    assert interrupted(tmp_path / "j") == []
    gc.collect()


def test_a_cancel_while_waiting_for_a_turn_is_recorded_and_blocks_nobody(tmp_path):
    class Held(Toolset):
        """Writes only once it may."""

        def __init__(self):
            self.may_write = asyncio.Event()

        @tool
        async def write(self, line: str) -> str:
            """Write a line."""
            await self.may_write.wait()
            return line

    held = Held()

    async def run(journal):
        async with ToolRegistry([held]).open() as bound:
            executor = Executor(bound, journal=journal)
            first = asyncio.create_task(executor.run(call("write", "a", line="a"), CallScope()))
            await asyncio.sleep(0)
            second = asyncio.create_task(executor.run(call("write", "b", line="b"), CallScope()))
            third = asyncio.create_task(executor.run(call("write", "c", line="c"), CallScope()))
            await asyncio.sleep(0.005)
            second.cancel()
            held.may_write.set()
            return await asyncio.gather(first, second, third, return_exceptions=True)

    with FileJournal(tmp_path / "j") as journal:
        first, second, third = asyncio.run(run(journal))
    assert (first.text, type(second), third.text) == ("a", asyncio.CancelledError, "c")
    refused = [line for line in entries(tmp_path / "j") if line["event"] == "refused"]
    assert [(line["call"], line["status"]) for line in refused] == [("b", "cancelled")]


def test_a_result_that_comes_after_the_loop_is_gone_is_recorded(tmp_path):
    @tool(timeout=0.02)
    def slow() -> str:
        """Outlive the loop."""
        time.sleep(0.3)
        return "at last"

    with FileJournal(tmp_path / "j") as journal:
        answer(slow, call("slow"), journal=journal)
        assert _until(lambda: entries(tmp_path / "j"), 3)[-1]["text"] == "at last"


def test_leaving_the_interpreter_does_not_wait():
    script = """
        import asyncio, time
        from ferrule.conversation import ToolCall
        from ferrule.execution import Executor
        from ferrule.registry import ToolRegistry
        from ferrule.scope import CallScope
        from ferrule.tool import tool

        @tool(timeout=0.05)
        def stuck() -> str:
            "Never end."
            time.sleep(60)
            return ""

        async def main():
            async with ToolRegistry([stuck]).open() as bound:
                print((await Executor(bound).run(ToolCall("c", "stuck", "{}"), CallScope())).status)

        asyncio.run(main())
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert (done.stdout, done.stderr) == ("timeout\n", "")


def test_threads_are_used_again_and_never_shared(tmp_path):
    @tool
    def meet() -> int:
        """Name the thread, once all are there."""
        everybody.wait(10)
        return threading.get_ident()

    @tool
    def where() -> int:
        """Name the thread."""
        return threading.get_ident()

    everybody = threading.Barrier(8)
    together = {result.text for result in answers([meet], [call("meet", f"c{n}") for n in range(8)])}
    assert len(together) == 8
    before = threading.active_count()
    for _ in range(20):
        answer(where, call("where"))
    assert threading.active_count() <= before + 1


def test_a_forked_process_makes_threads_of_its_own():
    script = """
        import asyncio, os, sys
        from running_tools import answer, call
        from ferrule.tool import tool

        @tool
        def hello() -> str:
            "Answer."
            return "hello"

        assert answer(hello, call("hello")).text == "hello"
        child = os.fork()
        if child == 0:
            os._exit(0 if answer(hello, call("hello")).text == "hello" else 1)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=environment, timeout=30, check=True)


def test_a_call_in_a_process_of_its_own():
    result = answer(running_tools.in_a_process, call("in_a_process", number=4))
    assert result.status == "ok"
    assert '"double":8' in result.text
    assert str(os.getpid()) not in result.text
    assert answer(running_tools.awaited_in_a_process, call("awaited_in_a_process", number=4)).text == "5"


def test_a_scope_goes_along_into_a_process():
    scope = CallScope(emit=lambda event: None)
    result = answer(running_tools.scoped_in_a_process, call("scoped_in_a_process", "c3"), scope=scope)
    assert result.text == '{"id":"c3","in time":true}'


def test_a_process_is_killed_at_its_timeout():
    began = time.monotonic()
    result = answer(running_tools.spins_in_a_process, call("spins_in_a_process"))
    assert result.text == "error: timed out; it was killed and may have taken part of its effect"
    assert time.monotonic() - began < 10


def test_a_cancel_kills_a_process_and_what_it_started(tmp_path):
    marker = tmp_path / "marker"

    async def run():
        async with ToolRegistry([running_tools.forks_in_a_process]).open() as bound:
            one = call("forks_in_a_process", marker=str(marker))
            task = asyncio.create_task(Executor(bound).run(one, CallScope()))
            while not marker.exists():
                assert not task.done(), task.result()
                await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(asyncio.wait_for(run(), 30))
    grandchild = Path(f"/proc/{marker.read_text()}/stat")
    end = time.monotonic() + 5
    while (alive := _runs(grandchild)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not alive


def _runs(stat: Path) -> bool:
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_process_that_dies_or_raises_says_so():
    died = answer(running_tools.dies_in_a_process, call("dies_in_a_process"))
    assert died.text == "error: ProcessDied: the tool's process ended without a result (exit status 3)"
    failed = answer(running_tools.fails_in_a_process, call("fails_in_a_process"))
    assert failed.text == "error: LookupError: nothing at 0x…"


def test_what_cannot_be_imported_cannot_be_isolated():
    @tool(isolate="process")
    def local() -> str:
        """Stand inside a function."""
        return ""

    result = answer(local, call("local"))
    assert result.status == "error"
    assert "can't run in a process of its own" in result.text
    assert "<locals>.local' is not a function of a module" in result.text


def test_a_process_finds_a_tool_of_a_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import asyncio
        from dataclasses import dataclass
        from ferrule.conversation import ToolCall
        from ferrule.execution import Executor
        from ferrule.registry import ToolRegistry
        from ferrule.scope import CallScope
        from ferrule.tool import tool

        @dataclass
        class Point:
            x: int

        @tool(isolate="process")
        def double(point: Point) -> Point:
            "Double it."
            return Point(2 * point.x)

        async def main():
            async with ToolRegistry([double]).open() as bound:
                call = ToolCall("c", "double", '{"point": {"x": 4}}')
                print((await Executor(bound).run(call, CallScope())).text)

        if __name__ == "__main__":
            asyncio.run(main())
        """)
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == '{"x":8}\n'


def test_an_empty_argument_text_is_no_arguments():
    @tool
    async def hello() -> str:
        """Answer."""
        return "hello"

    assert answer(hello, ToolCall("c", "hello", "")).text == "hello"
