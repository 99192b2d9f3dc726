"""A dialect whose framing comes from a Hugging Face chat template, and whose notation from a family.

The template is rendered once with a sentinel for each piece of content and cut there, so content is never searched for
markers; the direct rendering, with the actual contents, must be the same otherwise. A template that inspects its
content makes that impossible: the error names the line.

Everything that the assistant wrote is trained, and the marker that ends its turn; headers, and what the generation
prompt contains, never are. Each layout also needs the beginnings of the conversation, two for each assistant message:
they are rendered unless another rendering shows them, of this conversation or of an earlier one of the same shape.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ferrule.capabilities import Capabilities, Loss, adapt
from ferrule.conversation import (
    Conversation,
    Image,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    user,
)
from ferrule.dialects.catalogue import get_notation
from ferrule.dialects.family import NO_IDS, NO_PARALLEL, NO_TEXT_BESIDE
from ferrule.dialects.grammar import Grammar
from ferrule.dialects.notation import NoCalls, TextNotation, infer_spec, make_notation_without_calls
from ferrule.dialects.reader.message import MessageReader
from ferrule.dialects.segments import Content, Control, Layout, Segment
from ferrule.dialects.template.cuts import TemplateMarkers, align
from ferrule.dialects.template.detection import detect_family, detect_thinking
from ferrule.dialects.template.messages import (
    ContentSlot,
    ContentSlots,
    MessageShape,
    encode_messages,
    encode_tools,
    is_python,
    keep_text,
    make_salt,
)
from ferrule.dialects.template.probe import TemplateFacts, probe_template
from ferrule.dialects.template.sentinels import (
    Rendering,
    RenderingCache,
    make_message_segments,
    make_segments,
    place_images,
)
from ferrule.dialects.template.spans import Span
from ferrule.dialects.template.trials import SHAPES, WHEN, WORDS
from ferrule.errors import DialectError, choose_advice
from ferrule.events import CallFinished
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.dialects.template.engine import TemplateEngine

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def _advise_text_mode() -> str:
    mode = choose_advice('`mode="hermes"`', "`--mode hermes`")
    return f"describe them in the text, with a notation ({mode})"


class TemplateDialect:
    """A notation, framed by a chat template.

    `special_tokens` are the tokens that the template uses by name (`bos_token`, `eos_token`), `variables` anything else
    it requires (`enable_thinking`). `certainty`, from 0 to 1, is how certain it is that the notation is this
    template's.
    """

    def __init__(
        self,
        notation: TextNotation,
        template: str,
        *,
        special_tokens: Mapping[str, str] = _NOTHING,
        variables: Mapping[str, Any] = _NOTHING,
        name: str | None = None,
        certainty: float = 1.0,
        without_tools: str | None = None,
    ) -> None:
        """Raises `DialectError` for a template that is not valid Jinja, or that does not write a question and its
        answer.

        `without_tools` is the template for conversations without any tool, if there is a separate one.
        """
        self.template = template
        self.template_without_tools = without_tools
        self.certainty = certainty
        # Two templates frame a sampled message differently, so each has its own name.
        self.name = name or f"{notation.name}@{sha256(template.encode('utf-8', 'replace')).hexdigest()[:8]}"
        self.variables = {**special_tokens, **variables}
        self._given = notation
        self._cache = RenderingCache()
        tokens = (v for k, v in self.variables.items() if k.endswith("_token") and isinstance(v, str))
        self.known = TemplateMarkers((*notation.markers, *tokens))
        self.engine = _get_engine(template)
        self.learned = probe_template(self.engine, notation, self.known, self.variables)
        self.known = self.known.with_more(*self.learned.ends)
        losses = notation.family.losses
        self.capabilities = Capabilities(
            tools=() if self.learned.no_calls else None,
            system=self.learned.has_system,
            parallel_calls=NO_PARALLEL not in losses,
            text_beside_calls=NO_TEXT_BESIDE not in losses,
            reasoning=notation.family.message.thinking is not None,
            ids=NO_IDS not in losses,
            user_images=bool(self.learned.image_placeholder),
        )
        self.rewrites_history = self.learned.rewrites_history
        message_markers = notation.family.message
        more = tuple(stop for stop in self.learned.stops if stop not in notation.markers)
        # The notation, extended by the template's turn markers.
        self.notation = TextNotation(
            replace(
                notation.family, message=replace(message_markers, turn_markers=(*message_markers.turn_markers, *more))
            )
        )
        self.markers = self.notation.markers

    @cached_property
    def _without_tools(self) -> TemplateDialect | None:
        if self.template_without_tools is None:
            return None
        return TemplateDialect(
            self._given, self.template_without_tools, variables=self.variables, name=self.name, certainty=self.certainty
        )

    def offer(self, tools: Sequence[ToolSpec]) -> str:
        """How the family is offered tools without a template; a layout uses the template's own wording."""
        return self.notation.offer(tools)

    def call(self, call: ToolCall) -> str:
        """The call in the family's notation. Raises `DialectError`."""
        return self.notation.call(call)

    def result(self, result: ToolResult) -> tuple[str, list[Loss]]:
        """The result in the family's wording."""
        return self.notation.result(result)

    def grammar(self, tools: Sequence[ToolSpec], choice: str | None, *, opens: str = "") -> Grammar | None:
        """What a message can be: see `Dialect.grammar`."""
        from ferrule.dialects.message_grammar import make_message_grammar  # only needed where output is constrained

        return make_message_grammar(self.notation.family, tools, choice, opens=opens)

    def reader(
        self,
        tools: Sequence[ToolSpec] = (),
        *,
        first_call: int = 1,
        opens: str = "",
        spelled_out: Collection[str] = (),
    ) -> MessageReader:
        """A reader for one assistant message."""
        return self.notation.reader(tools, first_call=first_call, opens=opens, spelled_out=spelled_out)

    def layout(self, conversation: Conversation, tools: Sequence[ToolSpec] = ()) -> Layout:
        """The conversation as the template writes it.

        Raises `DialectError` if the template refuses it, inspects its content, omits some of it, or writes a call that
        the family's reader would read differently. Omitted earlier reasoning is a `Loss`.
        """
        fitted, losses = adapt(conversation, self.capabilities)
        learned = self.learned
        has_calls = any(isinstance(call, ToolCall) for message in fitted.messages for call in message.calls)
        if self._without_tools and not tools and not has_calls:
            return self._without_tools.layout(conversation)
        if has_calls and learned.no_calls:
            raise DialectError(learned.no_calls)
        direct, learned = self._render_directly(fitted, tools)
        rendering, contents = self._align(fitted, tools, direct, learned)
        losses += self._find_left_out(rendering, fitted)
        self._check_offer(tools, direct, rendering)
        spans = rendering.find_spans()
        losses += self._find_missing_end(spans, fitted)
        length, prompt = rendering.find_prompt()
        prompt = rendering.whole.slots.restore_ids(prompt)
        segments: tuple[Segment, ...] = tuple(make_segments(rendering, contents, spans, self.name, length))
        images = [part for message in fitted.messages for part in message.parts if isinstance(part, Image)]
        if images:
            segments = tuple(place_images(segments, self.learned.image_placeholder, images))
        self._check_calls(rendering, contents, spans, tools)
        return Layout(
            segments,
            (Control(prompt, ends_run=True),) if prompt else (),
            learned.stops,
            self._forbidden_tokens,
            tuple(losses),
        )

    @cached_property
    def _forbidden_tokens(self) -> tuple[str, ...]:
        """The markers that only the system writes. Some that open or close a turn also occur inside it: a model writes
        them itself, between its reasoning and its answer."""
        question, call = user(WORDS[0]), self._make_trial_call()
        said = ""
        for parts in (
            (Text(WORDS[1]),),
            (Reasoning(WORDS[3]), Text(WORDS[1])),
            (call,),
            (Reasoning(WORDS[3]), call),
            (Text(WORDS[1]), call),
        ):
            spoken = Conversation((question, assistant(*parts)), WHEN)
            tools = [infer_spec(call)] if call in parts else []
            if self.learned.no_calls and tools:
                continue
            with suppress(DialectError):
                slots = ContentSlots(make_salt(*WORDS))
                rendering = self._render(self.learned, spoken, tools, slots)
                text = rendering.whole.text
                for span in rendering.find_spans():
                    said += "".join(text[start:end] for start, end in span.parts)
        return tuple(
            stray
            for stray in (*self.learned.forbidden_tokens, self.learned.image_placeholder)
            if stray and stray not in self.learned.stops and stray not in said
        )

    def _make_trial_call(self) -> ToolCall:
        name, key = self.notation.family.one_tool or ("weather", "place")
        return ToolCall("call_1", name, json.dumps({key: WORDS[4]}))

    def _render_directly(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> tuple[str, TemplateFacts]:
        """The rendering with the actual contents, in the first shape that the template accepts."""
        learned = self.learned
        refusal: DialectError | None = None
        for shape in (learned.shape, *SHAPES):
            try:
                text = self._render_true(conversation, tools, shape)
            except DialectError as error:
                refusal = refusal or error
                continue
            if not (shape.parts and is_python(text)):
                return text, learned if shape == learned.shape else replace(learned, shape=shape)
        raise refusal or DialectError("the chat template writes a list of parts as a Python literal")

    def _align(
        self, conversation: Conversation, tools: Sequence[ToolSpec], direct: str, learned: TemplateFacts
    ) -> tuple[Rendering, list[str]]:
        """The rendering with sentinels, and the text at each; retried with other sentinels if the rest differs."""
        salt = make_salt(direct)
        first = None
        for slots in (
            ContentSlots(salt, replaces_ids=True),
            ContentSlots(salt),
            ContentSlots(salt, edges=True),
            ContentSlots(salt, edges=True, signs=True),
        ):
            try:
                rendering = self._render(learned, conversation, tools, slots)
            except DialectError:
                if first is None and not slots.replaces_ids:
                    raise
                continue
            contents = align(rendering.whole, direct)
            if contents is not None:
                return rendering, contents
            if not slots.replaces_ids:
                first = first or rendering
        assert first is not None, "the first rendering was tried"
        raise _make_inspection_error(self.engine, first)

    def _render(
        self, learned: TemplateFacts, conversation: Conversation, tools: Sequence[ToolSpec], slots: ContentSlots
    ) -> Rendering:
        return Rendering(self.engine, learned, self.known, self.variables, conversation, tools, slots, self._cache)

    def _render_true(self, conversation: Conversation, tools: Sequence[ToolSpec], shape: MessageShape) -> str:
        messages = encode_messages(conversation, shape, keep_text)
        return self.engine.render(messages, encode_tools(tools, keep_text), conversation.now, False, self.variables)

    def _find_left_out(self, rendering: Rendering, conversation: Conversation) -> Iterator[Loss]:
        there = set(rendering.whole.numbers)
        written = {rendering.whole.slots.slots[number] for number in there}
        for number, slot in enumerate(rendering.whole.slots.slots):
            # Ids and names that are not words, and a schema's descriptions, may be omitted by the template.
            if number in there or slot in written or slot.kind in ("offered", "name", "id"):
                continue
            message = conversation.messages[slot.message]
            if _is_sampled(message, self.name):
                continue
            if slot.kind == "reasoning":
                yield Loss("reasoning", f"the chat template omits the reasoning of message {slot.message}")
            elif slot.kind == "text" and message.calls and not self.capabilities.text_beside_calls:
                yield Loss("text", f"the chat template omits the text beside the calls of message {slot.message}")
            else:
                found = self.engine.find_culprit([slot.text])
                where = f": see line {found.line}, {found.how}" if found else ""
                raise DialectError(f"the chat template omits {_describe_slot(slot)}{where}")

    def _find_missing_end(self, spans: Sequence[Span], conversation: Conversation) -> Iterator[Loss]:
        last = len(conversation.messages) - 1
        is_open = spans and spans[-1].message == last and not spans[-1].closer
        if is_open and not _is_sampled(conversation.messages[last], self.name):
            yield Loss("end", "the chat template writes no end of the last message, so none is trained")

    def _check_offer(self, tools: Sequence[ToolSpec], direct: str, rendering: Rendering) -> None:
        if tools and isinstance(self.notation.family.syntax, NoCalls):
            names = ", ".join(spec.name for spec in tools)
            raise DialectError(
                f"{self.learned.no_calls}, so {names} can't be offered to the model; {_advise_text_mode()}"
            )
        if not tools or self.notation.family.one_tool is not None or rendering.writes_offer:
            return
        try:
            bare = self._render_true(rendering.conversation, (), rendering.learned.shape)
        except DialectError:
            # A template only for conversations with tools.
            return
        if bare == direct:
            raise DialectError(
                f"the chat template has no place for tools, so the model would not see them; {_advise_text_mode()}"
            )

    def _check_calls(
        self, rendering: Rendering, contents: Sequence[str], spans: Sequence[Span], tools: Sequence[ToolSpec]
    ) -> None:
        for span in spans:
            message = rendering.conversation.messages[span.message]
            calls = [call for call in message.calls if isinstance(call, ToolCall)]
            if not calls or _is_sampled(message, self.name) or len(calls) < len(message.calls):
                continue
            opens = rendering.whole.text[span.header : span.start]
            segments = tuple(make_message_segments(rendering, contents, span))
            if self._is_own_spelling(message, calls, opens, "".join(segment.text for segment in segments)):
                continue
            known = {call.name: infer_spec(call) for call in calls} | {spec.name: spec for spec in tools}
            reader = self.notation.reader(tuple(known.values()), opens=opens, repair=False)
            events = []
            for segment in segments:
                events += reader.feed(segment.text, False if isinstance(segment, Content) else None)
            events += reader.close(stopped=True)
            read = [event.call for event in events if isinstance(event, CallFinished)]
            if [(c.name, c.decode()) for c in read] != [(c.name, c.decode()) for c in calls]:
                said = "".join(segment.text for segment in segments)
                found = ", ".join(f"{call.name}({call.arguments})" for call in read) or "no call"
                raise DialectError(
                    f"the calls of message {span.message}, as the chat template writes them, would be read differently "
                    f"by the {self.notation.name} notation: {found} in {said!r}"
                )

    def _is_own_spelling(self, message: Message, calls: Sequence[ToolCall], opens: str, said: str) -> bool:
        """Whether the calls are spelled exactly as the notation does, and it can always read that."""
        notation, thinking = self.notation, self.notation.family.message.thinking
        if not notation.is_always_readable or notation.family.select_for_tools is not None:
            return False
        if any(isinstance(part, Reasoning) for part in message.parts) or (thinking and thinking.open in opens):
            return False
        try:
            written = notation.calls(calls)
        except DialectError:
            return False
        before, found, after = said.partition(written)
        text = message.text.strip()
        is_alone = before.strip() == text and not self.known.strip_from(after).strip()
        return bool(found) and is_alone and not any(marker in text for marker in notation.markers)


def make_template_dialect(
    template: str,
    *,
    special_tokens: Mapping[str, str] = _NOTHING,
    variables: Mapping[str, Any] = _NOTHING,
    name: str | None = None,
    without_tools: str | None = None,
) -> TemplateDialect:
    """The dialect of a chat template alone, with the notation that reads what it writes.

    A template that writes no calls, or writes them like no known notation, also has a dialect: it refuses tools when
    they are used, with the reason. Raises `DialectError` as `TemplateDialect` does.
    """
    known = {**special_tokens, **variables}
    try:
        found = detect_family(template, known)
        why = "the chat template writes no tool calls"
    except DialectError as error:
        # Anything that is not a template is refused below.
        found, why = None, str(error)
    notation = get_notation(found.name) if found else make_notation_without_calls(why, detect_thinking(template, known))
    certainty = found.certainty if found else 1.0
    try:
        return TemplateDialect(
            notation, template, variables=known, name=name, certainty=certainty, without_tools=without_tools
        )
    except DialectError as error:
        # A template only for tools, whose calls no notation reads: that says more than its refusal of a plain question.
        raise error if found else DialectError(f"{why}; without tools, {error}") from error


def _get_engine(template: str) -> TemplateEngine:
    # Imports jinja2, so only when there is a template.
    from ferrule.dialects.template.engine import get_engine

    return get_engine(template)


def _make_inspection_error(engine: TemplateEngine, rendering: Rendering) -> DialectError:
    from ferrule.dialects.template.engine import make_inspection_error

    guilty = rendering.find_inspected()
    return make_inspection_error(
        engine, [slot.text for slot in guilty], _describe_slot(guilty[0]) if guilty else "the content"
    )


def _is_sampled(message: Message, dialect: str) -> bool:
    return message.sampled is not None and message.sampled.dialect == dialect


def _describe_slot(slot: ContentSlot) -> str:
    shown = slot.text if len(slot.text) <= 60 else f"{slot.text[:57]}…"
    return (
        f"the {slot.kind} of message {slot.message}, {shown!r}" if slot.message >= 0 else f"an offered tool's {shown!r}"
    )
