"""A function, async or not, as the approver of an executor, a pipeline and a session."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ferrule import Decision, PolicyError, ScriptedModel, ToolCall, call_tool, model, tool
from ferrule.execution import ApprovalRequest
from ferrule.session.approvals import Permissions
from ferrule.session.session import Session


async def test_a_function_is_an_approver() -> None:
    threads: list[str] = []

    def allow_rome(request: ApprovalRequest) -> bool:
        threads.append(threading.current_thread().name)
        return request.arguments["city"] == "Rome"

    async def edit(request: ApprovalRequest) -> Decision:
        return Decision.edit({"city": f"New {request.arguments['city']}"}, by="me")

    async def answer(city: str, approver: Any) -> str:
        return (await call_tool(book, {"city": city}, approver=approver)).text

    assert await answer("Rome", allow_rome) == "booked Rome"
    assert await answer("Oslo", allow_rome) == "error: denied: allow_rome doesn't allow it"
    assert threading.current_thread().name not in threads
    assert (await answer("York", edit)).startswith("booked New York")
    assert await answer("Rome", lambda _: edit_soon()) == "booked Rome"
    with pytest.raises(PolicyError, match=r"the approver .*<lambda> must return a Decision, True or False, not 'yes'"):
        await answer("Rome", lambda _: "yes")
    with pytest.raises(ConnectionError, match="gone"):
        await answer("Rome", raise_gone)
    pipeline = model(ScriptedModel(ToolCall("a", "book", {"city": "Rome"}), "Done.")).using(book, approver=allow_rome)
    run = await pipeline.chat("?").run()
    assert run.conversation.messages[2].result.text == "booked Rome"
    session = Session(
        model(ScriptedModel(ToolCall("a", "book", {"city": "Rome"}), "Done.")),
        [book],
        permissions=Permissions(approver=allow_rome),
    )  # type: ignore[arg-type]
    assert (await session.ask("?")).conversation.messages[2].result.text == "booked Rome"


@tool(approval="always")
def book(city: str) -> str:
    """Book a trip."""
    return f"booked {city}"


async def edit_soon() -> Decision:
    return Decision.allow()


def raise_gone(_request: ApprovalRequest) -> bool:
    raise ConnectionError("gone")


async def test_a_denial_says_what_was_wrong_with_the_edited_arguments() -> None:
    """A function isn't shown the problem, so the result is the only place where its author can read it."""
    result = await call_tool(book, {"city": "Rome"}, approver=lambda _: Decision.edit({"town": "Oslo"}))
    assert result.status == "denied"
    assert "invalid every time: Wrong arguments:\n- city: got nothing" in result.text
