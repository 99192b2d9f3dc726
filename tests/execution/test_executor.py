"""Every call is answered exactly once, in order, in words that a model can act on."""

from __future__ import annotations

import asyncio
import json
import tempfile
from typing import Annotated

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running_tools import answer, answers, call

from ferrule.conversation import MalformedCall, ToolCall
from ferrule.errors import ToolFailed, ToolRetry
from ferrule.execution import (
    CallWatch,
    Decision,
    Executor,
    Policy,
    Rule,
    make_cancelled_result,
    make_interrupted_result,
)
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope
from tables import each_case


@tool
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool
def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


def test_an_async_and_a_sync_tool_answer():
    first, second = answers([add, shout], [call("add", "c1", a=2, b=3), call("shout", "c2", text="hi")])
    assert (first.call_id, first.name, first.text, first.status) == ("c1", "add", "5", "ok")
    assert (second.call_id, second.text, second.is_error) == ("c2", "HI", False)


def test_no_calls_no_answers():
    assert answers([add], []) == []


def test_an_unknown_tool_is_answered_with_the_nearest():
    result = answer(add, call("ad", a=1))
    assert result.status == "unknown_tool"
    assert result.text == "error: unknown tool 'ad'; the nearest is: add"
    assert answer(add, call("zzzzzz")).text == "error: unknown tool 'zzzzzz'; there are: add"
    assert answers([], [call("x")])[0].text == "error: unknown tool 'x'; there are no tools; answer without one"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("truncated", "broke off"),
        ("unclosed", "closing marker"),
        ("invalid_json", "valid JSON"),
        ("no_name", "names no tool"),
        ("forged_result", "results come from the tools"),
        ("something_else", "something else"),
    ],
)
def test_a_malformed_call_is_answered_by_its_kind(kind, words):
    result = answer(add, MalformedCall("c9", "<tool_call>{", kind))
    assert (result.call_id, result.status) == ("c9", "invalid")
    assert result.text.startswith("error: ")
    assert words in result.text


def test_wrong_arguments_name_the_field():
    result = answer(add, call("add", a="seven"))
    assert result.status == "invalid"
    assert result.text.startswith("error: ")
    assert "a: " in result.text
    broken = answer(add, ToolCall("c", "add", '{"a": 1'))
    assert broken.status == "invalid"


def raising(error):
    def fail() -> str:
        """Fail."""
        raise error

    return Tool.from_callable(fail)


class Unsayable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@each_case(
    ("error", "status", "text"),
    [
        (ToolFailed("division by zero"), "error", "error: division by zero"),
        (ToolRetry("give a date as 2024-01-31"), "retry", "error: give a date as 2024-01-31"),
        (ValueError("no such row"), "error", "error: ValueError: no such row"),
        (ValueError(), "error", "error: ValueError"),
        (KeyError("city"), "error", "error: KeyError: 'city'"),
        (Unsayable(), "error", "error: Unsayable"),
        (SystemExit(2), "error", "error: SystemExit: 2"),
        (KeyboardInterrupt(), "error", "error: KeyboardInterrupt"),
        (StopIteration("x"), "error", "error: StopIteration: x"),
        (asyncio.CancelledError(), "error", "error: CancelledError"),
        (TypeError("<object at 0x7f8a11f0d3a0> is wrong"), "error", "error: TypeError: <object at 0x…> is wrong"),
        (TimeoutError("read took 3.0217 seconds"), "error", "error: TimeoutError: read took <duration>"),
        (
            OSError(f"no file {tempfile.gettempdir()}/tmpab12cd_3/in.txt"),
            "error",
            "error: OSError: no file <temporary>/in.txt",
        ),
        (
            RuntimeError("job 123e4567-e89b-12d3-a456-426614174000 failed"),
            "error",
            "error: RuntimeError: job <id> failed",
        ),
    ],
)
def test_what_a_tool_raises_becomes_its_answer(error, status, text):
    result = answer(raising(error), call("fail"))
    assert (result.status, result.text) == (status, text)


@pytest.mark.parametrize("error", [ToolFailed("no"), ValueError("no"), SystemExit(1), asyncio.CancelledError("no")])
def test_what_an_async_tool_raises_becomes_its_answer(error):
    async def fail() -> str:
        """Fail."""
        raise error

    assert answer(Tool.from_callable(fail), call("fail")).text.startswith("error: ")
    with_timeout = answer(Tool.from_callable(fail, timeout=5), call("fail"))
    assert with_timeout.status == "error"


def test_a_failing_message_keeps_what_the_model_wrote_itself():
    path = f"{tempfile.gettempdir()}/tmpab12cd_3"

    @tool
    def read(path: str) -> str:
        """Read."""
        raise FileNotFoundError(f"{path} and /tmp/tmpzz99yy_1/other")

    assert answer(read, call("read", path=path)).text == f"error: FileNotFoundError: {path} and <temporary>/other"


def test_a_failing_call_gives_the_same_text_each_time():
    def fail() -> str:
        """Fail at an object, whose text holds its address."""
        raise ValueError(f"{object()} in {tempfile.mkdtemp()}")

    texts = {answer(Tool.from_callable(fail), call("fail")).text for _ in range(3)}
    assert len(texts) == 1


