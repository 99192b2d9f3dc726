"""Resuming the open calls of a saved conversation: each runs at most once, whoever resumes it, and however often."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferrule import Conversation, Decision, FileJournal, Policy, ToolCall, ToolRegistry, Toolset, assistant, tool, user
from ferrule.errors import ConversationError, PolicyError
from ferrule.execution import Executor, Pending
from ferrule.execution.journal import read_entries
from ferrule.store import Store
from ferrule.tools.scope import CallScope

ASK = Policy(profile="ask")


class Trips(Toolset):
    """Books trips, and remembers them."""

    def __init__(self) -> None:
        self.booked: list[str] = []
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()

    @tool
    async def book(self, city: str) -> str:
        """Book a trip."""
        self.booked.append(city)
        if city == "Slow":
            self.begun.set()
            await self.may_end.wait()
        return f"booked {city}"


def paused(*cities: str) -> Conversation:
    calls = [ToolCall(f"call_{number}", "book", {"city": city}) for number, city in enumerate(cities, 1)]
    return Conversation((user("Trips, please."), assistant(*calls)))


async def save_paused(store: Store, *cities: str) -> tuple[str, list[Pending]]:
    conversation = paused(*cities)
    async with ToolRegistry([Trips]).open() as bound:
        waiting = await Executor(bound, policy=ASK, on_ask="pause").run_all(
            conversation.pending, CallScope(conversation=conversation)
        )
    pending = [one for one in waiting if isinstance(one, Pending)]
    return store.save(conversation, pending=pending), pending


def allow(pending: list[Pending]) -> dict[str, Decision]:
    return {one.call.id: one.decide(Decision.allow(by="me")) for one in pending}


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "talks.db" if request.param == "file" else ":memory:") as opened:
        yield opened


async def test_a_call_runs_once_and_its_result_is_saved(store: Store) -> None:
    trips = Trips()
    name, pending = await save_paused(store, "Rome")
    resumed = await store.resume(name, trips, policy=ASK, decisions=allow(pending))
    assert resumed == store.load(name)
    assert resumed.conversation.messages[-1].result.text == "booked Rome"
    assert resumed.pending == ()
    with pytest.raises(ConversationError, match=f"the conversation {name} has no open call to run: its last call"):
        await store.resume(name, trips, policy=ASK, decisions=allow(pending))
    assert trips.booked == ["Rome"]


async def test_decisions_that_were_saved_count_and_the_others_keep_waiting(store: Store) -> None:
    trips = Trips()
    name, pending = await save_paused(store, "Rome", "Oslo", "Bonn")
    store.save(store.load(name).conversation, id=name, decisions={"call_1": pending[0].decide(Decision.deny("far"))})
    first = await store.resume(name, [trips], policy=ASK, decisions=allow(pending[1:2]))
    assert [message.result.status for message in first.conversation.messages[2:]] == ["denied", "ok"]
    assert [one.call.id for one in first.pending] == ["call_3"]
    last = await store.resume(name, ToolRegistry([trips]), policy=ASK, decisions=allow(pending))
    assert [message.result.status for message in last.conversation.messages[2:]] == ["denied", "ok", "ok"]
    assert trips.booked == ["Oslo", "Bonn"]


async def test_calls_that_are_running_are_not_resumed(store: Store) -> None:
    trips = Trips()
    name, pending = await save_paused(store, "Slow")
    running = asyncio.create_task(store.resume(name, trips, decisions=allow(pending)))
    await trips.begun.wait()
    with pytest.raises(ConversationError, match=f"the calls of {name} are being run"):
        await store.resume(name, trips, decisions=allow(pending))
    other, waiting = await save_paused(store, "Rome")
    assert (await store.resume(other, Trips(), decisions=allow(waiting))).pending == ()
    trips.may_end.set()
    assert (await running).conversation.messages[-1].result.text == "booked Slow"
    assert trips.booked == ["Slow"]


async def test_a_fork_does_not_run_a_call_again(store: Store) -> None:
    trips = Trips()
    name, pending = await save_paused(store, "Rome")
    fork = store.fork(name)
    stale = store.load(name).conversation
    await store.resume(name, trips, decisions=allow(pending))
    # A program that had loaded it before, and saves a decision now, gets a fork.
    late = store.save(stale, id=name, decisions=allow(pending))
    for copy in (fork, late):
        with pytest.raises(ConversationError, match=f"'call_1' was run by the conversation {name}, which shares it"):
            await store.resume(copy, trips, decisions=allow(pending))
    assert trips.booked == ["Rome"]
    store.delete(name)
    left = await store.resume(fork, trips, decisions=allow(pending))
    assert left.conversation.messages[-1].result.status == "interrupted"


async def test_a_fork_runs_the_calls_that_were_not_run_before_it(store: Store) -> None:
    trips = Trips()
    name, pending = await save_paused(store, "Rome", "Oslo")
    await store.resume(name, trips, policy=ASK, decisions=allow(pending[:1]))
    resumed = await store.resume(store.fork(name), trips, policy=ASK, decisions=allow(pending))
    assert [message.result.text for message in resumed.conversation.messages[2:]] == ["booked Rome", "booked Oslo"]
    assert trips.booked == ["Rome", "Oslo"]


async def test_a_cancelled_resume_answers_what_was_running(store: Store) -> None:
    @tool(serial=True)
    def pay(amount: int) -> str:
        """Pay."""
        raise AssertionError(amount)

    trips = Trips()
    conversation = paused("Rome", "Slow")
    asked = assistant(*conversation.pending, ToolCall("call_3", "pay", {"amount": 3}))
    name = store.save(Conversation((conversation.messages[0], asked)))
    running = asyncio.create_task(store.resume(name, [trips, pay]))
    await trips.begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    left = store.load(name).conversation
    assert [message.result.status for message in left.messages[2:]] == ["ok", "cancelled"]
    assert [call.id for call in left.pending] == ["call_3"]


_CRASHES = """
import asyncio, sys
from pathlib import Path
from ferrule import tool
from ferrule.store import Store

