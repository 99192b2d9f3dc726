"""Reads one answer in the format of chat completions, with the variations of different servers.

Calls come in pieces: several in one chunk or interleaved, the id only with the first, the index missing or always 0, a
name over several chunks or repeated in each, arguments as an object. A call begins here with its first arguments,
because its name may be incomplete before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ferrule.capabilities import Loss
from ferrule.conversation import Conversation, StopReason
from ferrule.events import Event, MessageFinished, Usage
from ferrule.formats.openai_reading import EXTRA, join_reasoning
from ferrule.formats.tool_offers import ToolNames
from ferrule.models.failures import find_message
from ferrule.models.hosted import EventKind, get_fields
from ferrule.models.http import DONE
from ferrule.models.message_builder import MessageBuilder, is_json, read_count

_CONTENT_FIELDS = ("content", "tool_calls", "reasoning_content", "reasoning", "refusal", "function_call")


def classify_chunk(event: Mapping[str, Any]) -> EventKind:
    """Whether a chunk has content, or only names a role; the last one gives a reason or the usage."""
    if event is DONE:
        return "end"
    choices = event.get("choices") or ()
    # Usage is alone in the last chunk; some send it with every chunk.
    if not choices and event.get("usage") is not None:
        return "end"
    kind: EventKind = "preamble"
    for choice in map(get_fields, choices):
        if choice.get("finish_reason"):
            return "end"
        delta = get_fields(choice.get("delta"))
        if any(delta.get(name) for name in _CONTENT_FIELDS):
            kind = "content"
    return kind


def split_completion(body: Any) -> list[dict[str, Any]] | None:
    """The chunks of a completion that wasn't streamed; None if it isn't one."""
    choices = get_fields(body).get("choices")
    choice = get_fields(choices[0]) if isinstance(choices, list) and choices else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        return None
    calls = message.get("tool_calls") or ()
    delta = {**message, "tool_calls": [{**get_fields(call), "index": at} for at, call in enumerate(calls)]}
    finish = choice.get("finish_reason") or "stop"
    return [{"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": body.get("usage")}]


@dataclass(slots=True, eq=False)
class _ChatCall:
    """A call being received."""

    id: str | None
    name: str = ""
    written: list[str] = field(default_factory=list)
    begun: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether its arguments are complete JSON."""
        return is_json("".join(self.written))

    def is_followed_by(self, arguments: str) -> bool:
        """Whether a piece of arguments must be another call's: these are complete, and it begins an object."""
        # Only a piece that could end them is worth parsing all of them.
        may_be_whole = bool(self.written) and self.written[-1].rstrip().endswith("}")
        return may_be_whole and arguments.lstrip().startswith("{") and self.is_whole


