"""What a person sees first: what the session works with, and where a resumed conversation stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line, escape_text
from ferrule.agent.compaction import is_summary
from ferrule.coding.announcements import is_announcement
from ferrule.conversation import Conversation, MalformedCall, Message, Text, ToolCall
from ferrule.execution.interrupted_calls import find_begun, is_stopped
from ferrule.transcript import summarize_arguments

if TYPE_CHECKING:
    from ferrule.coding.program import CodingSession
    from ferrule.execution import Journal

_QUESTION_LINES, _ANSWER_LINES = 4, 12
_LONGEST_LINE = 400


def describe_session(coding: CodingSession) -> list[str]:
    """Describe the session in escaped lines: model, profile and folders, then the last exchange, if any."""
    head = f"ferrule code · {coding.session.model_name} · profile {coding.profile} · /help lists the commands"
    folders = ", ".join(map(str, (coding.workspace.folder, *coding.workspace.added)))
    return [escape_line(head), escape_line(folders), *describe_resumed(coding)]


def describe_resumed(coding: CodingSession) -> list[str]:
    """Describe where a resumed conversation stands in escaped lines, and how a turn goes on that was cut off."""
    lines = describe_last_exchange(coding.session.conversation)
    return [*lines, f"{coding.describe_cut()}; Enter goes on, or ask something else"] if coding.is_cut_off else lines


def describe_last_exchange(conversation: Conversation) -> list[str]:
    """Describe the last question and its answer in escaped lines, both cut; nothing of an empty conversation."""
    messages = conversation.messages
    asked = next((at for at in reversed(range(len(messages))) if find_question(messages[at])), None)
    if asked is None:
        return []
    lines = _cut(find_question(messages[asked]), _QUESTION_LINES)
    shown = [f"› {lines[0]}", *(f"  {line}" for line in lines[1:])]
    after = messages[asked + 1 :]
    spoken = [at for at, message in enumerate(after) if message.role == "assistant" and message.text.strip()]
    if not spoken:
        return [*shown, *_count_calls(after), "(no answer yet)", ""]
    last = spoken[-1]
    # As in a turn: only the program's own lines begin in the first column, and calls follow the text of their message.
    answer = [f"  {line}" for line in _cut(after[last].text, _ANSWER_LINES)]
    return [*shown, *_count_calls(after[:last]), *answer, *_count_calls(after[last:]), ""]


def _count_calls(messages: Sequence[Message]) -> list[str]:
    calls = sum(len(message.calls) for message in messages)
    return [f"▸ {pluralize(calls, 'call')}"] if calls else []


def _cut(text: str, most: int) -> list[str]:
    lines = escape_text(text.strip()).split("\n")
    kept = [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…" for line in lines[:most]]
    return [*kept, *([f"… {len(lines) - most} more lines"] if len(lines) > most else [])]


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
