"""`todo`: the model's plan, a list of steps with their states, which it replaces or updates as it works.

The plan of a conversation is what the last answer of the tool in it says. So it survives a resumed session, each
sub-agent has a plan of its own, and a turn that is undone takes its plan with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict

from ferrule._util.terminal_text import escape_line
from ferrule.conversation import Conversation
from ferrule.errors import ToolRetry
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.scope import CallScope
from ferrule.toolspec import Annotations

__all__ = ["make_todo"]

NAME: Final = "todo"
MOST_STEPS: Final = 100
LONGEST_STEP: Final = 500
Status = Literal["pending", "in_progress", "completed"]
_MARKS: Final[dict[Status, str]] = {"pending": " ", "in_progress": ">", "completed": "x"}
_STATUSES: Final = {mark: status for status, mark in _MARKS.items()}
_LINE: Final = re.compile(r"\[([ >x])\] \d+\. (.+)")
_EMPTY: Final = "(the plan is empty)"


class Step(BaseModel):
    """One step of the plan."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    content: str
    """What to do, on one line."""
    status: Status = "pending"


class StepUpdate(BaseModel):
    """A change to one step."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int
    """The number of the step, from 1."""
    status: Status | None = None
    content: str | None = None


def make_todo() -> Tool:
    """Make the tool `todo`. Where calls have no conversation, as those of a server, it remembers its own last plan."""
    last: list[Step] = []

    @tool(name=NAME, annotations=Annotations(read_only=True, destructive=False, idempotent=True, open_world=False))
    def todo(
        scope: CallScope,
        steps: Annotated[list[Step] | None, "The whole plan; it replaces the earlier one"] = None,
        updates: Annotated[list[StepUpdate] | None, "Changes to single steps of the plan"] = None,
    ) -> str:
        """Keep a plan of the work, for tasks of several steps: write it once, set a step to in_progress when you begin
        it and to completed when it is done. Answers with the plan; without arguments it only shows it.
        """
        if steps is not None and updates is not None:
            raise ToolRetry("give either steps, the whole plan, or updates to some of its steps")
        plan = _find_plan(scope.conversation) if scope.conversation.messages else list(last)
        if steps is not None:
            plan = [_check(step) for step in steps]
        for update in updates or ():
            _apply(update, plan)
        if len(plan) > MOST_STEPS:
            raise ToolRetry(f"a plan has at most {MOST_STEPS} steps, and this one has {len(plan)}; join some")
        last[:] = plan
        return render_plan(plan)

    return todo


def render_plan(plan: Sequence[Step]) -> str:
    """The plan, a line for each step, and how much of it is done."""
    if not plan:
        return _EMPTY
    lines = [f"[{_MARKS[step.status]}] {number}. {step.content}" for number, step in enumerate(plan, 1)]
    done = sum(step.status == "completed" for step in plan)
    return "\n".join([*lines, f"({done} of {len(plan)} completed)"])


def _find_plan(conversation: Conversation) -> list[Step]:
    """The plan in the last answer of the tool; empty if there is none."""
    for message in reversed(conversation.messages):
        result = message.result if message.role == "tool" else None
        if result is not None and result.name == NAME and result.status == "ok":
            found = map(_LINE.fullmatch, result.text.splitlines())
            return [Step(content=one[2], status=_STATUSES[one[1]]) for one in found if one]
    return []


def _apply(update: StepUpdate, plan: list[Step]) -> None:
    if not 1 <= update.number <= len(plan):
        there = f"the plan has the steps 1 to {len(plan)}" if plan else "the plan is empty: give its steps first"
        raise ToolRetry(f"there is no step {update.number}; {there}")
    old = plan[update.number - 1]
    content = old.content if update.content is None else update.content
    plan[update.number - 1] = _check(Step(content=content, status=update.status or old.status))


def _check(step: Step) -> Step:
    """A step on one line. Raises `ToolRetry` if it is empty or too long."""
    content = escape_line(" ".join(step.content.split()))
    if not content or len(content) > LONGEST_STEP:
        problem = f"longer than {LONGEST_STEP} characters" if content else "empty"
        raise ToolRetry(f"a step is {problem}; write what to do in one short line")
    return Step(content=content, status=step.status)
