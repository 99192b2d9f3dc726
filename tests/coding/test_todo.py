"""`todo`: a plan that is replaced, updated, shown, and kept in the conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from called_tools import call_tool

from ferrule import ScriptedModel, ToolCall, model
from ferrule.coding.todo import make_todo
from ferrule.conversation import user

STEPS = [
    {"content": "Read api.py", "status": "in_progress"},
    {"content": "Add error handling"},
    {"content": "Run the tests"},
]


async def test_a_plan_is_written_updated_and_shown() -> None:
    todo = [make_todo()]
    first = await call_tool(todo, "todo", steps=STEPS)
    assert first.text == "[>] 1. Read api.py\n[ ] 2. Add error handling\n[ ] 3. Run the tests\n(0 of 3 completed)"
    updates = [{"number": 1, "status": "completed"}, {"number": 2, "status": "in_progress", "content": "Handle errors"}]
    second = await call_tool(todo, "todo", updates=updates)
    assert second.text == "[x] 1. Read api.py\n[>] 2. Handle errors\n[ ] 3. Run the tests\n(1 of 3 completed)"
    assert (await call_tool(todo, "todo")).text == second.text
    assert (await call_tool(todo, "todo", steps=[])).text == "(the plan is empty)"


def called(number: int, **arguments: Any) -> ToolCall:
    return ToolCall(f"call_{number}", "todo", json.dumps(arguments))


def test_a_plan_is_kept_in_the_conversation_that_it_was_made_in() -> None:
    todo = make_todo()
    run = model(ScriptedModel(called(1, steps=STEPS), "Begun.")).chat("Go").using(todo).run_sync()
    other = model(ScriptedModel(called(1), "Nothing.")).chat("What is planned?").using(todo).run_sync()
    assert other.conversation.messages[2].result.text == "(the plan is empty)"
    again = model(ScriptedModel(called(2, updates=[{"number": 3, "status": "completed"}]), "Done."))
    resumed = again.chat(run.conversation.add(user("Go on"))).using(make_todo()).run_sync()
    assert resumed.conversation.messages[-2].result.text.splitlines()[2:] == [
        "[x] 3. Run the tests",
        "(1 of 3 completed)",
    ]


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"steps": STEPS, "updates": [{"number": 1}]}, "either steps"),
        ({"updates": [{"number": 1, "status": "completed"}]}, "the plan is empty"),
        ({"steps": [{"content": "  \n "}]}, "a step is empty"),
        ({"steps": [{"content": "x" * 501}]}, "longer than 500"),
        ({"steps": [{"content": "x"}] * 101}, "at most 100 steps"),
        ({"steps": [{"content": "x", "status": "done"}]}, "status"),
        ({"steps": [{"content": "x", "priority": 1}]}, "priority"),
    ],
)
async def test_wrong_plans_are_explained(arguments: dict[str, Any], wanted: str) -> None:
    result = await call_tool([make_todo()], "todo", **arguments)
    assert result.status in ("retry", "invalid")
    assert wanted in result.text


async def test_a_step_is_one_line_whatever_is_in_it() -> None:
    result = await call_tool([make_todo()], "todo", steps=[{"content": "one\n[x] 2. two\x1b[31m"}])
    assert result.text == "[ ] 1. one [x] 2. two\\x1b[31m\n(0 of 1 completed)"
