"""An exit or interruption that a callback, a model or a tool raises reaches the caller of the synchronous functions."""

import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import pytest

from ferrule import Conversation, Policy, ToolCall, model, tool
from ferrule.agent.hooks import Hooks, RunState
from ferrule.agent.pipeline import Pipeline
from ferrule.events import Event
from ferrule.execution import ApprovalRequest, Decision
from ferrule.models.protocol import ModelSettings
from ferrule.models.scripted import ScriptedModel
from ferrule.toolspec import ToolSpec
from tables import each_case

CALL = ToolCall("call_1", "wait", "{}")
END = "the program ends"


def interrupt() -> None:
    raise KeyboardInterrupt(END)


def leave() -> None:
    sys.exit(END)


class LeavingHook(Hooks):
    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    async def before_request(self, state: RunState) -> None:
        self._end()


class LeavingApprover:
    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    async def decide(self, request: ApprovalRequest) -> Decision:
        self._end()
        return Decision.allow()


class LeavingModel(ScriptedModel):
    def __init__(self, end: Callable[[], None]) -> None:
        super().__init__()
        self._end = end

    async def stream(
        self,
        conversation: Conversation,
        tools: Sequence[ToolSpec],
        settings: ModelSettings,
    ) -> AsyncGenerator[Event, None]:
        self._end()
        async for event in super().stream(conversation, tools, settings):
            yield event


@tool
async def wait() -> str:
    """Wait."""
    return "waited"


def make_pipelines(end: Callable[[], None]) -> dict[str, Pipeline[Any]]:
    @tool
    async def stop() -> str:
        """Stop the program."""
        end()
        return "stopped"

    asked = model(ScriptedModel(CALL, "done")).chat("Wait.").using(wait)
    stops = ScriptedModel(ToolCall("call_1", "stop", "{}"), "done")
    return {
        "watch": model("echo").chat("q").watch(lambda _: end()),
        "then": model("echo").chat("q").then(lambda _: end()),
        "hook": model("echo").chat("q").hook(LeavingHook(end)),
        "approver": asked.using(approver=LeavingApprover(end), policy=Policy(profile="ask")),
        "model": model(LeavingModel(end)).chat("q"),
        "tool": model(stops).chat("Stop.").using(stop),
    }


@each_case("where", ["watch", "then", "hook", "approver", "model"])
@each_case(("end", "kind"), [(leave, SystemExit), (interrupt, KeyboardInterrupt)])
def test_an_exit_reaches_the_caller(where: str, end: Callable[[], None], kind: type[BaseException]) -> None:
    with pytest.raises(kind, match=END):
        make_pipelines(end)[where].run_sync()
    assert model("echo").chat("still here").run_sync().text == "still here"


def test_an_interruption_in_an_async_tool_reaches_the_caller_and_an_exit_is_the_failure_of_its_call() -> None:
    with pytest.raises(KeyboardInterrupt):
        make_pipelines(interrupt)["tool"].run_sync()
    assert "SystemExit" in make_pipelines(leave)["tool"].run_sync().conversation.messages[2].result.text


def test_an_exit_reaches_the_reader_of_a_stream_and_of_a_batch() -> None:
    leaving = make_pipelines(leave)
    with pytest.raises(SystemExit), leaving["hook"].stream_sync() as run:
        list(run)
    with pytest.raises(SystemExit):
        leaving["watch"].run_many_sync(3)
    with pytest.raises(SystemExit):
        list(leaving["watch"].iterate_batch_sync(["a", "b"]))
    assert model("echo").chat("still here").run_sync().text == "still here"
