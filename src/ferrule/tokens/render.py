"""Renders layouts as token ids and masks (`Trace`), the one place where text becomes tokens; rollouts keep their ids.

Control text is split at the tokenizer's added tokens. Everything between two of those with the same `trained` flag is
joined into one run and encoded once with all added tokens off, since encoding pieces one by one can give different ids.
Sampled messages keep their ids. Runs that consist only of recurring parts (turn headers, the offered tools) are encoded
once and cached.

A `Rollout` collects prompts and sampled ids exactly as the engine saw them. As long as each prompt extends everything
before it, the generations form one `Trace`. Otherwise, because a chat template rewrites earlier turns, tools were
added, or the conversation was shortened, a new `Trace` begins. Each sampled id is trained in exactly one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from ferrule.capabilities import Loss, adapt
from ferrule.conversation import Conversation, Image, ImageInput, SampledTokens
from ferrule.dialects.protocol import Dialect
from ferrule.dialects.segments import Content, Control, ImageSlot, Layout, SampledIds, Segment
from ferrule.errors import DialectError, TokenizerError, choose_advice
from ferrule.tokens.tokenizer import Tokenizer
from ferrule.toolspec import ToolSpec


@dataclass(frozen=True, slots=True)
class Trace:
    """Aligned sequences of equal length, and the places of the images in them, in order.

    `mask` is 1 for tokens that were sampled, or are meant to be; `logprobs` is the raw natural-log probability of a
    sampled token and None elsewhere, `sampling_logprobs` the one by which it was drawn, where that is known. `losses`
    lists what the dialect could not write, as its `Layout` does; for the traces of a run, `Run.losses` does.
    """

    ids: tuple[int, ...]
    mask: tuple[int, ...]
    logprobs: tuple[float | None, ...]
    images: tuple[ImageInput, ...] = ()
    losses: tuple[Loss, ...] = ()
    sampling_logprobs: tuple[float | None, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)


ImageTokens: TypeAlias = Callable[[Image], "int | Sequence[str]"]
"""The tokens of an image: the number of placeholders, or all tokens by name if there are others around or among them
(such as ends of rows), as in the checkpoint's image processor."""

History = Literal["as_sampled", "as_template"]
"""How a local model's earlier messages are written in its prompts."""

_RUNS_KEPT = 256
_CONTROLS_KEPT = 1024


