"""Reads Anthropic's stream of events into ferrule's and into one message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ferrule.capabilities import Loss
from ferrule.conversation import Conversation, Message, Reasoning, StopReason, Text
from ferrule.events import Event, MessageFinished, Usage
from ferrule.formats.anthropic import EXTRA, make_signed_piece
from ferrule.formats.signatures import PartPositions, SignedPiece
from ferrule.formats.tool_offers import ToolNames
from ferrule.models.hosted import EventKind, get_fields
from ferrule.models.message_builder import MessageBuilder, is_json, read_count

_PREAMBLE = frozenset({"message_start", "ping", "content_block_stop"})
_IN_PIECES = {"text": "text", "thinking": "thinking", "tool_use": "input"}
# Reasons that end a message early, so that an unreadable call is one that was cut off.
_CUT = frozenset({"max_tokens", "model_context_window_exceeded", "refusal"})
_STOPS: dict[str | None, StopReason] = {
    "end_turn": "turn",
    "stop_sequence": "turn",
    "tool_use": "turn",  # for a tool that Anthropic runs: others are among the message's calls
    "max_tokens": "length",
    "pause_turn": "length",  # Anthropic's own tools took too long: another request continues
    "model_context_window_exceeded": "context",
}


def classify_message_event(event: Mapping[str, Any]) -> EventKind:
    """Whether an event is about the request, begins an empty block, is of the answer, or its end."""
    kind = event.get("type")
    if kind != "content_block_start":
        return "end" if kind == "message_stop" else "preamble" if kind in _PREAMBLE else "content"
    block = get_fields(event.get("content_block"))
    is_empty = block.get("type") in _IN_PIECES and not any(block.get(name) for name in _IN_PIECES.values())
    return "opening" if is_empty else "content"


def split_message(body: Any) -> list[dict[str, Any]] | None:
    """The events of a message that wasn't streamed; None if it isn't one."""
    if not isinstance(body, dict) or body.get("type") != "message" or not isinstance(body.get("content"), list):
        return None
    events: list[dict[str, Any]] = [{"type": "message_start", "message": body}]
    for at, block in enumerate(map(get_fields, body["content"])):
        events.append({"type": "content_block_start", "index": at, "content_block": block})
        if block.get("type") == "thinking":
            delta = {"type": "signature_delta", "signature": block.get("signature") or ""}
        else:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block.get("input") or {})}
        if block.get("type") in ("thinking", "tool_use"):
            events.append({"type": "content_block_delta", "index": at, "delta": delta})
        events.append({"type": "content_block_stop", "index": at})
    return [*events, {"type": "message_delta", "delta": body, "usage": body.get("usage")}, {"type": "message_stop"}]


@dataclass(slots=True)
class _OpenBlock:
    """An open block and, for reasoning, the part that it belongs to."""

    content: dict[str, Any]
    place: int | None = None
    arguments: str = ""


class AnthropicReader:
    """Reads the events of one answer: an `AnswerReader`."""

    def __init__(self, conversation: Conversation, names: ToolNames) -> None:
        self._builder = MessageBuilder(conversation)
        self.losses: list[Loss] = []
        self._refusal = ""
        self._names = names
        self._places = PartPositions()
        self._blocks: dict[int, _OpenBlock] = {}
        self._signed: list[SignedPiece] = []
        self._usage: dict[str, int] = {}
        self._reason: str | None = None

    def feed(self, event: Mapping[str, Any]) -> list[Event]:
        """The events for one event of the stream."""
        kind = event.get("type")
        if kind == "content_block_start":
            return self._begin_block(event["index"], event["content_block"])
        if kind == "content_block_delta" and event["index"] in self._blocks:
            return self._read_delta(event["index"], event["delta"])
        if kind == "content_block_stop" and event["index"] in self._blocks:
            return self._end_block(event["index"])
        if kind == "message_start":
            self._count_tokens(event["message"].get("usage"))
        elif kind == "message_delta":
            self._count_tokens(event.get("usage"))
            delta = event.get("delta") or {}
            self._reason = delta.get("stop_reason") or self._reason
            self._refusal = (delta.get("stop_details") or {}).get("explanation") or self._refusal
        return []

    def _count_tokens(self, usage: Mapping[str, Any] | None) -> None:
        # Later numbers are the sum so far, not increments.
        self._usage.update({name: read_count(value) for name, value in get_fields(usage).items() if value is not None})

    def _begin_block(self, index: int, content: Mapping[str, Any]) -> list[Event]:
        block = self._blocks[index] = _OpenBlock(dict(content))
        kind = content.get("type")
        if kind == "tool_use":
            self._places.call()
            return self._builder.begin_call(index, self._names.decode(content["name"]), content.get("id"))
        if kind == "text":
            return self._add_text(content.get("text") or "")
        if kind == "thinking":
            block.content["thinking"] = block.content["signature"] = ""
            return self._add_reasoning(block, content.get("thinking") or "")
        if kind == "redacted_thinking":
            self._signed.append(make_signed_piece(self._places.find_index(Reasoning, ""), content))
        else:
            self.losses.append(Loss("text", f"a block of type {kind} has no place in a message"))
        del self._blocks[index]
        return []

    def _read_delta(self, index: int, delta: Mapping[str, Any]) -> list[Event]:
        block = self._blocks[index]
        kind = delta.get("type")
        if kind == "text_delta":
            return self._add_text(delta["text"])
        if kind == "thinking_delta":
            return self._add_reasoning(block, delta["thinking"])
        if kind == "signature_delta":
            block.content["signature"] += delta.get("signature") or ""
        elif kind == "input_json_delta" and delta["partial_json"]:
            block.arguments += delta["partial_json"]
            return self._builder.add_arguments(index, delta["partial_json"])
        return []

    def _add_text(self, text: str) -> list[Event]:
        self._places.find_index(Text, text)
        return self._builder.add_text(text)

    def _add_reasoning(self, block: _OpenBlock, text: str) -> list[Event]:
        if text or block.place is None:
            block.place = self._places.find_index(Reasoning, text)
        block.content["thinking"] += text
        return self._builder.add_reasoning(text)

    def _end_block(self, index: int) -> list[Event]:
        block = self._blocks.pop(index)
        if block.content["type"] == "thinking" and block.place is not None:
            self._signed.append(make_signed_piece(block.place, block.content))
        if block.content["type"] != "tool_use":
            return []
        events: list[Event] = []
        if not block.arguments and block.content.get("input"):
            # Servers that speak this protocol without streaming calls send all of it at once.
            block.arguments = json.dumps(block.content["input"], ensure_ascii=False)
            events = self._builder.add_arguments(index, block.arguments)
        # Whether other arguments were cut off is decided by the reason why the message ended.
        return [*events, *self._builder.end_call(index)] if is_json(block.arguments) else events

    @property
    def is_empty(self) -> bool:
        """See `AnswerReader`."""
        return self._builder.is_empty

    @property
    def end_reason(self) -> str:
        """See `AnswerReader`."""
        return ": ".join(filter(None, (self._reason, self._refusal)))

    def close(self, is_broken: bool) -> list[Event]:
        """See `AnswerReader`."""
        return self._builder.cut() if is_broken or self._reason in _CUT else self._builder.end()

    def finish(self, is_broken: bool) -> MessageFinished:
        """See `AnswerReader`."""
        message = self._builder.build_message()
        if self._signed:
            message = Message(message.role, message.parts, extra={EXTRA: self._signed})
        # Some servers end a complete answer without a reason.
        reason = self._reason or (None if self.is_empty else "end_turn")
        stop: StopReason = "error" if is_broken else _STOPS.get(reason, "error")
        # Calls are answered, however the message ended; if it broke off inside one, it can't be answered.
        is_answered = message.calls and not (is_broken and self._builder.is_cut)
        return MessageFinished(message, self._compute_usage(), "calls" if is_answered else stop)

    def _compute_usage(self) -> Usage:
        count = self._usage.get
        cached, new = count("cache_read_input_tokens", 0), count("cache_creation_input_tokens", 0)
        read = count("input_tokens", 0) + new + cached
        return Usage(read, cached, count("output_tokens", 0), new)
