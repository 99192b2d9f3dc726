"""What a person sees first: what the session works with, and where a resumed conversation stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line, escape_text
from ferrule.coding.last_turn import find_question
from ferrule.conversation import Conversation, Message

if TYPE_CHECKING:
    from ferrule.coding.program import CodingSession

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
