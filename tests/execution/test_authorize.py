"""Asking, deciding, pausing and resuming, with real approvers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from running_tools import answer, answers, call

from ferrule.conversation import MalformedCall
from ferrule.errors import PolicyError
from ferrule.execution import ApprovalRequest, Decision, Executor, FileJournal, Pending, Policy, Rule, SessionGrants
from ferrule.execution.journal import read_entries
from ferrule.tools.decorator import tool
from ferrule.tools.intent import Effect, Intent
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope

ASK = Policy(profile="ask")


@dataclass
class Scripted:
    """Somebody who has made up their mind before; keeps what was asked."""

    answer: Callable[[ApprovalRequest], Decision]
    asked: list[ApprovalRequest] = field(default_factory=list)

    async def decide(self, request):
        self.asked.append(request)
        return self.answer(request)


@tool
async def double(number: int) -> int:
    """Double it."""
    return 2 * number


@tool(read_only=True)
async def look() -> str:
    """Look."""
    return "seen"


def test_nobody_to_ask_is_a_denial_that_says_so():
    result = answer(double, call("double", number=1), policy=ASK)
    assert result.status == "denied"
    assert result.text == (
        "error: denied: this call needs approval, and nobody can be asked "
        "(the profile ask asks before double, which isn't known to be read-only); "
        "pass policy=Policy([Rule(action='allow', tool='double')]), or an approver"
    )


def test_a_rules_reason_reaches_the_model():
    policy = Policy((Rule("deny", "double", reason="numbers stay as they are"),))
    assert answer(double, call("double", number=1), policy=policy).text == "error: denied: numbers stay as they are"


def test_yes_and_no():
    yes = Scripted(lambda _: Decision.allow("me"))
    assert answer(double, call("double", number="4"), policy=ASK, approver=yes).text == "8"
    request = yes.asked[0]
    assert (request.tool, request.arguments, request.always) == ("double", {"number": 4}, "every call of double")
    no = Scripted(lambda _: Decision.deny("not today"))
    assert answer(double, call("double", number=4), policy=ASK, approver=no).text == "error: denied: not today"
    silent = Scripted(lambda _: Decision.deny())
    assert (
        answer(double, call("double", number=4), policy=ASK, approver=silent).text == "error: denied: the user said no"
    )


def test_what_is_wrong_is_not_asked_about():
    nobody = Scripted(lambda _: Decision.allow())
    results = answers([double], [call("double", number="x"), call("none")], policy=ASK, approver=nobody)
    assert [result.status for result in results] == ["invalid", "unknown_tool"]
    assert nobody.asked == []


def test_all_is_decided_before_anything_runs():
    happened = []

    @tool
    async def act(name: str) -> str:
        """Act."""
        happened.append(f"ran {name}")
        return name

    def decision(request):
        happened.append(f"asked {request.call.id}")
        return Decision.allow()

    answers([act], [call("act", "a", name="a"), call("act", "b", name="b")], policy=ASK, approver=Scripted(decision))
    assert happened == ["asked a", "asked b", "ran a", "ran b"]


def test_an_edit_is_checked_judged_and_told(tmp_path):
    approver = Scripted(lambda _: Decision.edit({"number": "10"}, "me"))
    with FileJournal(tmp_path / "j") as journal:
        result = answer(double, call("double", number=4), policy=ASK, approver=approver, journal=journal)
    assert result.text == "20\n[the user changed the arguments before the call was run; number: 4 → 10]"
    started = read_entries(tmp_path / "j")[0]
    assert (started["arguments"], started["by"], started["reason"]) == ({"number": 10}, "me", "edited")
    forbids = Policy((Rule("deny", arguments={"number": "10"}, reason="ten is taken"),), "ask")
    assert answer(double, call("double", number=4), policy=forbids, approver=approver).text == (
        "error: denied: ten is taken"
    )


def test_a_wrong_edit_is_asked_about_again():
    def decision(request):
        return Decision.edit({"number": 5}) if request.problem else Decision.edit({"number": "many"})

    approver = Scripted(decision)
    assert answer(double, call("double", number=4), policy=ASK, approver=approver).text.startswith("10\n")
    assert "number: " in approver.asked[1].problem
    stubborn = Scripted(lambda _: Decision.edit({"count": 1}))
    assert answer(double, call("double", number=4), policy=ASK, approver=stubborn).status == "denied"
    assert len(stubborn.asked) == 3


def test_an_always_is_asked_once():
    approver = Scripted(lambda _: Decision.always("me"))

    async def run():
        async with ToolRegistry([double]).open() as bound:
            executor = Executor(bound, policy=ASK, approver=approver)
            results = [await executor.run(call("double", number=number), CallScope()) for number in (1, 2)]
            return [result.text for result in results], executor.policy

    texts, policy = asyncio.run(run())
    assert (texts, len(approver.asked)) == (["2", "4"], 1)
    assert policy.always == (Rule("allow", "double", location=double.location),)


def test_an_always_for_a_session_is_asked_once_in_all_its_runs():
    approver = Scripted(lambda _: Decision.always("me"))
    policy = Policy(profile="ask", grants=SessionGrants())
    results = [
        answer(double, call("double", number=number), policy=policy, approver=approver).text for number in (1, 2, 3)
    ]
    assert (results, len(approver.asked)) == (["2", "4", "6"], 1)
    other = Policy(profile="ask", grants=SessionGrants())
    answer(double, call("double", number=4), policy=other, approver=approver)
    assert len(approver.asked) == 2


def test_an_always_does_not_answer_for_a_rule():
    approver = Scripted(lambda _: Decision.always())
    policy = Policy((Rule("ask", "double"),))
    results = answers(
        [double], [call("double", "a", number=1), call("double", "b", number=2)], policy=policy, approver=approver
    )
    assert [result.text for result in results] == ["2", "4"]
    assert [request.always for request in approver.asked] == [None, None]


def test_a_pause_holds_back_what_comes_after_and_resumes_in_order(tmp_path):
    calls = [
        call("look", "c1"),
        call("double", "c2", number=2),
        call("look", "c3"),
        MalformedCall("c4", "<", "truncated"),
        call("double", "c5", number=5),
    ]

    async def run(journal):
        async with ToolRegistry([double, look]).open() as bound:
            executor = Executor(bound, policy=ASK, on_ask="pause", journal=journal)
            first = await executor.run_all(calls, CallScope())
            waiting = [one for one in first if isinstance(one, Pending)]
            assert [one.call.id for one in waiting] == ["c2", "c3", "c4", "c5"]
            assert [one.request is None for one in waiting] == [False, True, True, False]
            with pytest.raises(PolicyError, match="waits for an earlier one"):
                waiting[1].decide(Decision.allow())
            decisions = {
                "c2": waiting[0].decide(Decision.allow("me")),
                "c5": waiting[3].decide(Decision.deny("no", "me")),
            }
            return first[0], await executor.run_all(calls[1:], CallScope(), decisions=decisions)

    with FileJournal(tmp_path / "j") as journal:
        seen, rest = asyncio.run(run(journal))
    assert seen.text == "seen"
    assert [(one.call_id, one.status) for one in rest] == [
        ("c2", "ok"),
        ("c3", "ok"),
        ("c4", "invalid"),
        ("c5", "denied"),
    ]
    lines = [(line["event"], line["call"]) for line in read_entries(tmp_path / "j")]
    assert lines[:6] == [("started", "c1"), ("finished", "c1"), *(("pending", f"c{n}") for n in (2, 3, 4, 5))]


def test_a_decision_holds_only_for_what_it_was_made_on():
    async def run():
        async with ToolRegistry([double]).open() as bound:
            executor = Executor(bound, policy=ASK, on_ask="pause")
            pending = await executor.run(call("double", number=1), CallScope())
            yes = pending.decide(Decision.allow())
            with pytest.raises(PolicyError, match="isn't bound"):
                await executor.run(call("double", number=1), CallScope(), Decision.allow())
            other = await executor.run(call("double", number=1_000), CallScope(), yes)
            same = await executor.run(call("double", number=1), CallScope(), yes)
            edit = pending.decide(Decision.edit({"number": 3}))
            wrong = pending.decide(Decision.edit({"number": "x"}))
            edited = await executor.run(call("double", number=1), CallScope(), edit)
            unusable = await executor.run(call("double", number=1), CallScope(), wrong)
            return other, same, edited, unusable

    other, same, edited, unusable = asyncio.run(run())
    assert isinstance(other, Pending)
    assert same.text == "2"
    assert edited.text.startswith("6\n")
    assert "number: " in unusable.request.problem


def test_a_no_holds_even_where_the_policy_has_come_to_allow():
    async def run():
        async with ToolRegistry([double]).open() as bound:
            pending = await Executor(bound, policy=ASK, on_ask="pause").run(call("double", number=1), CallScope())
            no = pending.decide(Decision.deny("no"))
            return await Executor(bound).run(call("double", number=1), CallScope(), no)

    assert asyncio.run(run()).status == "denied"


def test_what_was_approved_must_still_be_so(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("one")

    def intent(arguments):
        return Intent((Effect("write", arguments["path"]),), f"- {path.read_text()}", str(hash(path.read_text())))

    @tool(intent=intent)
    def overwrite(path: str, text: str) -> str:
        """Write a file."""
        from pathlib import Path

        Path(path).write_text(text)
        return "written"

    one = call("overwrite", path=str(path), text="mine")

    def meanwhile(request):
        assert request.intent.preview == "- one"
        path.write_text("somebody else's")
        return Decision.allow()

    result = answer(overwrite, one, policy=ASK, approver=Scripted(meanwhile))
    assert result.text == "error: denied: what the call would do has changed since it was approved; look at it again"
    assert path.read_text() == "somebody else's"
    assert answer(overwrite, one, policy=ASK, approver=Scripted(lambda _: Decision.allow())).text == "written"


def test_a_rule_sees_the_functions_defaults():
    @tool
    async def send(text: str, mode: str = "loud") -> str:
        """Send it."""
        return mode

    policy = Policy((Rule("deny", arguments={"mode": "loud"}),))
    for one in (policy, Policy().narrow(policy), Policy((Rule("allow"),)).narrow(Policy().narrow(policy))):
        assert answer(send, call("send", text="x"), policy=one).status == "denied"
        assert answer(send, call("send", text="x", mode="quiet"), policy=one).text == "quiet"


def test_an_approver_that_fails_stops_the_run_before_anything_ran():
    happened = []

    @tool
    async def act() -> str:
        """Act."""
        happened.append("ran")
        return ""

    def fail(request):
        raise ConnectionError("the phone is off")

    with pytest.raises(ConnectionError):
        answers([look, act], [call("look"), call("act", "c2")], policy=ASK, approver=Scripted(fail))
    assert happened == []


def test_a_request_can_be_kept_as_json():
    async def run():
        async with ToolRegistry([double]).open() as bound:
            return await Executor(bound, policy=ASK, on_ask="pause").run(call("double", number=1), CallScope())

    pending = asyncio.run(run())
    assert json.loads(json.dumps(dict(pending.request.arguments))) == {"number": 1}
    assert len(pending.request.hash) == 64


@pytest.mark.parametrize("action", ["no", "denied", "Deny", "reject", "", None])
def test_a_decision_that_is_unknown_runs_nothing(action):
    with pytest.raises(PolicyError, match="a decision must be allow or deny or edit or always, not"):
        Decision(action)


@pytest.mark.parametrize("given", ["deny", "allow", False, True, None])
def test_an_approver_that_answers_with_something_else_runs_nothing(given):
    ran = []

    @tool
    async def act() -> None:
        """Act."""
        ran.append(1)

    with pytest.raises(PolicyError, match="a decision on 'call_1' must be a Decision, not"):
        answer(act, call("act"), policy=ASK, approver=Scripted(lambda _: given))
    assert ran == []


def test_an_approver_that_is_not_async_is_named():
    class Sync:
        def decide(self, _request):
            return Decision.allow()

    with pytest.raises(PolicyError, match=r"Sync\.decide must be async, and return a Decision"):
        answer(double, call("double", number=1), policy=ASK, approver=Sync())


def test_a_decision_on_a_pause_that_is_none_is_refused():
    async def run():
        async with ToolRegistry([double]).open() as bound:
            executor = Executor(bound, policy=ASK, on_ask="pause")
            await executor.run_all([call("double", number=1)], CallScope(), decisions={"call_1": True})

    with pytest.raises(PolicyError, match="the decision on 'call_1' must be a Decision, not True"):
        asyncio.run(run())
