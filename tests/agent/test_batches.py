"""Many runs at once: as they end, with a progress bar; and questions that aren't there."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from ferrule import Conversation, ConversationError, ModelError, model, system, tool, user
from ferrule.models.scripted import EchoModel, ScriptedModel


class ByLength(EchoModel):
    """Answers the shorter question first, and fails for "!"."""

    async def stream(self, conversation: Conversation, tools: Any, settings: Any):
        asked = conversation.messages[-1].text
        for _ in range(20 * len(asked)):
            await asyncio.sleep(0)
        if asked == "!":
            raise ModelError("it was told to fail")
        async for event in super().stream(conversation, tools, settings):
            yield event


ASKED = ["three", "a", "to"]


async def test_runs_come_as_they_end_with_the_index_of_their_input() -> None:
    found = [(index, run.text) async for index, run in model(ByLength()).iterate_batch(ASKED)]
    assert found == [(1, "a"), (2, "to"), (0, "three")]


async def test_the_first_error_is_raised_or_kept() -> None:
    with pytest.raises(ModelError, match="told to fail"):
        async for _ in model(ByLength()).iterate_batch(["!", "three"]):
            pass
    kept = {index: run.error async for index, run in model(ByLength()).iterate_batch(["!", "a"], errors="keep")}
    assert isinstance(kept[0], ModelError)
    assert kept[1] is None


async def test_leaving_early_cancels_the_others() -> None:
    ended: list[str] = []
    pipeline = model(ByLength()).watch(lambda run: ended.append(run.text))
    async with aclosing(pipeline.iterate_batch([*ASKED, "x" * 1000])) as runs:
        async for _, run in runs:
            assert run.text == "a"
            break
    await asyncio.sleep(0.05)
    assert ended == ["a"]


def test_without_an_event_loop() -> None:
    found = []
    for index, run in model(ByLength()).iterate_batch_sync([*ASKED, "x" * 1000]):
        found.append((index, run.text))
        if len(found) == 3:
            break
    assert found == [(1, "a"), (2, "to"), (0, "three")]


async def test_a_progress_bar_is_shown_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    await model(ByLength()).run_batch(["a", "!"], errors="keep", progress=True)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "2/2" in shown.err
    assert "1 failed" in shown.err


@pytest.mark.parametrize("wrong", ["abc", b"abc", user("abc"), Conversation((user("abc"),)), {"a": "b"}, 5])
async def test_a_single_question_is_no_batch(wrong: Any) -> None:
    with pytest.raises(TypeError, match="a batch takes a list of questions, not one"):
        await model(EchoModel()).run_batch(wrong)
    with pytest.raises(TypeError, match="a batch takes a list of questions, not one"):
        model(EchoModel()).iterate_batch(wrong)


@pytest.mark.parametrize("before", [(), (system("Be brief."),)])
async def test_a_question_that_is_missing_is_refused_before_a_model_is_asked(before: Any) -> None:
    scripted = ScriptedModel("Hm.")
    with pytest.raises(ConversationError, match=r"no question to answer; add one with chat\(…\)"):
        await model(scripted).chat(Conversation(before)).run()
    with pytest.raises(ConversationError, match="the question is empty"):
        await model(scripted).chat(Conversation(before)).chat(" \n").run()
    assert scripted.seen == []


async def test_the_prompt_of_text_mode_is_kept_by_the_run() -> None:
    @tool
    def look(place: str) -> str:
        """Look somewhere."""
        return f"a cat & a dog in {place}"

    called = '<tool-call tool="look" function="look"><parameter name="place">the garden</parameter></tool-call>'
    said = f"<tool-calls>{called}</tool-calls>"
    scripted = ScriptedModel(said, "A cat.")
    run = await model(scripted).system("Be brief.").chat("Where?").using(look, mode="native").run()
    assert run.sent == scripted.seen[-1]
    assert "# Tool Use" in run.sent.messages[0].text
    assert str(run.sent).startswith("system: Be brief.\n\n# Tool Use")
    assert run.conversation.messages[0].text == "Be brief."
