"""`task`: sub-agents of a coding agent, their tools, their policy, and what comes back."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from io import StringIO, TextIOBase
from pathlib import Path

from ferrule import ToolCall, assistant, model, tool
from ferrule.agent.pipeline import Pipeline
from ferrule.capabilities import Capabilities
from ferrule.coding import tools
from ferrule.coding.sub_agents import make_task_tool
from ferrule.conversation import Conversation
from ferrule.events import Event, ToolProgress
from ferrule.execution import ApprovalRequest, Decision, FileJournal, Policy, Rule
from ferrule.execution.executor import call_tool
from ferrule.execution.journal import read_entries
from ferrule.models.protocol import ModelSettings
from ferrule.models.scripted import ScriptedModel
from ferrule.session.approvals import Permissions
from ferrule.session.session import Session
from ferrule.session.terminal.approver import TerminalApprover
from ferrule.session.terminal.renderer import TextRenderer
from ferrule.toolspec import ToolSpec


@tool(read_only=True)
def look(place: str) -> str:
    """Look somewhere."""
    return f"a cat in {place}"


@tool(read_only=False)
def paint(place: str) -> str:
    """Paint something."""
    return f"painted {place}"


def start(prompt: str = "Find the cat.", tools: list[str] | None = None, identifier: str = "a") -> ToolCall:
    arguments = {"prompt": prompt} if tools is None else {"prompt": prompt, "tools": tools}
    return ToolCall(identifier, "task", json.dumps(arguments))


def call(name: str, identifier: str = "call_1") -> ToolCall:
    return ToolCall(identifier, name, '{"place": "the garden"}')


def agent(folder: Path, scripted: object, **options: object) -> Pipeline:
    return model(scripted).chat("Where is the cat?").using(look, paint, make_task_tool(folder), **options)


async def test_only_the_answer_comes_back(tmp_path: Path) -> None:
    scripted = ScriptedModel(start(), call("look"), "In the garden.", "It is in the garden.")
    run = await agent(tmp_path, scripted).run()
    assert [message.role for message in run.conversation.messages] == ["user", "assistant", "tool", "assistant"]
    assert run.conversation.messages[2].result.text == "In the garden."
    first = scripted.seen[1].messages
    assert [message.role for message in first] == ["system", "user"]
    assert str(tmp_path) in first[0].text
    assert first[1].text == "Find the cat."


async def test_it_is_told_the_instructions_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.\n")
    scripted = ScriptedModel(start(), "On the sofa.", "Done.")
    await agent(tmp_path, scripted).run()
    assert "<project-instructions>\nUse tabs.\n" in scripted.seen[1].messages[0].text


async def test_it_is_offered_what_only_reads_unless_tools_are_named(tmp_path: Path) -> None:
    for names, offered in ((None, ["look"]), (["paint"], ["paint"]), (["look", "task"], ["look", "task"])):
        watched = Watched(ScriptedModel(start(tools=names), "Done.", "Done."))
        await agent(tmp_path, watched).run()
        assert watched.offered[1] == offered


async def test_without_names_nothing_can_be_written_whatever_the_policy_allows(tmp_path: Path) -> None:
    scripted = ScriptedModel(start(), call("paint"), "I can't.", "No.")
    run = await agent(tmp_path, scripted, policy=Policy((Rule("allow", tool="*"),))).run()
    (sub,) = run.sub_runs
    assert "unknown tool 'paint'" in sub.run.conversation.messages[3].result.text


async def test_a_named_tool_is_judged_by_the_policy_of_the_run_above(tmp_path: Path) -> None:
    scripted = ScriptedModel(start(tools=["paint"]), call("paint"), "I may not.", "No.")
    policy = Policy((Rule("deny", tool="paint", reason="wet"),))
    run = await agent(tmp_path, scripted, policy=policy).run()
    result = run.sub_runs[0].run.conversation.messages[3].result
    assert (result.status, "wet" in result.text) == ("denied", True)


async def test_an_unknown_tool_is_named_with_the_nearest(tmp_path: Path) -> None:
    run = await agent(tmp_path, ScriptedModel(start(tools=["pant"]), "No.")).run()
    assert "there is no tool 'pant' to give to a sub-agent; did you mean paint?" in _result(run)


async def test_an_empty_prompt_is_refused(tmp_path: Path) -> None:
    run = await agent(tmp_path, ScriptedModel(start(" "), "No.")).run()
    assert "the prompt is empty" in _result(run)


async def test_sub_agents_are_nested_two_deep_at_most(tmp_path: Path) -> None:
    scripted = ScriptedModel(
        start(tools=["task"]), start(tools=["task"]), start(tools=["task"]), "Not deeper.", "Back.", "Done."
    )
    run = await agent(tmp_path, scripted).run()
    inner = run.sub_runs[0].run.sub_runs[0].run
    assert "sub-agents are nested 2 deep already" in inner.conversation.messages[3].result.text


async def test_its_rounds_count_towards_the_limit_of_the_run(tmp_path: Path) -> None:
    scripted = ScriptedModel(start(), *[call("look", f"call_{n}") for n in range(8)])
    run = await agent(tmp_path, scripted).within(rounds=4).run()
    assert run.stopped == "rounds"
    assert "the sub-agent stopped before it was done (rounds)" in _result(run)


async def test_its_calls_are_in_the_journal_under_the_call_that_started_it(tmp_path: Path) -> None:
    scripted = ScriptedModel(start(), call("look"), "In the garden.", "There.")
    with FileJournal(tmp_path / "calls.jsonl") as journal:
        await agent(tmp_path, scripted, journal=journal).run()
    started = [line["call"] for line in read_entries(tmp_path / "calls.jsonl") if line["event"] == "started"]
    assert started == ["a", "a/call_1"]


async def test_its_steps_are_shown_as_progress(tmp_path: Path) -> None:
    scripted = ScriptedModel(start(), call("look"), "In the garden.", "There.")
    async with agent(tmp_path, scripted).stream() as run:
        shown = [event.text async for event in run if isinstance(event, ToolProgress)]
    assert shown[-1] == "1 call: In the garden."  # earlier ones may be left out, if they follow each other quickly


async def test_several_of_one_message_work_at_the_same_time(tmp_path: Path) -> None:
    meeting = Meeting(3)
    run = await agent(tmp_path, meeting).run()
    texts = [message.result.text for message in run.conversation.messages if message.role == "tool"]
    assert texts == ["met: part 0", "met: part 1", "met: part 2"]


async def test_without_a_run_it_says_that_there_is_no_model(tmp_path: Path) -> None:
    result = await call_tool(make_task_tool(tmp_path), {"prompt": "Find it."})
    assert result.text == "error: a sub-agent needs the model of a run, and this call isn't part of one"


async def test_a_long_answer_is_cut_like_any_result(tmp_path: Path) -> None:
    run = await agent(tmp_path, ScriptedModel(start(), "word " * 20_000, "Long.")).run()
    assert len(_result(run)) < 31_000


def _result(run: object) -> str:
    return run.conversation.messages[2].result.text  # type: ignore[attr-defined]


class Watched:
    """A model that remembers which tools it was offered."""

    def __init__(self, scripted: ScriptedModel) -> None:
        self._scripted = scripted
        self.name, self.capabilities = scripted.name, scripted.capabilities
        self.offered: list[list[str]] = []

    def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        self.offered.append([one.name for one in tools])
        return self._scripted.stream(conversation, tools, settings)

    async def aclose(self) -> None:
        """Do nothing."""


class Meeting:
    """A model whose sub-agents answer only once all of them were asked."""

    name = "meeting"
    capabilities = Capabilities(native_tools=True, ids=True)

    def __init__(self, count: int, paints: bool = False) -> None:
        self._count = count
        self._paints = paints
        self._everyone = asyncio.Barrier(count)

    async def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        last = conversation.messages[-1]
        if last.role == "tool":
            answer: object = "Done."
        elif conversation.messages[0].role == "system":
            await self._everyone.wait()
            answer = call("paint") if self._paints else f"met: {last.text}"
        else:
            tools = ["paint"] if self._paints else None
            answer = assistant(*[start(f"part {n}", tools, f"call_{n}") for n in range(self._count)])
        async for event in ScriptedModel(answer).stream(conversation, tools, settings):
            yield event

    async def aclose(self) -> None:
        """Do nothing."""


class Person(TextIOBase):
    """Types a line for each question, and fails if a question is asked before the last was answered."""

    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)

    def readline(self, _size: int | None = -1, /) -> str:
        return f"{self._lines.pop(0)}\n"


async def test_a_person_is_asked_for_a_sub_agent_by_its_name(tmp_path: Path) -> None:
    output = StringIO()
    scripted = ScriptedModel(start("Paint the\n garden.", ["paint"]), call("paint"), "It is green.", "Done.")
    approver = TerminalApprover(Person("n not today"), output)
    run = await agent(tmp_path, scripted, policy=Policy(profile="ask"), approver=approver).run()
    assert "▸ paint asks to run, for the sub-agent task (Paint the garden.)" in output.getvalue()
    result = run.sub_runs[0].run.conversation.messages[3].result
    assert (result.status, result.text) == ("denied", "error: denied: not today")


async def test_the_time_of_a_task_stands_still_while_a_person_is_asked_for_its_calls(tmp_path: Path) -> None:
    class Slow:
        async def decide(self, request: ApprovalRequest) -> Decision:
            await asyncio.sleep(1.5)
            return Decision.allow()

    task = replace(make_task_tool(tmp_path), timeout=1.0)
    # One level deep and two: the clocks of all calls around are stopped.
    for started in ([start("Paint.", ["paint"])], [start("outer", ["task", "paint"]), start("inner", ["paint"])]):
        scripted = ScriptedModel(*started, call("paint"), *["Green."] * len(started), "Done.")
        pipeline = model(scripted).chat("Paint it.").using(look, paint, task, policy=Policy(profile="ask"))
        run = await pipeline.using(approver=Slow()).run()
        assert _result(run) == "Green."


async def test_one_sub_agent_of_another_is_named_with_it(tmp_path: Path) -> None:
    output = StringIO()
    scripted = ScriptedModel(
        start("outer", ["task", "paint"]), start("inner", ["paint"]), call("paint"), "Green.", "Green.", "Done."
    )
    approver = TerminalApprover(Person("y"), output)
    run = await agent(tmp_path, scripted, policy=Policy(profile="ask"), approver=approver).run()
    assert "for the sub-agent task (outer) › task (inner)" in output.getvalue()
    assert run.sub_runs[0].run.sub_runs[0].run.conversation.messages[3].result.text == "painted the garden"


async def test_the_questions_of_several_sub_agents_come_one_after_the_other(tmp_path: Path) -> None:
    output = StringIO()
    approver = TerminalApprover(Person("n first", "n second", "n third"), output)
    painters = Meeting(3, paints=True)
    await agent(tmp_path, painters, policy=Policy(profile="ask"), approver=approver).run()
    shown = output.getvalue()
    pieces = re.findall(r"asks to run|\?", shown)
    assert pieces == ["asks to run", "?"] * 3
    assert len(set(re.findall(r"sub-agent task \((part \d)\)", shown))) == 3


async def test_a_session_asks_for_a_sub_agent_whose_calls_it_does_not_show(tmp_path: Path) -> None:
    output = StringIO()
    scripted = ScriptedModel(start("Paint.", ["paint"], "b"), call("paint", "hidden_7"), "It is green.", "Done.")
    permissions = Permissions(Policy(profile="ask"), TerminalApprover(Person("y"), output))
    session = Session(
        model(scripted), [look, paint, make_task_tool(tmp_path)], permissions=permissions, renderer=Silent()
    )
    run = await asyncio.wait_for(session.ask("Paint the garden."), 30)
    assert run.sub_runs[0].run.conversation.messages[3].result.text == "painted the garden"


class Silent(TextRenderer):
    """Shows nothing."""

    def show(self, event: Event) -> None:
        """Ignore it."""


async def test_by_default_its_commands_only_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    def command(line: str, identifier: str) -> ToolCall:
        return ToolCall(identifier, "bash", json.dumps({"command": line}))

    scripted = ScriptedModel(
        start(),
        command("wc -l a.txt", "c1"),
        command("touch made", "c2"),
        command("python3 -c 1", "c3"),
        "Two.",
        "Two.",
    )
    run = await model(scripted).chat("How many lines?").using(tools(tmp_path), policy=Policy(profile="all")).run()
    results = [m.result for m in run.sub_runs[0].run.conversation.messages if m.role == "tool"]
    assert [one.status for one in results] == ["ok", "denied", "denied"]
    assert results[0].text == "2 a.txt"
    assert not (tmp_path / "made").exists()
