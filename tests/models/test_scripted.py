"""A script of more than texts: functions of the conversation, and exceptions."""

from __future__ import annotations

import pytest

from ferrule import Conversation, ModelError, ScriptedModel, ToolCall, model, tool
from ferrule.errors import SettingsError


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def call_with(number: int) -> ToolCall:
    return ToolCall("call_1", "add", {"a": number, "b": 1})


async def tell_result(conversation: Conversation) -> str:
    return f"It is {conversation.messages[-1].result.text}."


async def test_a_function_writes_the_message_and_an_exception_is_raised() -> None:
    scripted = ScriptedModel(lambda asked: call_with(len(asked)), tell_result, ModelError("down"), ValueError)
    pipeline = model(scripted).using(add)
    run = await pipeline.chat("Add.").run()
    assert run.text == "It is 2."
    with pytest.raises(ModelError, match=r"^down$") as failed:
        await pipeline.chat(run.conversation).chat("Again.").run()
    assert failed.value.run.text == "It is 2."
    with pytest.raises(ValueError, match=r"^$"):
        await pipeline.chat("Once more.").run()
    scripted.assert_used_up()


async def test_a_function_must_return_a_message() -> None:
    with pytest.raises(SettingsError, match=r"a script takes texts, .* not None"):
        await model(ScriptedModel(lambda _: None)).chat("?").run()