class _Encoder:
    """A tokenizer with a cache of what it has split and encoded."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.control = dict(tokenizer.control)
        self.encode = tokenizer.encode_text
        names = sorted(self.control, key=len, reverse=True)
        # Without added tokens, a pattern that never matches.
        self._splitter = re.compile("(" + "|".join(map(re.escape, names)) + ")" if names else "((?!))")
        self._splits: dict[str, tuple[str | int, ...]] = {}
        self._runs: dict[str, list[int]] = {}

    def split(self, text: str) -> tuple[str | int, ...]:
        """Split control text into ordinary text and the ids of added tokens."""
        pieces = self._splits.get(text)
        if pieces is None:
            found = self._splitter.split(text)
            pieces = tuple(self.control[piece] if at % 2 else piece for at, piece in enumerate(found) if piece)
            if len(self._splits) < _CONTROLS_KEPT:
                self._splits[text] = pieces
        return pieces

    def encode_recurring(self, text: str) -> list[int]:
        """The ids of a text that many conversations share."""
        ids = self._runs.get(text)
        if ids is None:
            if len(self._runs) >= _RUNS_KEPT:
                self._runs.clear()
            ids = self._runs[text] = self.encode(text)
        return ids


@lru_cache(maxsize=8)
def _get_encoder(tokenizer: Tokenizer) -> _Encoder:
    return _Encoder(tokenizer)


class _Writer:
    """Collects ids, mask and log-probabilities; text is buffered until its run is complete."""

    __slots__ = ("_encoder", "_run", "_run_recurs", "_run_trained", "ids", "images", "logprobs", "mask",
                 "sampling_logprobs")  # fmt: skip

    def __init__(self, encoder: _Encoder) -> None:
        self._encoder = encoder
        self.ids: list[int] = []
        self.mask: list[int] = []
        # From the start to the last sampled id; anything after that has none.
        self.logprobs: list[float | None] = []
        self.sampling_logprobs: list[float | None] = []
        self.images: list[ImageInput] = []
        self._run = ""
        self._run_trained = False
        self._run_recurs = True

    def write_text(self, text: str, trained: bool, recurs: bool) -> None:
        if trained != self._run_trained:
            self.end_run()
            self._run_trained = trained
        self._run += text
        if not recurs:
            self._run_recurs = False

    def end_run(self) -> None:
        if self._run:
            encode = self._encoder.encode_recurring if self._run_recurs else self._encoder.encode
            ids = encode(self._run)
            self.ids += ids
            self.mask += (1 if self._run_trained else 0,) * len(ids)
            self._run = ""
        self._run_recurs = True

    def write_control(self, text: str, trained: bool) -> None:
        for piece in self._encoder.split(text):
            if isinstance(piece, int):
                self.end_run()
                self.ids.append(piece)
                self.mask.append(1 if trained else 0)
            else:
                self.write_text(piece, trained, recurs=True)

    def write_sampled(self, segment: SampledIds) -> None:
        self.end_run()
        before = (None,) * (len(self.ids) - len(self.logprobs))
        self.logprobs += (*before, *segment.logprobs)
        self.sampling_logprobs += (*before, *(segment.sampling_logprobs or (None,) * len(segment.ids)))
        self.ids += segment.ids
        self.mask += (1,) * len(segment.ids)
        closer = self._encoder.control.get(segment.closer)
        if segment.closer and (closer is None or segment.ids[-1:] != (closer,)):
            self.write_control(segment.closer, trained=False)
            self.end_run()

    def write_image(self, slot: ImageSlot, image_tokens: ImageTokens | None) -> None:
        """Write the tokens of an image by their ids, so that text can't be confused with them."""
        self.end_run()
        tokens = _find_image_tokens(slot, image_tokens)
        missing = next((token for token in tokens if token not in self._encoder.control), None)
        if missing is not None:
            raise TokenizerError(f"image {slot.image.hash}: this tokenizer has no control token {missing!r}")
        self.images.append(ImageInput(slot.image, len(self.ids), len(tokens)))
        self.ids += [self._encoder.control[token] for token in tokens]
        self.mask += (0,) * len(tokens)

    def trace(self, losses: tuple[Loss, ...]) -> Trace:
        self.end_run()
        rest = (None,) * (len(self.ids) - len(self.logprobs))
        logprobs, drawn = (((*one, *rest) if one else rest) for one in (self.logprobs, self.sampling_logprobs))
        return Trace(tuple(self.ids), tuple(self.mask), logprobs, tuple(self.images), losses, drawn)


def _find_image_tokens(slot: ImageSlot, image_tokens: ImageTokens | None) -> Sequence[str]:
    """The tokens of an image, by name. Raises `TokenizerError` if they are unknown."""
    subject, placeholder = f"image {slot.image.hash}", slot.placeholder
    if image_tokens is None:
        what = f"how many {placeholder} stand" if placeholder else "which tokens stand"
        raise TokenizerError(
            f"{subject} can't be encoded: give image_tokens=, a function of the image that says {what} for it "
            "(the checkpoint's image processor knows)"
        )
    tokens = image_tokens(slot.image)
    if not isinstance(tokens, Sequence):
        if not placeholder:
            raise TokenizerError(f"{subject}: this framing names no placeholder, so image_tokens must give the tokens")
        tokens = [placeholder] * int(tokens)  # an integer of numpy, too
    if not tokens:
        raise TokenizerError(f"{subject}: image_tokens gives no token for it")
    return tokens


def encode_segments(
    segments: Iterable[Segment], tokenizer: Tokenizer, image_tokens: ImageTokens | None = None
) -> Trace:
    """The ids, mask and log-probabilities of segments, and the places of their images.

    Raises `TokenizerError` for an image without `image_tokens`. Control text for which the tokenizer has no token
    becomes ordinary text; `encode_layout` refuses it.
    """
    return encode_layout(Layout(tuple(segments)), tokenizer, image_tokens)


