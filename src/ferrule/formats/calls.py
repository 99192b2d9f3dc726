"""Calls in conversation files: unique ids, results in call order, arguments as a JSON object.

A file may omit ids, repeat them, and give results in another order than their calls; a conversation may not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ferrule.capabilities import Loss
from ferrule.conversation import Image, Message, Part, Text, ToolCall, ToolResult, tool_message
from ferrule.errors import ConversationError
from ferrule.tools.strict_json import decode_json


@dataclass(frozen=True, slots=True)
class _Open:
    """A call: its id in the file, and in the conversation."""

    native: str
    call: ToolCall


@dataclass(slots=True)
class CallOrder:
    """The calls of the last message with calls, and their results so far."""

    _used: set[str] = field(default_factory=set)
    _number: int = 1
    _open: list[_Open] = field(default_factory=list)
    _results: dict[int, Message] = field(default_factory=dict)
    """By the index of their call."""
    _answered: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """Begin another message with calls."""
        self._open = []

    def call(self, native: str, name: str, arguments: str) -> ToolCall:
        """A call of that message, whose id in the file is `native`, empty if there is none."""
        call = ToolCall(self._make_id(native), name, arguments)
        self._open.append(_Open(native, call))
        return call

    def answer(self, wanted: str, content: Iterable[Text | Image], *, by_name: bool = False) -> bool:
        """Take the result of the first open call with that id, or name; False if there is none."""
        for place, waiting in enumerate(self._open):
            said = waiting.call.name if by_name else waiting.native
            if said == wanted and waiting.call.id not in self._answered:
                result = ToolResult(waiting.call.id, waiting.call.name, tuple(content))
                self._results[place] = tool_message(result)
                self._answered.add(waiting.call.id)
                return True
        return False

    def take_results(self) -> list[Message]:
        """The results since the last time, in the order of their calls."""
        found = [message for _, message in sorted(self._results.items())]
        self._results.clear()
        return found

    def _make_id(self, native: str) -> str:
        chosen = native
        while not chosen or chosen in self._used:
            chosen = f"call_{self._number}"
            self._number += 1
        self._used.add(chosen)
        return chosen


INVALID_KEY = "_invalid"
"""The only key of the object that replaces arguments that are not a JSON object; its value is their text."""


def parse_arguments(call: ToolCall) -> tuple[dict[str, Any], Loss | None]:
    """A call's arguments as a JSON object, for providers that accept nothing else.

    Arguments that are not one become `{"_invalid": text}`, which is reported as a loss.
    """
    try:
        arguments = decode_json(call.arguments) if call.arguments.strip() else {}
    except ValueError:
        arguments = None
    if isinstance(arguments, dict):
        return arguments, None
    return {INVALID_KEY: call.arguments}, Loss(
        "call", f"the arguments of {call.id!r} are no JSON object, and go as text"
    )


def keep_results(parts: Iterable[Part], where: str) -> list[Text | Image]:
    """The parts of a result. Raises `ConversationError` for audio and files, which only a user can show."""
    kept: list[Text | Image] = []
    for part in parts:
        if not isinstance(part, Text | Image):
            raise ConversationError(f"{where}: a result holds text and images only; move the rest into a user message")
        kept.append(part)
    return kept
