"""What a call would do is found out off the event loop, within the call's time."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from running_tools import answer, call

from ferrule.execution import Executor, Policy, Rule
from ferrule.tools.decorator import tool
from ferrule.tools.intent import Effect, Intent
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope
from ferrule.tools.toolset import Toolset

EDITS = Policy(profile="accept-edits")
WRITES = Intent((Effect("write", "a"),))


def test_a_blocking_intent_leaves_the_loop_free():
    """It waits for what only the loop can do meanwhile."""
    seen: list[threading.Thread] = []
    told = threading.Event()

    def intent(_arguments):
        seen.append(threading.current_thread())
        assert told.wait(30)
        return WRITES

    @tool(intent=intent)
    async def act() -> str:
        """Act."""
        return "done"

    async def run():
        async with ToolRegistry([act]).open() as bound:
            running = asyncio.create_task(Executor(bound, policy=EDITS).run(call("act"), CallScope()))
            while not seen:
                await asyncio.sleep(0.001)
            told.set()
            return await running

    assert asyncio.run(run()).text == "done"
    assert seen[0] is not threading.main_thread()


def test_an_async_intent_is_awaited():
    async def intent(arguments):
        await asyncio.sleep(0)
        return Intent((Effect("run", arguments["command"]),))

    @tool(intent=intent)
    async def act(command: str) -> str:
        """Act."""
        return command

    result = answer(act, call("act", command="make"), policy=EDITS)
    assert "(the profile accept-edits asks before act may run make); " in result.text


def blocking(_arguments):
    time.sleep(60)
    return WRITES


async def endless(_arguments):
    await asyncio.sleep(60)
    return WRITES


@pytest.mark.parametrize("intent", [blocking, endless])
def test_an_intent_has_the_time_of_its_call(intent):
    happened = []

    @tool(intent=intent, timeout=0.05)
    async def act() -> str:
        """Act."""
        happened.append("ran")
        return ""

    result = answer(act, call("act"), policy=EDITS)
    assert result.status == "timeout"
    assert result.text == "error: not started: finding out what it would do took too long; it had no effect"
    assert happened == []


def raising(error):
    def intent(_arguments):
        raise error

    return intent


async def cancelled(_arguments):
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("intent", "text"),
    [
        (raising(ValueError("no such file")), "error: ValueError: no such file"),
        (raising(TimeoutError("the disk sleeps")), "error: TimeoutError: the disk sleeps"),
        (raising(SystemExit(3)), "error: SystemExit: 3"),
        (cancelled, "error: CancelledError"),
        (lambda _arguments: "writes", "error: the intent of act is a str, not an Intent"),
        (lambda _arguments: endless, "error: the intent of act is a function, not an Intent"),
    ],
)
def test_an_intent_that_fails_is_a_failed_call(intent, text):
    @tool(intent=intent)
    async def act() -> str:
        """Act."""
        return ""

    result = answer(act, call("act"), policy=EDITS)
    assert (result.status, result.text) == ("error", text)


class Files(Toolset):
    """Files that share a folder; an intent is one of its methods."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def preview_write(self, arguments):
        return Intent((Effect("write", f"{self.folder}/{arguments['name']}"),))

    async def preview_drop(self, arguments):
        return Intent((Effect("run", f"rm {self.folder}/{arguments['name']}"),))

    @tool(intent=preview_write)
    def write(self, name: str) -> str:
        """Write."""
        return f"{self.folder}/{name}"

    @tool(intent=preview_drop)
    def drop(self, name: str) -> str:
        """Drop."""
        return name


def test_a_method_of_a_toolset_is_its_intent():
    policy = Policy((Rule("allow", target="/one/*"),), "ask")
    assert answer(Files("/one"), call("write", name="a"), policy=policy).text == "/one/a"
    assert (
        answer(Files("/two"), call("write", name="a"), policy=policy)
        .text.partition(")")[0]
        .endswith("write may write /two/a")
    )
    assert (
        answer(Files("/one"), call("drop", name="a"), policy=policy)
        .text.partition(")")[0]
        .endswith("drop may run rm /one/a")
    )
