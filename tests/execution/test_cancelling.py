"""Calls that are cancelled, and the threads that they leave behind."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress

import pytest
from running_tools import answer, answers, call

from ferrule.execution import CallWatch, Executor, FileJournal, find_interrupted
from ferrule.execution.journal import read_entries
from ferrule.tools.decorator import tool
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope
from ferrule.tools.toolset import Toolset


def _until(read, count, seconds=5):
    end = time.monotonic() + seconds
    while len(found := read()) < count and time.monotonic() < end:
        time.sleep(0.01)
    return found


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
            task = asyncio.create_task(executor.run_all(calls, CallScope(), watch=CallWatch(on_result=told.append)))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with FileJournal(tmp_path / "j") as journal:
        asyncio.run(run(journal))
        release.set()
        lines = _until(lambda: read_entries(tmp_path / "j"), 8)
    assert stopped == ["waits"]
    assert [result.call_id for result in told] == ["quick"]
    ends = {line["call"]: line["status"] for line in lines if line["event"] in ("finished", "refused")}
    assert ends == {"waits": "cancelled", "stuck": "cancelled", "quick": "ok", "never": "cancelled"}
    assert [line["text"] for line in lines if line["event"] == "late"] == ["late"]
    assert find_interrupted(tmp_path / "j") == []
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
    refused = [line for line in read_entries(tmp_path / "j") if line["event"] == "refused"]
    assert [(line["call"], line["status"]) for line in refused] == [("b", "cancelled")]


@pytest.mark.parametrize("timeout", [None, 60.0], ids=["without a timeout", "with one"])
def test_a_run_is_cancelled_also_if_its_tool_catches_that(timeout):
    started = asyncio.Event()

    @tool(timeout=timeout)
    async def catches() -> str:
        """Catch the cancellation."""
        started.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return "as if nothing had happened"

    async def run():
        async with ToolRegistry([catches]).open() as bound:
            running = asyncio.create_task(Executor(bound).run(call("catches"), CallScope()))
            await started.wait()
            running.cancel()
            await asyncio.wait({running})
            return running.cancelled()

    assert asyncio.run(run())


def test_a_result_that_comes_after_the_loop_is_gone_is_recorded(tmp_path):
    @tool(timeout=0.02)
    def slow() -> str:
        """Outlive the loop."""
        time.sleep(0.3)
        return "at last"

    with FileJournal(tmp_path / "j") as journal:
        answer(slow, call("slow"), journal=journal)
        assert _until(lambda: read_entries(tmp_path / "j"), 3)[-1]["text"] == "at last"


def test_leaving_the_interpreter_does_not_wait():
    script = """
        import asyncio, time
        from ferrule.conversation import ToolCall
        from ferrule.execution import Executor
        from ferrule.tools.registry import ToolRegistry
        from ferrule.tools.scope import CallScope
        from ferrule.tools.decorator import tool

        @tool(timeout=0.05)
        def stuck() -> str:
            "Never end."
            time.sleep(60)
            return ""

        @tool(timeout=0.05)
        async def deaf() -> str:
            "Ignore every cancellation."
            while True:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    pass

        async def main():
            async with ToolRegistry([stuck, deaf]).open() as bound:
                for name in ("stuck", "deaf"):
                    print((await Executor(bound).run(ToolCall("c", name, "{}"), CallScope())).status)

        asyncio.run(main())
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert (done.stdout, done.stderr) == ("timeout\ntimeout\n", "")


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
        from ferrule.tools.decorator import tool

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
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=environment, timeout=300, check=True)
