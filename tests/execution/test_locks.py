"""Turns at a gate, and ends of threads, under a crowd: exactly one gets each."""

from __future__ import annotations

import asyncio
import random
import threading
import time

from running_tools import answers, call

from counted_work import is_linear
from ferrule.execution import FileJournal
from ferrule.execution.journal import read_entries
from ferrule.execution.locks import ReadWriteLock, get_lock
from ferrule.tools.decorator import tool
from ferrule.tools.toolset import Toolset


class Pair(Toolset):
    """Two tools."""

    @tool
    def one(self) -> str:
        """Do one."""
        return "one"

    @tool
    def other(self) -> str:
        """Do the other."""
        return "other"


def test_the_tools_of_an_instance_have_one_gate_between_them():
    first, second = Pair(), Pair()
    assert get_lock(first.one.barrier) is get_lock(first.other.barrier)
    assert get_lock(first.one.barrier) is not get_lock(second.one.barrier)


def test_a_crowd_from_several_loops_takes_turns():
    gate = ReadWriteLock()
    inside = {"shared": 0, "alone": 0}
    seen = []

    async def visit(shared, number):
        turn = await gate.acquire(shared, seconds=None if number % 3 else 0.004)
        if turn is None:
            return
        kind = "shared" if shared else "alone"
        inside[kind] += 1
        seen.append((inside["shared"], inside["alone"]))
        try:
            await asyncio.sleep(random.random() / 1000)
        finally:
            inside[kind] -= 1
            turn.release()
            turn.release()

    async def crowd():
        visits = [asyncio.create_task(visit(random.random() < 0.5, number)) for number in range(60)]
        await asyncio.sleep(0.005)
        for one in random.sample(visits, 10):
            one.cancel()
        await asyncio.gather(*visits, return_exceptions=True)

    threads = [threading.Thread(target=lambda: asyncio.run(crowd())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert seen
    assert all(alone == 0 or (shared, alone) == (0, 1) for shared, alone in seen)
    assert inside == {"shared": 0, "alone": 0}

    async def is_free():
        return await gate.acquire(shared=False, seconds=1) is not None

    assert asyncio.run(is_free())


def test_first_come_first_served():
    order = []

    async def visit(gate, name, shared):
        turn = await gate.acquire(shared)
        order.append(name)
        await asyncio.sleep(0)
        turn.release()

    async def run():
        gate = ReadWriteLock()
        names = [("a", False), ("b", True), ("c", False), ("d", True), ("e", True)]
        await asyncio.gather(*(visit(gate, name, shared) for name, shared in names))

    asyncio.run(run())
    assert order == ["a", "b", "c", "d", "e"]


async def test_a_lock_costs_the_same_however_many_hold_it():
    async def share(count):
        lock = ReadWriteLock()
        for holder in [await lock.acquire(True) for _ in range(count)]:
            holder.release()

    assert await is_linear(share, 50)


def test_a_result_is_either_in_time_or_late_and_never_lost(tmp_path):
    @tool(timeout=0.02)
    def close(milliseconds: float) -> str:
        """End about when the time is up."""
        time.sleep(milliseconds / 1000)
        return "done"

    calls = [call("close", f"c{n}", milliseconds=random.uniform(10, 30)) for n in range(150)]
    with FileJournal(tmp_path / "j") as journal:
        results = answers([close], calls, journal=journal)
        late = {result.call_id for result in results if result.status == "timeout"}
        end = time.monotonic() + 5
        while time.monotonic() < end:
            lines = read_entries(tmp_path / "j")
            if sum(line["event"] == "late" for line in lines) >= len(late):
                break
            time.sleep(0.01)
    assert sorted(line["call"] for line in lines if line["event"] == "late") == sorted(late)
    assert {result.text for result in results if result.call_id not in late} <= {"done"}
