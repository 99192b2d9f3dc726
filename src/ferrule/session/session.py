"""A conversation between a person and a model with its tools, turn by turn.

    session = Session(model("embedded"), [calculator])
    run = await session.ask("What is 12 * 34?")

`approvals.py` asks the person about calls, `renderer.py` shows what happens, `persistence.py` saves the conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule._util.background import BackgroundWork
from ferrule.agent.hooks import Hooks, RunState
from ferrule.agent.loop import ReadyResults
from ferrule.agent.pipeline import Pipeline
from ferrule.agent.run import Run
from ferrule.agent.tool_search import NAME as SEARCH
from ferrule.capabilities import Loss
from ferrule.conversation import (
    Conversation,
    Media,
    Text,
    ToolCall,
    assistant,
    user,
)
from ferrule.errors import ConversationError, FerruleError, Overloaded, ProviderError, SettingsError
from ferrule.events import Event, LossesReported, MessageFinished, ResultReady, TextDelta, Usage
from ferrule.execution import Decision, Pending, Policy
from ferrule.execution.always import SessionGrants
from ferrule.execution.approver import make_approver
from ferrule.execution.interrupted_calls import answer_without_running, reopen_calls
from ferrule.models.context_sizes import find_context_size
from ferrule.session.approvals import DenyAll, Permissions, SessionApprover
from ferrule.session.persistence import Autosave
from ferrule.session.renderer import Renderer
from ferrule.session.terminal.renderer import TextRenderer
from ferrule.tools.registry import ToolLike, ToolRegistry

if TYPE_CHECKING:
    from ferrule.session.servers import SessionServers

_UNFINISHED = {
    "rounds": "stopped: the model made too many rounds of calls; ask it to go on if it should",
    "length": "stopped: the answer reached its limit of tokens",
    "refusal": "stopped: the model refuses to answer",
    "repetition": "stopped: the model repeats a call that fails in the same way; tell it how to go on",
    "error": "stopped: the model's answer is incomplete",
}

_REFUSED = (400, 413, 422)
"""The HTTP statuses of a request that the provider doesn't accept."""


@dataclass(slots=True)
class _Turn:
    """A run of the pipeline from the conversation `start`; `before` is the one to restore if nothing happened."""

    run: Run
    start: Conversation
    before: Conversation
    is_finished: bool = False
    is_question_kept: bool = False
    """Whether the question stays though nothing answers it: the provider can be asked again."""
    is_question_saved: bool = False
    """Whether the store has the question that `start` ends with, and nothing after it."""
    written: list[str] = field(default_factory=list)
    """What the model wrote of a message that isn't finished."""
    ready: ReadyResults = field(default_factory=ReadyResults)
    """The results of the last message's calls so far."""

    def keep_partial_message(self) -> None:
        """Add what was written of a message that was cancelled: the person has read it, and may refer to it."""
        text = "".join(self.written).rstrip()
        # Waiting calls come before anything else.
        if text and not self.run.conversation.pending:
            self.run.conversation = self.run.conversation.add(assistant(text))
        self.written.clear()


