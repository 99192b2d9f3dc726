"""Open calls of a conversation whose program ended: which of them began, and how they are answered or left open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule.conversation import Conversation, MalformedCall, ToolCall, ToolResult, tool_message
from ferrule.execution.decisions import Pending
from ferrule.execution.error_results import make_interrupted_result, make_not_run_result
from ferrule.execution.journal import FileJournal, InterruptedCall, Journal, find_interrupted

__all__ = [
    "STOPPED",
    "answer_without_running",
    "find_begun",
    "insert_interrupted",
    "is_stopped",
    "record_interrupted",
    "reopen_calls",
]

Call = ToolCall | MalformedCall

STOPPED = "the run was stopped before this call"
_ENDED = "the program ended before this call, and the user went on with another message"


def find_begun(calls: Sequence[Call], journal: Journal | None) -> dict[str, InterruptedCall]:
    """Find those of the calls, by id, that an earlier process started and never finished."""
    if not isinstance(journal, FileJournal):
        return {}
    # The journal's arguments are scrubbed, so a call is identified by its id and tool. If a call of another
    # conversation has the same ones, this one is not run, and the model can make it again.
    begun = {(entry.call_id, entry.tool): entry for entry in find_interrupted(journal.path)}
    return {
        call.id: begun[call.id, call.name]
        for call in calls
        if isinstance(call, ToolCall) and (call.id, call.name) in begun
    }


def insert_interrupted(
    calls: Sequence[Call],
    answers: Sequence[ToolResult | Pending],
    begun: Mapping[str, InterruptedCall],
    journal: Journal | None,
) -> list[ToolResult | Pending]:
    """Return the answers of the calls that were run and the results of those begun earlier, in call order.

    A begun call that follows a pending one stays open, and begun: its result would come too early.
    """
    rest = iter(answers)
    found: list[ToolResult | Pending] = []
    for call in calls:
        if call.id not in begun:
            found.append(next(rest))
        elif not (found and isinstance(found[-1], Pending)):
            found.append(make_interrupted_result(call))
            record_interrupted(begun[call.id], journal)
    return found


def answer_without_running(conversation: Conversation, journal: Journal | None) -> Conversation:
    """Answer all open calls: as interrupted if they were begun, or else as not run."""
    calls = conversation.pending
    begun = find_begun(calls, journal)
    results = [
        make_interrupted_result(call) if call.id in begun else make_not_run_result(call, _ENDED) for call in calls
    ]
    for call in calls:
        if call.id in begun:
            record_interrupted(begun[call.id], journal)
    return conversation.add(*map(tool_message, results))


def reopen_calls(conversation: Conversation) -> Conversation:
    """Leave the last calls open again that were answered as not run since the run was stopped."""
    messages = conversation.messages
    count = len(messages)
    while count and messages[count - 1].role == "tool" and is_stopped(messages[count - 1].result):
        count -= 1
    return conversation if count == len(messages) else Conversation(messages[:count], conversation.now)


def is_stopped(result: ToolResult) -> bool:
    """Whether a result says that its call wasn't run since the run was stopped."""
    return result.content == make_not_run_result(ToolCall(result.call_id, result.name, "{}"), STOPPED).content


def record_interrupted(entry: InterruptedCall, journal: Journal | None) -> None:
    """Record in the journal that a call has no outcome, so that it isn't found again."""
    if journal is not None:
        fields = {"call": entry.call_id, "tool": entry.tool, "status": "interrupted"}
        journal.record("finished", entry.key, fields)
