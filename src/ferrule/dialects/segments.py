"""A conversation as segments: which parts are framing, content or sampled ids, and which are trained.

Text alone can't say which of its characters are markers, so a conversation on its way to a model is never one string:
it is a `Layout`, which `tokens/` turns into ids without any content becoming a control token.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from ferrule._util.quick_init import quick_init
from ferrule.capabilities import Loss
from ferrule.conversation import Image


@quick_init
@dataclass(frozen=True, slots=True)
class Control:
    """Text written by the dialect itself: only here are a tokenizer's added tokens recognised.

    `ends_run` is True at a generation point: the ids up to here must not depend on what follows.
    """

    text: str
    trained: bool = False
    ends_run: bool = False


@quick_init
@dataclass(frozen=True, slots=True)
class Content:
    """Text written by a person, model or tool: it becomes ordinary tokens, whatever it looks like.

    `recurs` is True for text that many conversations share (a system prompt, the offered tools): worth caching once
    encoded.
    """

    text: str
    trained: bool = False
    recurs: bool = False


@dataclass(frozen=True, slots=True)
class SampledIds:
    """Ids sampled by an engine, kept as they are; always trained. `logprobs` has the same length, and so
    has `sampling_logprobs`, unless it is empty: see `SampledTokens`.

    `closer` is the control token that must end them: if the model did not sample it, the system writes it, untrained.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    closer: str = ""
    sampling_logprobs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ImageSlot:
    """Where an image goes; never trained. `placeholder` is the control token for it, repeated as often as the image's
    grid requires; empty if the framing has none."""

    image: Image
    placeholder: str = ""


TextSegment: TypeAlias = Control | Content
Segment: TypeAlias = TextSegment | SampledIds | ImageSlot


def mask_segments(segments: Iterable[Segment]) -> list[Segment]:
    """The segments of text, none of them trained."""
    return [replace(one, trained=False) if isinstance(one, Control | Content) else one for one in segments]


@dataclass(frozen=True, slots=True)
class Layout:
    """The segments of a conversation, and how the next assistant message begins and ends.

    `prompt` is what the system writes to open the assistant's turn (empty if the turn is already open), `opens` a
    marker written earlier that is still open there, such as that of reasoning; `stops` are the control tokens with
    which a model ends its message; `forbidden_tokens` those that only the system may write, so sampling one also stops
    the model. `control_tokens` are the markers that must be tokens of their own wherever they are written: a tokenizer
    without them is refused. `losses` lists what could not be written.
    """

    segments: tuple[Segment, ...]
    prompt: tuple[Segment, ...] = ()
    stops: tuple[str, ...] = ()
    forbidden_tokens: tuple[str, ...] = ()
    losses: tuple[Loss, ...] = ()
    opens: str = ""
    control_tokens: tuple[str, ...] = ()

    @property
    def with_prompt(self) -> tuple[Segment, ...]:
        """The segments that a model continues from."""
        return self.segments + self.prompt

    @property
    def text(self) -> str:
        """The layout as one string, for people; sampled ids are left out."""
        return "".join(s.text for s in self.segments if isinstance(s, Control | Content))
