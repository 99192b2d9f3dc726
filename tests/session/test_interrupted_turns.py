"""Turns that signals interrupt: the turn ends, the session can go on, and a second Ctrl-C doesn't wait for the end."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ferrule import Policy, ToolCall, model, tool
from ferrule._util.background import submit_to_background
from ferrule.conversation import Conversation
from ferrule.models.scripted import ScriptedModel
from ferrule.session.approvals import Permissions
from ferrule.session.session import Session, SessionRunner

ANSWER = "Yes."
CALLS = [ToolCall("call_1", "wait", "{}"), ToolCall("call_2", "wait", "{}")]


def interrupt(number: signal.Signals = signal.SIGINT) -> None:
    """Send a signal to the thread that waits for the turn."""
    ident = threading.main_thread().ident
    assert ident is not None
    signal.pthread_kill(ident, number)


async def write_until_interrupted(_conversation: Conversation) -> str:
    interrupt()
    await asyncio.sleep(60)
    return "never"


def start(*script: Any, tools: Any = ()) -> SessionRunner:
    permissions = Permissions(Policy(profile="all"))
    # One call at a time, so that the second has not begun while the first runs.
    pipeline = model(ScriptedModel(*script)).with_(parallel_calls=False)
    return SessionRunner(Session(pipeline, tools, permissions=permissions))


def test_ctrl_c_ends_the_turn_and_the_next_question_is_answered() -> None:
    runner = start(write_until_interrupted, ANSWER)
    with pytest.raises(KeyboardInterrupt):
        runner.ask("Are you there?")
    assert not runner.session.conversation.messages
    run = runner.ask("Are you there?")
    assert (run.stopped, run.text) == ("done", ANSWER)
    assert [message.role for message in runner.session.conversation.messages] == ["user", "assistant"]


def test_ctrl_c_waits_until_what_was_cancelled_has_cleaned_up() -> None:
    ended: list[str] = []

    @tool(name="wait")
    async def wait() -> None:
        """Wait."""
        interrupt()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            ended.append("cleaned up")

    runner = start(CALLS[:1], tools=[wait])
    with pytest.raises(KeyboardInterrupt):
        runner.ask("Wait.")
    assert ended == ["cleaned up"]
    result = runner.session.conversation.messages[-1].result
    assert result is not None
    assert result.status == "cancelled"


def test_a_second_ctrl_c_does_not_wait_for_a_turn_that_will_not_end() -> None:
    released = asyncio.Event()
    ended = threading.Event()

    async def write_on(_conversation: Conversation) -> str:
        try:
            return await write_until_interrupted(_conversation)
        except asyncio.CancelledError:
            interrupt()
            await released.wait()
            raise
        finally:
            ended.set()

    runner = start(write_on, ANSWER)
    with pytest.raises(KeyboardInterrupt):
        runner.ask("Are you there?")
    assert not ended.is_set()
    assert not runner.session.conversation.messages
    assert runner.ask("Are you there?").text == ANSWER

    async def release() -> None:
        released.set()

    submit_to_background(release()).result()
    assert ended.wait(60)
    assert [message.text for message in runner.session.conversation.messages] == ["Are you there?", ANSWER]


@pytest.fixture
def exits_on_sigterm() -> Iterator[None]:
    """Lets SIGTERM raise `SystemExit`, as the command line does."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("exits_on_sigterm")
def test_a_signal_that_ends_the_program_leaves_calls_open_that_have_not_begun() -> None:
    @tool(name="wait")
    async def wait() -> None:
        """Wait."""
        interrupt(signal.SIGTERM)
        await asyncio.sleep(60)

    runner = start(CALLS, tools=[wait])
    with pytest.raises(SystemExit) as end:
        runner.ask("Wait twice.")
    assert end.value.code == 128 + signal.SIGTERM
    assert [call.id for call in runner.session.conversation.pending] == ["call_2"]
