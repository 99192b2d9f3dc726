"""One conversation, rendered with sentinels: all of it, its beginnings, and the spans of the assistant's messages."""

from __future__ import annotations

import marshal
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from ferrule.conversation import Conversation, Image, user
from ferrule.dialects.segments import Content, Control, ImageSlot, SampledIds, Segment
from ferrule.dialects.template.cuts import Cut, TemplateMarkers, list_spellings
from ferrule.dialects.template.messages import (
    ContentSlot,
    ContentSlots,
    Kind,
    encode_messages,
    encode_tools,
    is_plain,
    keep_text,
    write_sentinel,
)
from ferrule.dialects.template.spans import Span, SpanFinder
from ferrule.dialects.template.trials import WORDS
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.dialects.template.engine import TemplateEngine
    from ferrule.dialects.template.probe import TemplateFacts
    from ferrule.dialects.template.recording import TemplateRecording


_ANALYSES_KEPT = 128
_LONGEST_KEPT = 50_000
_BEGINNINGS_KEPT = 10_000_000  # characters


@dataclass(slots=True)
class TemplateAnalysis:
    """What the renderings of a conversation show that doesn't depend on its contents."""

    whole: Cut
    spans: list[Span] | None = None
    prompt: tuple[int, str] | None = None


@dataclass(slots=True)
class RenderingCache:
    """What earlier conversations of a template showed: conversations often differ only in their contents, or begin like
    an earlier one that has grown since."""

    analyses: dict[Hashable, TemplateAnalysis] = field(default_factory=dict)
    _beginnings: dict[Hashable, str] = field(default_factory=dict)
    _size: int = 0

    def get_beginning(self, key: Hashable) -> str | None:
        """The text of a beginning that was rendered, or None."""
        return self._beginnings.get(key)

    def put_beginning(self, key: Hashable, text: str) -> None:
        """Keep the text of a beginning."""
        self._size += len(text)
        if self._size > _BEGINNINGS_KEPT:
            self._beginnings.clear()
            self._size = len(text)
        self._beginnings[key] = text


