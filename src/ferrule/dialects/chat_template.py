"""A dialect whose framing comes from a Hugging Face chat template, and whose notation is a family's.

The template is rendered once with a sentinel for each piece of content and cut there, so nothing that somebody wrote is
ever looked at for markers; the direct rendering, with the true contents, must come out the same. A template that looks
into its content defeats that: the error names its line.

All that the assistant wrote is trained, and the marker that ends its turn; headers, and what the generation prompt
gives, never are. Each layout renders the conversation's beginnings too, twice for each assistant message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ferrule.capabilities import Capabilities, Loss, adapt
from ferrule.conversation import Conversation, Message, ToolCall, ToolResult
from ferrule.dialects.family import NO_IDS, NO_PARALLEL, NO_TEXT_BESIDE, TextNotation
from ferrule.dialects.message_reader import MessageReader
from ferrule.dialects.segments import Content, Control, Layout
from ferrule.dialects.template_cuts import Markers, aligned
from ferrule.dialects.template_messages import Shape, Slot, as_it_is, messages_of, salt_for, tools_of
from ferrule.dialects.template_probe import learn
from ferrule.dialects.template_rendering import Rendering, Span
from ferrule.dialects.template_segments import segments_of, spec_of, words_of
from ferrule.errors import DialectError
from ferrule.events import CallFinished
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.dialects.template_engine import TemplateEngine

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class TemplateDialect:
    """A notation, framed by a chat template.

    `special_tokens` are what the template knows by name (`bos_token`, `eos_token`), `variables` whatever else it asks
    for (`enable_thinking`). `certainty`, from 0 to 1, says how sure it is that the notation is this template's.
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
    ) -> None:
        """Raises `DialectError` for a template that is no Jinja, or that does not write a question and its answer."""
        self.template = template
        self.certainty = certainty
        # Two templates frame a sampled message in two ways, so each has a name of its own.
        self.name = name or f"{notation.name}@{sha256(template.encode('utf-8', 'replace')).hexdigest()[:8]}"
        self.variables = {**special_tokens, **variables}
        self.known = Markers((*notation.markers, *special_tokens.values()))
        losses = notation.family.losses
        self.capabilities = Capabilities(
            parallel_calls=NO_PARALLEL not in losses,
            text_beside_calls=NO_TEXT_BESIDE not in losses,
            reasoning=notation.family.prose.thinking is not None,
            ids=NO_IDS not in losses,
        )
        self.engine = _engine(template)
        self.learned = learn(self.engine, notation, self.known, self.variables)
        self.rewrites_history = self.learned.rewrites_history
        prose = notation.family.prose
        more = tuple(stop for stop in self.learned.stops if stop not in notation.markers)
        # The notation, which knows the template's turn markers too.
        self.notation = TextNotation(
            replace(notation.family, prose=replace(prose, turn_markers=(*prose.turn_markers, *more)))
        )
        self.markers = self.notation.markers

    def offer(self, tools: Sequence[ToolSpec]) -> str:
        """How the family is told of its tools where no template is at hand; a layout has the template's own words."""
        return self.notation.offer(tools)

    def call(self, call: ToolCall) -> str:
        """The call in the family's notation. Raises `DialectError`."""
        return self.notation.call(call)

    def result(self, result: ToolResult) -> tuple[str, list[Loss]]:
        """The result in the family's words."""
        return self.notation.result(result)

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

        Raises `DialectError` where the template refuses it, looks into its content, leaves some of it out, or writes
        a call that the family's reader would read otherwise. Earlier reasoning that it leaves out is a `Loss`.
        """
        fitted, losses = adapt(conversation, self.capabilities)
        learned = self.learned
        has_calls = any(isinstance(call, ToolCall) for message in fitted.messages for call in message.calls)
        if has_calls and learned.no_calls:
            raise DialectError(learned.no_calls)
        direct = self._direct(fitted, tools, learned.shape)
        rendering = Rendering(self.engine, learned, self.known, self.variables, fitted, tools, salt_for(direct))
        cut = rendering.whole
        contents = aligned(cut, direct)
        if contents is None:
            raise _defeated(self.engine, rendering)
        losses += self._left_out(rendering, fitted)
        self._check_offer(tools, direct, fitted)
        spans = rendering.spans()
        length, prompt = rendering.prompt()
        segments = tuple(segments_of(rendering, contents, spans, self.name, length))
        self._check_calls(rendering, contents, spans, tools)
        return Layout(
            segments,
            (Control(prompt, ends_run=True),) if prompt else (),
            learned.stops,
            tuple(stray for stray in learned.strays if stray not in learned.stops),
            tuple(losses),
        )

    def _direct(self, conversation: Conversation, tools: Sequence[ToolSpec], shape: Shape) -> str:
        messages = messages_of(conversation, shape, as_it_is)
        return self.engine.render(messages, tools_of(tools, as_it_is), conversation.now, False, self.variables)

    def _left_out(self, rendering: Rendering, conversation: Conversation) -> Iterator[Loss]:
        there = set(rendering.whole.numbers)
        written = {rendering.whole.slots.slots[number] for number in there}
        for number, slot in enumerate(rendering.whole.slots.slots):
            # Ids and names that are no words, and a schema's descriptions, are the template's to leave out.
            if number in there or slot in written or slot.kind in ("offered", "name"):
                continue
            message = conversation.messages[slot.message]
            if _is_sampled(message, self.name):
                continue
            if slot.kind == "reasoning":
                yield Loss("reasoning", f"the chat template leaves out the reasoning of message {slot.message}")
            elif slot.kind == "text" and message.calls and not self.capabilities.text_beside_calls:
                yield Loss("text", f"the chat template leaves out the text beside the calls of message {slot.message}")
            else:
                found = self.engine.culprit([slot.text])
                where = f": see line {found.line}, {found.how}" if found else ""
                raise DialectError(f"the chat template leaves out {_named(slot)}{where}")

    def _check_offer(self, tools: Sequence[ToolSpec], direct: str, conversation: Conversation) -> None:
        if tools and self.notation.family.one_tool is None:
            bare = self._direct(conversation, (), self.learned.shape)
            if bare == direct:
                raise DialectError("the chat template has no place for tools, so the model would not know of them")

    def _check_calls(
        self, rendering: Rendering, contents: Sequence[str], spans: Sequence[Span], tools: Sequence[ToolSpec]
    ) -> None:
        for span in spans:
            message = rendering.conversation.messages[span.message]
            calls = [call for call in message.calls if isinstance(call, ToolCall)]
            if not calls or _is_sampled(message, self.name) or len(calls) < len(message.calls):
                continue
            known = {call.name: spec_of(call) for call in calls} | {spec.name: spec for spec in tools}
            opens = rendering.whole.text[span.header : span.start]
            reader = self.notation.reader(tuple(known.values()), opens=opens, repair=False)
            events = []
            for segment in words_of(rendering, contents, span):
                events += reader.feed(segment.text, False if isinstance(segment, Content) else None)
            events += reader.close(stopped=True)
            read = [event.call for event in events if isinstance(event, CallFinished)]
            if [(c.name, c.decoded()) for c in read] != [(c.name, c.decoded()) for c in calls]:
                raise DialectError(
                    f"the chat template's way of writing the calls of message {span.message} would be read otherwise "
                    f"by the {self.notation.name} notation: a value holds text that means something there"
                )


def _engine(template: str) -> TemplateEngine:
    # jinja2 is imported with it, for those who have a template.
    from ferrule.dialects.template_engine import TemplateEngine

    return TemplateEngine(template)


def _defeated(engine: TemplateEngine, rendering: Rendering) -> DialectError:
    from ferrule.dialects.template_engine import defeated

    guilty = rendering.looked_into()
    return defeated(engine, [slot.text for slot in guilty], _named(guilty[0]) if guilty else "the content")


def _is_sampled(message: Message, dialect: str) -> bool:
    return message.sampled is not None and message.sampled.dialect == dialect


def _named(slot: Slot) -> str:
    shown = slot.text if len(slot.text) <= 60 else f"{slot.text[:57]}…"
    return (
        f"the {slot.kind} of message {slot.message}, {shown!r}" if slot.message >= 0 else f"an offered tool's {shown!r}"
    )
