"""Callbacks, and their place among the tools; runs of many, and what they do together."""

from __future__ import annotations

import asyncio
import pickle

import pytest

from ferrule.agent.pipeline import Pipeline, model
from ferrule.agent.run import Run
from ferrule.builtin_tools import calculator
from ferrule.conversation import Conversation, ToolCall, assistant, user
from ferrule.errors import ConversationError, SettingsError
from ferrule.events import RunFinished
from ferrule.models.scripted import ScriptedModel
from ferrule.tools.decorator import tool

CALL = ToolCall("c1", "double", '{"n": 7}')


@tool
async def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def roles(run: Run) -> str:
    return " ".join(message.role for message in run.conversation.messages)


async def test_tools_are_answered_where_they_stand_among_the_callbacks() -> None:
    seen: list[str] = []

    def note(run: Run) -> None:
        seen.append(roles(run))

    await model(ScriptedModel(CALL, "14.")).chat("?").then(note).using(double).then(note).run()
    assert seen == ["user assistant", "user assistant tool assistant"]


async def test_a_callback_may_ask_again_and_calls_are_answered() -> None:
    async def doubt(run: Run) -> Conversation:
        return run.conversation.add(user("Are you sure? Look again."))

    scripted = ScriptedModel("14.", CALL, "Yes, 14.")
    run = await model(scripted).chat("?").using(double).then(doubt).run()
    assert run.text == "Yes, 14."
    assert roles(run) == "user assistant user assistant tool assistant"
    scripted.assert_used_up()


async def test_calls_are_answered_also_where_no_tools_were_given() -> None:
    run = await model(ScriptedModel(CALL, "I have no tools.")).chat("?").then(lambda _: None).run()
    assert roles(run) == "user assistant tool assistant"
    assert run.conversation.messages[2].result.status == "unknown_tool"


async def test_what_a_callback_gives_must_be_a_conversation_that_can_be() -> None:
    def wrong(_run: Run) -> str:
        return "so"

    def orphan(_run: Run) -> Conversation:
        return Conversation((assistant(CALL), assistant("?")))

    with pytest.raises(SettingsError, match=r"the callback .*wrong must return a Conversation or None, not str"):
        await model(ScriptedModel("14.")).chat("?").then(wrong).run()
    with pytest.raises(ConversationError, match="has no result"):
        await model(ScriptedModel("14.")).chat("?").then(orphan).run()


async def test_many_runs_are_independent_and_in_order() -> None:
    runs = await model(ScriptedModel("a", "b", "c")).chat("?").run_many(3)
    assert sorted(run.text for run in runs) == ["a", "b", "c"]
    batch = await model(ScriptedModel("a", "b")).system("Be brief.").run_batch(["one", user("two")], concurrency=1)
    assert [run.conversation.messages[1].text for run in batch] == ["one", "two"]
    assert [run.text for run in batch] == ["a", "b"]


async def test_an_error_of_one_among_many_is_raised_or_kept() -> None:
    pipeline = model(ScriptedModel("a")).chat("?")
    with pytest.raises(Exception, match="the script has ended"):
        await pipeline.run_many(3)
    runs = await model(ScriptedModel("a")).chat("?").run_many(3, errors="keep")
    assert sorted(run.stopped for run in runs) == ["done", "error", "error"]
    assert all((run.error is None) == (run.stopped == "done") for run in runs)


@pytest.mark.parametrize("concurrency", [None, 1, 2])
async def test_map_sees_all_runs_once_each_has_come_so_far(concurrency: int | None) -> None:
    seen: list[list[str]] = []

    async def best(runs: list[Run]) -> list[Conversation | None]:
        seen.append([run.text for run in runs])
        # The first goes on, the others are as they are.
        return [runs[0].conversation.add(user("More."))] + [None] * (len(runs) - 1)

    scripted = ScriptedModel("a", "b", "c", "and more")
    runs = await model(scripted).chat("?").map(best).run_many(3, concurrency=concurrency)
    assert [sorted(texts) for texts in seen] == [["a", "b", "c"]]
    assert runs[0].text == "and more"
    scripted.assert_used_up()


