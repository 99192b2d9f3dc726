"""What is left of a run that an error or its time ended: the conversation, the text that was streamed, its watchers."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from ferrule import Conversation, Run, ToolCall, Toolset, model, tool
from ferrule.agent.hooks import Hooks, RunState
from ferrule.agent.pipeline import Pipeline
from ferrule.errors import ModelError, OutputInvalid, ToolRequired
from ferrule.events import Event, TextDelta
from ferrule.execution import ApprovalRequest, Decision, Policy
from ferrule.models.protocol import ModelSettings
from ferrule.models.scripted import ScriptedModel
from ferrule.toolspec import ToolSpec


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


PAY = ToolCall("a", "pay", '{"amount": 3}')


async def test_an_error_has_the_run_with_what_was_done() -> None:
    watched: list[Run[Any]] = []
    pipeline = model(ScriptedModel(PAY)).chat("Pay.").using(pay).watch(watched.append)
    with pytest.raises(ModelError) as raised:
        await pipeline.run()
    run = raised.value.run
    assert run is not None
    assert [run] == watched
    assert (run.stopped, run.error) == ("error", raised.value)
    assert run.conversation.messages[-1].result.text == "paid 3"
    again = model(ScriptedModel("It is paid.")).using(pay)
    assert (await again.chat(run.conversation).run()).text == "It is paid."


async def test_every_error_has_the_run() -> None:
    with pytest.raises(OutputInvalid) as invalid:
        await model(ScriptedModel("no")).chat("How many?").parse_as(int, retries=0).run()
    assert invalid.value.run is not None
    assert invalid.value.run.text == "no"
    with pytest.raises(ToolRequired) as required:
        await model(ScriptedModel("no")).chat("Pay.").using(pay, force=True).within(rounds=1).run()
    assert required.value.run is not None
    assert required.value.run.text == "no"


async def test_a_stream_that_failed_says_so() -> None:
    async with model(ScriptedModel()).chat("?").stream() as run:
        with pytest.raises(ModelError):
            _ = [event async for event in run]
    assert run.stopped == "error"


class _FailingApprover:
    async def decide(self, request: ApprovalRequest) -> Decision:
        raise ConnectionError(request.tool)


async def test_calls_are_answered_if_the_approver_fails() -> None:
    pipeline = model(ScriptedModel(PAY)).chat("Pay.")
    with pytest.raises(ConnectionError) as raised:
        await pipeline.using(pay, policy=Policy(profile="ask"), approver=_FailingApprover()).run()
    run = raised.value.run  # type: ignore[attr-defined]
    run.conversation.check()
    assert not run.conversation.pending


async def test_an_error_of_a_watcher_is_a_note_on_the_error_that_ended_the_run() -> None:
    def watch(_run: Run[Any]) -> None:
        raise ValueError("the disk is full")

    with pytest.raises(ModelError) as raised:
        await model(ScriptedModel()).chat("?").watch(watch).run()
    assert raised.value.__notes__ == ["A callback of watch raised ValueError: the disk is full"]


async def test_an_error_of_a_watcher_has_the_run_and_the_others_are_called() -> None:
    seen: list[str] = []

    def fail(run: Run[Any]) -> None:
        seen.append(run.text)
        raise ValueError(f"the disk is full ({len(seen)})")

    def make() -> Pipeline[Any]:
        return (
            model(ScriptedModel("Done.")).chat("?").watch(fail).watch(fail).watch(lambda run: seen.append(run.stopped))
        )

    with pytest.raises(ValueError, match=r"the disk is full \(1\)") as raised:
        await make().run()
    run = raised.value.run  # type: ignore[attr-defined]
    assert (run.stopped, run.error, run.text) == ("done", None, "Done.")
    assert raised.value.__notes__ == ["A callback of watch raised ValueError: the disk is full (2)"]
    assert seen == ["Done.", "Done.", "done"]
    async with make().stream() as streamed:
        with pytest.raises(ValueError, match="the disk is full"):
            _ = [event async for event in streamed]
    (kept,) = await make().run_many(1, errors="keep")
    assert (kept.stopped, kept.text) == ("done", "Done.")
    assert isinstance(kept.error, ValueError)


@tool
async def wait() -> str:
    """Wait."""
    await asyncio.sleep(600)
    return ""


async def test_a_cancelled_run_is_that_of_the_cancellation() -> None:
    started = asyncio.Event()
    pipeline = model(ScriptedModel([PAY, ToolCall("b", "wait", "{}")])).chat("Pay.").using(pay, wait)
    pipeline = pipeline.hook(_Signals(started))
    task = asyncio.create_task(pipeline.run())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as raised:
        await task
    run = raised.value.run  # type: ignore[attr-defined]
    assert run.stopped == "cancelled"
    assert not run.conversation.pending
    with pytest.raises(TimeoutError) as late:
        await asyncio.wait_for(model(_SlowModel()).chat("?").run(), 0.01)
    assert late.value.__cause__.run.stopped == "cancelled"  # type: ignore[union-attr]


async def test_a_batch_that_ended_early_has_its_runs() -> None:
    with pytest.raises(ModelError) as failed:
        await model(ScriptedModel("One.")).run_batch(["1", "2"], concurrency=1)
    assert [one.text for one in failed.value.runs] == ["One.", ""]  # type: ignore[attr-defined]
    task = asyncio.create_task(model(_SlowModel()).run_batch(["1", "2"]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await task
    assert len(cancelled.value.runs) == 2  # type: ignore[attr-defined]


class _Signals(Hooks):
    def __init__(self, started: asyncio.Event) -> None:
        self._started = started

    async def after_message(self, state: RunState) -> None:
        self._started.set()


class Account(Toolset):
    @tool
    def balance(self) -> int:
        """Tell the balance."""
        return 3

    def close(self) -> None:
        raise OSError("gone")


async def test_tools_that_fail_to_close_leave_a_run_as_it_ended() -> None:
    with pytest.warns(RuntimeWarning, match="closing the tools of a run failed: OSError: gone"):
        run = await model(ScriptedModel("3")).chat("?").using(Account).run()
    assert (run.text, run.stopped) == ("3", "done")


class _SlowModel(ScriptedModel):
    async def stream(
        self,
        conversation: Conversation,
        tools: Sequence[ToolSpec],
        settings: ModelSettings,
    ) -> AsyncGenerator[Event, None]:
        yield TextDelta("Once upon ")
        yield TextDelta("a time")
        await asyncio.sleep(600)


async def test_text_that_was_streamed_before_the_time_was_over_is_kept() -> None:
    run = await model(_SlowModel()).chat("Tell.").within(seconds=0.2).run()
    assert (run.stopped, run.text) == ("time", "Once upon a time")
