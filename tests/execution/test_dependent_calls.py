"""Calls of one message that depend on each other: each is judged on the state that it will find."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from running_tools import answers, call

from ferrule.errors import ToolRetry
from ferrule.execution import ApprovalRequest, CallWatch, Decision, Executor, FileJournal, Pending, Policy
from ferrule.execution.decisions import pending_from_json, pending_to_json
from ferrule.execution.journal import read_entries
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.intent import Diff, Effect, Intent
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope

ASK, ALL = Policy(profile="ask"), Policy(profile="all")


def make_tools(folder: Path) -> list[Tool]:
    """A tool that writes a file, one that replaces a text, and one whose effects aren't known."""

    def plan(path: str, old: str, new: str) -> Intent:
        file = folder / path
        text = file.read_text() if file.exists() else ""
        if old not in text:
            raise ToolRetry(f"{old!r} isn't in {path}")
        after = text.replace(old, new) if old else new
        return Intent((Effect("write", str(file)),), Diff(path, text, after), text)

    @tool(intent=lambda arguments: plan(arguments["path"], "", arguments["text"]))
    async def write(path: str, text: str) -> str:
        """Write a file."""
        (folder / path).write_text(text)
        return "written"

    @tool(intent=lambda arguments: plan(arguments["path"], arguments["old"], arguments["new"]))
    async def edit(path: str, old: str, new: str) -> str:
        """Replace a text."""
        (folder / path).write_text((folder / path).read_text().replace(old, new))
        return "edited"

    @tool
    async def create(path: str) -> str:
        """Create a file; nothing says which."""
        (folder / path).write_text("one")
        return "created"

    @tool(read_only=True)
    async def look() -> str:
        """Look."""
        return "seen"

    return [write, edit, create, look]


def edit(name: str, old: str, new: str, path: str = "a"):
    return call("edit", name, path=path, old=old, new=new)


class Person:
    """Allows what it is asked about, one call after the other."""

    def __init__(self, **decisions: Decision) -> None:
        self.asked: list[ApprovalRequest] = []
        self.decisions = decisions

    async def decide(self, request: ApprovalRequest) -> Decision:
        self.asked.append(request)
        return self.decisions.get(request.call.id, Decision.allow())


class Crowd(Person):
    """The same for several calls at once."""

    async def decide_all(self, requests):
        return [await self.decide(request) for request in requests]


@pytest.mark.parametrize("first", [call("write", "c1", path="a", text="one"), call("create", "c1", path="a")])
@pytest.mark.parametrize("policy", [ALL, Policy(profile="accept-edits")])
def test_a_call_that_an_earlier_one_makes_possible_is_run(tmp_path, first, policy):
    calls = [first, edit("c2", "one", "two"), edit("c3", "two", "three")]
    with FileJournal(tmp_path / "journal") as journal:
        results = answers(make_tools(tmp_path), calls, CallScope(workspace=tmp_path), policy=policy, journal=journal)
    if first.name == "create" and policy is not ALL:  # which nobody can be asked about
        assert [result.status for result in results] == ["denied", "retry", "retry"]
        return
    assert [result.status for result in results] == ["ok", "ok", "ok"]
    assert (tmp_path / "a").read_text() == "three"
    assert {entry["event"] for entry in read_entries(tmp_path / "journal")} == {"started", "finished"}


@pytest.mark.parametrize("person", [Person, Crowd])
def test_a_person_is_shown_what_the_call_will_do(tmp_path, person):
    asked = person()
    calls = [call("write", "c1", path="a", text="one"), edit("c2", "one", "two")]
    results = answers(make_tools(tmp_path), calls, policy=ASK, approver=asked)
    assert [result.text for result in results] == ["written", "edited"]
    assert [(request.call.id, request.intent.preview, request.is_changed) for request in asked.asked] == [
        ("c1", Diff("a", "", "one"), False),
        ("c2", Diff("a", "one", "two"), False),
    ]


def test_what_depends_on_a_call_that_was_denied_is_judged_without_it(tmp_path):
    asked = Person(c1=Decision.deny("no new files"))
    calls = [call("write", "c1", path="a", text="one"), edit("c2", "one", "two"), call("look", "c3")]
    results = answers(make_tools(tmp_path), calls, policy=ASK, approver=asked)
    assert [(result.status, result.text) for result in results] == [
        ("denied", "error: denied: no new files"),
        ("retry", "error: 'one' isn't in a"),
        ("ok", "seen"),
    ]


def test_what_was_approved_is_asked_about_again_only_if_it_has_changed(tmp_path):
    (tmp_path / "a").write_text("one\n" + "\n" * 9 + "two\n")
    asked = Person()
    calls = [edit("c1", "one", "ONE"), edit("c2", "two", "TWO"), edit("c3", "T", "t")]
    results = answers(make_tools(tmp_path), calls, policy=ASK, approver=asked)
    assert [result.status for result in results] == ["ok", "ok", "ok"]
    assert (tmp_path / "a").read_text() == "ONE\n" + "\n" * 9 + "tWO\n"
    assert [(request.call.id, request.is_changed) for request in asked.asked] == [
        ("c1", False), ("c2", False), ("c3", False),
    ]  # fmt: skip


