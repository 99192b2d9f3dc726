"""Calls that nobody can be asked about: the denial says what would allow them, and a run says that all were denied."""

import logging
import re
from typing import Any

import pytest

from ferrule import Executor, Intent, Policy, Rule, Run, ToolCall, ToolRegistry, model, tool
from ferrule.conversation import ToolResult
from ferrule.errors import advise_commands
from ferrule.execution.policy_file import parse_policy, parse_toml
from ferrule.models.scripted import ScriptedModel
from ferrule.session.approvals import DenyAll
from ferrule.tools.intent import Effect
from ferrule.tools.scope import CallScope


@tool(origin="mcp:notes")
def fetch(name: str) -> str:
    """Fetch a note."""
    return f"got {name}"


@tool(origin="project", intent=lambda arguments: Intent((Effect("write", arguments["path"]),)))
def save(path: str) -> str:
    """Save a note."""
    return f"saved {path}"


@tool(read_only=True)
def look(name: str) -> str:
    """Look at a note."""
    return name


FETCH = ToolCall("a", "fetch", '{"name": "milk"}')
SAVE = ToolCall("b", "save", '{"path": "/notes/milk \'now\'"}')
LOOK = ToolCall("c", "look", '{"name": "milk"}')


async def answer(call: ToolCall, policy: Policy, approver: DenyAll | None = None) -> ToolResult:
    async with ToolRegistry([fetch, save, look]).open() as bound:
        result = await Executor(bound, policy=policy, approver=approver).run(call, CallScope())
    assert isinstance(result, ToolResult)
    return result


@pytest.mark.parametrize("call", [FETCH, SAVE])
@pytest.mark.parametrize("approver", [None, DenyAll()])
async def test_the_advice_allows_the_call(call: ToolCall, approver: DenyAll | None) -> None:
    asking = Policy(profile="ask", trusted=("project",))
    text = (await answer(call, asking, approver)).text
    if approver is None:
        [written] = re.findall(r"pass policy=(Policy\(.*\)), or an approver$", text)
        policy: Policy = eval(written, {"Policy": Policy, "Rule": Rule})
    else:
        [written] = re.findall(r"; allow calls by rules of the policy; the policy's line for this one: (.*)$", text)
        policy = parse_policy(parse_toml(written.encode(), "policy"))
    allowed = Policy(policy.rules, "ask", asking.trusted)
    assert (await answer(call, allowed, approver)).status == "ok"
    other = ToolCall("d", "save", '{"path": "/other/rent"}')
    assert (await answer(other, allowed, approver)).status == "denied"


async def test_the_advice_where_no_rule_helps() -> None:
    asking = Policy((Rule("ask", "fetch"),), "ask")
    assert (await answer(FETCH, asking)).text.endswith("(a rule says ask for fetch); pass an approver")
    token = advise_commands.set(True)
    try:
        assert (await answer(FETCH, asking)).text.endswith("; run the command at a terminal")
        assert (await answer(FETCH, Policy())).text.endswith(
            """the policy's line for this one: rules = [{ action = "allow", tool = "fetch" }]"""
        )
    finally:
        advise_commands.reset(token)


@pytest.mark.parametrize(
    ("calls", "options", "detail", "is_logged"),
    [
        ([FETCH], {}, r"^its only call was denied: this call needs .*allow.*fetch.*an approver$", True),
        ([FETCH, SAVE], {}, "^all of its 2 calls were denied; the first: this call needs approval", True),
        ([FETCH], {"approver": DenyAll()}, "^its only call was denied: .*allow calls by rules of the policy", False),
        ([FETCH, LOOK], {}, "^$", False),
        ([LOOK], {}, "^$", False),
        ([FETCH], {"policy": Policy((Rule("deny", "fetch"),))}, "^$", False),
        ([FETCH], {"on_ask": "pause"}, "^$", False),
    ],
)
async def test_a_run_says_that_all_calls_were_denied(
    caplog: pytest.LogCaptureFixture, calls: list[ToolCall], options: dict[str, Any], detail: str, is_logged: bool
) -> None:
    run: Run[Any] = await model(ScriptedModel(calls, "Done.")).using(fetch, save, look, **options).chat("Milk?").run()
    assert re.match(detail, run.stop_detail)
    logged = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert logged == ([f"a run of scripted: {run.stop_detail}"] if is_logged else [])
    assert str(run).endswith(f"\n(done: {run.stop_detail})") == bool(run.stop_detail)


async def test_calls_of_several_rounds_are_counted() -> None:
    again = ToolCall("b", "fetch", '{"name": "rent"}')
    run = await model(ScriptedModel(FETCH, again, "Done.")).using(fetch).chat("Milk?").run()
    assert run.stop_detail.startswith("all of its 2 calls were denied")
    run = await model(ScriptedModel(LOOK, FETCH, "Done.")).using(fetch, look).chat("Milk?").run()
    assert run.stop_detail == ""
