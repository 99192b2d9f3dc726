"""Agents as tools: another pipeline answers a call, under the limits, policy, journal and trace of the run above it.

    researcher = model("openai:gpt-5").system("You research.").using(search)
    answer = await model("openai:gpt-5").chat("…").using(researcher.as_tool("research", "Research a question.")).run()

`Pipeline.as_tool` makes such a tool. A tool of your own runs another pipeline in the same way by `run_sub_agent`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ferrule._util.pluralize import pluralize
from ferrule.agent.hooks import RunState
from ferrule.agent.run import EventSink, OutputT, Run, SubRun
from ferrule.conversation import Conversation, MalformedCall, Message, Reasoning, Text, ToolCall, user
from ferrule.errors import ToolFailed
from ferrule.events import CallFinished, Event, MessageFinished, ResultReady, TextDelta, ToolProgress
from ferrule.execution.approver import confirms_edits, decide_all
from ferrule.tools.scope import CallScope
from ferrule.transcript import summarize_arguments, summarize_result

if TYPE_CHECKING:
    from ferrule.agent.options import RunOptions
    from ferrule.agent.pipeline import Pipeline
    from ferrule.execution import ApprovalRequest, Approver, Decision, Journal
    from ferrule.execution.journal import JournalEvent
    from ferrule.tools.decorator import Tool

DEEPEST = 8
"""How deep sub-agents may call further ones."""
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class AgentTool:
    """The function of a tool that runs a pipeline. See `Pipeline.as_tool`."""

    pipeline: Pipeline[Any]
    name: str
    takes_over: bool = False

    def list_nested_tools(self) -> tuple[Tool, ...]:
        """The tools of the pipeline: rules of the run above may name them."""
        return tuple(self.pipeline.registry)

    async def __call__(
        self,
        task: Annotated[str, "The whole task, with everything that must be known for it"],
        scope: CallScope,
    ) -> Any:
        """Run the pipeline on the task."""
        if not self.takes_over:
            return get_answer(await run_sub_agent(self.pipeline.chat(task), scope, self.name), self.name)
        state = scope.run_state
        if not isinstance(state, RunState):
            raise ToolFailed(f"{self.name} takes over a conversation, and there is none here")
        if state.handed_over is not None:
            raise ToolFailed("another agent has taken over the conversation already")
        joined = _join_conversations(self.pipeline.conversation, scope.conversation, task)
        pipeline = replace(self.pipeline, conversation=joined)
        run = await run_sub_agent(pipeline, scope, self.name)
        get_answer(run, self.name)
        state.handed_over = run
        return f"{self.name} took over the conversation and answered."


async def run_sub_agent(pipeline: Pipeline[OutputT], scope: CallScope, name: str = "", task: str = "") -> Run[OutputT]:
    """Run a pipeline to answer the call of `scope`, as a part of the run that made the call.

    Whoever is asked about its calls is told its `name`, and with `task` in a few words what it does.

    Its rounds, calls, tokens and cost count towards the limits of that run, whose policy judges its calls too, whose
    approver is asked, and whose journal records them, with ids such as `call_2/call_1`. Its progress is that of the
    call. Outside of a run, it is a run of its own. Raises `ToolFailed` if agents are nested too deep, and what
    `Pipeline.run` raises.
    """
    state = scope.run_state
    if not isinstance(state, RunState):
        return await pipeline.run()
    name = name or (scope.call.name if scope.call else "sub-agent")
    if state.depth + 1 > DEEPEST:
        raise ToolFailed(f"{name} can't be called here: agents are nested {DEEPEST} deep already; answer without it")
    feed = None if state.feed is None else _ProgressFeed(scope)
    shown = f"{name} ({task})" if task else name
    return await run_nested(pipeline, state, scope.call.id if scope.call else "", name, feed, shown)


async def run_nested(
    pipeline: Pipeline[OutputT], state: RunState, call_id: str, name: str, feed: EventSink | None, shown: str = ""
) -> Run[OutputT]:
    """Run a pipeline under the run of `state`; `shown` is its name in questions. See `run_sub_agent`."""
    # Imported here: the runner imports the hooks that use this.
    from ferrule.agent.runner import RunContext, run_pipeline

    run: Run[OutputT] = Run(pipeline.conversation)
    state.run.sub_runs += (SubRun(call_id, name, run),)
    narrowed = replace(pipeline, options=_narrow_options(pipeline.options, state, call_id, shown or name))
    try:
        await run_pipeline(narrowed, run, RunContext(feed, parent=state))
    except Exception as error:
        run.error, run.stopped = error, "error"
        raise
    return run


def get_answer(run: Run[Any], name: str) -> Any:
    """The answer of a sub-agent. Raises `ToolFailed` if it stopped before it was done."""
    if run.stopped == "done":
        return run.text if run.output is None else run.output
    said = f"; so far it wrote: {run.text}" if run.text.strip() else ""
    reason = ": ".join(filter(None, (run.stopped, run.stop_detail)))
    raise ToolFailed(f"{name} stopped before it was done ({reason}){said}")


def _join_conversations(own: Conversation, above: Conversation, task: str) -> Conversation:
    """The conversation of an agent that takes over: its own system text, and what user and assistant said so far.

    Calls and their results are left out: providers refuse those of tools that aren't offered. `task` says what they
    found.
    """
    messages: list[Message] = list(own.messages)
    for message in above.messages:
        if message.role in ("user", "assistant"):
            parts = tuple(part for part in message.parts if not isinstance(part, ToolCall | MalformedCall | Reasoning))
            if any(not isinstance(part, Text) or part.text.strip() for part in parts):
                messages.append(Message(message.role, parts))
    if messages and messages[-1].role == "user":
        last = messages.pop()
        return Conversation((*messages, Message("user", (*last.parts, Text(f"\n\n[{task}]")))), above.now)
    return Conversation((*messages, user(task)), above.now)


def _narrow_options(own: RunOptions, state: RunState, call_id: str, agent: str) -> RunOptions:
    """The options of a sub-agent: what it leaves open is that of the run above, and nothing allows more."""
    above = state.options
    journal = own.journal
    if journal is None and above.journal is not None:
        journal = _NestedJournal(above.journal, call_id)
    # The person who is asked for the run above answers for all of it.
    approver = above.approver or own.approver
    return replace(
        own,
        approver=None if approver is None else _NestedApprover(approver, agent),
        journal=journal,
        blobs=own.blobs if own.blobs is not None else state.executor.blobs,
        workspace=_pick_inner(own.workspace, above.workspace),
        on_ask="deny",
    )


def _pick_inner(own: Path | None, above: Path | None) -> Path | None:
    if own is None or above is None:
        return own or above
    return own if own.resolve().is_relative_to(above.resolve()) else above


class _NestedApprover:
    """The approver of the run above, who is told which sub-agent asks."""

    def __init__(self, approver: Approver, agent: str) -> None:
        self._approver = approver
        self._agent = agent

    @property
    def confirms_edits(self) -> bool:
        return confirms_edits(self._approver)

    async def decide(self, request: ApprovalRequest) -> Decision:
        return await self._approver.decide(self._name_agent(request))

    async def decide_all(self, requests: Sequence[ApprovalRequest]) -> Sequence[Decision | None]:
        return await decide_all(self._approver, [self._name_agent(request) for request in requests])

    def _name_agent(self, request: ApprovalRequest) -> ApprovalRequest:
        agent = f"{self._agent} › {request.agent}" if request.agent else self._agent
        return replace(request, agent=agent)


class _NestedJournal:
    """The journal of the run above; ids of calls begin with that of the call that the sub-agent answers."""

    def __init__(self, journal: Journal, call_id: str) -> None:
        self._journal = journal
        self._call_id = call_id

    def make_key(self) -> str:
        return self._journal.make_key()

    def record(self, event: JournalEvent, key: str, fields: Mapping[str, Any], /) -> None:
        self._journal.record(event, key, {**fields, "call": f"{self._call_id}/{fields['call']}"})


class _ProgressFeed:
    """Turns the events of a sub-agent into progress of the call that it answers."""

    def __init__(self, scope: CallScope) -> None:
        self._scope = scope
        self._text = ""
        self._calls = self._tokens = 0

    async def put(self, item: Event) -> None:
        self.add(item)

    def add(self, item: Event) -> None:
        if isinstance(item, MessageFinished):
            self._tokens += item.usage.prompt_tokens + item.usage.sampled_tokens
        elif isinstance(item, ResultReady):
            self._calls += 1
        text = self._describe(item)
        if text:
            self._scope.report_progress(f"{self._describe_usage()}{text}")

    def put_soon(self, item: Event) -> None:
        if isinstance(item, ToolProgress):
            self._scope.report_progress(item.text, item.fraction)

    def _describe_usage(self) -> str:
        counts = [pluralize(self._calls, "call")] if self._calls else []
        counts += [f"{self._tokens:,} tokens"] if self._tokens else []
        return f"{', '.join(counts)}: " if counts else ""

    def _describe(self, item: Event) -> str:
        if isinstance(item, TextDelta):
            self._text = (self._text + item.text)[-_LONGEST:]
            return self._text
        if isinstance(item, MessageFinished):
            self._text = ""
        elif isinstance(item, CallFinished):
            return _describe_call(item.call)
        elif isinstance(item, ResultReady):
            return f"{item.result.name} → {summarize_result(item.result)}"
        return ""


def _describe_call(call: ToolCall) -> str:
    return f"{call.name} {summarize_arguments(call)}".rstrip()
