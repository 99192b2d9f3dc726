"""The chunks of a Gemini's answer, read into events and into one message."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from ferrule.conversation import Conversation, MalformedCall, Message, Reasoning, StopReason, Text
from ferrule.events import CallFinished, CallMalformed, Event, MessageFinished, Usage
from ferrule.formats.google import add_piece, extra_of
from ferrule.formats.names import ToolNames
from ferrule.formats.signed_pieces import Places, Signed
from ferrule.models.assembly import Assembly

if TYPE_CHECKING:
    from google.genai.types import FunctionCall, GenerateContentResponse, Part

# A call that Google's own parser could not read, or that names no tool: the words are in the finish message.
_MALFORMED = {"MALFORMED_FUNCTION_CALL": "invalid_call", "UNEXPECTED_TOOL_CALL": "unexpected_call"}
_STOPS: dict[str, StopReason] = {"STOP": "turn", "MAX_TOKENS": "length", "CONTINUATION": "length"}


class GoogleReader:
    """Takes the chunks of one answer, in their order. A call comes whole: Google sends no pieces of one."""

    def __init__(self, conversation: Conversation, names: ToolNames) -> None:
        self.assembly = Assembly(conversation)
        self.dropped: list[str] = []
        """The kinds of parts that there is no place for in a message."""
        self.reason = ""
        """Why the answer ended, in Google's words; empty before it did."""
        self._conversation = conversation
        self._names = names
        self._places = Places()
        self._signatures: dict[str, str] = {}
        self._pieces: list[Signed] = []
        self._said_at_the_end = ""
        self._malformed: MalformedCall | None = None
        self._usage = Usage()
        self._calls = 0

    def feed(self, chunk: GenerateContentResponse) -> list[Event]:
        """What one chunk says."""
        if chunk.usage_metadata is not None:
            used = chunk.usage_metadata
            self._usage = Usage(
                (used.prompt_token_count or 0) + (used.tool_use_prompt_token_count or 0),
                used.cached_content_token_count or 0,
                (used.candidates_token_count or 0) + (used.thoughts_token_count or 0),
            )
        events: list[Event] = []
        for candidate in (chunk.candidates or [])[:1]:
            for part in (candidate.content.parts if candidate.content else None) or ():
                events += self._part(part)
            if candidate.finish_reason is not None:
                self.reason = candidate.finish_reason.value
            self._said_at_the_end = candidate.finish_message or self._said_at_the_end
        return events

    def _part(self, part: Part) -> list[Event]:
        signature = base64.b64encode(part.thought_signature).decode("ascii") if part.thought_signature else None
        if part.function_call is not None:
            return self._call(part.function_call, signature)
        if part.text is None and signature is None:
            self.dropped += sorted(part.model_dump(exclude_none=True))
            return []
        text = part.text or ""
        kind = Reasoning if part.thought else Text
        add_piece(self._pieces, self._places.of(kind, text), text, bool(part.thought), signature)
        return self.assembly.reasoning(text) if part.thought else self.assembly.text(text)

    def _call(self, call: FunctionCall, signature: str | None) -> list[Event]:
        self._places.call()
        self._calls += 1
        arguments = json.dumps(call.args or {}, ensure_ascii=False)
        events = self.assembly.begin_call(self._calls, self._names.own(call.name or ""), call.id)
        events += self.assembly.arguments(self._calls, arguments)
        ended = self.assembly.end_call(self._calls)
        for event in ended:
            if isinstance(event, CallFinished) and signature:
                self._signatures[event.call.id] = signature
        return [*events, *ended]

    def end(self) -> list[Event]:
        """The answer has ended as it should."""
        if self.reason not in _MALFORMED:
            return []
        kind, raw = _MALFORMED[self.reason], self._said_at_the_end
        used = {call.id for message in self._conversation.messages for call in message.calls} | set(self._signatures)
        number = self._conversation.next_call_number + self._calls
        while f"call_{number}" in used:
            number += 1
        self._malformed = MalformedCall(f"call_{number}", raw, kind)
        return [CallMalformed(self._calls, kind, raw)]

    def finished(self, broken: bool = False) -> MessageFinished:
        """The message. `broken`: the stream stopped in the middle."""
        parts = self.assembly.message().parts
        if self._malformed is not None:
            parts = (*parts, self._malformed)
        message = Message("assistant", parts, extra=extra_of(self._signatures, self._pieces))
        stop: StopReason = "error" if broken else _STOPS.get(self.reason, "error")
        return MessageFinished(message, self._usage, "calls" if message.calls else stop)
