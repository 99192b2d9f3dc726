"""Runs the open calls of a saved conversation: each at most once, however many programs resume it, and how often.

`begun_calls.py` records which calls were begun, and has the lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule.conversation import Conversation, ToolResult, tool_message
from ferrule.errors import ConversationError
from ferrule.execution import (
    CallWatch,
    Decision,
    Executor,
    NullJournal,
    Pending,
    make_cancelled_result,
    make_interrupted_result,
)
from ferrule.execution.decisions import check_bound, check_decisions
from ferrule.execution.interrupted_calls import find_begun, record_interrupted
from ferrule.store.begun_calls import BegunCalls, BegunJournal, hold_lock
from ferrule.store.rows import ConversationRow
from ferrule.store.tree import read_path
from ferrule.tools.registry import BoundRegistry, ToolRegistry
from ferrule.tools.scope import CallScope

if TYPE_CHECKING:
    from ferrule.store.conversations import ResumeOptions, Store, StoredConversation
    from ferrule.store.database import Database


async def resume_conversation(store: Store, database: Database, name: str, tools: Any, options: ResumeOptions) -> str:
    """Run the open calls of a conversation, by its id, and save their results; returns its id. See `Store.resume`."""
    _check_options(options)
    stored = _load_open(store, name)
    begun = BegunCalls(database, stored.summary.id, _find_node(database, stored))
    with hold_lock(begun):
        # Another program may have answered them before it released the lock.
        stored = _load_open(store, begun.conversation)
        if _find_node(database, stored) != begun.node:
            raise ConversationError(f"another program has just continued {begun.conversation}; load it again")
        decisions = {**stored.decisions, **options.get("decisions", {})}
        _check_decisions(stored.conversation, decisions)
        still_open = {call.id: decisions[call.id] for call in stored.conversation.pending if call.id in decisions}
        store.save(stored.conversation, id=begun.conversation, decisions=still_open)
        async with _open(tools) as registry:
            _check_offered(stored.pending, registry)
            return await _answer_calls(
                store, begun, stored.conversation, registry, {**options, "decisions": still_open}
            )


def _check_options(options: ResumeOptions) -> None:
    """Raise `PolicyError` for decisions that aren't by call id, and `ConversationError` for what is no journal."""
    if not hasattr(options.get("journal") or NullJournal(), "make_key"):
        raise ConversationError(f"journal must be a Journal, such as FileJournal(path), not {options['journal']!r}")
    check_decisions(options.get("decisions", {}))


def _load_open(store: Store, name: str) -> StoredConversation:
    """Load a conversation. Raises `ConversationError` if it doesn't end in open calls."""
    stored = store.load(name)
    stored.conversation.check()
    messages = stored.conversation.messages
    if stored.conversation.pending and messages[-1].role in ("assistant", "tool"):
        return stored
    answered = [message.result.call_id for message in messages if message.role == "tool"]
    reason = f"its last call, {answered[-1]!r}, is answered already" if answered else "it has none"
    raise ConversationError(f"the conversation {stored.summary.id} has no open call to run: {reason}")


def _find_node(database: Database, stored: StoredConversation) -> int:
    """Find the node of the last assistant message."""
    messages = stored.conversation.messages
    place = next(at for at in reversed(range(len(messages))) if messages[at].role == "assistant")
    with database.read_transaction() as connection:
        return read_path(connection, ConversationRow.find(connection, stored.summary.id).head)[place]


def _check_decisions(conversation: Conversation, decisions: Mapping[str, Decision]) -> None:
    """Raise `ConversationError` for a decision on a call that the conversation hasn't made, `PolicyError` otherwise."""
    made = {call.id: call for message in conversation.messages for call in message.calls}
    for call_id, decision in decisions.items():
        if call_id not in made:
            known = ", ".join(call.id for call in conversation.pending)
            raise ConversationError(f"there is no call {call_id!r} to decide on; open are: {known}")
        check_bound(made[call_id], decision)


def _open(tools: Any) -> AbstractAsyncContextManager[BoundRegistry]:
    if isinstance(tools, BoundRegistry):
        return nullcontext(tools)
    return ToolRegistry(tools if isinstance(tools, list | tuple) else [tools]).open()


def _check_offered(waiting: Sequence[Pending], registry: BoundRegistry) -> None:
    """Raise `ConversationError` for a missing tool: its call would be answered for good, as one of an unknown tool."""
    for one in waiting:
        if one.request is not None and one.request.tool not in registry:
            raise ConversationError(
                f"the call {one.call.id!r} waits for the tool {one.request.tool!r}, which isn't offered; resume the "
                "conversation with the tools that it was using"
            )


async def _answer_calls(
    store: Store, begun: BegunCalls, conversation: Conversation, registry: BoundRegistry, options: ResumeOptions
) -> str:
    journal = options.get("journal") or NullJournal()
    in_journal = find_begun(conversation.pending, journal)
    for call_id, entry in in_journal.items():
        begun.add(call_id)
        record_interrupted(entry, journal)
    interrupted = begun.find(conversation.pending)
    progress = _Progress(store, begun.conversation, conversation)
    progress.ready = {call.id: make_interrupted_result(call) for call in conversation.pending if call.id in interrupted}
    executor = Executor(
        registry, policy=options.get("policy"), approver=options.get("approver"), blobs=options.get("blobs"),
        journal=BegunJournal(begun, journal), on_ask="pause",
    )  # fmt: skip
    workspace = options.get("workspace")
    folder = None if workspace is None else Path(workspace)
    calls = [call for call in conversation.pending if call.id not in interrupted]
    decisions = {call.id: options["decisions"][call.id] for call in calls if call.id in options["decisions"]}
    try:
        answers = await executor.run_all(
            calls,
            CallScope(conversation=conversation, blobs=executor.blobs, workspace=folder),
            decisions=decisions,
            watch=CallWatch(on_result=progress.add_result, started=progress.started),
        )
    except BaseException:
        progress.stop()
        raise
    return progress.save([one for one in answers if isinstance(one, Pending)])


@dataclass(slots=True)
class _Progress:
    """Saves each result as soon as all earlier calls have one, since results are in call order."""

    store: Store
    id: str
    conversation: Conversation
    ready: dict[str, ToolResult] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)

    def add_result(self, result: ToolResult) -> None:
        self.ready[result.call_id] = result
        self.save()

    def stop(self) -> None:
        """Answer the calls that were running as cancelled; those that weren't begun stay open."""
        for call in self.conversation.pending:
            if call.id in self.started:
                self.ready.setdefault(call.id, make_cancelled_result(call))
        self.save()

    def save(self, pending: Sequence[Pending] | None = None) -> str:
        for call in self.conversation.pending:
            if call.id not in self.ready:
                break
            self.conversation = self.conversation.add(tool_message(self.ready[call.id]))
        self.id = self.store.save(self.conversation, id=self.id, pending=pending)
        return self.id
