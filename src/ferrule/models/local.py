"""A local model: an engine, a tokenizer and a dialect combined.

The sampled ids are kept with the message, so a conversation renders to exactly the ids that were sampled.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import groupby, takewhile
from typing import TYPE_CHECKING

from ferrule._util.async_closing import AsyncClosing
from ferrule.capabilities import Capabilities, Loss
from ferrule.conversation import (
    Conversation,
    MalformedCall,
    Message,
    Part,
    SampledTokens,
    StopReason,
    ToolCall,
)
from ferrule.dialects.grammar import Grammar
from ferrule.dialects.protocol import Dialect, Reader
from ferrule.dialects.reader.message import MessageParts
from ferrule.dialects.segments import Content, Control, Layout
from ferrule.engines.protocol import Engine, Finished, Sampled, Sampling
from ferrule.errors import ModelError
from ferrule.events import (
    CallFinished,
    CallMalformed,
    CallStarted,
    Event,
    LossesReported,
    MessageFinished,
    ReaderEvent,
    TextDelta,
    Usage,
)
from ferrule.models.confidence import CallSpans
from ferrule.models.protocol import (
    BASIC_SETTINGS,
    CallGuide,
    ModelSettings,
    refuse_unknown_settings,
    refuse_unoffered_choice,
)
from ferrule.tokens.render import (
    History,
    ImageTokens,
    Trace,
    encode_layout,
    find_spelled_markers,
    make_layout_without_images,
    prepare_history,
)
from ferrule.tokens.tokenizer import Detokenizer, Tokenizer
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.models.call_grammars import CallGrammars

_ADVICE = "one with a vocabulary does, once llguidance is installed: pip install 'ferrule[local]'"


class LocalModel(AsyncClosing):
    """Writes messages by sampling token ids."""

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        dialect: Dialect,
        name: str = "local",
        history: History = "as_sampled",
        image_tokens: ImageTokens | None = None,
        guide: CallGuide | None = None,
        strict_tools: bool = False,
    ) -> None:
        """`history`: how earlier messages are written if the dialect rewrites history; see `prepare_history`.

        `image_tokens`: the ids that represent an image, as in the checkpoint's image processor. Without them
        images become notes, and losses.

        `guide`: what steers its calls, in the place of `choice` and `strict_tools`.

        `strict_tools`: every call fits the schema of its tool, also where the model chooses whether it makes one, as
        `choice` ensures for those that it must make. Needs an engine that can constrain.
        """
        if guide is not None and not isinstance(guide, CallGuide):
            raise ModelError(f"a guide has constrain, holds_calls and review: see CallGuide; {guide!r} isn't one")
        if guide is not None and not hasattr(engine, "can_constrain"):
            raise ModelError(
                f"{type(engine).__name__} lacks can_constrain: True if generate takes a constraint, else False"
            )
        if strict_tools and not getattr(engine, "can_constrain", False):
            raise ModelError(f"strict_tools: {name} has an engine that can't constrain what it samples; {_ADVICE}")
        self.name = name
        self.history: History = history
        self.engine = engine
        self.tokenizer = tokenizer
        self.dialect = dialect
        self.image_tokens = image_tokens
        self.guide = guide
        self.strict_tools = strict_tools
        self._grammars: CallGrammars | None = None
        self.tools_optional = True
        """Whether it can be asked without the tools that it knows: see `Capabilities`."""

    @property
    def capabilities(self) -> Capabilities:
        """The dialect's capabilities, without images where their tokens aren't known, and with the settings that
        sampling honours."""
        settings = self._list_settings()
        capabilities = replace(self.dialect.capabilities, settings=settings, tools_optional=self.tools_optional)
        if self.image_tokens is None:
            capabilities = replace(capabilities, user_images=False, image_results=False)
        return capabilities

    async def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        """See `Model.stream`."""
        self._check_settings(settings, tools)
        if settings.choice == "none":
            tools = ()
        layout = self._make_layout(conversation, tools)
        prompt = encode_layout(layout, self.tokenizer, self.image_tokens, with_prompt=True)
        # What the engine refuses as too long needs none, and there it would take gigabytes.
        fits = len(prompt.ids) < self.context_length
        constraint, losses = self._make_constraint(conversation, tools, settings, layout) if fits else (None, ())
        if layout.losses or losses:
            yield LossesReported((*layout.losses, *losses))
        stops = self._find_ids(layout.stops)
        draft = self._begin_message(layout, tools, conversation.next_call_number)
        held = _HeldCalls(is_on=self.guide is not None and self.guide.holds_calls)
        finished: Finished | None = None
        generation = self.engine.generate(
            prompt.ids,
            # A seed belongs to a conversation: its later messages must not repeat the draws of the first.
            sampling=_make_sampling(settings, len(conversation)),
            # A grammar has no forbidden tokens, and ends with what ends a message.
            stop_ids=stops
            if constraint is not None and self.guide is None
            else (*stops, *self._find_ids(layout.forbidden_tokens)),
            images=prompt.images,
            constraint=constraint,
        )
        async with aclosing(generation) as batches:
            async for batch in batches:
                if isinstance(batch, Finished):
                    finished = batch
                else:
                    for event in held.hold_back(draft.feed(batch)):
                        yield event
        assert finished is not None, "an engine ends with Finished"
        ended = finished.reason == "stop" and draft.ids[-1] in stops
        for event in held.hold_back(draft.close(ended)):
            yield event
        stop = _choose_stop_reason(finished, ended, draft.gathered.parts)
        usage = Usage(finished.prompt_tokens, finished.cached_tokens, finished.sampled_tokens)
        message = self._make_message(draft, stop)
        confidences = draft.spans.compute_confidences(
            draft.ids, draft.constrained_logprobs, self.tokenizer, with_names=constraint is None
        )
        reviewed = None if self.guide is None else self.guide.review(message, confidences, conversation)
        if reviewed is not None:
            yield TextDelta(reviewed.text.removeprefix(_get_text_before_calls(message)))
            calls = tuple(call for call in message.calls if isinstance(call, ToolCall))
            yield MessageFinished(reviewed, usage, "turn", prompt.ids, prompt.images, confidences, calls)
            return
        for event in held.events:
            yield event
        yield MessageFinished(message, usage, stop, prompt.ids, prompt.images, confidences)

    def _list_settings(self) -> frozenset[str]:
        """The settings that sampling honours: a guide says by itself what is called."""
        can_choose = self.guide is None and getattr(self.engine, "can_constrain", False)
        return BASIC_SETTINGS | {"choice"} if can_choose else BASIC_SETTINGS

    def _check_settings(self, settings: ModelSettings, tools: Sequence[ToolSpec]) -> None:
        honoured = self._list_settings()
        if settings.choice is not None and "choice" not in honoured:
            why = "its guide says which calls it makes" if self.guide is not None else f"its engine can't; {_ADVICE}"
            raise ModelError(f"{self.name} doesn't support choice: {why}")
        refuse_unknown_settings(settings, honoured, self.name)
        refuse_unoffered_choice(settings, tools, self.name)

    def _make_constraint(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings, layout: Layout
    ) -> tuple[Grammar | None, tuple[Loss, ...]]:
        """What the next message can be, and what of the schemas that doesn't ensure; None if it may be any text."""
        if self.guide is not None:
            can_constrain = self.engine.can_constrain
            return (self.guide.constrain(conversation, tools, settings) if can_constrain else None), ()
        choice = settings.choice or "auto"
        if not tools or (choice == "auto" and not self.strict_tools):
            return None, ()
        if self._grammars is None:
            from ferrule.models.call_grammars import CallGrammars

            self._grammars = CallGrammars(self.dialect)
        made = self._grammars.make(tools, choice, _get_opening(layout), self.name)
        return (made.grammar, made.losses) if made is not None else (None, ())

    def _find_ids(self, names: Iterable[str]) -> list[int]:
        """The ids of those control tokens that the tokenizer has."""
        return [self.tokenizer.control[name] for name in names if name in self.tokenizer.control]

    def _begin_message(self, layout: Layout, tools: Sequence[ToolSpec], first_call: int) -> _SampledMessage:
        """An empty message, with the reader of what will be sampled."""
        reader = self.dialect.reader(
            tools,
            first_call=first_call,
            opens=_get_opening(layout),
            spelled_out=find_spelled_markers(self.dialect, self.tokenizer),
        )
        return _SampledMessage(Detokenizer(self.tokenizer), reader, MessageParts(first_call))

    def _make_message(self, draft: _SampledMessage, stop: StopReason) -> Message:
        sampled = SampledTokens(
            tuple(draft.ids),
            tuple(draft.logprobs),
            self.tokenizer.fingerprint,
            self.dialect.name,
            stop,
            tuple(draft.sampling_logprobs),
            tuple((version, len(list(run))) for version, run in groupby(draft.weights_versions)),
        )
        return Message("assistant", tuple(draft.gathered.parts), sampled if draft.ids else None)

    @property
    def context_length(self) -> int:
        """The maximum number of ids of a prompt and what is sampled after it."""
        return self.engine.context_length

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec] = ()) -> int:
        """The length in ids of the prompt for the next message of the conversation."""
        layout = self._make_layout(conversation, tools)
        return len(encode_layout(layout, self.tokenizer, self.image_tokens, with_prompt=True))

    def trace(self, conversation: Conversation, tools: Sequence[ToolSpec] = ()) -> Trace:
        """The whole conversation as one trace, with its history as this model sees it.

        With `history="as_sampled"` it contains the ids that were sampled here, unchanged. `Run.traces` has everything
        that a run sampled, whatever the history.
        """
        return encode_layout(self._make_layout(conversation, tools), self.tokenizer, self.image_tokens)

    def _make_layout(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> Layout:
        """The conversation as segments, with what this model can't be shown among the losses."""
        prepared = prepare_history(conversation, self.dialect, self.tokenizer, self.history)
        if self.image_tokens is None:
            return make_layout_without_images(prepared, self.dialect, tools)
        return self.dialect.layout(prepared, tools)

    async def aclose(self) -> None:
        """Close the engine."""
        await self.engine.aclose()


@dataclass(slots=True)
class _SampledMessage:
    """A message being sampled: its ids, and the parts that a reader makes of their text."""

    detokenizer: Detokenizer
    reader: Reader
    gathered: MessageParts
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    constrained_logprobs: list[float] = field(default_factory=list)
    sampling_logprobs: list[float] = field(default_factory=list)
    weights_versions: list[int] = field(default_factory=list)
    spans: CallSpans = field(default_factory=CallSpans)

    def feed(self, batch: Iterable[Sampled]) -> list[ReaderEvent]:
        start = len(self.ids)
        for token in batch:
            self.ids.append(token.id)
            self.logprobs.append(token.logprob)
            constrained = token.constrained_logprob
            self.constrained_logprobs.append(token.logprob if constrained is None else constrained)
            self.sampling_logprobs.append(token.sampling_logprob)
            self.weights_versions.append(token.weights_version)
        events: list[ReaderEvent] = []
        for text, is_control in self.detokenizer.feed(self.ids[start:]):
            events += self.reader.feed(text, is_control)
        self.gathered.add(events)
        self.spans.add(events)
        return events

    def close(self, stopped: bool) -> list[ReaderEvent]:
        rest = self.detokenizer.flush()
        events = self.reader.feed(rest, False) if rest else []
        events += self.reader.close(stopped)
        self.gathered.add(events)
        self.spans.add(events)
        return events


@dataclass(slots=True)
class _HeldCalls:
    """The events from the first call on, kept back until it is known whether the calls are made."""

    is_on: bool
    events: list[ReaderEvent] = field(default_factory=list)

    def hold_back(self, events: list[ReaderEvent]) -> list[ReaderEvent]:
        """Keep the events that are to wait, and return the others."""
        if not self.is_on:
            return events
        if not self.events:
            calls = (CallStarted, CallFinished, CallMalformed)
            first = next((place for place, event in enumerate(events) if isinstance(event, calls)), len(events))
            events, self.events = events[:first], events[first:]
            return events
        self.events += events
        return []


def _get_opening(layout: Layout) -> str:
    """How the prompt ends, with a marker from before that is still open."""
    return layout.opens + "".join(segment.text for segment in layout.prompt if isinstance(segment, Control | Content))


def _get_text_before_calls(message: Message) -> str:
    before = takewhile(lambda part: not isinstance(part, ToolCall | MalformedCall), message.parts)
    return Message("assistant", tuple(before)).text


def _make_sampling(settings: ModelSettings, messages: int) -> Sampling:
    seed = None if settings.seed is None else settings.seed * 1_000_003 + messages
    return Sampling(settings.temperature, settings.top_k, settings.top_p, seed, settings.max_tokens)


def _choose_stop_reason(finished: Finished, ended: bool, parts: Sequence[Part]) -> StopReason:
    calls = [part for part in parts if isinstance(part, ToolCall | MalformedCall)]
    if calls and (finished.reason != "context" or not Message("assistant", tuple(calls)).is_cut_off):
        return "calls"
    if finished.reason == "stop":
        return "turn" if ended else "error"
    return finished.reason