async def test_map_sees_a_single_run_too() -> None:
    seen: list[int] = []

    def more(runs: list[Run]) -> list[Conversation]:
        seen.append(len(runs))
        return [runs[0].conversation.add(user("More."))]

    def make() -> Pipeline:
        return model(ScriptedModel("a", "b", "c")).chat("?").map(more).map(more)

    run = await make().run()
    async with make().stream() as streamed:
        events = [event async for event in streamed]
    synchronous = await asyncio.to_thread(make().run_sync)
    (many,) = await make().run_many(1)
    assert [one.text for one in (run, streamed, synchronous, many)] == ["c"] * 4
    assert isinstance(events[-1], RunFinished)
    assert seen == [1] * 8
    with pytest.raises(
        SettingsError, match=r"of map must return None, or a list with a Conversation or None for each run \(1\)"
    ):
        await model(ScriptedModel("a")).chat("?").map(lambda runs: runs[0].conversation).run()


async def test_map_waits_for_no_run_that_has_ended() -> None:
    seen: list[int] = []
    script = ScriptedModel(CALL, "a", "b")
    pipeline = model(script).chat("?").using(double).within(rounds=1).map(lambda runs: seen.append(len(runs)))
    runs = await pipeline.run_many(3)
    assert sorted(run.stopped for run in runs) == ["done", "done", "rounds"]
    assert seen == [3]


async def test_an_error_of_a_map_callback_reaches_every_run() -> None:
    def wrong(_runs: list[Run]) -> list[Conversation]:
        return []

    with pytest.raises(SettingsError, match=r"a list with a Conversation or None for each run \(2\)"):
        await model(ScriptedModel("a", "b")).chat("?").map(wrong).run_many(2)


async def test_watchers_see_each_run_as_it_ends_however_it_does() -> None:
    seen: list[str] = []
    pipeline = (
        model(ScriptedModel(CALL, "a")).chat("?").using(double).within(rounds=1).watch(lambda r: seen.append(r.stopped))
    )
    await pipeline.run_many(2)
    assert sorted(seen) == ["done", "rounds"]


def test_the_synchronous_faces() -> None:
    assert [run.text for run in model(ScriptedModel("a", "a")).chat("?").run_many_sync(2)] == ["a", "a"]
    assert [run.text for run in model(ScriptedModel("a")).run_batch_sync(["?"])] == ["a"]
    with model(ScriptedModel(CALL, "14.")).chat("?").using(double).stream_sync() as run:
        kinds = [type(event).__name__ for event in run]
    assert kinds[-1] == "RunFinished"
    assert kinds.count("MessageFinished") == 2
    assert run.text == "14."


def test_leaving_a_synchronous_stream_cancels() -> None:
    @tool
    async def forever() -> str:
        """Never end."""
        await asyncio.sleep(60)
        return "never"

    with model(ScriptedModel(ToolCall("c1", "forever", "{}"))).chat("?").using(forever).stream_sync() as run:
        next(iter(run))
    assert run.stopped == "cancelled"
    run.conversation.check()
    assert not run.conversation.pending


def noted(run: Run) -> None:
    """A callback that another process can import."""
    assert run.text


def test_a_pipeline_goes_to_another_process_or_says_what_can_not() -> None:
    pipeline = model("embedded").chat("What is 12 * 12?").using(calculator).then(noted)
    again = pickle.loads(pickle.dumps(pipeline))
    assert again.run_sync().text == "12 × 12 is 144."
    with pytest.raises(SettingsError, match=r"because of the callback '.*<lambda>'"):
        pickle.dumps(pipeline.then(lambda _: None))

    @tool
    def local() -> int:
        """One that nobody can import."""
        return 1

    with pytest.raises(SettingsError, match=r"because of the tool 'local' \(code "):
        pickle.dumps(model("echo").using(local))
