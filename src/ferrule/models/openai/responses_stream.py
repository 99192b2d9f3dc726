"""Reads one answer of the Responses API: typed events, each about one item of the output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ferrule.capabilities import Loss
from ferrule.conversation import Conversation, StopReason
from ferrule.events import Event, MessageFinished, Usage
from ferrule.formats import openai, openai_responses
from ferrule.formats.openai_responses_reading import build_extra, can_be_sent_back
from ferrule.formats.tool_offers import ToolNames
from ferrule.models.hosted import EventKind, get_fields
from ferrule.models.message_builder import MessageBuilder

Sent: TypeAlias = Mapping[str, Any]
"""An event, as decoded JSON."""

_PREAMBLE = frozenset({"response.created", "response.queued", "response.in_progress"})
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
    """Whether an event is about the request, about the answer, or its end."""
    kind = event.get("type")
    return "end" if kind in _LAST else "preamble" if kind in _PREAMBLE else "content"


class ResponsesReader:
    """Reads the events of one answer: an `AnswerReader`."""

    losses: Sequence[Loss] = ()

    def __init__(self, conversation: Conversation, names: ToolNames) -> None:
        self._builder = MessageBuilder(conversation)
        self._names = names
        self._others = 0
        self._last_is_text = False
        self._has_content: set[Any] = set()
        self._reasoning: list[tuple[int, dict[str, Any]]] = []
        self._phases: dict[int, str] = {}
        self._refusal: list[str] = []
        self._readers: dict[str, Callable[[Sent], list[Event]]] = {
            "response.output_item.added": self._begin_item,
            "response.output_item.done": self._end_item,
            "response.output_text.delta": self._read_text,
            "response.refusal.delta": self._read_refusal,
            "response.reasoning_summary_part.added": self._begin_summary,
            "response.reasoning_summary_text.delta": lambda event: self._read_reasoning(_get_delta(event)),
            "response.reasoning_text.delta": lambda event: self._read_reasoning(_get_delta(event)),
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
        self._has_content.add(event.get("output_index"))
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

    def _read_refusal(self, event: Sent) -> list[Event]:
        self._refusal.append(_get_delta(event))
        return self._read_text(event)

    def _begin_summary(self, event: Sent) -> list[Event]:
        """Separate the paragraphs of one summary; nothing precedes the first."""
        return self._read_reasoning("\n\n") if event.get("summary_index") else []

    def _begin_item(self, event: Sent) -> list[Event]:
        item = get_fields(event.get("item"))
        if item.get("type") != "function_call":
            return []
        self._others += 1
        self._last_is_text = False
        own = self._names.decode(item.get("name") or "")
        return self._builder.begin_call(event.get("output_index"), own, item.get("call_id"))

    def _read_arguments(self, event: Sent) -> list[Event]:
        index = event.get("output_index")
        if index not in self._builder.open_calls:
            return []
        self._has_content.add(index)
        return self._builder.add_arguments(index, _get_delta(event))

    def _end_item(self, event: Sent) -> list[Event]:
        """End an item; what did not arrive in pieces is added now."""
        item, is_new = get_fields(event.get("item")), event.get("output_index") not in self._has_content
        kind = item.get("type")
        if kind == "reasoning":
            if can_be_sent_back(item):
                kept = {key: value for key, value in item.items() if value is not None and key != "status"}
                self._reasoning.append((self._others, kept))
            return []
        if kind == "message":
            return self._end_message(item, is_new)
        return self._end_call(event, item, is_new) if kind == "function_call" else []

    def _end_message(self, item: Sent, is_new: bool) -> list[Event]:
        texts = [get_fields(part).get("text") or "" for part in item.get("content") or ()] if is_new else []
        events = [event for text in texts for event in self._add_text(text)]
        if item.get("phase") and self._last_is_text:
            self._phases[self._others - 1] = item["phase"]
        return events

    def _end_call(self, event: Sent, item: Sent, is_new: bool) -> list[Event]:
        index = event.get("output_index")
        events = [] if index in self._builder.open_calls else self._begin_item(event)
        if is_new:
            events += self._builder.add_arguments(index, item.get("arguments") or "")
        return [*events, *self._builder.end_call(index)]

    def _read_completion(self, event: Sent) -> list[Event]:
        self._usage = _read_usage(event)
        self.end_reason = "completed"
        return []

    def _read_incompletion(self, event: Sent) -> list[Event]:
        self._usage = _read_usage(event)
        details = get_fields(get_fields(event.get("response")).get("incomplete_details"))
        self.end_reason = str(details.get("reason") or "incomplete")
        return []

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
    count = get_fields(usage.get("input_tokens_details")).get
    cached, new = count("cached_tokens") or 0, count("cache_write_tokens") or 0
    return Usage(usage.get("input_tokens") or 0, cached, usage.get("output_tokens") or 0, new)
