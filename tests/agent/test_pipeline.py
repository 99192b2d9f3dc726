"""The loop: every call answered once and in order, whatever stops it, and a conversation that is always valid."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from absent_path import NOWHERE
from ferrule.agent.pipeline import Pipeline, model
from ferrule.builtin_tools import calculator
from ferrule.conversation import Conversation, MalformedCall, ToolCall, ToolResult, assistant, tool_message, user
from ferrule.errors import ConversationError, DialectError, ModelError, SettingsError
from ferrule.events import Event, MessageFinished, ResultReady, RunFinished, TextDelta, ToolProgress
from ferrule.execution import FileJournal, Policy, Rule
from ferrule.models.scripted import ScriptedModel
from ferrule.tools.decorator import tool
from ferrule.tools.scope import CallScope
from ferrule.tools.toolset import Toolset


def call(identifier: str, expression: str = "12 * 34") -> ToolCall:
    return ToolCall(identifier, "calculator", json.dumps({"expression": expression}))


async def test_a_question_is_answered_through_a_tool() -> None:
    scripted = ScriptedModel(["Let me see. ", call("c1")], "It is 408.")
    run = await model(scripted).chat("What is 12 * 34?").using(calculator).run()
    assert run.text == "It is 408."
    assert run.stopped == "done"
    assert [m.role for m in run.conversation.messages] == ["user", "assistant", "tool", "assistant"]
    assert run.conversation.messages[2].result.text == "408"
    run.conversation.check()
    scripted.assert_used_up()
    # What the model was shown the second time holds the result.
    assert scripted.seen[1].messages[-1].result.text == "408"


async def test_a_pipeline_can_be_run_twice_and_branched() -> None:
    base = model(ScriptedModel("one", "two", "three")).system("Be brief.")
    first, second = base.chat("a"), base.chat("b")
    texts = [(await pipeline.run()).text for pipeline in (first, second, first)]
    assert texts == ["one", "two", "three"]
    assert [m.text for m in first.conversation.messages] == ["Be brief.", "a"]
    assert [m.text for m in second.conversation.messages] == ["Be brief.", "b"]


async def test_every_kind_of_wrong_call_is_answered_in_call_order() -> None:
    calls = [
        call("c1", "1 / 0"),
        ToolCall("c2", "calculater", "{}"),
        ToolCall("c3", "calculator", '{"expression": 7'),
        ToolCall("c4", "calculator", '{"expresion": "1"}'),
        call("c5"),
    ]
    message = assistant(*calls, MalformedCall("c6", "<|python_start|>1", "truncated"))
    run = await model(ScriptedModel(message, "Sorry.")).chat("?").using(calculator).run()
    results = [m.result for m in run.conversation.messages if m.role == "tool"]
    assert [result.call_id for result in results] == ["c1", "c2", "c3", "c4", "c5", "c6"]
    assert results[0].text == "error: division by zero"
    assert "calculator" in results[1].text
    assert [result.status for result in results] == ["error", "unknown_tool", "invalid", "invalid", "ok", "invalid"]
    run.conversation.check()


async def test_a_limit_on_rounds_stops_with_a_valid_conversation() -> None:
    scripted = ScriptedModel(*(call(f"c{n}") for n in range(5)))
    run = await model(scripted).chat("?").using(calculator).within(rounds=3).run()
    assert run.stopped == "rounds"
    assert len(scripted.seen) == 3
    assert not run.conversation.pending
    run.conversation.check()


async def test_denial_reaches_the_model_with_its_reason() -> None:
    policy = Policy((Rule("deny", tool="calc*", reason="no sums today"),))
    run = await model(ScriptedModel(call("c1"), "Well.")).chat("?").using(calculator, policy=policy).run()
    result = run.conversation.messages[2].result
    assert result.status == "denied"
    assert "no sums today" in result.text


async def test_asking_with_nobody_there_denies_or_pauses() -> None:
    policy = Policy((Rule("ask", tool="*"),))
    denied = await model(ScriptedModel(call("c1"), "Well.")).chat("?").using(calculator, policy=policy).run()
    assert denied.conversation.messages[2].result.status == "denied"
    scripted = ScriptedModel(call("c1"))
    paused = await model(scripted).chat("?").using(calculator, policy=policy, on_ask="pause").run()
    assert paused.stopped == "paused"
    assert [c.id for c in paused.conversation.pending] == ["c1"]


async def test_the_stream_tells_what_happens_and_progress_comes_from_threads() -> None:
    @tool
    def slow(n: int, scope: CallScope) -> int:
        """Take a while."""
        scope.report_progress("half way", 0.5)
        return n

    scripted = ScriptedModel(ToolCall("c1", "slow", '{"n": 3}'), "Three.")
    async with model(scripted).chat("?").using(slow).stream() as run:
        events = [event async for event in run]
    kinds = [type(event) for event in events]
    assert kinds.index(ToolProgress) < kinds.index(ResultReady) < kinds.index(TextDelta) < kinds.index(RunFinished)
    assert isinstance(events[-2], MessageFinished)
    assert run.text == "Three."


async def test_leaving_a_stream_cancels_and_answers_open_calls() -> None:
    began = asyncio.Event()

    @tool
    async def forever() -> str:
        """Never end."""
        began.set()
        await asyncio.sleep(60)
        return "never"

    scripted = ScriptedModel([ToolCall("c1", "forever", "{}"), ToolCall("c2", "forever", "{}")])
    async with model(scripted).chat("?").using(forever).stream() as run:
        await began.wait()
    assert run.stopped == "cancelled"
    assert [m.result.status for m in run.conversation.messages if m.role == "tool"] == ["cancelled", "cancelled"]
    run.conversation.check()


async def test_a_call_that_nobody_has_heard_of_yet_is_answered_when_the_stream_is_left() -> None:
    # 254 texts and two events of the call fill the feed, so the run waits with the message just added.
    message = assistant(*["a"] * 254, call("c1"))
    async with model(ScriptedModel(message, "never")).chat("?").using(calculator).stream() as run:
        while not run.conversation.pending:
            await asyncio.sleep(0)
    assert run.stopped == "cancelled"
    assert run.conversation.messages[-1].result.status == "cancelled"
    run.conversation.check()


async def test_an_error_of_the_model_reaches_whoever_watches() -> None:
    pipeline = model(ScriptedModel()).chat("?")
    with pytest.raises(ModelError, match="script has ended"):
        await pipeline.run()
    async with pipeline.stream() as run:
        with pytest.raises(ModelError, match="script has ended"):
            _ = [event async for event in run]


async def test_a_slow_tool_holds_up_nobody() -> None:
    @tool
    async def sleepy() -> str:
        """Sleep."""
        await asyncio.sleep(0.5)
        return "done"

    slow = model(ScriptedModel(ToolCall("c1", "sleepy", "{}"), "Slept.")).chat("?").using(sleepy)
    quick = model(ScriptedModel(call("c1"), "408.")).chat("?").using(calculator)
    task = asyncio.create_task(slow.run())
    answers = [await quick.chat(Conversation((user("?"),))).run()]
    assert answers[0].text == "408."
    assert not task.done()
    assert (await task).text == "Slept."


async def test_a_toolset_class_is_made_anew_for_each_run() -> None:
    class Counter(Toolset):
        def __init__(self) -> None:
            self.count = 0

        @tool
        def next(self) -> int:
            """Count."""
            self.count += 1
            return self.count

    calls = [ToolCall("c1", "next", "{}"), ToolCall("c2", "next", "{}")]
    scripted = ScriptedModel(calls, "Two.", calls, "Two again.")
    pipeline = model(scripted).chat("?").using(Counter)
    for _ in range(2):
        run = await pipeline.run()
        assert [m.result.text for m in run.conversation.messages if m.role == "tool"] == ["1", "2"]


async def test_the_journal_has_both_lines_of_a_call(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with FileJournal(path) as journal:
        await model(ScriptedModel(call("c1"), "408.")).chat("?").using(calculator, journal=journal).run()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["started", "finished"]


def test_the_synchronous_face_runs_on_one_background_loop() -> None:
    run = model(ScriptedModel(call("c1"), "408.")).chat("?").using(calculator).run_sync()
    assert run.text == "408."


async def test_the_synchronous_face_refuses_inside_of_a_loop() -> None:
    with pytest.raises(RuntimeError, match="await"):
        model(ScriptedModel("x")).chat("?").run_sync()


def test_names_and_settings_that_can_not_be_are_refused() -> None:
    with pytest.raises(ModelError, match="nonsense"):
        model("nonsense")
    with pytest.raises(ModelError, match=r"'embeded'; did you mean embedded\?"):
        model("embeded")
    with pytest.raises(ModelError, match="missing"):
        model(f"local:{NOWHERE}/at/all")
    with pytest.raises(SettingsError, match=r"^with_\(…\): temperature: must be greater than .*, not -1$"):
        model(ScriptedModel()).with_(temperature=-1)
    with pytest.raises(SettingsError, match=r"temperature: must be a valid number, not 'hot'; top_p: .*$"):
        model(ScriptedModel()).with_(temperature="hot", top_p=3)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=r"argument 'temperature'; sampling settings are given to with_\(…\)$"):
        model("embedded", temperature=3)
    with pytest.raises(SettingsError, match="max_round"):
        model(ScriptedModel()).using(calculator, max_round=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("asked", [model(ScriptedModel("Hi.")), model(ScriptedModel("Hi.")).system("Be kind.")])
async def test_a_missing_question_is_refused_before_the_model_is_asked(asked: Pipeline[None]) -> None:
    with pytest.raises(ConversationError, match=r"there is no question to answer; add one with chat\(…\)"):
        await asked.run()
    assert (await asked.chat("Hello").run()).text == "Hi."


async def test_the_embedded_model_is_asked_only_as_it_was_trained() -> None:
    @tool
    def pack(box: dict[str, int]) -> str:
        """Pack a box."""
        return ""

    asked = model("embedded").chat("What is 2 + 2?")
    with pytest.raises(ModelError, match=r"trained to call tools; offer it one with using\(…\)"):
        await asked.run()
    with pytest.raises(DialectError, match=r"can't be offered the tool 'pack': its parameter 'box' takes an"):
        await asked.using(calculator, pack).run()
    with pytest.raises(ModelError, match=r"its own notation, not in hermes; leave out mode=…"):
        await asked.using(calculator, mode="hermes").run()


async def test_progress_of_one_call_coalesces_while_nobody_reads() -> None:
    @tool
    def chatty(scope: CallScope) -> str:
        """Tell a lot."""
        for number in range(5000):
            scope.report_progress(f"step {number}")
        return "said"

    async with model(ScriptedModel(ToolCall("c1", "chatty", "{}"), "Done.")).chat("?").using(chatty).stream() as run:
        deadline = time.monotonic() + 20
        while run.stopped != "done" and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        progress = [event async for event in run if isinstance(event, ToolProgress)]
    assert progress[-1].text == "step 4999"
    assert len(progress) < 5


def test_a_conversation_says_what_is_wrong_with_it() -> None:
    from ferrule.errors import ConversationError

    result = ToolResult("c9", "calculator", ())
    with pytest.raises(ConversationError, match="answers no open call"):
        Conversation((user("?"), tool_message(result))).check()
    two = assistant(call("c1"), call("c2"))
    swapped = [tool_message(ToolResult(name, "calculator", ())) for name in ("c2", "c1")]
    with pytest.raises(ConversationError, match="call order"):
        Conversation((user("?"), two, *swapped)).check()
    with pytest.raises(ConversationError, match="has no result"):
        Conversation((user("?"), two, assistant("text"))).check()


async def test_a_models_stream_is_closed_at_once_where_nobody_reads_on() -> None:
    class Endless(ScriptedModel):
        is_closed = False

        async def stream(self, *_asked: object) -> AsyncGenerator[Event, None]:
            try:
                while True:
                    yield TextDelta("on and on ")
            finally:
                self.is_closed = True

    endless = Endless()
    async with model(endless).chat("Talk.").stream() as run:
        async for _ in run:
            break
    assert endless.is_closed
    assert run.stopped == "cancelled"
