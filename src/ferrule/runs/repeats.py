"""Notices a model that makes the same call again and again, and tells it."""

from __future__ import annotations

from dataclasses import replace

from ferrule.conversation import Conversation, MalformedCall, Text, ToolCall, ToolResult

NOTICED = 3
"""From this many equal calls with equal results on, the model is told."""


def with_notice(conversation: Conversation, call: ToolCall | MalformedCall, result: ToolResult) -> ToolResult:
    """The result, with a note for the model where the same call had the same result again and again.

    The note depends on the conversation alone, so that training data has the same text.
    """
    if not isinstance(call, ToolCall):
        return result
    times = 1 + _earlier(conversation, call, result)
    if times < NOTICED:
        return result
    note = f"[This is call {times} of {call.name} with the same arguments and the same result: try something else.]"
    return replace(result, content=(*result.content, Text(note)))


def _earlier(conversation: Conversation, call: ToolCall, result: ToolResult) -> int:
    """How many earlier calls are equal and came to the same, counted back to the first that came to something else."""
    results = {m.result.call_id: m.result for m in conversation.messages if m.role == "tool"}
    times = 0
    for message in reversed(conversation.messages):
        for earlier in reversed(message.calls):
            if not isinstance(earlier, ToolCall) or (earlier.name, earlier.arguments) != (call.name, call.arguments):
                continue
            told = results.get(earlier.id)
            if told is None:
                continue
            if told.status != result.status or told.content[: len(result.content)] != result.content:
                return times
            times += 1
    return times
