"""A conversation as segments: what is framing, what is content, what was sampled, and what is trained.

Text alone can't say which of its characters are markers, so a conversation is never written as one string on its
way to a model: it is a `Layout`, and `tokens/` turns that into ids without any content becoming a control token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ferrule._util.quick_init import quick_init
from ferrule.capabilities import Loss
from ferrule.conversation import Image


@quick_init
@dataclass(frozen=True, slots=True)
class Control:
    """Text of the dialect itself: the only place where a tokenizer's added tokens are looked for.

    `ends_run` True at a generation point: the ids up to here must not depend on what is written after.
    """

    text: str
    trained: bool = False
    ends_run: bool = False


@quick_init
@dataclass(frozen=True, slots=True)
class Content:
    """Text that somebody wrote: it yields ordinary tokens, whatever it looks like.

    `recurs` True for what many conversations share (a system prompt, the offered tools): worth keeping encoded.
    """

    text: str
    trained: bool = False
    recurs: bool = False


@dataclass(frozen=True, slots=True)
class SampledIds:
    """Ids that an engine sampled, kept as they are; always trained. `logprobs` has the same length.

    `closer` is the control token that must end them: where the model did not sample it, the system writes it,
    untrained.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    closer: str = ""


@dataclass(frozen=True, slots=True)
class ImageSlot:
    """The place of an image; never trained."""

    image: Image


TextSegment: TypeAlias = Control | Content
Segment: TypeAlias = TextSegment | SampledIds | ImageSlot


@dataclass(frozen=True, slots=True)
class Layout:
    """The segments of a conversation, and how the next assistant message begins and ends.

    `prompt` is what the system writes to open the assistant's turn (empty where the turn is open already), `opens` a
    marker that was written earlier and is still open there, as that of reasoning may be;
    `stops` are the control tokens with which a model ends its message; `forbidden_tokens` those that only the system
    writes, so that a model that samples one is stopped too. `losses` says what was not written.
    """

    segments: tuple[Segment, ...]
    prompt: tuple[Segment, ...] = ()
    stops: tuple[str, ...] = ()
    forbidden_tokens: tuple[str, ...] = ()
    losses: tuple[Loss, ...] = ()
    opens: str = ""

    @property
    def with_prompt(self) -> tuple[Segment, ...]:
        """What a model is given to continue."""
        return self.segments + self.prompt

    @property
    def text(self) -> str:
        """The layout as one string, for people: ids that were sampled are left out."""
        return "".join(s.text for s in self.segments if isinstance(s, Control | Content))