class Session:
    """Asks a model question after question in one conversation.

    It holds what all turns share: the conversation, the policy with the person's "always" answers, and the losses that
    were shown. Without `permissions` the policy has the profile `ask`, and nobody can be asked. Without `autosave`
    nothing is saved. The tools of `servers` are offered in addition to `tools`. `workspace` is the folder in which the
    profiles `accept-edits` and `auto` don't ask; without one they take every path as inside of it. A new conversation
    begins with the pipeline's own, such as a system message; `attachments` go to the model with the first question.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        tools: Iterable[ToolLike] = (),
        *,
        permissions: Permissions | None = None,
        renderer: Renderer | None = None,
        autosave: Autosave | None = None,
        servers: SessionServers | None = None,
        workspace: Path | str | None = None,
        attachments: Sequence[Text | Media] = (),
    ) -> None:
        self.renderer = renderer or TextRenderer()
        self.permissions = permissions or Permissions()
        if not hasattr(self.permissions.approver, "decide"):
            self.permissions = replace(self.permissions, approver=make_approver(self.permissions.approver))
        self.policy = self.permissions.policy
        if self.policy.grants is None:
            self.policy = replace(self.policy, grants=SessionGrants())
        self.autosave = autosave or Autosave()
        self.model_name = pipeline.model.name
        self._beginning = pipeline.conversation
        self.conversation = self.autosave.resumed if self.autosave.resumed.messages else self._beginning
        self.attachments = tuple(attachments)
        self.registry = self._own_tools = tools if isinstance(tools, ToolRegistry) else ToolRegistry([*tools])
        self._servers = servers
        self.change_policy(self.policy)
        self._approver = SessionApprover(self.permissions.approver, self._clear_line)
        self._workspace = None if workspace is None else Path(workspace)
        self.pipeline = self._prepare(pipeline)
        self._reported_losses: set[Loss] = set()
        self._is_saving = True
        self._turn: _Turn | None = None
        self.keeps_open_calls = False
        """Whether calls that haven't begun when a turn is cancelled stay open, as if the program were killed."""

    def change_model(self, pipeline: Pipeline) -> None:
        """Ask the pipeline's model from now on, in the same conversation."""
        self.pipeline = self._prepare(pipeline)
        self.model_name = pipeline.model.name
        self.autosave.model = pipeline.model.name if pipeline.origin is None else pipeline.origin[0]

    def change_policy(self, policy: Policy) -> None:
        """Judge by this policy from the next turn on; what servers ask for, from now on."""
        self.policy = policy
        if self._servers is not None and self._servers.requests is not None:
            self._servers.requests.attach(policy, self._clear_line)

    def resume(self, name: str) -> None:
        """Go on with a saved conversation; open calls of it are answered with the next question.

        Raises `ConversationError` for one that can't be resumed here; the session stays as it is.
        """
        autosave = self.autosave
        before, self.conversation = self.conversation, Conversation()
        kept = autosave.resumed, autosave.pending, autosave.decisions, autosave.conversation_id
        try:
            autosave.resume(name)
            self.conversation = autosave.resumed
            self.check_resumed()
        except ConversationError:
            self.conversation = before
            autosave.restore(*kept)
            raise
        self._reported_losses.clear()

    def start_new(self) -> None:
        """Begin a new conversation; what was saved of the old one stays."""
        self.conversation = self._beginning
        self._reported_losses.clear()
        self.autosave.start_new()

    async def ask(self, question: str, attachments: Sequence[Text | Media] = ()) -> Run:
        """Ask, and show what happens. The answer is complete if the run's `stopped` is `done`.

        The open calls of a resumed conversation are answered first. If this is cancelled, the calls that were started
        stay, each with its result, as does the text written so far; a question to which nothing was done or said is
        removed. It stays if the provider failed. Raises `SettingsError` for an empty question, and what the model
        raises.
        """
        if not question.strip():
            raise SettingsError("the question is empty")
        if self.conversation.pending:
            run = await self.answer_pending()
            if run.stopped != "done":
                return run
        self._approver.forget_calls()
        asked = user(question, *self.attachments, *attachments)
        # One that the model couldn't be asked, and that is repeated, isn't sent twice.
        is_repeated = asked in takewhile(lambda one: one.role == "user", reversed(self.conversation.messages))
        return await self._run(self.conversation if is_repeated else self.conversation.add(asked))

    async def go_on(self) -> Run:
        """Go on where the last turn was cut off: answer its open calls, or have the model answer."""
        if self.conversation.pending:
            return await self.answer_pending()
        return await self._run(self.conversation)

    def skip_pending(self) -> None:
        """Answer the open calls of a resumed conversation without running them, so that a question can follow."""
        self.conversation = answer_without_running(self.conversation, self.permissions.journal)
        self.autosave.pending, self.autosave.decisions = (), {}
        self.save_progress(self.conversation)

    async def answer_pending(self) -> Run:
        """Answer the open calls of a resumed conversation, after asking about those that wait for a decision.

        If this is cancelled while the person is asked, the calls keep waiting, and earlier decisions hold.
        """
        messages = reversed(self.conversation.messages)
        message = next(message for message in messages if message.role == "assistant")
        self._show(MessageFinished(message, Usage(), "calls"))
        return await self._run(self.conversation)

    async def compact(self) -> Run:
        """Replace the older part of the conversation by a summary now; `Run.compactions` has what was left out.

        Raises `SettingsError` for a pipeline that doesn't compact conversations, and what the model raises.
        """
        from ferrule.agent.compaction import compact_conversation

        self.save_progress(self.conversation)
        run = await compact_conversation(self.pipeline.chat(self.conversation))
        self.conversation = run.conversation
        self.save_progress(run.conversation)
        return run

    def save_progress(self, conversation: Conversation) -> None:
        """Save the conversation in the middle of a turn: nothing that is finished is lost if the process is killed.

        A failure is shown once; that of the end of the turn is raised.
        """
        if self._try_saving(self.autosave.save, conversation) and self._turn is not None:
            self._turn.is_question_saved = False

    def _try_saving(self, save: Callable[[Conversation], None], conversation: Conversation) -> bool:
        """Save, and show the first failure; returns whether it succeeded."""
        try:
            save(conversation)
        except (ConversationError, OSError) as error:
            if self._is_saving:
                self.renderer.notify(f"the conversation can't be saved: {error}")
            self._is_saving = False
        else:
            self._is_saving = True
        return self._is_saving

    async def refresh_tools(self) -> None:
        """Set `registry` to the tools offered now: those of servers may change from turn to turn."""
        self.registry = self._own_tools if self._servers is None else await self._servers.add_to(self._own_tools)

    def check_resumed(self) -> None:
        """Raise `ConversationError` if the open calls of a resumed conversation can't be answered here."""
        if not self.conversation.pending:
            return
        waiting = {call.name for call in self.conversation.pending if isinstance(call, ToolCall)}
        missing = waiting - {*self.registry.names, SEARCH}
        if missing:
            raise ConversationError(
                f"the conversation ends in calls of {', '.join(sorted(missing))}, which is not offered here; resume it "
                "with the tools or servers that it was using"
            )
        count = len(self._find_undecided())
        if count and isinstance(self.permissions.approver, DenyAll):
            raise ConversationError(
                f"{count} call{'s wait' if count > 1 else ' waits'} for a decision, and nobody can be asked here; "
                "resume the conversation at a terminal, or allow all calls"
            )

    def finish_turn(self, stopped: str = "") -> None:
        """End the current turn, if there is one: withdraw its questions, save the conversation, show its end.

        `ask` does so itself; this is for a caller that stops waiting for it.
        """
        turn = self._turn
        if turn is None or turn.is_finished:
            return
        turn.is_finished = True
        run = turn.run
        run.stopped = stopped or run.stopped
        if run.stopped == "cancelled":
            turn.keep_partial_message()
        self.permissions.stop_asking()
        is_kept = turn.is_question_kept or len(run.conversation) > len(turn.start)
        if self.keeps_open_calls:
            run.conversation = reopen_calls(run.conversation)
        self.conversation = run.conversation if is_kept else turn.before
        if is_kept:
            self.attachments = ()
        try:
            # Before the end is shown, which names the saved conversation.
            if turn.is_question_saved and not is_kept:
                self.autosave.withdraw_question(turn.start)
            if self.conversation != self._beginning:
                self.autosave.save(self.conversation, run.pending)
        finally:
            self.renderer.finish(run, self.autosave.conversation_id)

    def _prepare(self, pipeline: Pipeline) -> Pipeline:
        """Add what all turns share to a pipeline. It continues the session's conversation, which has its beginning."""
        journal = self.permissions.journal
        prepared = replace(pipeline, conversation=Conversation()).using(
            approver=self._approver, journal=journal, workspace=self._workspace
        )
        return prepared if self.autosave.store is None else prepared.hook(_SaveMessages(self))

    async def _run(self, start: Conversation) -> Run:
        """Run the pipeline from `start`, and save the conversation."""
        self._turn = turn = _Turn(Run(start), start, self.conversation)
        self.permissions.begin_asking()
        if len(start) > len(turn.before) and self.autosave.store is not None:
            turn.is_question_saved = self._try_saving(self.autosave.save_question, start)
        stopped = ""
        try:
            await self._stream(turn)
        except asyncio.CancelledError:
            stopped = "cancelled"
            raise
        except FerruleError as error:
            turn.run.stop_detail = turn.run.stop_detail or str(error)
            turn.is_question_kept = _may_succeed_later(error)
            raise
        finally:
            if self._turn is turn:
                self.finish_turn(stopped)
        self.permissions.warn_of_denials(self.renderer.notify)
        if turn.run.stopped == "done" and not turn.run.text.strip():
            self.renderer.notify("the answer is empty")
        if turn.run.stopped == "context":
            self.renderer.notify(await self._describe_full_context(turn))
        elif turn.run.stopped in _UNFINISHED:
            detail = turn.run.stop_detail
            is_new = detail and detail != turn.run.text
            self.renderer.notify(_UNFINISHED[turn.run.stopped] + (f": {detail}" if is_new else ""))
        return turn.run

    async def _describe_full_context(self, turn: _Turn) -> str:
        size = await find_context_size(self.pipeline.model)
        context = "the model's context" + (f" of {size:,} tokens" if size else "")
        if any(message.role == "user" for message in turn.before.messages):
            return f"stopped: the conversation has filled {context}; a new one has room again"
        has_results = any(message.role == "tool" for message in turn.run.conversation.messages)
        asked = "the question and what its tools returned have" if has_results else "the question has"
        return f"stopped: {asked} filled {context}; ask for less at once"

    async def _stream(self, turn: _Turn) -> None:
        """Run, and show the events; the turn's run is valid also if this is cancelled."""
        await self.refresh_tools()
        decisions = await self._decide_pending() if turn.start.pending else None
        pipeline = self.pipeline.chat(turn.start).using(self.registry, policy=self.policy)
        async with pipeline.stream(decisions=decisions) as streamed:
            turn.run = streamed
            async for event in streamed:
                if isinstance(event, MessageFinished):
                    turn.ready = ReadyResults()
                elif isinstance(event, ResultReady) and self.autosave.store is not None:
                    # Before it is shown: what was shown is not lost.
                    self.save_progress(turn.ready.add(streamed.conversation, event.result))
                self._show(event)

    async def _decide_pending(self) -> dict[str, Decision]:
        """Return decisions on the waiting calls, by call id; those saved earlier aren't asked for again."""
        decisions = self.autosave.decisions
        for waiting in self._find_undecided():
            if waiting.request is not None:
                decisions[waiting.call.id] = waiting.decide(await self._approver.decide(waiting.request))
        return decisions

    def _find_undecided(self) -> list[Pending]:
        decided = self.autosave.decisions
        return [one for one in self.autosave.pending if one.request is not None and one.call.id not in decided]

    def _clear_line(self) -> None:
        self.renderer.clear()

    def _show(self, event: Event) -> None:
        """Show an event, but each loss only once."""
        if isinstance(event, LossesReported):
            new = tuple(loss for loss in event.losses if loss not in self._reported_losses)
            self._reported_losses.update(new)
            if new:
                self.renderer.show(LossesReported(new))
            return
        self.renderer.show(event)
        if isinstance(event, TextDelta) and self._turn is not None:
            self._turn.written.append(event.text)
        if isinstance(event, MessageFinished):
            if self._turn is not None:
                self._turn.written.clear()
            self._approver.allow_questions(call.id for call in event.message.calls)