@tool
async def book(city: str) -> str:
    "Book a trip."
    with Path(sys.argv[3]).open("a") as done:
        done.write(city + "\\n")
    if city == "Rome":
        return "booked Rome"
    print("begun", flush=True)
    await asyncio.sleep(600)

with Store(sys.argv[1]) as store:
    asyncio.run(store.resume(sys.argv[2], book))
"""


async def test_a_call_of_a_program_that_was_killed_is_not_run_again(tmp_path: Path) -> None:
    path, done = tmp_path / "talks.db", tmp_path / "done.txt"
    trips = Trips()
    with Store(path) as store:
        name = store.save(paused("Rome", "Slow", "Oslo"))
        other = subprocess.Popen(
            [sys.executable, "-c", _CRASHES, str(path), name, str(done)], stdout=subprocess.PIPE, text=True
        )
        assert other.stdout is not None
        assert other.stdout.readline() == "begun\n"
        with pytest.raises(ConversationError, match="are being run, by another program"):
            await store.resume(name, trips)
        other.kill()
        other.communicate()
        begun = sorted(done.read_text().split())
        resumed = (await store.resume(name, trips)).conversation
    results = [message.result for message in resumed.messages[2:]]
    assert (results[0].text, results[1].status) == ("booked Rome", "interrupted")
    assert sorted([*begun, *trips.booked]) == ["Oslo", "Rome", "Slow"]
    assert not list(tmp_path.glob("*-resumed-*"))


async def test_a_begun_call_after_one_that_was_not_begun_is_not_run_again(store: Store, tmp_path: Path) -> None:
    trips = Trips()
    name = store.save(paused("Rome", "Oslo"))
    with FileJournal(tmp_path / "calls") as journal:
        fields = {"call": "call_2", "tool": "book", "arguments": {"city": "Oslo"}}
        journal.record("started", journal.make_key(), fields)
        resumed = await store.resume(name, trips, journal=journal)
    assert [message.result.status for message in resumed.conversation.messages[2:]] == ["ok", "interrupted"]
    assert trips.booked == ["Rome"]
    recorded = [(entry["event"], entry["call"], entry.get("status")) for entry in read_entries(tmp_path / "calls")]
    assert recorded[1:] == [
        ("finished", "call_2", "interrupted"),
        ("started", "call_1", None),
        ("finished", "call_1", "ok"),
    ]


async def test_what_can_not_be_resumed_is_refused_before_anything_runs(store: Store) -> None:
    trips = Trips()
    name, pending = await save_paused(store, "Rome")
    with pytest.raises(ConversationError, match="there is no call 'call_7' to decide on; open are: call_1"):
        await store.resume(name, trips, decisions={"call_7": pending[0].decide(Decision.allow())})
    with pytest.raises(PolicyError, match=r"isn't bound to a request; use Pending\.decide"):
        await store.resume(name, trips, policy=ASK, decisions={"call_1": Decision.allow()})
    assert store.load(name).decisions == {}
    with pytest.raises(ConversationError, match="'call_1' waits for the tool 'book', which isn't offered"):
        await store.resume(name, [], decisions=allow(pending))
    with pytest.raises(ConversationError, match="has no open call to run: it has none"):
        await store.resume(store.save(Conversation((user("Hello"),))), trips)
    with pytest.raises(ConversationError, match="no conversation has the id 'zz'"):
        await store.resume("zz", trips)
    assert trips.booked == []
    assert store.load(name).pending == tuple(pending)


def test_a_program_without_an_event_loop_resumes(tmp_path: Path) -> None:
    @tool
    def book(city: str) -> str:
        """Book a trip."""
        return f"booked {city}"

    with Store(tmp_path / "talks.db") as store:
        resumed = store.resume_sync(store.save(paused("Rome")), book)
    assert resumed.conversation.messages[-1].result.text == "booked Rome"
