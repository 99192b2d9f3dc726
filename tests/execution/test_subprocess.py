"""Calls in processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import running_tools
from running_tools import answer, call

from ferrule.execution import Executor
from ferrule.tools.decorator import tool
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope


def test_a_call_in_a_process_of_its_own():
    result = answer(running_tools.in_a_process, call("in_a_process", number=4))
    assert result.status == "ok"
    told = json.loads(result.text)
    assert told["double"] == 8
    assert told["process"] != os.getpid()
    assert answer(running_tools.awaited_in_a_process, call("awaited_in_a_process", number=4)).text == "5"


def test_a_scope_goes_along_into_a_process():
    scope = CallScope(emit=lambda event: None)
    result = answer(running_tools.scoped_in_a_process, call("scoped_in_a_process", "c3"), scope=scope)
    assert result.text == '{"id":"c3","in time":true}'


def test_a_process_is_killed_at_its_timeout():
    began = time.monotonic()
    result = answer(running_tools.spins_in_a_process, call("spins_in_a_process"))
    assert result.text == "error: timed out; it was killed, and may have had some of its effects"
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
        from ferrule.tools.registry import ToolRegistry
        from ferrule.tools.scope import CallScope
        from ferrule.tools.decorator import tool

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
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == '{"x":8}\n'