def _may_succeed_later(error: FerruleError) -> bool:
    """Whether the same request may be answered later. What a provider refuses would stop each later question, too."""
    if isinstance(error, ProviderError):
        return error.status not in _REFUSED
    return isinstance(error, Overloaded)


class _SaveMessages(Hooks):
    """Saves each message before its calls run, all their results, and what else the model is about to be told."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._saved: Conversation | None = None

    async def before_request(self, state: RunState) -> None:
        # Other hooks may have added to it, such as news of files that changed. The question itself is saved by then.
        turn = self._session._turn
        if state.conversation is not self._saved and (turn is None or state.conversation != turn.start):
            self._save(state)

    async def after_message(self, state: RunState) -> None:
        self._save(state)

    async def after_results(self, state: RunState) -> None:
        self._save(state)

    def _save(self, state: RunState) -> None:
        self._saved = state.conversation
        self._session.save_progress(state.conversation)


class SessionRunner:
    """Runs the turns of a session for a thread without an event loop: on the background loop of the process.

    Ctrl-C cancels the turn, and raises `KeyboardInterrupt` when it has ended; the session can then go on. A second one
    doesn't wait for the end. If a signal ends the program, calls that haven't begun stay open.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    def ask(self, question: str) -> Run:
        """Run `Session.ask`."""
        return self.run_turn(self.session.ask(question))

    def run_turn(self, turn: Coroutine[Any, Any, Run]) -> Run:
        """Run a turn, such as `Session.ask` or `Session.answer_pending`."""
        work = BackgroundWork(turn)
        try:
            work.start()
            return work.result()
        except (KeyboardInterrupt, SystemExit) as end:
            self.session.keeps_open_calls |= isinstance(end, SystemExit)
            try:
                work.stop()
            finally:
                self.session.finish_turn("cancelled")
            raise