class ChatReader:
    """Reads the chunks of one answer: an `AnswerReader`."""

    losses: Sequence[Loss] = ()

    def __init__(self, conversation: Conversation, names: ToolNames) -> None:
        self._builder = MessageBuilder(conversation)
        self._names = names
        self._calls: list[_ChatCall] = []
        self._at: dict[Any, _ChatCall] = {}
        self._refusal: list[str] = []
        self._details: list[dict[str, Any]] = []
        self._usage = Usage()
        self.end_reason = ""
        """Its `finish_reason`; empty until that arrives."""

    @property
    def is_empty(self) -> bool:
        """See `AnswerReader`."""
        return self._builder.is_empty and not self._calls

    def feed(self, chunk: Any) -> list[Event]:
        """The events for a chunk."""
        sent = get_fields(chunk)
        choices = sent.get("choices") or ()
        if usage := sent.get("usage") or get_fields(sent.get("x_groq")).get("usage"):
            self._usage = _read_usage(get_fields(usage))
            if not choices:
                self.end_reason = self.end_reason or "stop"
        elif chunk is DONE:
            self.end_reason = self.end_reason or "stop"
        events: list[Event] = []
        for choice in map(get_fields, choices):
            if not choice.get("index"):
                events += self._read_delta(get_fields(choice.get("delta")) or self._read_whole(sent))
                self.end_reason = str(choice.get("finish_reason") or self.end_reason)
                if self.end_reason == "error" and (said := find_message(choice.get("error"))):
                    self.end_reason = f"error: {said}"
        return events

    def _read_whole(self, sent: Mapping[str, Any]) -> Mapping[str, Any]:
        """The message of a chunk that is a whole completion, unless it repeats what came in pieces."""
        found = split_completion(sent) if self.is_empty else None
        return found[0]["choices"][0]["delta"] if found else {}

    def _read_delta(self, delta: Mapping[str, Any]) -> list[Event]:
        # Some send the reasoning under both names.
        events = self._read_reasoning(delta.get("reasoning_content") or delta.get("reasoning"))
        for detail in delta.get("reasoning_details") or ():
            _add_detail(self._details, detail)
        content = delta.get("content")
        for part in content if isinstance(content, list) else (content,):
            events += self._read_content(part)
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._refusal.append(refusal)
            events += self._read_content(refusal)
        for entry in map(get_fields, delta.get("tool_calls") or ()):
            events += self._read_call(entry, get_fields(entry.get("function")))
        if (legacy := delta.get("function_call")) is not None:
            events += self._read_call({}, get_fields(legacy))
        return events

    def _read_reasoning(self, text: Any) -> list[Event]:
        return self._builder.add_reasoning(text) if isinstance(text, str) else []

    def _read_content(self, part: Any) -> list[Event]:
        """A text, or one of Mistral's parts: a text, or reasoning."""
        if isinstance(part, dict):
            if part.get("type") == "thinking":
                thoughts = part.get("thinking") or ()
                pieces = thoughts if isinstance(thoughts, list) else [{"text": thoughts}]
                return [event for piece in pieces for event in self._read_reasoning(get_fields(piece).get("text"))]
            part = part.get("text")
        if isinstance(part, str) and self._builder.ends_in_reasoning:
            part = part.lstrip("\n")  # they belong to the end of the reasoning in the model's template
        if not isinstance(part, str) or not part:
            return []
        return [*self._begin_calls(), *self._builder.add_text(part)]

    def _read_call(self, entry: Mapping[str, Any], function: Mapping[str, Any]) -> list[Event]:
        """A piece of a call."""
        name = str(function.get("name") or "")
        index, native_id = entry.get("index"), entry.get("id")
        native_id = None if native_id in (None, "") else str(native_id)
        call = self._find_call(index, native_id, name)
        if name != call.name and not call.begun:
            call.name += name
        arguments = function.get("arguments")
        if arguments is None or arguments == "":
            return []
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if native_id is None and (name or call.id is None) and call.is_followed_by(arguments):
            call = _ChatCall(None, name or call.name)
            self._calls.append(call)
            self._at[index] = call
        call.written.append(arguments)
        return [*self._begin_calls(until=call), *self._builder.add_arguments(call, arguments)]

    def _find_call(self, index: int | None, native_id: str | None, name: str) -> _ChatCall:
        """The call that a piece belongs to: by its index, its id, or because it is the one being received."""
        last = self._calls[-1] if self._calls else None
        call = self._at.get(index) if index is not None else self._at.get(native_id) if native_id else last
        if call is None or (name and self._is_another(call, index, native_id, name)):
            call = _ChatCall(native_id)
            self._calls.append(call)
        if index is not None:
            self._at[index] = call
        if native_id:
            self._at[native_id] = call
            call.id = call.id or native_id
        return call

    @staticmethod
    def _is_another(call: _ChatCall, index: int | None, native_id: str | None, name: str) -> bool:
        """Whether a name begins another call although the index is the same: some servers count from 0 for each, others
        don't count at all."""
        if native_id and call.id:
            return native_id != call.id
        return call.begun and (name != call.name or (index is None and call.is_whole))

    def _begin_calls(self, until: _ChatCall | None = None) -> list[Event]:
        """Begin the calls that only have their names so far, in order, up to one of them."""
        events: list[Event] = []
        for call in self._calls:
            if not call.begun:
                call.begun = True
                events += self._builder.begin_call(call, self._names.decode(call.name), call.id)
            if call is until:
                break
        return events

    def close(self, is_broken: bool) -> list[Event]:  # noqa: ARG002 - an answer with a finish reason is complete
        """See `AnswerReader`."""
        events = self._begin_calls()
        if self.end_reason in ("", "length", "content_filter"):
            for call in self._calls:
                if call.is_whole:
                    events += self._builder.end_call(call)
            return [*events, *self._builder.cut()]
        return [*events, *self._builder.end()]

    def _stop_reason(self) -> StopReason:
        # Calls are answered, however the message ended; if it broke off inside one, it can't be answered.
        if self._calls:
            return "error" if not self.end_reason and self._builder.is_cut else "calls"
        if self.end_reason == "length":
            return "length"
        return "error" if self.end_reason.partition(":")[0] in ("", "content_filter", "error") else "turn"

    def finish(self, is_broken: bool) -> MessageFinished:  # noqa: ARG002 - see `close`
        """See `AnswerReader`."""
        message = self._builder.build_message()
        extra: dict[str, Any] = {}
        if self._refusal:
            extra["refusal"] = "".join(self._refusal)
        if self._details:
            extra.update(reasoning_details=self._details, reasoning=join_reasoning(message))
        if extra:
            message = replace(message, extra={EXTRA: extra})
        return MessageFinished(message, self._usage, self._stop_reason())


def _read_usage(usage: Mapping[str, Any]) -> Usage:
    details = get_fields(usage.get("prompt_tokens_details"))
    # DeepSeek has its own field for cached tokens.
    cached = read_count(details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens"))
    read, wrote = read_count(usage.get("prompt_tokens")), read_count(usage.get("completion_tokens"))
    thought = read_count(get_fields(usage.get("completion_tokens_details")).get("reasoning_tokens"))
    if read_count(usage.get("total_tokens")) == read + wrote + thought:  # xAI counts reasoning apart from the answer
        wrote += thought
    new, audio = read_count(details.get("cache_write_tokens")), read_count(details.get("audio_tokens"))
    return Usage(read, cached, wrote, new, audio)


def _add_detail(details: list[dict[str, Any]], piece: Any) -> None:
    """Add a piece of OpenRouter's `reasoning_details`: texts are joined, anything else is set once."""
    if not isinstance(piece, dict):
        return
    if not details or any(piece.get(key) not in (None, details[-1].get(key)) for key in ("type", "index")):
        details.append(dict(piece))
        return
    for key, value in piece.items():
        if key in ("text", "summary", "data") and isinstance(value, str):
            details[-1][key] = (details[-1].get(key) or "") + value
        elif value is not None:
            details[-1][key] = value