def test_the_scope_is_filled_in_and_progress_is_heard():
    heard = []

    @tool(timeout=5)
    def where(city: str, scope: CallScope) -> dict[str, object]:
        """Tell of the call."""
        scope.report_progress("looking", 0.5)
        return {"id": scope.call.id, "left": round(scope.seconds_left)}

    result = answer(where, call("where", "c7", city="Oslo"), scope=CallScope(emit=heard.append))
    assert json.loads(result.text) == {"id": "c7", "left": 5}
    assert [(event.call_id, event.text, event.fraction) for event in heard] == [("c7", "looking", 0.5)]


def test_contextvars_reach_a_thread():
    from contextvars import ContextVar

    who = ContextVar("who", default="nobody")

    @tool
    def ask() -> str:
        """Say who."""
        return who.get()

    who.set("somebody")
    assert answer(ask, call("ask")).text == "somebody"


def test_a_run_answers_one_call():
    async def run():
        async with ToolRegistry([add]).open() as bound:
            return await Executor(bound).run(call("add", a=1), CallScope())

    assert asyncio.run(run()).text == "2"


def test_each_result_is_told_as_soon_as_it_is_there():
    told = []

    @tool
    async def wait(seconds: float) -> str:
        """Wait."""
        await asyncio.sleep(seconds)
        return str(seconds)

    async def run():
        async with ToolRegistry([wait]).open() as bound:
            calls = [call("wait", "slow", seconds=0.2), call("wait", "fast", seconds=0.01)]
            return await Executor(bound).run_all(calls, CallScope(), watch=CallWatch(on_result=told.append))

    assert [result.call_id for result in asyncio.run(run())] == ["slow", "fast"]
    assert [result.call_id for result in told] == ["fast", "slow"]


def test_who_watches_is_told_when_a_call_starts_and_as_what_it_runs():
    started = []

    class Editor:
        async def decide(self, request):
            return Decision.edit({"text": "edited"})

    @tool(approval="always")
    def say(text: str) -> str:
        """Say something."""
        assert started
        return text

    async def run():
        async with ToolRegistry([say]).open() as bound:
            executor = Executor(bound, approver=Editor())
            return await executor.run_all(
                [call("say", "a", text="hello")], CallScope(), watch=CallWatch(on_start=started.append)
            )

    assert asyncio.run(run())[0].text.startswith("edited\n")
    assert [(one.call.id, one.call.decode(), one.is_edited) for one in started] == [("a", {"text": "edited"}, True)]


def test_a_call_that_is_stopped_has_the_output_that_it_kept():
    told = []

    @tool
    async def count(scope: CallScope) -> str:
        """Count."""
        try:
            await asyncio.sleep(60)
        finally:
            scope.keep_output("1 2 3")
        return "all"

    async def run():
        async with ToolRegistry([count]).open() as bound:
            task = asyncio.create_task(
                Executor(bound).run(call("count"), CallScope(), watch=CallWatch(on_result=told.append))
            )
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())
    assert [result.status for result in told] == ["cancelled"]
    assert told[0].text.endswith("it may have taken effect\n1 2 3")


def test_answers_for_what_did_not_finish():
    assert make_cancelled_result(call("add")).text.startswith("error: cancelled: ")
    assert make_cancelled_result(MalformedCall("c", "x", "truncated")).status == "cancelled"
    assert make_interrupted_result(call("add")).status == "interrupted"


def test_an_intent_that_fails_is_answered():
    def intent(arguments):
        raise FileNotFoundError(arguments["name"])

    @tool(intent=intent)
    def read(name: str) -> str:
        """Read."""
        return name

    assert answer(read, call("read", name="a.txt")).text == "error: FileNotFoundError: a.txt"


@tool
async def any_of(value: Annotated[int | str, "A value"], times: int = 1) -> object:
    """Answer, or fail, in some way that the arguments choose."""
    if value == "raise":
        raise ValueError(times)
    if value == "retry":
        raise ToolRetry("again")
    return [value] * times


CALLS = st.one_of(
    st.builds(
        ToolCall,
        st.just("id"),
        st.sampled_from(["any_of", "shout", "anyof", "", "hidden"]),
        st.one_of(
            st.text(max_size=20),
            st.builds(
                json.dumps,
                st.dictionaries(
                    st.sampled_from(["value", "times", "text", "z"]),
                    st.one_of(st.integers(-3, 3), st.sampled_from(["raise", "retry", "\ud800", "x\x1b"]), st.none()),
                ),
            ),
        ),
    ),
    st.builds(MalformedCall, st.just("id"), st.text(max_size=20), st.text(max_size=10)),
)


@given(st.lists(CALLS, max_size=5))
@settings(max_examples=60, deadline=None)
def test_whatever_is_called_each_call_gets_one_answer_in_order(calls):
    calls = [type(one)(f"c{place}", *list(_fields(one))[1:]) for place, one in enumerate(calls)]
    policy = Policy((Rule("deny", "shout", reason="be quiet"),))
    results = answers([any_of, shout], calls, policy=policy)
    assert [result.call_id for result in results] == [one.id for one in calls]
    for result in results:
        assert result.is_error == result.text.startswith("error: ")
        result.text.encode()


def _fields(one):
    return (one.id, one.name, one.arguments) if isinstance(one, ToolCall) else (one.id, one.raw, one.kind)
