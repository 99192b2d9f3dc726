"""The end of a resumed conversation: what was asked last, and where its turn was cut off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ferrule._util.terminal_text import escape_line
from ferrule.agent.compaction import is_summary
from ferrule.coding.announcements import is_announcement
from ferrule.conversation import Conversation, MalformedCall, Message, Text, ToolCall
from ferrule.execution.interrupted_calls import find_begun, is_stopped
from ferrule.transcript import summarize_arguments

if TYPE_CHECKING:
    from ferrule.execution import Journal

_MOST_NAMED = 5


def find_question(message: Message) -> str:
    """What a person typed in a message; empty if it is another one's."""
    if message.role != "user":
        return ""
    texts = (part.text for part in message.parts if isinstance(part, Text))
    return next((text for text in texts if text.strip() and not is_announcement(text) and not is_summary(text)), "")


def find_last_question(conversation: Conversation) -> str:
    """The last question of a person; empty without one."""
    return next(filter(None, map(find_question, reversed(conversation.messages))), "")


def describe_cut(conversation: Conversation, journal: Journal | None) -> str:
    """Describe where the last turn was cut off, as an escaped line; empty if the model has ended it."""
    messages = conversation.messages
    if not messages or messages[-1].role == "system" or (messages[-1].role == "assistant" and not messages[-1].calls):
        return ""
    if conversation.pending:
        begun = find_begun(conversation.pending, journal)
        started = [call for call in conversation.pending if call.id in begun]
        others = [call for call in conversation.pending if call.id not in begun]
        parts = [f"{_name(started)} (it had begun; the outcome is unknown)"] if started else []
        parts += [f"{_name(others)} (not run)"] if others else []
        return f"the last turn was cut off at: {', '.join(parts)}"
    if messages[-1].role == "tool":
        stopped = _list_stopped(messages)
        return f"the last turn was stopped; not run: {_name(stopped)}" if stopped else "the last turn was cut off"
    return "the last question has no answer yet" if find_last_question(conversation) else ""


def _list_stopped(messages: Sequence[Message]) -> list[ToolCall | MalformedCall]:
    """The calls of the last message that weren't run since the turn was stopped."""
    wrote = next(message for message in reversed(messages) if message.role == "assistant")
    stopped = {one.result.call_id for one in messages if one.role == "tool" and is_stopped(one.result)}
    return [call for call in wrote.calls if call.id in stopped]


def _name(calls: Sequence[ToolCall | MalformedCall]) -> str:
    """Name calls by their tools and arguments, on one line."""
    named = [escape_line(f"{getattr(call, 'name', '')} {summarize_arguments(call)}".strip()) for call in calls]
    more = f" and {len(calls) - _MOST_NAMED} more" if len(calls) > _MOST_NAMED else ""
    return f"{', '.join(named[:_MOST_NAMED])}{more}"
