"""Layouts to ids and masks: the one place where text becomes tokens.

Control text is split at the tokenizer's added tokens. Everything between two of those that shares its `trained` flag
is joined into one run and encoded once with all added tokens off, since pieces encoded one by one can differ from
their join. What was sampled keeps its ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ferrule.conversation import Conversation
from ferrule.dialects.protocol import Dialect
from ferrule.dialects.segments import Content, Control, ImageSlot, SampledIds, Segment
from ferrule.errors import TokenizerError
from ferrule.tokens.tokenizer import Tokenizer
from ferrule.tokens.trace import Trace
from ferrule.toolspec import ToolSpec


class _Writer:
    """Gathers ids, mask and log-probabilities; text waits until the run it belongs to is complete."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.ids: list[int] = []
        self.mask: list[int] = []
        self.logprobs: list[float | None] = []
        self._run: list[str] = []
        self._run_trained = False

    def text(self, text: str, trained: bool) -> None:
        if text:
            if trained != self._run_trained:
                self.end_run()
                self._run_trained = trained
            self._run.append(text)

    def end_run(self) -> None:
        if self._run:
            self.add(self._tokenizer.encode_text("".join(self._run)), self._run_trained)
            self._run.clear()

    def add(self, ids: Sequence[int], trained: bool) -> None:
        self.ids += ids
        self.mask += [int(trained)] * len(ids)
        self.logprobs += [None] * len(ids)

    def control(self, control: Control, splitter: re.Pattern[str] | None) -> None:
        pieces = splitter.split(control.text) if splitter else [control.text]
        for at, piece in enumerate(pieces):
            if at % 2:
                self.end_run()
                self.add((self._tokenizer.control[piece],), control.trained)
            else:
                self.text(piece, control.trained)

    def sampled(self, segment: SampledIds) -> None:
        self.end_run()
        self.ids += segment.ids
        self.mask += [1] * len(segment.ids)
        self.logprobs += segment.logprobs


@lru_cache(maxsize=64)
def _splitter(names: tuple[str, ...]) -> re.Pattern[str] | None:
    if not names:
        return None
    return re.compile("(" + "|".join(re.escape(n) for n in sorted(names, key=len, reverse=True)) + ")")


def trace_of(segments: Iterable[Segment], tokenizer: Tokenizer) -> Trace:
    """The ids, mask and log-probabilities of segments. Raises `TokenizerError` for an image: none is text."""
    writer = _Writer(tokenizer)
    splitter = _splitter(tuple(tokenizer.control))
    for segment in segments:
        if isinstance(segment, Content):
            writer.text(segment.text, segment.trained)
        elif isinstance(segment, Control):
            writer.control(segment, splitter)
        elif isinstance(segment, SampledIds):
            writer.sampled(segment)
        elif isinstance(segment, ImageSlot):
            raise TokenizerError(f"image {segment.image.hash}: this tokenizer has no placeholder for images")
    writer.end_run()
    return Trace(tuple(writer.ids), tuple(writer.mask), tuple(writer.logprobs))


def render(
    conversation: Conversation,
    dialect: Dialect,
    tokenizer: Tokenizer,
    tools: Sequence[ToolSpec] = (),
    *,
    with_prompt: bool = False,
) -> Trace:
    """A whole conversation as a `Trace`; `with_prompt` adds what opens the assistant's next turn.

    Ids that were sampled with another tokenizer or dialect mean nothing here: those messages are encoded anew.
    """
    layout = dialect.layout(_own_samples(conversation, dialect, tokenizer), tools)
    return trace_of(layout.with_prompt if with_prompt else layout.segments, tokenizer)


def _own_samples(conversation: Conversation, dialect: Dialect, tokenizer: Tokenizer) -> Conversation:
    def is_foreign(sampled: object) -> bool:
        fingerprint = getattr(sampled, "tokenizer_fingerprint", tokenizer.fingerprint)
        return fingerprint != tokenizer.fingerprint or getattr(sampled, "dialect", dialect.name) != dialect.name

    if not any(is_foreign(m.sampled) for m in conversation.messages if m.sampled):
        return conversation
    messages = tuple(m.with_parts(m.parts) if m.sampled and is_foreign(m.sampled) else m for m in conversation.messages)
    return Conversation(messages, conversation.now)
