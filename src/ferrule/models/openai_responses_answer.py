"""One answer as the Responses API streams it: typed events, each about one item of the output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from ferrule.conversation import StopReason
from ferrule.events import Event, MessageFinished, Usage
from ferrule.formats import openai, openai_responses
from ferrule.formats.names import ToolNames
from ferrule.models.assembly import Assembly
from ferrule.models.openai_answer import AnswerFailed, fields_of

Sent: TypeAlias = Mapping[str, Any]
"""An event, as decoded JSON."""

_PREAMBLE = frozenset({"response.created", "response.queued", "response.in_progress"})
_LAST = frozenset({"response.completed", "response.incomplete"})


class ResponsesListener:
    """Tells events that say something from those about the request, and knows the last ones."""

    def __init__(self) -> None:
        self.ended = False

    def hears(self, event: Any) -> bool:
        """See `Listener`."""
        kind = fields_of(event).get("type")
        if kind in ("error", "response.failed"):
            error = event if kind == "error" else fields_of(fields_of(event.get("response")).get("error"))
            raise AnswerFailed(str(error.get("message") or "no reason given"), error.get("code"))
        self.ended = self.ended or kind in _LAST
        return kind not in _PREAMBLE


class ResponsesAnswer:
    """Takes events of the API and gives ours: an `Answer`."""

    def __init__(self, assembly: Assembly, names: ToolNames) -> None:
        self._assembly = assembly
        self._names = names
        self._others = 0
        self._last_is_text = False
        self._has_content: set[Any] = set()
        self._reasoning: list[tuple[int, dict[str, Any]]] = []
        self._phases: dict[int, str] = {}
        self._refusal: list[str] = []
        self._readers: dict[str, Callable[[Sent], list[Event]]] = {
            "response.output_item.added": self._added,
            "response.output_item.done": self._done,
            "response.output_text.delta": self._said,
            "response.refusal.delta": self._refused,
            "response.reasoning_summary_part.added": self._next_summary,
            "response.reasoning_summary_text.delta": lambda event: self._thought(_delta(event)),
            "response.reasoning_text.delta": lambda event: self._thought(_delta(event)),
            "response.function_call_arguments.delta": self._arguments,
            "response.completed": self._completed,
            "response.incomplete": self._incomplete,
        }
        self._usage = Usage()
        self.ended: str | None = None
        """`completed`, or the reason for which it is not: `max_output_tokens`, `content_filter`, …"""

    @property
    def is_empty(self) -> bool:
        """See `Answer`."""
        return self._assembly.is_empty

    def feed(self, event: Any) -> list[Event]:
        """What an event adds."""
        sent = fields_of(event)
        read = self._readers.get(sent.get("type", ""))
        return read(sent) if read else []

    def _said(self, event: Sent) -> list[Event]:
        self._has_content.add(event.get("output_index"))
        return self._text(_delta(event))

    def _text(self, text: str) -> list[Event]:
        if text and not self._last_is_text:
            self._others += 1
            self._last_is_text = True
        return self._assembly.text(text)

    def _thought(self, text: str) -> list[Event]:
        if text:
            self._last_is_text = False
        return self._assembly.reasoning(text)

    def _refused(self, event: Sent) -> list[Event]:
        self._refusal.append(_delta(event))
        return self._said(event)

    def _next_summary(self, event: Sent) -> list[Event]:
        """Paragraphs of one summary; the first follows nothing."""
        return self._thought("\n\n") if event.get("summary_index") else []

    def _added(self, event: Sent) -> list[Event]:
        item = fields_of(event.get("item"))
        if item.get("type") != "function_call":
            return []
        self._others += 1
        self._last_is_text = False
        own = self._names.own(item.get("name") or "")
        return self._assembly.begin_call(event.get("output_index"), own, item.get("call_id"))

    def _arguments(self, event: Sent) -> list[Event]:
        index = event.get("output_index")
        if index not in self._assembly.open_calls:
            return []
        self._has_content.add(index)
        return self._assembly.arguments(index, _delta(event))

    def _done(self, event: Sent) -> list[Event]:
        """An item is whole. What of it did not come in pieces comes now."""
        item, is_new = fields_of(event.get("item")), event.get("output_index") not in self._has_content
        kind = item.get("type")
        if kind == "reasoning":
            if openai_responses.can_go_back(item):
                kept = {key: value for key, value in item.items() if value is not None and key != "status"}
                self._reasoning.append((self._others, kept))
            return []
        if kind == "message":
            return self._message_done(item, is_new)
        return self._call_done(event, item, is_new) if kind == "function_call" else []

    def _message_done(self, item: Sent, is_new: bool) -> list[Event]:
        texts = [fields_of(part).get("text") or "" for part in item.get("content") or ()] if is_new else []
        events = [event for text in texts for event in self._text(text)]
        if item.get("phase") and self._last_is_text:
            self._phases[self._others - 1] = item["phase"]
        return events

    def _call_done(self, event: Sent, item: Sent, is_new: bool) -> list[Event]:
        index = event.get("output_index")
        events = [] if index in self._assembly.open_calls else self._added(event)
        if is_new:
            events += self._assembly.arguments(index, item.get("arguments") or "")
        return [*events, *self._assembly.end_call(index)]

    def _completed(self, event: Sent) -> list[Event]:
        self._usage = _usage(event)
        self.ended = "completed"
        return []

    def _incomplete(self, event: Sent) -> list[Event]:
        self._usage = _usage(event)
        details = fields_of(fields_of(event.get("response")).get("incomplete_details"))
        self.ended = str(details.get("reason") or "incomplete")
        return []

    def close(self) -> list[Event]:
        """See `Answer`."""
        return self._assembly.end() if self.ended == "completed" else self._assembly.cut()

    def _stop(self) -> StopReason:
        # Calls are answered, however the message ended.
        if self._assembly.has_calls:
            return "calls"
        if self.ended == "completed":
            return "turn"
        return "length" if self.ended == "max_output_tokens" else "error"

    def finished(self) -> MessageFinished:
        """See `Answer`."""
        message = self._assembly.message()
        extra: dict[str, Any] = {}
        if self._refusal:
            extra[openai.EXTRA] = {"refusal": "".join(self._refusal)}
        if kept := openai_responses.kept(self._reasoning, self._phases, message):
            extra[openai_responses.EXTRA] = kept
        if extra:
            message = replace(message, extra=extra)
        return MessageFinished(message, self._usage, self._stop())


def _delta(event: Sent) -> str:
    return event.get("delta") or ""


def _usage(event: Sent) -> Usage:
    usage = fields_of(fields_of(event.get("response")).get("usage"))
    cached = fields_of(usage.get("input_tokens_details")).get("cached_tokens")
    return Usage(usage.get("input_tokens") or 0, cached or 0, usage.get("output_tokens") or 0)