def encode_layout(
    layout: Layout, tokenizer: Tokenizer, image_tokens: ImageTokens | None = None, *, with_prompt: bool = False
) -> Trace:
    """The ids, mask and log-probabilities of a layout, the places of its images, and its losses.

    `with_prompt` adds what opens the assistant's next turn. Raises `TokenizerError` for an image without
    `image_tokens`, and if the tokenizer lacks a control token that the layout writes.
    """
    encoder = _get_encoder(tokenizer)
    segments = layout.segments + layout.prompt if with_prompt else layout.segments
    missing = [name for name in (*layout.stops, *layout.control_tokens) if name not in encoder.control]
    if missing:
        _refuse_missing_tokens(segments, missing, encoder)
    writer = _Writer(encoder)
    for segment in segments:
        if isinstance(segment, Control):
            writer.write_control(segment.text, segment.trained)
            if segment.ends_run:
                writer.end_run()
        elif isinstance(segment, Content):
            if segment.text:
                writer.write_text(segment.text, segment.trained, segment.recurs)
        elif isinstance(segment, SampledIds):
            writer.write_sampled(segment)
        elif isinstance(segment, ImageSlot):
            writer.write_image(segment, image_tokens)
    return writer.trace(layout.losses)


def _refuse_missing_tokens(segments: Sequence[Segment], missing: Sequence[str], encoder: _Encoder) -> None:
    """Raise `TokenizerError` if segments contain one of the control tokens that a tokenizer lacks."""
    texts = [one.text for one in segments if isinstance(one, Control)]
    texts += [one.closer for one in segments if isinstance(one, SampledIds)]
    plain = [piece for text in dict.fromkeys(texts) for piece in encoder.split(text) if isinstance(piece, str)]
    written = [name for name in dict.fromkeys(missing) if any(name in piece for piece in plain)]
    if written:
        named = choose_advice("", " (--tokenizer)")
        raise TokenizerError(
            f"this tokenizer has no control token for {', '.join(map(repr, written))}, so the dialect's markers would "
            f"become ordinary text; use the tokenizer of a model with this dialect{named}, or another dialect"
        )


def render(
    conversation: Conversation,
    dialect: Dialect | str,
    tokenizer: Tokenizer,
    tools: Sequence[ToolSpec] = (),
    *,
    with_prompt: bool = False,
    image_tokens: ImageTokens | None = None,
) -> Trace:
    """A whole conversation as a `Trace`; `with_prompt` adds what opens the assistant's next turn.

    `dialect` may be a name that `get_dialect` accepts. Ids that were sampled with another tokenizer or dialect mean
    nothing here: those messages are encoded anew. What the dialect can't write is in `Trace.losses`. Raises
    `DialectError` for an unknown dialect and for what the dialect refuses, and `TokenizerError` for a tokenizer of
    another library and as `encode_layout` does.
    """
    if isinstance(dialect, str):
        from ferrule.dialects import get_dialect

        dialect = get_dialect(dialect)
    if not hasattr(tokenizer, "encode_text"):
        raise TokenizerError(
            f"render takes a tokenizer of ferrule, such as HuggingFaceTokenizer('tokenizer.json'), not a "
            f"{type(tokenizer).__name__}"
        )
    for one in tools:
        if not isinstance(one, ToolSpec):
            raise DialectError(f"render takes ToolSpecs, such as those of ToolRegistry([…]).specs, not {one!r}")
    layout = dialect.layout(drop_foreign_samples(conversation, dialect, tokenizer), tools)
    return encode_layout(layout, tokenizer, image_tokens, with_prompt=with_prompt)


def make_layout_without_images(conversation: Conversation, dialect: Dialect, tools: Sequence[ToolSpec]) -> Layout:
    """The layout for a reader that sees no images: each is a note with its hash, and a loss of the layout."""
    capabilities = replace(dialect.capabilities, user_images=False, image_results=False)
    fitted, losses = adapt(conversation, capabilities)
    layout = dialect.layout(fitted, tools)
    return replace(layout, losses=(*losses, *layout.losses)) if losses else layout


