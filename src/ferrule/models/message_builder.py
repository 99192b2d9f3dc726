"""Builds one assistant message from a provider's stream, with its events on the way."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from ferrule.conversation import Conversation, MalformedCall, Message, Part, Reasoning, Text, ToolCall
from ferrule.events import (
    ArgumentsDelta,
    CallFinished,
    CallMalformed,
    CallStarted,
    Event,
    ReasoningDelta,
    TextDelta,
)


@dataclass(slots=True)
class _OpenCall:
    """A call whose arguments are still coming."""

    index: int
    id: str
    name: str
    arguments: StringIO = field(default_factory=StringIO)


class MessageBuilder:
    """Takes what a provider sends, in order, and returns events.

    Each call gets an id that is unique in the conversation: the provider's, unless that is empty or already used;
    `native_ids` then maps the new id to the provider's. Pieces of several calls may be interleaved.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._used = {call.id for message in conversation.messages for call in message.calls}
        self._next = conversation.next_call_number
        self._calls: dict[Hashable, _OpenCall] = {}
        self._pieces: list[tuple[type[Text] | type[Reasoning], StringIO] | int] = []
        self._ended: dict[int, ToolCall | MalformedCall] = {}
        self.native_ids: dict[str, str] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing has arrived yet."""
        return not self._pieces

    @property
    def ends_in_reasoning(self) -> bool:
        """Whether the last piece that arrived is of the reasoning."""
        last = self._pieces[-1] if self._pieces else None
        return not isinstance(last, int) and last is not None and last[0] is Reasoning

    @property
    def has_calls(self) -> bool:
        """Whether the message has calls, even malformed ones."""
        return any(isinstance(piece, int) for piece in self._pieces)

    @property
    def is_cut(self) -> bool:
        """Whether the message was cut off inside a call."""
        return any(isinstance(call, MalformedCall) for call in self._ended.values())

    @property
    def open_calls(self) -> list[Hashable]:
        """The keys of the calls that have begun and not ended, in order."""
        return list(self._calls)

    def add_text(self, text: str) -> list[Event]:
        """Add a piece of the answer."""
        return self._add(Text, text)

    def add_reasoning(self, text: str) -> list[Event]:
        """Add a piece of the reasoning."""
        return self._add(Reasoning, text)

    def _add(self, kind: type[Text] | type[Reasoning], text: str) -> list[Event]:
        if not text:
            return []
        last = self._pieces[-1] if self._pieces else None
        if isinstance(last, int) or last is None or last[0] is not kind:
            last = (kind, StringIO())
            last[1].write(text)  # raises for what is no text, before it counts as a part
            self._pieces.append(last)
        else:
            last[1].write(text)
        return [TextDelta(text) if kind is Text else ReasoningDelta(text)]

    def begin_call(self, key: Hashable, name: str, native_id: str | None = None) -> list[Event]:
        """Begin a call; `key` is how the provider refers to it from here on."""
        index = sum(isinstance(piece, int) for piece in self._pieces)
        self._pieces.append(index)
        call = _OpenCall(index, self._make_id(native_id), name)
        self._calls[key] = call
        return [CallStarted(index, name, native_id or None)]

    def _make_id(self, native: str | None) -> str:
        if native and native not in self._used:
            chosen = native
        else:
            while f"call_{self._next}" in self._used:
                self._next += 1
            chosen = f"call_{self._next}"
            if native:
                self.native_ids[chosen] = native
        self._used.add(chosen)
        return chosen

    def add_arguments(self, key: Hashable, fragment: str) -> list[Event]:
        """Add a piece of the arguments of an open call."""
        call = self._calls[key]
        call.arguments.write(fragment)
        return [ArgumentsDelta(call.index, fragment)] if fragment else []

    def end_call(self, key: Hashable) -> list[Event]:
        """End a complete call. Arguments that are not JSON stay as they are: the executor reports them to the model."""
        call = self._calls.pop(key)
        arguments = call.arguments.getvalue()
        events: list[Event] = []
        if not arguments.strip():
            arguments = "{}"
            events.append(ArgumentsDelta(call.index, arguments))
        made = ToolCall(call.id, call.name, arguments)
        self._ended[call.index] = made
        return [*events, CallFinished(call.index, made)]

    def end(self) -> list[Event]:
        """End a complete message, and with it all its calls."""
        return [event for key in self.open_calls for event in self.end_call(key)]

    def cut(self) -> list[Event]:
        """End a message that was cut off: an open call is malformed, with the part that arrived."""
        events: list[Event] = []
        for call in self._calls.values():
            raw = f"{call.name}({call.arguments.getvalue()}"
            self._ended[call.index] = MalformedCall(call.id, raw, "truncated")
            events.append(CallMalformed(call.index, "truncated", raw))
        self._calls.clear()
        return events

    def build_message(self) -> Message:
        """What has arrived, as a message; all its calls must have ended."""
        return Message("assistant", tuple(map(self._make_part, self._pieces)))

    def _make_part(self, piece: tuple[type[Text] | type[Reasoning], StringIO] | int) -> Part:
        return self._ended[piece] if isinstance(piece, int) else piece[0](piece[1].getvalue())


def read_count(sent: Any) -> int:
    """A number of tokens in decoded JSON, also one that a server wrote as text; 0 for anything else."""
    try:
        return max(0, int(sent))
    except (TypeError, ValueError, OverflowError):
        return 0


def is_json(text: str) -> bool:
    """Whether a text is complete JSON: the arguments of a call that was not cut off."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
