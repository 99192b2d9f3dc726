"""What happens while a model writes and its tools run, as a stream of small frozen values.

A reader of a dialect makes the first seven, each with its `span` (start, end) in the text that it was fed,
so that the spans of a whole text tile it. Spans of events that come from elsewhere are None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ferrule.conversation import Message, StopReason, ToolCall, ToolResult

Span: TypeAlias = tuple[int, int] | None


def _setters(event: type) -> tuple[Callable[[object, Any], None], ...]:
    """What sets each field of an event that is being made.

    A reader makes an event of each piece that it is fed, and the `__init__` of a frozen dataclass, which looks up
    `object.__setattr__` for each field, costs it more than reading the piece. The events that come by the piece have
    one of their own that goes through their slots instead; nothing else goes there.
    """
    return tuple(event.__dict__[name].__set__ for name in event.__dict__["__slots__"])


@dataclass(frozen=True, slots=True, init=False)
class _Piece:
    """What the two kinds of text have in common."""

    text: str
    span: Span = None

    def __init__(self, text: str, span: Span = None) -> None:
        _set_text(self, text)
        _set_text_span(self, span)


_set_text, _set_text_span = _setters(_Piece)


@dataclass(frozen=True, slots=True, init=False)
class TextDelta(_Piece):
    """A piece of the answer's text."""


@dataclass(frozen=True, slots=True, init=False)
class ReasoningDelta(_Piece):
    """A piece of what the model thinks."""


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A call whose name is known. `index` counts the calls of one message from 0."""

    index: int
    name: str
    native_id: str | None = None
    span: Span = None


@dataclass(frozen=True, slots=True, init=False)
class ArgumentsDelta:
    """A piece of a call's arguments: joined, the pieces of one call decode to its arguments."""

    index: int
    json_fragment: str
    span: Span = None

    def __init__(self, index: int, json_fragment: str, span: Span = None) -> None:
        _set_index(self, index)
        _set_fragment(self, json_fragment)
        _set_fragment_span(self, span)


_set_index, _set_fragment, _set_fragment_span = _setters(ArgumentsDelta)


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A call that was read whole. `repairs` names what was not as the notation has it and could be put right."""

    index: int
    call: ToolCall
    span: Span = None
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallMalformed:
    """What was meant as a call and can't be read; `raw` is all of it."""

    index: int
    kind: str
    raw: str
    recoverable: bool = False
    span: Span = None


@dataclass(frozen=True, slots=True, init=False)
class Framing:
    """A marker of the dialect: no content, but a part of the text all the same."""

    marker: str
    span: Span = None

    def __init__(self, marker: str, span: Span = None) -> None:
        _set_marker(self, marker)
        _set_marker_span(self, span)


_set_marker, _set_marker_span = _setters(Framing)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a model read and wrote; `cached_tokens` of those read came from a cache."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    sampled_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.sampled_tokens + other.sampled_tokens,
        )


@dataclass(frozen=True, slots=True)
class MessageFinished:
    """A whole assistant message, what it cost, and why the model stopped."""

    message: Message
    usage: Usage
    stop: StopReason


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """What a running tool tells of itself."""

    call_id: str
    text: str
    fraction: float | None = None


@dataclass(frozen=True, slots=True)
class ResultReady:
    """A call has its answer."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The pipeline has stopped; `reason` is `done`, `paused`, or names the limit that was reached."""

    reason: str
    usage: Usage


ReaderEvent: TypeAlias = (
    TextDelta | ReasoningDelta | CallStarted | ArgumentsDelta | CallFinished | CallMalformed | Framing
)
Event: TypeAlias = ReaderEvent | MessageFinished | ToolProgress | ResultReady | RunFinished