class Rendering:
    """A conversation with sentinels in place of its content."""

    def __init__(
        self,
        engine: TemplateEngine,
        learned: TemplateFacts,
        known: TemplateMarkers,
        variables: Mapping[str, Any],
        conversation: Conversation,
        tools: Sequence[ToolSpec],
        slots: ContentSlots,
        cache: RenderingCache,
    ) -> None:
        self._engine, self.learned, self._known, self._variables = engine, learned, known, variables
        self.conversation = conversation
        self._offered = tools
        self._slots = slots
        self._tools = encode_tools(tools, self._slots.put)
        self._messages = encode_messages(conversation, learned.shape, self._slots.put)
        self._kept: dict[tuple[int, bool], str] = {}
        self._recordings: list[tuple[bool, TemplateRecording]] = []
        self._cache, kept = cache, cache.analyses
        key = self._make_key()
        found = kept.get(key)
        self._analysis = found or TemplateAnalysis(Cut.make(self._render_beginning(len(self._messages), False), slots))
        self.whole = replace(self._analysis.whole, slots=slots)
        if found is None and key is not None and len(self.whole.text) <= _LONGEST_KEPT:
            if len(kept) >= _ANALYSES_KEPT:
                kept.clear()
            kept[key] = self._analysis

    def _make_key(self) -> Hashable | None:
        """All that the analysis depends on, apart from the template; None if it can't be compared."""
        slots, now = self._slots, self.conversation.now if self._engine.reads_clock else None
        kinds = tuple((slot.kind, slot.message) for slot in slots.slots)
        try:
            rendered = marshal.dumps((self._tools, self._messages), 2)  # like JSON, and faster
        except ValueError:
            return None
        return rendered, kinds, slots.salt, slots.edges, slots.signs, self.learned.shape, now

    def _render_beginning(self, length: int, prompt: bool) -> str:
        """The first messages, with or without the generation prompt."""
        text = self._kept.get((length, prompt))
        if text is None:
            text = self._derive_beginning(length, prompt)
            if text is None:
                text = self._record_beginning(length, prompt)
            is_unasked = not self.learned.has_prompt and not self.learned.always_prompts
            if prompt and is_unasked and text == self._render_beginning(length, False):
                text += self.learned.opening
            self._kept[length, prompt] = text
        return text

    def _record_beginning(self, length: int, prompt: bool) -> str:
        """The same from an earlier conversation that began like this one, or rendered."""
        key = (self._digests[length], prompt) if self._digests else None
        text = self._cache.get_beginning(key) if key else None
        if text is None:
            recording = self._engine.record(
                self._messages[:length], self._tools, self.conversation.now, prompt, self._variables
            )
            self._recordings.append((prompt, recording))
            text = recording.text
            if key:
                self._cache.put_beginning(key, text)
        return text

    @cached_property
    def _digests(self) -> list[bytes]:
        """For each number of messages a hash of all that their text depends on, apart from the template; empty if that
        can't be hashed."""
        now = self.conversation.now.isoformat() if self._engine.reads_clock else ""
        read: list[Any] = [[self._tools, now], *self._messages]
        try:
            first, *others = (marshal.dumps(one, 2) for one in read)
        except ValueError:
            return []
        found = [blake2b(first, digest_size=32)]
        for message in others:
            found.append(found[-1].copy())
            found[-1].update(message)
        return [one.digest() for one in found]

    def _derive_beginning(self, length: int, prompt: bool) -> str | None:
        """The same from the rendering of more messages, if one shows it: beginnings are many, and rendering is slow."""
        for asked, recording in self._recordings:
            ending = None if asked == prompt or recording.ending is None else self.learned.prompt_ending
            if (asked == prompt or (prompt and ending is not None)) and length <= recording.count:
                text = recording.derive(length, ending)
                if text is not None:
                    return text
        return None

    def _render(self, messages: list[dict[str, Any]], prompt: bool) -> str:
        return self._engine.render(messages, self._tools, self.conversation.now, prompt, self._variables)

    @property
    def writes_offer(self) -> bool:
        """Whether a text of an offered tool is written: then there is a place for tools."""
        return any(self._slots.slots[number].kind == "offered" for number in self.whole.numbers)

    def find_prompt(self) -> tuple[int, str]:
        """What opens the assistant's next turn, and its position in the complete rendering.

        Some templates end a conversation with a marker that is missing when a prompt is requested, and some write the
        prompt whether it is requested or not.
        """
        if self._analysis.prompt is None:
            self._analysis.prompt = self._find_prompt()
        return self._analysis.prompt

    def _find_prompt(self) -> tuple[int, str]:
        text, messages = self.whole.text, self.conversation.messages
        bare = len(self.learned.strip_prompt(text[self.whole.end(len(self.whole.numbers) - 1) :]))
        asked = self._render_beginning(len(self._messages), True)
        if asked.startswith(text):
            length = self.whole.end(len(self.whole.numbers) - 1) + bare
            return length, asked[length:]
        if messages and messages[-1].role == "assistant":
            return len(text), self.learned.opening
        common = self._known.common_prefix(asked, text)
        if common < self.whole.starts[-2]:
            raise DialectError("the chat template writes the conversation differently when a prompt is requested")
        return common, asked[common:]

    def find_spans(self) -> list[Span]:
        """The span of each assistant message, in order. Raises `DialectError` if a header can't be identified."""
        if self._analysis.spans is None:
            self._analysis.spans = self._find_spans()
        return self._analysis.spans

    def _find_spans(self) -> list[Span]:
        finder = SpanFinder(self.whole, self.learned, self._known)
        numbers = [at for at, message in enumerate(self.conversation.messages) if message.role == "assistant"]
        self._render_longest_first(numbers)
        found: list[Span] = []
        for number in numbers:
            span = finder.find_span(number, self._render_prompt(number), self._render_alone(number))
            if found and span.start < found[-1].end:
                raise DialectError(f"the chat template writes message {number} before the one that precedes it")
            found.append(span)
        return found

    def _render_longest_first(self, numbers: Sequence[int]) -> None:
        """Render the beginnings before and after these messages, the longest first: others are derived from it."""
        wanted = [(len(self._messages), True)]
        for number in reversed(numbers):
            wanted += [(number + 1, False), (number, True)]
        for length, prompt in wanted:
            with suppress(DialectError):  # raised again where the beginning is needed
                if length:
                    self._render_beginning(length, prompt)

    def _render_prompt(self, number: int) -> Cut:
        """The conversation before a message, with the prompt for it."""
        if number:
            return Cut.make(self._render_beginning(number, True), self._slots, self.whole)
        # Some templates refuse to render no messages, or omit the tools then.
        asked = self._find_first_header()
        try:
            return Cut.make(asked or self._render_beginning(0, True), self._slots)
        except DialectError:
            return Cut.make("", self._slots)

    def _find_first_header(self) -> str:
        """What precedes the text of an assistant that speaks first, including the header.

        Raises `DialectError` if the template treats any first message as a user's.
        """
        whole, learned = self.whole, self.learned
        said = next((p for p, n in enumerate(whole.numbers) if whole.slots.slots[n].message >= 0), len(whole.numbers))
        limit = whole.begin(said) if said < len(whole.numbers) else len(whole.text)
        at = whole.text.rfind(learned.header, 0, limit) if learned.header else -1
        if at >= 0:
            return whole.text[: at + self._known.common_prefix(learned.opened, whole.text[at:])]
        if said < len(whole.numbers) and self._is_taken_for_a_user(whole.text[: whole.end(said)]):
            raise DialectError(
                "the chat template writes an assistant message at the beginning of a conversation as a user's"
            )
        return whole.text[: limit - self._known.common_suffix(whole.text[:limit], self._find_first_lead())]

    def _is_taken_for_a_user(self, beginning: str) -> bool:
        """Whether a user's text would be in the same place as that of an assistant in `beginning`."""
        try:
            return self._render([{**self._messages[0], "role": "user"}], False).startswith(beginning)
        except DialectError:
            return False

    def _find_first_lead(self) -> str:
        """The template's own text before the first content of the first message, as after a question."""
        question = encode_messages(Conversation((user(WORDS[0]),)), self.learned.shape, keep_text)
        try:
            asked = self._render(question, True)
            alone = Cut.make(self._render([*question, self._messages[0]], False), self._slots)
        except DialectError:
            return ""
        own = next((p for p, n in enumerate(alone.numbers) if alone.slots.slots[n].message == 0), -1)
        return alone.text[self._known.common_prefix(asked, alone.text) : alone.begin(own)] if own >= 0 else ""

    def _render_alone(self, number: int) -> Cut:
        """The conversation up to and including a message; the complete one if the template refuses to end there."""
        try:
            return Cut.make(self._render_beginning(number + 1, False), self._slots, self.whole)
        except DialectError:
            return self.whole

    def find_inspected(self) -> list[ContentSlot]:
        """The contents that, by themselves, change the template's output."""
        return [slot for number, slot in enumerate(self._slots.slots) if not self._is_written(number)]

    def _is_written(self, number: int) -> bool:
        counter = iter(range(len(self._slots.slots)))
        salt = self._slots.salt

        def fill(text: str, kind: Kind, message: int) -> str:  # noqa: ARG001 - a `Fill`
            if is_plain(text, kind):
                return text
            at = next(counter)
            return text if at == number else write_sentinel(salt, at)

        tools = encode_tools(self._offered, fill)
        messages = encode_messages(self.conversation, self.learned.shape, fill)
        try:
            text = self._engine.render(messages, tools, self.conversation.now, False, self._variables)
        except DialectError:
            return False
        token = write_sentinel(salt, number)
        return any(
            self.whole.text.replace(token, way) == text for way in list_spellings(self._slots.slots[number].text)
        )