def test_a_call_that_was_allowed_may_need_approval_by_the_time_it_runs(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside / "notes", outside):
        folder.mkdir(parents=True)
    (outside / "a").write_text("private")

    @tool(intent=lambda _: Intent((Effect("write", str(inside)),)))
    async def swap() -> str:
        """Put a link in the place of the folder."""
        (inside / "notes").rmdir()
        (inside / "notes").symlink_to(outside)
        return "swapped"

    asked = Person(c2=Decision.deny("not there"))
    calls = [call("swap", "c1"), call("write", "c2", path="notes/a", text="mine")]
    results = answers(
        [swap, *make_tools(inside)], calls, CallScope(workspace=inside), policy=Policy(profile="accept-edits"),
        approver=asked,
    )  # fmt: skip
    assert [result.text for result in results] == ["swapped", "error: denied: not there"]
    assert "outside the workspace" in asked.asked[0].reason
    assert asked.asked[0].intent.preview == Diff("notes/a", "private", "mine")
    assert (outside / "a").read_text() == "private"


def test_without_a_call_that_may_write_before_it_a_failure_is_final(tmp_path):
    log: list[str] = []

    def fail(_arguments: object) -> Intent:
        log.append("judged")
        raise ToolRetry("there is nothing")

    @tool(intent=fail)
    async def act() -> str:
        """Act."""
        return "done"

    calls = [call("look", "c1"), call("nix", "c2"), edit("c3", "x", "y"), call("act", "c4"), call("act", "c5")]
    results = answers([act, *make_tools(tmp_path)], calls, policy=ALL)
    assert [result.status for result in results] == ["ok", "unknown_tool", "retry", "retry", "retry"]
    assert log == ["judged", "judged"]


def test_arguments_that_are_invalid_stay_so(tmp_path):
    calls = [call("create", "c1", path="a"), call("edit", "c2", path="a", old=1)]
    results = answers(make_tools(tmp_path), calls, policy=ALL)
    assert [result.status for result in results] == ["ok", "invalid"]


def test_calls_after_one_that_could_not_be_judged_wait_for_it(tmp_path):
    (tmp_path / "b").write_text("one")
    calls = [
        call("create", "c1", path="a"), edit("c2", "one", "two"), edit("c3", "two", "three"),
        edit("c4", "one", "two", "b"), edit("c5", "two", "three", "b"), call("look", "c6"),
    ]  # fmt: skip
    results = answers(make_tools(tmp_path), calls, policy=ALL)
    assert [result.status for result in results] == ["ok"] * 6
    assert [(tmp_path / name).read_text() for name in "ab"] == ["three", "three"]


def test_a_pause_waits_with_what_an_earlier_call_has_made_possible(tmp_path):
    tools = make_tools(tmp_path)
    calls = [
        call("look", "c1"),
        call("write", "c2", path="a", text="one"),
        edit("c3", "one", "two"),
        call("look", "c4"),
    ]
    first = answers(tools, calls, policy=ASK, on_ask="pause")
    assert [type(one) for one in first[1:]] == [Pending] * 3
    assert [one.request is not None for one in first[1:]] == [True, False, False]
    decisions = {"c2": first[1].decide(Decision.allow())}
    second = answers(tools, calls[1:], decisions=decisions, policy=ASK, on_ask="pause")
    assert second[0].text == "written"
    waiting = pending_from_json(pending_to_json(second[1]))
    assert waiting == second[1]
    assert waiting.request.intent.preview == Diff("a", "one", "two")
    assert isinstance(second[2], Pending)
    decisions = {"c3": waiting.decide(Decision.allow())}
    third = answers(tools, calls[2:], decisions=decisions, policy=ASK, on_ask="pause")
    assert [one.text for one in third] == ["edited", "seen"]
    assert (tmp_path / "a").read_text() == "two"


def test_a_decision_on_what_has_changed_meanwhile_is_asked_for_again(tmp_path):
    (tmp_path / "a").write_text("one")
    tools, calls = make_tools(tmp_path), [edit("c1", "one", "two one"), edit("c2", "one", "1"), call("look", "c3")]
    first = answers(tools, calls, policy=ASK, on_ask="pause")
    decisions = {one.call.id: one.decide(Decision.allow()) for one in first[:2]}
    done, changed, held = answers(tools, calls, decisions=decisions, policy=ASK, on_ask="pause")
    assert done.text == "edited"
    assert changed.request.is_changed
    assert pending_from_json(pending_to_json(changed)).request.is_changed
    assert changed.request.intent.preview == Diff("a", "two one", "two 1")
    assert held == Pending(calls[2], "waits for the decision on an earlier call")
    decisions = {"c2": changed.decide(Decision.allow())}
    assert [one.text for one in answers(tools, calls[1:], decisions=decisions, policy=ASK, on_ask="pause")] == [
        "edited",
        "seen",
    ]
    # Where nobody can be asked later either, it is denied.
    (tmp_path / "a").write_text("one")
    decisions = {one.call.id: one.decide(Decision.allow()) for one in first[:2]}
    result = answers(tools, calls, decisions=decisions, policy=ASK)[1]
    assert result.text == "error: denied: what the call would do has changed since it was approved; look at it again"


def test_a_run_that_is_cancelled_while_a_later_call_is_asked_about_records_it(tmp_path):
    class Waiting(Person):
        async def decide(self, request):
            if request.call.id == "c2":
                raise asyncio.CancelledError
            return Decision.allow()

    async def run():
        async with ToolRegistry(make_tools(tmp_path)).open() as bound:
            with FileJournal(tmp_path / "journal") as journal:
                executor = Executor(bound, policy=ASK, approver=Waiting(), journal=journal)
                calls = [call("write", "c1", path="a", text="one"), edit("c2", "one", "two")]
                await executor.run_all(
                    calls, CallScope(), watch=CallWatch(on_result=lambda one: results.append(one.text))
                )

    results: list[str] = []
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert results == ["written"]
    entries = [(entry["event"], entry["call"]) for entry in read_entries(tmp_path / "journal")]
    assert entries[:2] == [("started", "c1"), ("finished", "c1")]
    assert entries[2][1] == "c2"
