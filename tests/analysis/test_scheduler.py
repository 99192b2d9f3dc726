"""Tasks run as soon as they can, a failure ends only what needs it, and a cancellation accounts for every task."""

import asyncio

import pytest

from ferrule.analysis.plan import PlanTask
from ferrule.analysis.result import TaskExecution
from ferrule.analysis.running.scheduler import end_without_result, run_tasks

EIGHT = {
    "t1": (),
    "t2": (),
    "t3": ("t1",),
    "t4": ("t1", "t2"),
    "t5": ("t3",),
    "t6": ("t4",),
    "t7": ("t2",),
    "t8": ("t5", "t6", "t7"),
}
SECONDS = {"t1": 2, "t2": 1, "t3": 3, "t4": 1, "t5": 2, "t6": 4, "t7": 1, "t8": 1}
"""The longest path is t1, t3, t5, t8 or t1, t4, t6, t8: 8 seconds; one after the other they take 15."""


def make_tasks(graph: dict[str, tuple[str, ...]]) -> list[PlanTask]:
    return [PlanTask(id=name, tool="py_executor", query=name, needs=needs) for name, needs in graph.items()]


class Clock:
    """Runs tasks by a clock that stands still while any of them has something to do."""

    def __init__(self, seconds: dict[str, int], failing: tuple[str, ...] = ()) -> None:
        self.now = 0
        self.seconds = seconds
        self.failing = failing
        self.most_at_once = 0
        self.spans: dict[str, tuple[int, int]] = {}
        self._waiting: dict[str, tuple[int, asyncio.Event]] = {}

    async def run(self, task: PlanTask) -> TaskExecution:
        begun, event = self.now, asyncio.Event()
        self._waiting[task.id] = (begun + self.seconds[task.id], event)
        self.most_at_once = max(self.most_at_once, len(self._waiting))
        await event.wait()
        self.spans[task.id] = (begun, self.now)
        if task.id in self.failing:
            return end_without_result(task, "failed", "division by zero")
        return TaskExecution(task.id, task.tool, task.query, task.needs, result=task.id)

    async def tick(self) -> None:
        while True:
            for _ in range(20):  # let everything that can go on do so
                await asyncio.sleep(0)
            if not self._waiting:
                return
            self.now = min(at for at, _ in self._waiting.values())
            for name in [name for name, (at, _) in self._waiting.items() if at <= self.now]:
                self._waiting.pop(name)[1].set()


async def run_by(clock: Clock, tasks: list[PlanTask], concurrency: int = 8) -> list[TaskExecution]:
    ended: list[TaskExecution] = []
    executions, _ = await asyncio.gather(
        run_tasks(tasks, clock.run, ended.append, concurrency=concurrency), clock.tick()
    )
    assert ended == executions
    return executions


async def test_eight_tasks_take_as_long_as_their_longest_path() -> None:
    clock = Clock(SECONDS)
    executions = await run_by(clock, make_tasks(EIGHT))
    assert clock.now == 8
    assert {one.id: one.status for one in executions} == dict.fromkeys(EIGHT, "done")
    for name, needs in EIGHT.items():
        assert all(clock.spans[need][1] <= clock.spans[name][0] for need in needs)


async def test_no_more_tasks_run_at_once_than_allowed() -> None:
    clock = Clock(SECONDS)
    await run_by(clock, make_tasks(EIGHT), concurrency=1)
    assert (clock.most_at_once, clock.now) == (1, 15)


async def test_the_order_of_a_plan_does_not_matter() -> None:
    clock = Clock(SECONDS)
    await run_by(clock, make_tasks(EIGHT)[::-1])
    assert clock.now == 8


async def test_a_failed_task_ends_only_its_dependants_each_with_a_reason() -> None:
    clock = Clock(SECONDS, failing=("t3",))
    executions = {one.id: one for one in await run_by(clock, make_tasks(EIGHT))}
    assert {name: one.status for name, one in executions.items()} == {
        "t1": "done", "t2": "done", "t3": "failed", "t4": "done", "t5": "skipped", "t6": "done", "t7": "done",
        "t8": "skipped",
    }  # fmt: skip
    assert executions["t5"].error == "it needs t3, which has no result: division by zero"
    assert executions["t8"].error == "it needs t5, which has no result"


async def test_tasks_may_need_those_of_an_earlier_round() -> None:
    failed = end_without_result(make_tasks({"t2": ()})[0], "failed", "why")
    earlier = {"t1": TaskExecution("t1", "py_executor", "", result="1"), "t2": failed}
    ended: list[TaskExecution] = []
    clock = Clock({"t3": 1, "t4": 1})
    tasks = make_tasks({"t3": ("t1",), "t4": ("t2",)})
    await asyncio.gather(run_tasks(tasks, clock.run, ended.append, earlier=earlier), clock.tick())
    assert {one.id: one.status for one in ended} == {"t3": "done", "t4": "skipped"}


async def test_a_cancellation_accounts_for_every_task() -> None:
    ended: list[TaskExecution] = []
    stopped: list[str] = []

    async def run(task: PlanTask) -> TaskExecution:
        if task.id == "t1":
            return TaskExecution("t1", task.tool, task.query, result="1")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(task.id)
            raise
        raise AssertionError

    tasks = make_tasks({"t1": (), "t2": (), "t3": ("t2",)})
    running = asyncio.create_task(run_tasks(tasks, run, ended.append))
    while not ended:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert stopped == ["t2"]
    assert {one.id: (one.status, one.error) for one in ended} == {
        "t1": ("done", None),
        "t2": ("cancelled", "the analysis was stopped while it ran"),
        "t3": ("cancelled", "the analysis was stopped before it began"),
    }
