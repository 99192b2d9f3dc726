"""Open calls of a conversation whose program ended: which of them began, and how they are answered or left open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ferrule.conversation import Conversation, MalformedCall, ToolCall, ToolResult, tool_message
from ferrule.execution import FileJournal, InterruptedCall, Journal, find_interrupted, make_interrupted_result
from ferrule.execution.error_results import make_not_run_result

__all__ = ["STOPPED", "answer_without_running", "find_begun", "is_stopped", "list_interrupted", "reopen_calls"]

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


def list_interrupted(calls: Sequence[Call], journal: Journal | None) -> Iterator[tuple[Call, ToolResult]]:
    """Answer the calls up to the first that wasn't begun: their outcome is unknown."""
    begun = find_begun(calls, journal)
    for call in calls:
        if call.id not in begun:
            return
        yield call, make_interrupted_result(call)
        _record_interrupted(begun[call.id], journal)


def answer_without_running(conversation: Conversation, journal: Journal | None) -> Conversation:
    """Answer all open calls: as interrupted if they were begun, or else as not run."""
    calls = conversation.pending
    begun = find_begun(calls, journal)
    for call in calls:
        is_begun = call.id in begun
        result = make_interrupted_result(call) if is_begun else make_not_run_result(call, _ENDED)
        conversation = conversation.add(tool_message(result))
        if is_begun:
            _record_interrupted(begun[call.id], journal)
    return conversation


def reopen_calls(conversation: Conversation) -> Conversation:
    """Leave the last calls open again that were answered as not run since the run was stopped."""
    messages = conversation.messages
    while messages and messages[-1].role == "tool" and is_stopped(messages[-1].result):
        messages = messages[:-1]
    return conversation if len(messages) == len(conversation) else Conversation(messages, conversation.now)


def is_stopped(result: ToolResult) -> bool:
    """Whether a result says that its call wasn't run since the run was stopped."""
    return result.content == make_not_run_result(ToolCall(result.call_id, result.name, "{}"), STOPPED).content


def _record_interrupted(entry: InterruptedCall, journal: Journal | None) -> None:
    if journal is not None:
        fields = {"call": entry.call_id, "tool": entry.tool, "status": "interrupted"}
        journal.record("finished", entry.key, fields)
