"""A running call that asks for more than its intent said: `CallScope.authorize`."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from running_tools import answer, answers, call

from ferrule.errors import ToolFailed
from ferrule.execution import (
    ApprovalRequest,
    Decision,
    FileJournal,
    Policy,
    Rule,
    SessionGrants,
    find_interrupted,
)
from ferrule.execution.journal import read_entries
from ferrule.session.terminal.approver import TerminalApprover
from ferrule.tools.decorator import tool
from ferrule.tools.intent import Effect, Intent
from ferrule.tools.scope import CallScope

ASK = Policy((Rule("allow", "fetch", effect="read"),), "ask")
WHY = "the profile ask asks before fetch may reach packages.example"


def reads(_arguments):
    return Intent((Effect("read", "."),))


@tool(intent=reads)
async def fetch(host: str, scope: CallScope) -> str:
    """Fetch from a host."""
    await scope.authorize(Intent((Effect("net", host),)))
    return f"reached {host}"


@dataclass
class Scripted:
    """Somebody who thinks for some seconds, and then gives this answer."""

    answer: Callable[[ApprovalRequest], Decision]
    seconds: float = 0
    asked: list[ApprovalRequest] = field(default_factory=list)

    async def decide(self, request):
        self.asked.append(request)
        await asyncio.sleep(self.seconds)
        return self.answer(request)


def test_the_policy_judges_what_a_running_call_asks_for():
    allows = Policy((*ASK.rules, Rule("allow", "fetch", effect="net", target="packages.example")), "ask")
    assert answer(fetch, call("fetch", host="packages.example"), policy=allows).text == "reached packages.example"
    denies = Policy((*ASK.rules, Rule("deny", target="evil.example", reason="not there")), "all")
    assert answer(fetch, call("fetch", host="evil.example"), policy=denies).text == "error: denied: not there"
    by_argument = Policy((Rule("deny", arguments={"host": "*.example"}, effect="net", reason="no examples"),), "all")
    assert answer(fetch, call("fetch", host="a.example"), policy=by_argument).text == "error: denied: no examples"


def test_a_person_is_asked_and_sees_what_it_is():
    yes = Scripted(lambda _: Decision.allow("me"))
    assert (
        answer(fetch, call("fetch", host="packages.example"), policy=ASK, approver=yes).text
        == "reached packages.example"
    )
    (request,) = yes.asked
    assert (request.is_running, request.arguments, request.reason) == (True, {"host": "packages.example"}, WHY)
    assert request.intent.effects == (Effect("net", "packages.example"),)
    no = Scripted(lambda _: Decision.deny("use the mirror"))
    assert answer(fetch, call("fetch", host="packages.example"), policy=ASK, approver=no).text == (
        "error: denied: use the mirror"
    )


def test_it_is_shown_as_a_running_call_that_can_not_be_edited():
    output = io.StringIO()
    approver = TerminalApprover(io.StringIO('e {"host": "x"}\ny\n'), output)
    assert (
        answer(fetch, call("fetch", host="packages.example"), policy=ASK, approver=approver).text
        == "reached packages.example"
    )
    shown = output.getvalue()
    assert shown.startswith("▸ fetch is running, and asks for more\n")
    assert "edit" not in shown
    edits = Scripted(lambda _: Decision.edit({"host": "x"}))
    assert answer(fetch, call("fetch", host="packages.example"), policy=ASK, approver=edits).text.startswith(
        "error: denied: "
    )
    assert edits.asked[1].problem == "the call is running; its arguments can't be changed any more"


@pytest.mark.parametrize(("on_ask", "cause"), [("deny", "nobody can be asked"), ("pause", "a running call can't wait")])
def test_where_nobody_can_be_asked_the_denial_says_so(on_ask, cause):
    result = answer(fetch, call("fetch", host="packages.example"), policy=ASK, on_ask=on_ask)
    assert result.text == (
        f"error: denied: this call needs approval, and {cause} ({WHY}); pass "
        "policy=Policy([Rule(action='allow', tool='fetch', effect='net', target='packages.example')]), or an approver"
    )


def test_an_always_answers_the_next_ones_also_those_that_ask_at_the_same_time():
    always = Scripted(lambda _: Decision.always("me"), seconds=0.05)
    policy = Policy(ASK.rules, "ask", grants=SessionGrants())
    calls = [call("fetch", f"c{number}", host="packages.example") for number in range(3)]
    texts = [one.text for one in answers([fetch], calls, policy=policy, approver=always)]
    assert (texts, len(always.asked)) == (["reached packages.example"] * 3, 1)
    assert answer(fetch, call("fetch", host="packages.example"), policy=policy, approver=always).status == "ok"
    answer(fetch, call("fetch", host="other.example"), policy=policy, approver=always)
    assert [request.arguments["host"] for request in always.asked] == ["packages.example", "other.example"]


def test_questions_come_one_at_a_time():
    open_questions = most = 0

    class Counting:
        async def decide(self, _request):
            nonlocal open_questions, most
            open_questions += 1
            most = max(most, open_questions)
            await asyncio.sleep(0.02)
            open_questions -= 1
            return Decision.allow()

    calls = [call("fetch", f"c{number}", host=f"h{number}") for number in range(3)]
    assert all(one.status == "ok" for one in answers([fetch], calls, policy=ASK, approver=Counting()))
    assert most == 1


def test_it_is_recorded_with_the_call(tmp_path):
    with FileJournal(tmp_path / "j") as journal:
        scripted = Scripted(lambda request: Decision.deny("no", "me"))
        answer(fetch, call("fetch", host="packages.example"), policy=ASK, approver=scripted, journal=journal)
    started, asked, finished = read_entries(tmp_path / "j")
    assert [one["event"] for one in (started, asked, finished)] == ["started", "authorization", "finished"]
    assert started["key"] == asked["key"] == finished["key"]
    assert (asked["decision"], asked["by"], asked["reason"]) == ("deny", "me", "no")
    assert asked["effects"] == [{"kind": "net", "target": "packages.example"}]
    assert finished["status"] == "error"


def test_a_call_that_asked_and_then_broke_off_counts_as_interrupted(tmp_path):
    with FileJournal(tmp_path / "j") as journal:
        key = journal.make_key()
        fields = {"call": "c", "tool": "fetch", "arguments": {}}
        journal.record("started", key, fields)
        journal.record("authorization", key, fields)
    assert [one.call_id for one in find_interrupted(tmp_path / "j")] == ["c"]


def test_the_timeout_stands_still_while_a_person_thinks():
    left = []

    @tool(timeout=0.2, intent=reads)
    async def slow(rest: float, scope: CallScope) -> str:
        """Ask, then take some time."""
        await scope.authorize(Intent((Effect("net", "a"),)))
        left.append(scope.seconds_left)
        await asyncio.sleep(rest)
        return "done"

    policy = Policy((Rule("allow", effect="read"),), "ask")
    thinks = Scripted(lambda _: Decision.allow(), seconds=0.6)
    assert answer(slow, call("slow", rest=0), policy=policy, approver=thinks).text == "done"
    assert 0 < left[0] <= 0.2
    result = answer(slow, call("slow", rest=5), policy=policy, approver=thinks)
    assert result.status == "timeout"


def test_the_deadline_of_the_run_holds_also_while_a_person_thinks():
    thinks = Scripted(lambda _: Decision.allow(), seconds=30)
    began = time.monotonic()
    scope = CallScope(deadline=began + 0.3)
    result = answer(fetch, call("fetch", host="a"), policy=ASK, approver=thinks, scope=scope)
    assert result.status == "timeout"
    assert time.monotonic() - began < 10


def test_the_timeout_of_a_call_stands_still_while_a_person_is_asked_for_a_call_inside_of_it():
    thinks = Scripted(lambda _: Decision.allow(), seconds=0.5)

    @tool(timeout=0.2)
    async def delegate() -> str:
        """Let another executor answer a call, as a sub-agent does."""
        from ferrule.execution import Executor
        from ferrule.tools.registry import ToolRegistry

        async with ToolRegistry([fetch]).open() as bound:
            executor = Executor(bound, policy=Policy(profile="ask"), approver=thinks)
            return (await executor.run(call("fetch", host="a"), CallScope())).text

    assert answer(delegate, call("delegate")).text == "reached a"


def test_a_scope_without_an_executor_allows_nothing():
    with pytest.raises(ToolFailed, match=r"denied: .* only an executor can give them"):
        asyncio.run(CallScope().authorize(Intent((Effect("read", "a"),))))


def test_something_other_than_an_intent_is_refused():
    @tool
    async def asks_wrongly(scope: CallScope) -> str:
        """Ask with a text."""
        await scope.authorize("net")
        return "done"

    assert answer(asks_wrongly, call("asks_wrongly")).text == "error: CallScope.authorize needs an Intent, not 'net'"


def test_what_is_printed_while_a_person_is_asked_is_not_the_tools():
    from ferrule.execution.tool_output import is_in_tool

    seen = []
    approver = Scripted(lambda _: seen.append(is_in_tool.get()) or Decision.allow())
    assert answer(fetch, call("fetch", host="a"), policy=ASK, approver=approver).status == "ok"
    assert seen == [False]
