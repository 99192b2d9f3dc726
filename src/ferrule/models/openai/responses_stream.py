"""Reads one answer of the Responses API: typed events, each about one item of the output."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ferrule.capabilities import Loss
from ferrule.conversation import Conversation, StopReason
from ferrule.events import Event, MessageFinished, Usage
from ferrule.formats import openai, openai_responses
from ferrule.formats.openai_responses_reading import build_extra, can_be_sent_back
from ferrule.formats.tool_offers import ToolNames
from ferrule.models.hosted import EventKind, get_fields
from ferrule.models.message_builder import MessageBuilder, is_json, read_count

Sent: TypeAlias = Mapping[str, Any]
"""An event, as decoded JSON."""

_PREAMBLE = frozenset({"response.created", "response.queued", "response.in_progress"})
_OPENINGS = frozenset(
    {"response.output_item.added", "response.content_part.added", "response.reasoning_summary_part.added", "keepalive"}
)
_LAST = frozenset({"response.completed", "response.incomplete"})


def find_error(event: Mapping[str, Any]) -> Any:
    """The error that an event reports; None if it reports none."""
    if event.get("type") == "error":
        # Its own type adds nothing.
        return {name: event.get(name) for name in ("message", "code")}
    if event.get("type") == "response.failed":
        return get_fields(event.get("response")).get("error") or {}
    return None


def classify_response_event(event: Mapping[str, Any]) -> EventKind:
    """Whether an event is about the request, begins an empty item, is of the answer, or its end."""
    kind = event.get("type")
    if kind in _OPENINGS:
        return "opening"
    return "end" if kind in _LAST else "preamble" if kind in _PREAMBLE else "content"


def split_response(body: Any) -> list[dict[str, Any]] | None:
    """The events of a response that wasn't streamed; None if it isn't one."""
    output = get_fields(body).get("output")
    if not isinstance(output, list):
        return None
    items: list[dict[str, Any]] = [
        {"type": "response.output_item.done", "output_index": at, "item": item} for at, item in enumerate(output)
    ]
    end = "failed" if body.get("status") == "failed" else "completed"
    return [*items, {"type": f"response.{end}", "response": body}]


class ResponsesReader:
    """Reads the events of one answer: an `AnswerReader`."""

    losses: Sequence[Loss] = ()

    def __init__(self, conversation: Conversation, names: ToolNames) -> None:
        self._builder = MessageBuilder(conversation)
        self._names = names
        self._others = 0
        self._last_is_text = False
        self._has_content: set[Hashable] = set()
        self._keys: dict[str, Hashable] = {}
        self._reasoning: list[tuple[int, dict[str, Any]]] = []
        self._phases: dict[int, str] = {}
        self._refusal: list[str] = []
        self._readers: dict[str, Callable[[Sent], list[Event]]] = {
            "response.output_item.added": self._begin_item,
            "response.output_item.done": self._end_item,
            "response.output_text.delta": self._read_text,
            "response.refusal.delta": self._read_refusal,
            "response.reasoning_summary_part.added": self._begin_summary,
            "response.reasoning_summary_text.delta": self._read_thought,
            "response.reasoning_text.delta": self._read_thought,
            "response.function_call_arguments.delta": self._read_arguments,
            "response.completed": self._read_completion,
            "response.incomplete": self._read_incompletion,
        }
        self._usage = Usage()
        self.end_reason = ""
        """`completed`, or the reason why it is not: `max_output_tokens`, `content_filter`, …"""

    @property
    def is_empty(self) -> bool:
        """See `AnswerReader`."""
        return self._builder.is_empty

    def feed(self, event: Any) -> list[Event]:
        """The events for an event of the API."""
        sent = get_fields(event)
        read = self._readers.get(sent.get("type", ""))
        return read(sent) if read else []

    def _read_text(self, event: Sent) -> list[Event]:
        self._has_content.add(self._find_item(event))
        return self._add_text(_get_delta(event))

    def _add_text(self, text: str) -> list[Event]:
        if text and not self._last_is_text:
            self._others += 1
            self._last_is_text = True
        return self._builder.add_text(text)

    def _read_reasoning(self, text: str) -> list[Event]:
        if text:
            self._last_is_text = False
        return self._builder.add_reasoning(text)

    def _read_thought(self, event: Sent) -> list[Event]:
        self._has_content.add(self._find_item(event))
        return self._read_reasoning(_get_delta(event))

    def _read_refusal(self, event: Sent) -> list[Event]:
        self._refusal.append(_get_delta(event))
        return self._read_text(event)

    def _begin_summary(self, event: Sent) -> list[Event]:
        """Separate the paragraphs of one summary; nothing precedes the first."""
        return self._read_reasoning("\n\n") if event.get("summary_index") else []

    def _find_item(self, event: Sent) -> Hashable:
        """The key of the item that an event belongs to: its index, or else one of its ids.

        llama.cpp sends no index, and a call's `call_id` is the `item_id` of its arguments.
        """
        key: Hashable = event.get("output_index")
        if key is not None:
            return key
        item = get_fields(event.get("item"))
        ids = [one for one in (event.get("item_id"), item.get("id"), item.get("call_id")) if one]
        key = next((self._keys[one] for one in ids if one in self._keys), ids[0] if ids else None)
        self._keys.update(dict.fromkeys(ids, key))
        return key

    def _begin_item(self, event: Sent) -> list[Event]:
        item = get_fields(event.get("item"))
        if item.get("type") != "function_call":
            return []
        self._others += 1
        self._last_is_text = False
        key = self._find_item(event)
        # A server that gives several items one index has ended the one before.
        ended = self._builder.end_call(key) if key in self._builder.open_calls else []
        self._has_content.discard(key)
        own = self._names.decode(item.get("name") or "")
        return [*ended, *self._builder.begin_call(key, own, item.get("call_id"))]

    def _read_arguments(self, event: Sent) -> list[Event]:
        key = self._find_item(event)
        if key not in self._builder.open_calls:
            return []
        self._has_content.add(key)
        return self._builder.add_arguments(key, _get_delta(event))

    def _end_item(self, event: Sent) -> list[Event]:
        """End an item; what did not arrive in pieces is added now."""
        item, is_new = get_fields(event.get("item")), self._find_item(event) not in self._has_content
        kind = item.get("type")
        if kind == "reasoning":
            return self._end_reasoning(item, is_new)
        if kind == "message":
            return self._end_message(item, is_new)
        return self._end_call(event, item, is_new) if kind == "function_call" else []

    def _end_reasoning(self, item: Sent, is_new: bool) -> list[Event]:
        parts = map(get_fields, item.get("summary") or item.get("content") or ())
        text = "\n\n".join(part.get("text") or "" for part in parts) if is_new else ""
        events = self._read_reasoning(text)
        if can_be_sent_back(item):
            kept = {key: value for key, value in item.items() if value is not None and key != "status"}
            self._reasoning.append((self._others, kept))
        return events

    def _end_message(self, item: Sent, is_new: bool) -> list[Event]:
        events: list[Event] = []
        for part in map(get_fields, item.get("content") or ()) if is_new else ():
            if refusal := part.get("refusal"):
                self._refusal.append(refusal)
            events += self._add_text(refusal or part.get("text") or "")
        if item.get("phase") and self._last_is_text:
            self._phases[self._others - 1] = item["phase"]
        return events

    def _end_call(self, event: Sent, item: Sent, is_new: bool) -> list[Event]:
        key = self._find_item(event)
        events = [] if key in self._builder.open_calls else self._begin_item(event)
        written = item.get("arguments") or ""
        if not isinstance(written, str):
            written = json.dumps(written, ensure_ascii=False)
        if is_new:
            events += self._builder.add_arguments(key, written)
        # Whether other arguments were cut off is decided by the reason why the answer ended.
        is_whole = is_json(written or ("" if item.get("status") == "incomplete" else "{}"))
        return [*events, *self._builder.end_call(key)] if is_whole else events

    def _read_completion(self, event: Sent) -> list[Event]:
        if get_fields(event.get("response")).get("status") == "incomplete":  # said by a server's last event only
            return self._read_incompletion(event)
        self._usage = _read_usage(event)
        self.end_reason = "completed"
        return self._read_output(event)

    def _read_output(self, event: Sent) -> list[Event]:
        """The items of the last event, where a server sent them only there."""
        output = get_fields(event.get("response")).get("output")
        if not self.is_empty or not isinstance(output, list):
            return []
        items = ({"output_index": at, "item": item} for at, item in enumerate(output))
        return [found for item in items for found in self._end_item(item)]

    def _read_incompletion(self, event: Sent) -> list[Event]:
        self._usage = _read_usage(event)
        details = get_fields(get_fields(event.get("response")).get("incomplete_details"))
        # Servers without details have one reason only: the limit.
        self.end_reason = str(details.get("reason") or "max_output_tokens")
        return self._read_output(event)

    def close(self, is_broken: bool) -> list[Event]:  # noqa: ARG002 - an answer with a finish reason is complete
        """See `AnswerReader`."""
        return self._builder.end() if self.end_reason == "completed" else self._builder.cut()

    def _stop_reason(self) -> StopReason:
        # Calls are answered, however the message ended; if it broke off inside one, it can't be answered.
        if self._builder.has_calls:
            return "error" if not self.end_reason and self._builder.is_cut else "calls"
        if self.end_reason == "completed":
            return "turn"
        return "length" if self.end_reason == "max_output_tokens" else "error"

    def finish(self, is_broken: bool) -> MessageFinished:  # noqa: ARG002 - see `close`
        """See `AnswerReader`."""
        message = self._builder.build_message()
        extra: dict[str, Any] = {}
        if self._refusal:
            extra[openai.EXTRA] = {"refusal": "".join(self._refusal)}
        if kept := build_extra(self._reasoning, self._phases, message):
            extra[openai_responses.EXTRA] = kept
        if extra:
            message = replace(message, extra=extra)
        return MessageFinished(message, self._usage, self._stop_reason())


def _get_delta(event: Sent) -> str:
    return event.get("delta") or ""


def _read_usage(event: Sent) -> Usage:
    usage = get_fields(get_fields(event.get("response")).get("usage"))
    details = get_fields(usage.get("input_tokens_details"))
    cached, new = read_count(details.get("cached_tokens")), read_count(details.get("cache_write_tokens"))
    return Usage(read_count(usage.get("input_tokens")), cached, read_count(usage.get("output_tokens")), new)
