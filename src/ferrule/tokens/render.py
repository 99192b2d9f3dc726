"""Layouts to ids and masks: the one place where text becomes tokens.

Control text is split at the tokenizer's added tokens. Everything between two of those that shares its `trained` flag
is joined into one run and encoded once with all added tokens off, since pieces encoded one by one can differ from
their join. What was sampled keeps its ids. Runs of which every part recurs from conversation to conversation (turn
headers, the offered tools) are encoded once and kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ferrule.conversation import Conversation, Sampled
from ferrule.dialects.protocol import Dialect
from ferrule.dialects.segments import Content, Control, ImageSlot, SampledIds, Segment
from ferrule.errors import TokenizerError
from ferrule.tokens.tokenizer import Tokenizer
from ferrule.tokens.trace import Trace
from ferrule.toolspec import ToolSpec

_RUNS_KEPT = 256
_CONTROLS_KEPT = 1024


class _Encoder:
    """A tokenizer with what was already split and encoded by it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.control = dict(tokenizer.control)
        names = sorted(self.control, key=len, reverse=True)
        # Without added tokens nothing is split off: a pattern that never matches.
        self._splitter = re.compile("(" + "|".join(map(re.escape, names)) + ")" if names else "((?!))")
        self._splits: dict[str, tuple[str, ...]] = {}
        self._runs: dict[str, Sequence[int]] = {}

    def split(self, text: str) -> tuple[str, ...]:
        """Text and added tokens by turns; text stands at the even places."""
        pieces = self._splits.get(text)
        if pieces is None:
            pieces = tuple(self._splitter.split(text))
            if len(self._splits) < _CONTROLS_KEPT:
                self._splits[text] = pieces
        return pieces

    def encode(self, runs: Sequence[tuple[str, bool]]) -> list[Sequence[int]]:
        """The ids of each (text, does it recur)."""
        found = [self._runs.get(text) if recurs else None for text, recurs in runs]
        missing = [text for (text, _), ids in zip(runs, found, strict=True) if ids is None]
        encoded = iter(self._tokenizer.encode_texts(missing) if missing else ())
        return [
            ids if ids is not None else self._kept(text, recurs, next(encoded))
            for (text, recurs), ids in zip(runs, found, strict=True)
        ]

    def _kept(self, text: str, recurs: bool, ids: Sequence[int]) -> Sequence[int]:
        if recurs:
            if len(self._runs) >= _RUNS_KEPT:
                self._runs.clear()
            self._runs[text] = ids
        return ids


@lru_cache(maxsize=8)
def _encoder_of(tokenizer: Tokenizer) -> _Encoder:
    return _Encoder(tokenizer)


class _Writer:
    """Gathers runs and ids in order; the runs are encoded together at the end."""

    def __init__(self, encoder: _Encoder) -> None:
        self._encoder = encoder
        # Ids that are known already, with their flag; or, as None, the place of a run.
        self._items: list[tuple[Sequence[int] | None, bool]] = []
        self._runs: list[tuple[str, bool]] = []
        self._sampled: dict[int, SampledIds] = {}
        self._run: list[str] = []
        self._run_trained = False
        self._run_recurs = True

    def text(self, text: str, trained: bool, recurs: bool) -> None:
        if text:
            if trained != self._run_trained:
                self.end_run()
                self._run_trained = trained
            self._run.append(text)
            self._run_recurs = self._run_recurs and recurs

    def end_run(self) -> None:
        if self._run:
            self._items.append((None, self._run_trained))
            self._runs.append(("".join(self._run), self._run_recurs))
            self._run = []
        self._run_recurs = True

    def control(self, text: str, trained: bool) -> None:
        for at, piece in enumerate(self._encoder.split(text)):
            if at % 2:
                self.end_run()
                self._items.append(((self._encoder.control[piece],), trained))
            else:
                self.text(piece, trained, recurs=True)

    def sampled(self, segment: SampledIds) -> None:
        self.end_run()
        self._sampled[len(self._items)] = segment
        self._items.append((segment.ids, True))
        closer = self._encoder.control.get(segment.closer)
        if segment.closer and (closer is None or segment.ids[-1:] != (closer,)):
            self.control(segment.closer, trained=False)
            self.end_run()

    def trace(self) -> Trace:
        self.end_run()
        encoded = iter(self._encoder.encode(self._runs))
        ids: list[int] = []
        mask: list[int] = []
        logprobs: list[float | None] = []
        for at, (known, trained) in enumerate(self._items):
            some = next(encoded) if known is None else known
            ids += some
            mask += (1 if trained else 0,) * len(some)
            sampled = self._sampled.get(at)
            logprobs += (None,) * len(some) if sampled is None else sampled.logprobs
        return Trace(tuple(ids), tuple(mask), tuple(logprobs))


def trace_of(segments: Iterable[Segment], tokenizer: Tokenizer) -> Trace:
    """The ids, mask and log-probabilities of segments. Raises `TokenizerError` for an image: none is text."""
    writer = _Writer(_encoder_of(tokenizer))
    for segment in segments:
        if isinstance(segment, Content):
            writer.text(segment.text, segment.trained, segment.recurs)
        elif isinstance(segment, Control):
            writer.control(segment.text, segment.trained)
            if segment.ends_run:
                writer.end_run()
        elif isinstance(segment, SampledIds):
            writer.sampled(segment)
        elif isinstance(segment, ImageSlot):
            raise TokenizerError(f"image {segment.image.hash}: this tokenizer has no placeholder for images")
    return writer.trace()


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


def spelled_out(dialect: Dialect, tokenizer: Tokenizer) -> tuple[str, ...]:
    """The markers of a dialect for which the tokenizer has no token: a reader finds these by their text."""
    return tuple(marker for marker in dialect.markers if marker not in tokenizer.control)


def _own_samples(conversation: Conversation, dialect: Dialect, tokenizer: Tokenizer) -> Conversation:
    def is_foreign(sampled: Sampled | None) -> bool:
        if sampled is None:
            return False
        return sampled.tokenizer_fingerprint != tokenizer.fingerprint or sampled.dialect != dialect.name

    if not any(is_foreign(message.sampled) for message in conversation.messages):
        return conversation
    messages = (m.with_parts(m.parts) if is_foreign(m.sampled) else m for m in conversation.messages)
    return Conversation(tuple(messages), conversation.now)
