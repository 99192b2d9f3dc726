"""Reads the chunks of Gemini's answer into events and into one message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ferrule.capabilities import Loss
from ferrule.conversation import Conversation, MalformedCall, Message, Reasoning, StopReason, Text
from ferrule.events import CallFinished, CallMalformed, Event, MessageFinished, Usage
from ferrule.formats.google import add_piece, build_extra
from ferrule.formats.signatures import PartPositions, SignedPiece
from ferrule.formats.tool_offers import ToolNames
from ferrule.models.hosted import get_fields
from ferrule.models.message_builder import MessageBuilder, read_count

# A call that Google's own parser could not read, or that names no tool: its text is in the finish message.
_MALFORMED = {"MALFORMED_FUNCTION_CALL": "invalid_call", "UNEXPECTED_TOOL_CALL": "unexpected_call"}
_STOPS: dict[str, StopReason] = {"STOP": "turn", "MAX_TOKENS": "length", "CONTINUATION": "length"}


class GoogleReader:
    """Reads the chunks of one answer: an `AnswerReader`. Calls arrive whole: Google doesn't stream them."""

    def __init__(self, conversation: Conversation, names: ToolNames) -> None:
        self.losses: list[Loss] = []
        self.end_reason = ""
        self._builder = MessageBuilder(conversation)
        self._conversation = conversation
        self._names = names
        self._places = PartPositions()
        self._signatures: dict[str, str] = {}
        self._pieces: list[SignedPiece] = []
        self._finish_message = ""
        self._malformed: MalformedCall | None = None
        self._usage = Usage()
        self._calls = 0

    @property
    def is_empty(self) -> bool:
        """See `AnswerReader`."""
        return self._builder.is_empty

    def feed(self, event: Mapping[str, Any]) -> list[Event]:
        """The events for one chunk."""
        if used := get_fields(event.get("usageMetadata")):
            self._usage = _read_usage(used)
        events: list[Event] = []
        for candidate in map(get_fields, (event.get("candidates") or ())[:1]):
            for part in map(get_fields, get_fields(candidate.get("content")).get("parts") or ()):
                events += self._read_part(part)
            self.end_reason = str(candidate.get("finishReason") or self.end_reason)
            self._finish_message = str(candidate.get("finishMessage") or self._finish_message)
        return events

    def _read_part(self, part: Mapping[str, Any]) -> list[Event]:
        signature = part.get("thoughtSignature") or None
        if (call := part.get("functionCall")) is not None:
            return self._read_call(get_fields(call), signature)
        text, is_thought = part.get("text"), bool(part.get("thought"))
        if text is None and signature is None:
            self.losses += [Loss("text", f"a part with {kind} can't be part of a message") for kind in sorted(part)]
            return []
        text = text or ""
        kind = Reasoning if is_thought else Text
        add_piece(self._pieces, self._places.find_index(kind, text), text, is_thought, signature)
        return self._builder.add_reasoning(text) if is_thought else self._builder.add_text(text)

    def _read_call(self, call: Mapping[str, Any], signature: str | None) -> list[Event]:
        self._places.call()
        self._calls += 1
        arguments = json.dumps(call.get("args") or {}, ensure_ascii=False)
        events = self._builder.begin_call(self._calls, self._names.decode(call.get("name") or ""), call.get("id"))
        events += self._builder.add_arguments(self._calls, arguments)
        ended = self._builder.end_call(self._calls)
        for event in ended:
            if isinstance(event, CallFinished) and signature:
                self._signatures[event.call.id] = signature
        return [*events, *ended]

    def close(self, is_broken: bool) -> list[Event]:  # noqa: ARG002 - calls arrive whole
        """See `AnswerReader`."""
        if self.end_reason not in _MALFORMED:
            return []
        kind, raw = _MALFORMED[self.end_reason], self._finish_message
        used = {call.id for message in self._conversation.messages for call in message.calls} | set(self._signatures)
        number = self._conversation.next_call_number + self._calls
        while f"call_{number}" in used:
            number += 1
        self._malformed = MalformedCall(f"call_{number}", raw, kind)
        return [CallMalformed(self._calls, kind, raw)]

    def finish(self, is_broken: bool) -> MessageFinished:
        """See `AnswerReader`."""
        parts = self._builder.build_message().parts
        if self._malformed is not None:
            parts = (*parts, self._malformed)
        message = Message("assistant", parts, extra=build_extra(self._signatures, self._pieces))
        stop: StopReason = "error" if is_broken else _STOPS.get(self.end_reason, "error")
        return MessageFinished(message, self._usage, "calls" if message.calls else stop)


def _read_usage(used: Mapping[str, Any]) -> Usage:
    def count(name: str) -> int:
        return read_count(used.get(name))

    by_kind = map(get_fields, used.get("promptTokensDetails") or ())
    return Usage(
        count("promptTokenCount") + count("toolUsePromptTokenCount"),
        count("cachedContentTokenCount"),
        count("candidatesTokenCount") + count("thoughtsTokenCount"),
        audio_tokens=sum(read_count(one.get("tokenCount")) for one in by_kind if one.get("modality") == "AUDIO"),
    )
