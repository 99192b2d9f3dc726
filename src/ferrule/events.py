"""What happens while a model writes and its tools run, as a stream of small immutable values.

A dialect's reader creates the first seven, each with its `span` (start, end) in the text that it was fed, so that the
spans of a whole text tile it. Other events have no span.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from ferrule._util.quick_init import quick_init
from ferrule.capabilities import Loss
from ferrule.conversation import ImageInput, Message, StopReason, ToolCall, ToolResult

Span: TypeAlias = tuple[int, int] | None


@quick_init
@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str
    span: Span = None


@quick_init
@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning."""

    text: str
    span: Span = None


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A call whose name is known. `index` counts the calls of one message from 0."""

    index: int
    name: str
    native_id: str | None = None
    span: Span = None


@quick_init
@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """A piece of a call's arguments: joined, the pieces of one call decode to its arguments."""

    index: int
    json_fragment: str
    span: Span = None


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A call that was read completely. `repairs` names deviations from the notation that were repaired, or that are
    probably not what was meant (`null_as_text`)."""

    index: int
    call: ToolCall
    span: Span = None
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallMalformed:
    """An attempted call that can't be read; `raw` is all of it."""

    index: int
    kind: str
    raw: str
    recoverable: bool = False
    span: Span = None


@quick_init
@dataclass(frozen=True, slots=True)
class Framing:
    """A marker of the dialect: not content, but part of the text."""

    marker: str
    span: Span = None


@quick_init
@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a model read and wrote; `cached_tokens` of those read came from a cache."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    sampled_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        if self is NO_USAGE:  # for every run's first message
            return other
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.sampled_tokens + other.sampled_tokens,
        )


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class LossesReported:
    """What of the conversation could not be written for the model, or of its answer recorded in the conversation.

    A model reports all losses with each request; a run emits only those that are new.
    """

    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class MessageFinished:
    """A complete assistant message, its usage, and why the model stopped.

    `prompt_ids` are the token ids of a local model's prompt, `prompt_images` the places of images in them;
    empty for any other model.
    """

    message: Message
    usage: Usage
    stop: StopReason
    prompt_ids: tuple[int, ...] = field(default=(), repr=False)
    prompt_images: tuple[ImageInput, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A running tool's report of its progress."""

    call_id: str
    text: str
    fraction: float | None = None


@dataclass(frozen=True, slots=True)
class ResultReady:
    """A call has a result."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The pipeline has stopped; `reason` is `done`, `paused`, or names the limit that was reached."""

    reason: str
    usage: Usage


ReaderEvent: TypeAlias = (
    TextDelta | ReasoningDelta | CallStarted | ArgumentsDelta | CallFinished | CallMalformed | Framing
)
Event: TypeAlias = ReaderEvent | LossesReported | MessageFinished | ToolProgress | ResultReady | RunFinished
