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
"""A start and an end in a text; None where there is no text."""


@quick_init
@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str
    """The piece; joined, they are the text."""
    span: Span = None
    """The start and end of its text in what the reader was fed; None outside of a reader."""


@quick_init
@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning."""

    text: str
    """The piece; joined, they are the reasoning."""
    span: Span = None
    """The start and end of its text in what the reader was fed; None outside of a reader."""


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A call whose name is known. `index` counts the calls of one message from 0."""

    index: int
    """Which call of its message, from 0."""
    name: str
    """The name of the tool."""
    native_id: str | None = None
    """The provider's own id of the call, if it has one."""
    span: Span = None
    """The start and end of its text in what the reader was fed; None outside of a reader."""


@quick_init
@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """A piece of a call's arguments: joined, the pieces of one call decode to its arguments."""

    index: int
    """Which call of its message, from 0."""
    json_fragment: str
    """A piece of JSON text."""
    span: Span = None
    """The start and end of its text in what the reader was fed; None outside of a reader."""


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A call that was read completely. `repairs` names deviations from the notation that were repaired, or that are
    probably not what was meant (`null_as_text`)."""

    index: int
    """Which call of its message, from 0."""
    call: ToolCall
    """The call, with its arguments as they were written."""
    span: Span = None
    """The start and end of its text in what the reader was fed; None outside of a reader."""
    repairs: tuple[str, ...] = ()
    """Names of the repairs; empty if there were none."""


@dataclass(frozen=True, slots=True)
class CallMalformed:
    """An attempted call that can't be read; `raw` is all of it."""

    index: int
    """Which call of its message, from 0."""
    kind: str
    """What is wrong, such as `invalid_json`, `unclosed` or `forged_result`."""
    raw: str
    """All of its text."""
    recoverable: bool = False
    """Whether a further repair could read it; no reader of the package says so."""
    span: Span = None
    """The start and end of its text in what the reader was fed; None outside of a reader."""


@quick_init
@dataclass(frozen=True, slots=True)
class Framing:
    """A marker of the dialect: not content, but part of the text."""

    marker: str
    """Its text."""
    span: Span = None
    """The start and end of its text in what the reader was fed; None outside of a reader."""


@quick_init
@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a model read and wrote."""

    prompt_tokens: int = 0
    """Tokens read."""
    cached_tokens: int = 0
    """How many of those read came from a cache."""
    sampled_tokens: int = 0
    """Tokens written, with those of the reasoning."""
    cache_write_tokens: int = 0
    """How many of those read were written to a cache, which some providers charge for."""
    audio_tokens: int = 0
    """How many of those read were audio."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.sampled_tokens + other.sampled_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.audio_tokens + other.audio_tokens,
        )

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens - other.prompt_tokens,
            self.cached_tokens - other.cached_tokens,
            self.sampled_tokens - other.sampled_tokens,
        )


NO_USAGE = Usage()
"""No tokens at all."""


@dataclass(frozen=True, slots=True)
class LossesReported:
    """What of the conversation could not be written for the model, or of its answer recorded in the conversation.

    A model reports all losses with each request; a run emits only those that are new.
    """

    losses: tuple[Loss, ...]
    """What was lost, each with its kind and a sentence."""


@dataclass(frozen=True, slots=True)
class MessageFinished:
    """A complete assistant message, its usage, and why the model stopped.

    `prompt_ids` are the token ids of a local model's prompt, `prompt_images` the places of images in them;
    empty for any other model.
    """

    message: Message
    """The whole message."""
    usage: Usage
    """The tokens of this request."""
    stop: StopReason
    """`turn`, `calls`, `length`, `context`, `refusal`, `cancelled` or `error`."""
    prompt_ids: tuple[int, ...] = field(default=(), repr=False)
    """The token ids of a local model's prompt."""
    prompt_images: tuple[ImageInput, ...] = field(default=(), repr=False)
    """The places of images among these ids."""
    confidences: tuple[float, ...] = ()
    """How likely a local model found each call, from 0 to 1; empty for any other model."""
    withheld: tuple[ToolCall, ...] = ()
    """Calls that a local model was too unsure of: the message asks about them instead of making them, and
    `confidences` are theirs."""
    detail: str = ""
    """What the model or its provider said about a refusal."""


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call begins to run: it is permitted, and nobody is asked about it any more."""

    call: ToolCall
    """The call as it runs."""
    is_edited: bool = False
    """Whether a person has changed its arguments, which aren't those of the model's message then."""


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A running tool's report of its progress."""

    call_id: str
    """The id of the running call."""
    text: str
    """What the tool says that it is doing."""
    fraction: float | None = None
    """How much is done, from 0 to 1; None if the tool does not know."""


@dataclass(frozen=True, slots=True)
class ResultReady:
    """A call has a result."""

    result: ToolResult
    """The result, of which `call_id` and `name` say whose it is."""


@dataclass(frozen=True, slots=True)
class ContextCompacted:
    """The conversation had outgrown its model: its older part was left out, and is kept in `Run.compactions`."""

    dropped: int
    """How many messages were left out."""
    summary: str
    """What stands for them in the conversation; empty if they were dropped without a summary."""


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The pipeline has stopped; `reason` is `done`, `paused`, or names the limit that was reached."""

    reason: str
    """`Run.stopped`."""
    usage: Usage
    """The tokens of all requests."""
    detail: str = ""
    """`Run.stop_detail`: what the hook that stopped it said, such as a guardrail."""


ReaderEvent: TypeAlias = (
    TextDelta | ReasoningDelta | CallStarted | ArgumentsDelta | CallFinished | CallMalformed | Framing
)
"""The events that a reader creates."""
Event: TypeAlias = (
    ReaderEvent
    | LossesReported
    | MessageFinished
    | ToolStarted
    | ToolProgress
    | ResultReady
    | ContextCompacted
    | RunFinished
)
"""Any event of a run."""
