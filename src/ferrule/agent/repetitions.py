"""Tells a model that it keeps making the same call with the same result.

The note depends on the conversation alone, so that training data has the same text.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.conversation import Conversation, MalformedCall, Text, ToolCall, ToolResult

FEWEST_NOTED = 3
"""From this many identical calls with identical results on, a note tells the model."""


class Repetitions:
    """The calls that a conversation has made. It is looked back on once, however many calls are compared with it."""

    def __init__(self, conversation: Conversation) -> None:
        self._earlier = reversed(conversation.messages)
        self._answers: dict[str, ToolResult] = {}
        self._known: dict[tuple[str, str], list[ToolResult]] = {}
        """The results by name and arguments of their calls, the last one first, as far as was looked back."""
        self._counts: dict[object, int] = {}

    def note(self, call: ToolCall | MalformedCall, result: ToolResult) -> ToolResult:
        """Add a note to the result of a call if the same one was made before, with the same result each time."""
        if not isinstance(call, ToolCall):
            return result
        key = (call.name, call.arguments, result.status, result.content)
        times = self._counts.get(key)
        if times is None:
            times = self._counts[key] = 1 + self._count((call.name, call.arguments), result)
        if times < FEWEST_NOTED:
            return result
        note = f"[This is call {times} of {call.name} with the same arguments and the same result: try something else.]"
        return replace(result, content=(*result.content, Text(note)))

    def _count(self, made: tuple[str, str], result: ToolResult) -> int:
        """Count the earlier identical calls, back to the first that had another result."""
        known = self._known.setdefault(made, [])
        size, times = len(result.content), 0
        while True:
            for one in known[times:]:
                if one.status != result.status or one.content[:size] != result.content:
                    return times
                times += 1
            if not self._look_back():
                return times

    def _look_back(self) -> bool:
        """Look back to the next message of the model; whether there is one."""
        for message in self._earlier:
            if message.role == "tool":
                answer = message.result
                self._answers[answer.call_id] = answer
            elif message.role == "assistant":
                for call in reversed(message.calls):
                    if isinstance(call, ToolCall) and call.id in self._answers:
                        self._known.setdefault((call.name, call.arguments), []).append(self._answers[call.id])
                return True
        return False
