"""A plan: tasks, each with its tool, its query and the results that it needs. Validated before anything runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

from pydantic import BaseModel, ConfigDict, Field

_TASK_ID = re.compile(r"t[1-9][0-9]{0,3}")


class PlanTask(BaseModel):
    """One task of a plan."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    id: str
    """t1, t2, …"""
    tool: str
    """The name of the tool that does it."""
    query: str
    """What the tool is asked, in words that can be understood without the plan."""
    needs: tuple[str, ...] = ()
    """The ids of the tasks whose results it needs."""


class Plan(BaseModel):
    """Tasks in a graph: a task runs once those that it needs have results."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    approach: str = ""
    """How the tasks together answer the question, in a sentence or two."""
    tasks: tuple[PlanTask, ...] = Field(default=())
    """The tasks."""


def validate_plan(
    plan: Plan, tools: Collection[str], earlier: Collection[str] = (), most: int | None = None
) -> list[str]:
    """The problems of a plan, one sentence each; empty if it can run.

    `earlier` are the ids of tasks that have results already, `most` is the most tasks that it may have.
    """
    if not plan.tasks:
        return ["The plan has no tasks: give at least one."]
    problems = [] if most is None else list(_check_length(plan, most))
    problems += _check_ids(plan, earlier)
    known = {task.id for task in plan.tasks} | set(earlier)
    for task in plan.tasks:
        problems += _check_task(task, tools, known)
    cycle = find_cycle(plan.tasks)
    if cycle:
        problems.append(f"The tasks {' → '.join(cycle)} wait for each other: remove one of these needs.")
    return problems


def find_cycle(tasks: Sequence[PlanTask]) -> list[str]:
    """The ids of tasks that need each other, the first one again at the end; empty if there are none.

    A task that needs itself is left out: it has a sentence of its own.
    """
    graph: dict[str, set[str]] = {}
    for task in tasks:
        graph.setdefault(task.id, set()).update(need for need in task.needs if need != task.id)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def _check_length(plan: Plan, most: int) -> Iterable[str]:
    if len(plan.tasks) > most:
        yield f"The plan has {len(plan.tasks)} tasks, and at most {most} are allowed: merge or leave out some."


def _check_ids(plan: Plan, earlier: Collection[str]) -> Iterable[str]:
    for name, times in Counter(task.id for task in plan.tasks).items():
        if times > 1:
            yield f"{times} tasks have the id {name!r}: give each its own."
        elif name in earlier:
            yield f"The id {name!r} is that of an earlier task: continue the numbers after it."
        if not _TASK_ID.fullmatch(name):
            yield f"{name!r} can't be the id of a task: use t1, t2 and so on."


def _check_task(task: PlanTask, tools: Collection[str], known: set[str]) -> Iterable[str]:
    if task.tool not in tools:
        there = f"use one of {', '.join(sorted(tools))}" if tools else "no tool is on offer"
        yield f"Task {task.id} names the tool {task.tool!r}, which there is not: {there}."
    if not task.query.strip():
        yield f"Task {task.id} has no query: say what its tool is to do."
    for need in dict.fromkeys(task.needs):
        if need == task.id:
            yield f"Task {task.id} needs its own result: remove that."
        elif need not in known:
            others = sorted(known - {task.id})
            advice = f"use one of {', '.join(others)}" if others else "there is no other, so it can need none"
            yield f"Task {task.id} needs {need!r}, which is no task: {advice}."
