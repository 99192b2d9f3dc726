"""The events of Anthropic's stream, read into ours and into one message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ferrule.conversation import Conversation, Message, Reasoning, StopReason, Text
from ferrule.events import Event, MessageFinished, Usage
from ferrule.formats.anthropic import EXTRA, signed_piece
from ferrule.formats.names import ToolNames
from ferrule.formats.signed_pieces import Places, Signed
from ferrule.models.assembly import Assembly

# What ends a message before it is whole, so that a call which can't be read is one that was cut off.
_CUT = frozenset({"max_tokens", "model_context_window_exceeded", "refusal"})
_STOPS: dict[str | None, StopReason] = {
    "end_turn": "turn",
    "stop_sequence": "turn",
    "tool_use": "turn",  # of a tool that Anthropic runs: ours are among the message's calls
    "max_tokens": "length",
    "pause_turn": "length",  # Anthropic's own tools took too long: asked again, it goes on
    "model_context_window_exceeded": "context",
}


@dataclass(slots=True)
class _Block:
    """A block that is being written, and of a thought the part that it falls into."""

    content: dict[str, Any]
    place: int | None = None
    arguments: str = ""


class AnthropicReader:
    """Takes the events of one stream, decoded, in their order."""

    def __init__(self, conversation: Conversation, names: ToolNames) -> None:
        self.assembly = Assembly(conversation)
        self.dropped: list[str] = []
        """The kinds of blocks that there is no place for in a message."""
        self.refusal = ""
        """Why the model refused to go on, where it did and said so."""
        self._names = names
        self._places = Places()
        self._blocks: dict[int, _Block] = {}
        self._signed: list[Signed] = []
        self._usage: dict[str, int] = {}
        self._reason: str | None = None

    def feed(self, event: Mapping[str, Any]) -> list[Event]:
        """What one event of the stream says."""
        kind = event.get("type")
        if kind == "content_block_start":
            return self._begin(event["index"], event["content_block"])
        if kind == "content_block_delta" and event["index"] in self._blocks:
            return self._delta(event["index"], event["delta"])
        if kind == "content_block_stop" and event["index"] in self._blocks:
            return self._end_block(event["index"])
        if kind == "message_start":
            self._count(event["message"].get("usage"))
        elif kind == "message_delta":
            self._count(event.get("usage"))
            delta = event.get("delta") or {}
            self._reason = delta.get("stop_reason") or self._reason
            self.refusal = (delta.get("stop_details") or {}).get("explanation") or self.refusal
        return []

    def _count(self, usage: Mapping[str, Any] | None) -> None:
        # What comes later is the sum so far, not what was added.
        self._usage.update({name: value for name, value in (usage or {}).items() if isinstance(value, int)})

    def _begin(self, index: int, content: Mapping[str, Any]) -> list[Event]:
        block = self._blocks[index] = _Block(dict(content))
        kind = content.get("type")
        if kind == "tool_use":
            self._places.call()
            return self.assembly.begin_call(index, self._names.own(content["name"]), content.get("id"))
        if kind == "text":
            return self._text(content.get("text") or "")
        if kind == "thinking":
            block.content["thinking"] = block.content["signature"] = ""
            return self._thought(block, content.get("thinking") or "")
        if kind == "redacted_thinking":
            self._signed.append(signed_piece(self._places.of(Reasoning, ""), content))
        else:
            self.dropped.append(str(kind))
        del self._blocks[index]
        return []

    def _delta(self, index: int, delta: Mapping[str, Any]) -> list[Event]:
        block = self._blocks[index]
        kind = delta.get("type")
        if kind == "text_delta":
            return self._text(delta["text"])
        if kind == "thinking_delta":
            return self._thought(block, delta["thinking"])
        if kind == "signature_delta":
            block.content["signature"] += delta["signature"]
        elif kind == "input_json_delta" and delta["partial_json"]:
            block.arguments += delta["partial_json"]
            return self.assembly.arguments(index, delta["partial_json"])
        return []

    def _text(self, text: str) -> list[Event]:
        self._places.of(Text, text)
        return self.assembly.text(text)

    def _thought(self, block: _Block, text: str) -> list[Event]:
        if text or block.place is None:
            block.place = self._places.of(Reasoning, text)
        block.content["thinking"] += text
        return self.assembly.reasoning(text)

    def _end_block(self, index: int) -> list[Event]:
        block = self._blocks.pop(index)
        if block.content["type"] == "thinking" and block.place is not None:
            self._signed.append(signed_piece(block.place, block.content))
        if block.content["type"] != "tool_use":
            return []
        events: list[Event] = []
        if not block.arguments and block.content.get("input"):
            # Servers that speak this protocol without streaming calls give all of it at once.
            block.arguments = json.dumps(block.content["input"], ensure_ascii=False)
            events = self.assembly.arguments(index, block.arguments)
        # Whether other arguments were cut off or were meant so, the reason why the message ended will tell.
        return [*events, *self.assembly.end_call(index)] if _is_json(block.arguments) else events

    def end(self) -> list[Event]:
        """The stream has ended as it should."""
        return self.assembly.cut() if self._reason in _CUT else self.assembly.end()

    def finished(self, broken: bool = False) -> MessageFinished:
        """The message; all of its calls must have ended. `broken`: the stream stopped in the middle."""
        message = self.assembly.message()
        if self._signed:
            message = Message(message.role, message.parts, extra={EXTRA: self._signed})
        stop: StopReason = "error" if broken else _STOPS.get(self._reason, "error")
        return MessageFinished(message, self._spent(), "calls" if message.calls else stop)

    def _spent(self) -> Usage:
        count = self._usage.get
        cached = count("cache_read_input_tokens", 0)
        read = count("input_tokens", 0) + count("cache_creation_input_tokens", 0) + cached
        return Usage(read, cached, count("output_tokens", 0))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