def find_spelled_markers(dialect: Dialect, tokenizer: Tokenizer) -> dict[str, tuple[str, ...]]:
    """The markers of a dialect for which the tokenizer has no token: a reader matches these by their text.

    Each is mapped to the control tokens inside it. A marker around others that are tokens isn't among them, such as
    `<|channel|>analysis<|message|>`: a reader meets those tokens one by one, as the markers that they are.
    """
    found: dict[str, tuple[str, ...]] = {}
    for marker in dialect.markers:
        inside = tuple(token for token in tokenizer.control if token in marker)
        if marker not in tokenizer.control and not any(token in dialect.markers for token in inside):
            found[marker] = inside
    return found


def drop_foreign_samples(conversation: Conversation, dialect: Dialect, tokenizer: Tokenizer) -> Conversation:
    """The conversation without the ids sampled with another tokenizer or dialect; their text stays."""

    def is_foreign(sampled: SampledTokens | None) -> bool:
        if sampled is None:
            return False
        return sampled.tokenizer_fingerprint != tokenizer.fingerprint or sampled.dialect != dialect.name

    if not any(is_foreign(message.sampled) for message in conversation.messages):
        return conversation
    messages = (m.with_parts(m.parts) if is_foreign(m.sampled) else m for m in conversation.messages)
    return Conversation(tuple(messages), conversation.now)


def prepare_history(
    conversation: Conversation, dialect: Dialect, tokenizer: Tokenizer, history: History
) -> Conversation:
    """The conversation with the sampled ids that its layout should keep.

    `as_sampled` keeps all ids sampled with this dialect and tokenizer, so that earlier ids never change. `as_template`
    drops them if the dialect rewrites history: each prompt is then what the chat template writes, which is what models
    trained on it expect, but which may not extend the previous prompt. For a dialect that doesn't rewrite history both
    are the same.
    """
    if history == "as_sampled" or not dialect.rewrites_history:
        return drop_foreign_samples(conversation, dialect, tokenizer)
    return replace(
        conversation, messages=tuple(m.with_parts(m.parts) if m.sampled else m for m in conversation.messages)
    )


class Rollout:
    """Collects the generations of a run, in order."""

    __slots__ = ("_ids", "_images", "_logprobs", "_sampling_logprobs", "_traces")

    def __init__(self) -> None:
        self._traces: list[Trace] = []
        self._ids: list[int] = []
        self._logprobs: list[float | None] = []
        self._sampling_logprobs: list[float | None] = []
        self._images: tuple[ImageInput, ...] = ()

    def add(self, prompt: Sequence[int], sampled: SampledTokens, images: tuple[ImageInput, ...] = ()) -> None:
        """Add one generation: the ids and images given to the engine, and the ids that it sampled after them."""
        known = len(self._ids)
        if list(prompt[:known]) != self._ids or images[: len(self._images)] != self._images:
            self._traces.append(self._trace())
            self._ids, self._logprobs, self._sampling_logprobs, known = [], [], [], 0
        self._images = images
        given = prompt[known:]
        self._ids += given
        self._ids += sampled.ids
        self._logprobs += (*(None,) * len(given), *sampled.logprobs)
        drawn = sampled.sampling_logprobs or (None,) * len(sampled.ids)
        self._sampling_logprobs += (*(None,) * len(given), *drawn)

    def traces(self) -> tuple[Trace, ...]:
        """The traces added so far. `mask` is 1 for sampled ids; each trace ends with one."""
        return (*self._traces, self._trace()) if self._ids else tuple(self._traces)

    def _trace(self) -> Trace:
        logprobs = tuple(self._logprobs)
        mask = tuple(int(logprob is not None) for logprob in logprobs)
        drawn = tuple(self._sampling_logprobs)
        return Trace(tuple(self._ids), mask, logprobs, self._images, sampling_logprobs=drawn)