def make_segments(
    rendering: Rendering, contents: Sequence[str], spans: Sequence[Span], dialect: str, length: int
) -> Iterator[Segment]:
    """The segments of the first `length` characters of a rendering; messages sampled by `dialect` are unchanged."""
    position, restore = 0, rendering.whole.slots.restore_ids
    for span in spans:
        message = rendering.conversation.messages[span.message]
        sampled = message.sampled
        header = list(_make_stretch_segments(rendering, contents, position, span.start, False))
        is_sampled = sampled is not None and sampled.dialect == dialect
        more = restore(span.opened) if is_sampled else ""
        if header and isinstance(header[-1], Control):
            yield from header[:-1]
            yield Control(header[-1].text + more, ends_run=True)
        else:
            yield from header
            yield Control(more, ends_run=True)
        if sampled is not None and is_sampled:
            yield SampledIds(sampled.ids, sampled.logprobs, restore(span.closer), sampled.sampling_logprobs)
        position = span.start
        for start, end in span.parts:
            # Text that the template puts between the parts (a result), which were sampled in another order.
            yield from _make_stretch_segments(rendering, contents, position, start, False)
            if not is_sampled:
                yield from _make_stretch_segments(rendering, contents, start, end, message.is_trained)
            position = end
    yield from _make_stretch_segments(rendering, contents, position, length, False)


def place_images(segments: Sequence[Segment], placeholder: str, images: Sequence[Image]) -> Iterator[Segment]:
    """The segments with a slot for each image, where the template's own text has its placeholder.

    Raises `DialectError` where the template wrote more or fewer of them.
    """
    count = sum(segment.text.count(placeholder) for segment in segments if isinstance(segment, Control))
    if count != len(images):
        raise DialectError(f"the chat template writes {placeholder!r} {count} times for {len(images)} images")
    left = iter(images)
    for segment in segments:
        if not isinstance(segment, Control):
            yield segment
            continue
        *pieces, last = segment.text.split(placeholder)
        for piece in pieces:
            yield from (Control(piece, segment.trained),) if piece else ()
            yield ImageSlot(next(left), placeholder)
        if last or segment.ends_run:
            yield replace(segment, text=last)


def make_message_segments(rendering: Rendering, contents: Sequence[str], span: Span) -> Iterator[Control | Content]:
    """The segments of one assistant message, as the template writes it."""
    for start, end in span.parts:
        yield from _make_stretch_segments(rendering, contents, start, end, True)


def _make_stretch_segments(
    rendering: Rendering, contents: Sequence[str], start: int, end: int, trained: bool
) -> Iterator[Control | Content]:
    """The segments of a stretch of the rendering whose ends are not inside a sentinel."""
    cut, starts = rendering.whole, rendering.whole.starts
    for at in range(bisect_right(starts, start) - 1, len(cut.pieces)):
        begins, stops = max(start, starts[at]), min(end, starts[at + 1])
        if begins >= end:
            return
        if at % 2 == 0:
            if begins < stops:
                yield Control(cut.slots.restore_ids(cut.text[begins:stops]), trained)
        elif contents[at // 2]:
            kind = cut.slots.slots[cut.numbers[at // 2]].kind
            yield Content(contents[at // 2], trained and kind != "malformed", recurs=kind in ("system", "offered"))
