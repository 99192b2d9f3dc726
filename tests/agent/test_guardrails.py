"""Guardrails before and after the model, and a system text that is made for each request."""

from __future__ import annotations

from typing import Any

import pytest

from ferrule import SettingsError, ToolCall, model, tool
from ferrule.agent.guardrails import InputGuardrail, OutputGuardrail
from ferrule.agent.hooks import RunState
from ferrule.events import RunFinished
from ferrule.models.scripted import ScriptedModel


def find_insult(text: str) -> str | None:
    return "no insults, please" if "fool" in text else None


async def find_insult_slowly(text: str) -> str | None:
    return find_insult(text)


@pytest.mark.parametrize("check", [find_insult, find_insult_slowly])
async def test_a_question_is_refused_before_a_model_is_asked(check: Any) -> None:
    scripted = ScriptedModel("Hm.")
    async with model(scripted).chat("You fool!").hook(InputGuardrail(check)).stream() as run:
        events = [event async for event in run]
    assert scripted.seen == []
    assert (run.stopped, run.stop_detail) == ("input_guardrail", "no insults, please")
    assert str(run) == "user: You fool!\n(input_guardrail: no insults, please)"
    assert events == [RunFinished("input_guardrail", run.usage, "no insults, please")]
    assert (await model(ScriptedModel("Hi.")).chat("Hello").hook(InputGuardrail(check)).run()).text == "Hi."


@pytest.mark.parametrize("check", [find_insult, find_insult_slowly])
async def test_an_answer_is_sent_back_then_the_run_stops(check: Any) -> None:
    guard = OutputGuardrail(check, retries=1, reason="rude")
    pipeline = model(ScriptedModel("You fool.", "Hello.", "Fool: fool.", "Still a fool.")).chat("Hi").hook(guard)
    mended = await pipeline.run()
    assert (mended.text, mended.stopped) == ("Hello.", "done")
    assert mended.conversation.messages[2].text == "no insults, please"
    # The same object guards another run, which has its retries anew.
    refused = await pipeline.run()
    assert (refused.stopped, refused.stop_detail, len(refused.conversation)) == ("rude", "no insults, please", 4)


async def test_calls_are_no_answer() -> None:
    @tool
    def look() -> str:
        """Look."""
        return "a fool"

    scripted = ScriptedModel(["The fool looks.", ToolCall("a", "look", "{}")], "Nothing there.")
    run = await model(scripted).chat("?").using(look).hook(OutputGuardrail(find_insult)).run()
    assert (run.text, run.stopped) == ("Nothing there.", "done")


async def test_a_typed_answer_is_checked_too() -> None:
    scripted = ScriptedModel('{"value": ["fool"]}', '{"value": ["friend"]}')
    run = await model(scripted).chat("?").parse_as(list[str]).hook(OutputGuardrail(find_insult)).run()
    assert run.output == ["friend"]


async def test_guards_that_cannot_be_are_refused() -> None:
    for make in (lambda: InputGuardrail("no"), lambda: OutputGuardrail(None), lambda: OutputGuardrail(len, retries=-1)):
        with pytest.raises(SettingsError, match=r"guardrail|OutputGuardrail"):
            make()
    with pytest.raises(SettingsError, match="must return None or a sentence, not True"):
        await model(ScriptedModel("x")).chat("?").hook(InputGuardrail(lambda _text: True)).run()


async def test_a_system_text_is_made_for_each_request() -> None:
    @tool
    def look() -> str:
        """Look."""
        return "nothing"

    async def tell_round(state: RunState) -> str:
        return f"This is round {state.rounds + 1}." if state.rounds else ""

    scripted = ScriptedModel(ToolCall("a", "look", "{}"), "Nothing.")
    run = await model(scripted).system("Be brief.").system(tell_round).chat("?").using(look).run()
    assert [seen.messages[0].text for seen in scripted.seen] == ["Be brief.", "Be brief.\n\nThis is round 2."]
    assert [message.text for message in run.conversation.messages if message.role == "system"] == ["Be brief."]
    assert run.sent.messages[0].text == "Be brief.\n\nThis is round 2."
    with pytest.raises(SettingsError, match=r"given to system\(\), must return a text, not int"):
        await model(ScriptedModel("x")).system(lambda _state: 5).chat("?").run()
