"""Probes with short renderings what a chat template accepts, how it ends a turn, and whether it rewrites history."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product, takewhile
from typing import TYPE_CHECKING, Any

from ferrule.conversation import (
    Conversation,
    Image,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_message,
    user,
)
from ferrule.dialects.catalogue import list_image_placeholders
from ferrule.dialects.notation import NoCalls, TextNotation
from ferrule.dialects.template.cuts import Cut, TemplateMarkers
from ferrule.dialects.template.messages import (
    ContentSlots,
    MessageShape,
    encode_messages,
    encode_tools,
    is_python,
    keep_text,
    make_salt,
    write_sentinel,
)
from ferrule.dialects.template.trials import SHAPES, WHEN, WORDS
from ferrule.errors import DialectError
from ferrule.events import CallFinished
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.dialects.template.engine import TemplateEngine

# What may be the placeholder of an image, though it isn't written like other markers.
_MARKER = re.compile(r"[<\[\]]\S+[>\[\]]")
# How templates open and close reasoning if the notation doesn't know it.
_THINKING = ("<think>", "</think>", "<thinking>", "</thinking>")


@dataclass(frozen=True, slots=True)
class TemplateFacts:
    """What was found. `no_calls` says why the template can't write calls, empty if it can; `opening` is the generation
    prompt after a user's message, even if the template has none and only writes headers; `header` is the part of it
    before any marker of reasoning. `ends` are the markers that end a message, even when nothing follows, `closers`
    those that do only when something follows. `prompt_ending` is what is written after the last message where a prompt
    is requested; None if that depends on the conversation. `image_placeholder` is the marker for an image in a user
    message; empty if the template accepts no images, or if it is unclear which of its markers that is."""

    shape: MessageShape
    no_calls: str
    opening: str
    header: str
    has_prompt: bool
    always_prompts: bool
    stops: tuple[str, ...]
    ends: frozenset[str]
    closers: frozenset[str]
    forbidden_tokens: tuple[str, ...]
    rewrites_history: bool
    has_system: bool
    prompt_ending: str | None
    image_placeholder: str

    @property
    def opened(self) -> str:
        """The prompt from its header on, without what closes the previous turn."""
        return self.opening[self.opening.find(self.header) :]

    def strip_prompt(self, tail: str) -> str:
        """What follows a conversation's last content, without the prompt of a template that always writes it."""
        at = tail.rfind(self.header) if self.always_prompts else -1
        return tail[:at] if at >= 0 else tail


def probe_template(
    engine: TemplateEngine, notation: TextNotation, known: TemplateMarkers, variables: Mapping[str, Any]
) -> TemplateFacts:
    """Render a few conversations. Raises `DialectError` if the template renders none."""
    return _Probe(engine, notation, known, variables).probe()


@dataclass(frozen=True, slots=True)
class _TurnMarkers:
    """The markers around an answer: `closed` those after it when nothing follows, `ended` those of them that end a
    turn, `inner` those of the text itself, `between` those up to the next question, of which `closing` close a turn."""

    closed: list[str]
    between: list[str]
    inner: list[str]
    ended: list[str]
    closing: list[str]

    @property
    def headers(self) -> list[str]:
        """What opens the following turn."""
        return self.between[max(len(self.closing), bool(self.ended)) :]


class _Probe:
    def __init__(
        self, engine: TemplateEngine, notation: TextNotation, known: TemplateMarkers, variables: Mapping[str, Any]
    ) -> None:
        self._engine, self._notation, self._known, self._variables = engine, notation, known, variables
        name, key = notation.family.one_tool or ("weather", "place")
        schema = {"type": "object", "properties": {key: {"type": "string", "description": "What is asked about."}}}
        self._tool = ToolSpec(name, "Says what is known.", schema)
        syntax = notation.family.syntax
        self._no_calls = syntax.why if isinstance(syntax, NoCalls) else ""
        self._call = ToolCall("call_1", name, json.dumps({key: WORDS[4]}))
        self._result = tool_message(ToolResult("call_1", name, (Text(WORDS[5]),)))
        self._salt = make_salt(*WORDS)
        self._unasked = ""

    def _cut(
        self, shape: MessageShape, messages: Sequence[Message], *, prompt: bool = False, tools: Sequence[ToolSpec] = ()
    ) -> Cut:
        slots = ContentSlots(self._salt)
        # Tools first, so that sentinels are the same in a conversation and in its beginnings.
        offered = encode_tools(tools, slots.put)
        made = encode_messages(Conversation(tuple(messages), WHEN), shape, slots.put)
        text = self._engine.render(made, offered, WHEN, prompt, self._variables)
        if shape.parts and is_python(text):
            raise DialectError("the chat template writes a list of parts as a Python literal")
        return Cut.make(text, slots)

    def _render_plain(self, shape: MessageShape, messages: Sequence[Message], *, prompt: bool = False) -> Cut:
        """A conversation without tools, or with them if the template requires tools."""
        try:
            return self._cut(shape, messages, prompt=prompt)
        except DialectError:
            if self._no_calls:
                raise
            return self._cut(shape, messages, prompt=prompt, tools=[self._tool])

    def probe(self) -> TemplateFacts:
        shape, no_calls = self._find_shape()
        question, answer, more = user(WORDS[0]), assistant(WORDS[1]), user(WORDS[2])
        bare, asked = self._render_plain(shape, [question]), self._render_plain(shape, [question], prompt=True)
        alone, followed = (
            self._render_plain(shape, [question, answer]),
            self._render_plain(shape, [question, answer, more]),
        )
        opening = self._find_opening(bare, asked, alone, followed)
        self._note_end(self._strip_prompt(alone.pieces[-1]), followed.pieces[-3])
        around = self._find_turn_markers(bare, alone, followed)
        starts = {*self._known.find(opening), *around.headers} - {*around.closed}
        stops, ends, closers = self._find_ends(around, starts)
        if not no_calls:
            for stop, is_own in self._find_call_end(shape, question, starts):
                stops.append(stop)
                if is_own and stop not in starts:
                    ends.add(stop)
                elif not is_own:
                    closers.append(stop)
        if not stops and self._variables.get("eos_token"):
            stops = [str(self._variables["eos_token"])]
        markers = self._notation.family.message
        ends |= set(markers.turn_markers) - starts - set(around.inner if around.ended != around.closed else ())
        # Markers of reasoning are opened by some prompts and written by every model; an opener ends nothing.
        thinking = (markers.thinking.open, markers.thinking.close) if markers.thinking else ()
        forbidden = (*self._known.find(opening), *markers.turn_markers, *(markers.result or ()))
        return TemplateFacts(
            shape=shape,
            no_calls=no_calls,
            opening=opening,
            header=self._find_header(opening, alone.pieces[-3], () if around.ended else around.closing),
            has_prompt=asked.text != bare.text,
            always_prompts=bool(self._unasked),
            stops=tuple(dict.fromkeys(stops)),
            ends=frozenset(end for end in ends if not any(opener.startswith(end) for opener in thinking[:1])),
            closers=frozenset(() if around.ended else closers),
            forbidden_tokens=tuple(token for token in dict.fromkeys(forbidden) if token not in thinking),
            rewrites_history=self._is_history_rewritten(shape, no_calls),
            has_system=self._has_system(shape, question),
            prompt_ending=self._find_prompt_ending(shape, question),
            image_placeholder=self._find_image_placeholder(shape),
        )

    def _find_opening(self, bare: Cut, asked: Cut, alone: Cut, followed: Cut) -> str:
        """The generation prompt after a question, even if the template has none and only writes headers."""
        if asked.text == bare.text:
            self._unasked = self._find_constant_prompt(bare, alone, followed)
            return self._unasked or self._find_written_header(bare, alone)
        opening = asked.text[self._known.common_prefix(asked.text, bare.text) :]
        if len(opening) > len(asked.pieces[-1]):
            # What precedes the question also differs when a prompt is requested.
            opening = asked.pieces[-1][self._known.common_prefix(asked.pieces[-1], bare.pieces[-1]) :]
        return opening

    def _find_turn_markers(self, bare: Cut, alone: Cut, followed: Cut) -> _TurnMarkers:
        closed, between = self._known.find(self._strip_prompt(alone.pieces[-1])), self._known.find(followed.pieces[-3])
        markers = self._notation.family.message
        # What surrounds only the text ends no turn: calls may follow.
        inner = self._known.find("".join((*markers.answer, *markers.preamble)))
        ended = [marker for marker in closed if marker not in inner] or closed
        # What precedes a user's text at the beginning of a conversation is the header; anything more closes a turn.
        leading = self._known.find(bare.pieces[-3])
        pairs = zip(between[::-1], leading[::-1], strict=False)
        closing = between[: len(between) - sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))]
        return _TurnMarkers(closed, between, inner, ended, closing)

    def _find_ends(self, around: _TurnMarkers, starts: Collection[str]) -> tuple[list[str], set[str], list[str]]:
        """(what the model stops with, what ends a message, what does so only when something follows)."""
        between, closed, ended = around.between, around.closed, around.ended
        stops, ends = [*ended[:1]] or [*between[:1]], {*ended[:1]}
        # If nothing closes a turn, the model ends its own with what begins the next (GLM's `<|user|>`).
        closers = [*(around.closing or between[:1])]
        turns = self._notation.family.turns
        if ended and ended == closed and set(closed) <= set(around.inner) and turns:
            # Each part of a message is closed like this, including reasoning: the template doesn't write the end of the
            # message.
            stops = [*turns.all_stops]
        if ended:
            # A turn may be closed differently when another follows.
            ends |= {*between[closed.index(ended[0]) :][:1]} - {*starts}
        return stops, ends, closers

    def _find_constant_prompt(self, bare: Cut, alone: Cut, followed: Cut) -> str:
        """The prompt of a template that ends every conversation with it; empty if it doesn't."""
        known, tail, closed = self._known, bare.pieces[-1], alone.pieces[-1]
        shared = tail[len(tail) - known.common_suffix(tail, closed) :]
        # What begins the conversation begins a turn, so if it also ends the text, that turn is still empty.
        first = next((m for m in known.find(bare.pieces[0]) if m != self._variables.get("bos_token")), "")
        if first and first in shared:
            return shared[shared.index(first) :]
        # Otherwise a turn begins in place of a question, with a header that answers have.
        prompt = closed[known.common_prefix(closed, followed.pieces[-3]) :]
        markers = known.find(prompt)
        is_header = markers and prompt.startswith(markers[0]) and markers[0] in known.find(alone.pieces[-3])
        return prompt if is_header and shared.endswith(prompt) else ""

    def _find_written_header(self, bare: Cut, alone: Cut) -> str:
        """The header of a template that never writes a prompt, which then serves as the prompt."""
        header = alone.text[len(bare.text) : alone.starts[-3]] if alone.text.startswith(bare.text) else ""
        return header if self._known.find(header) else ""

    def _find_header(self, opening: str, written: str, closing: Sequence[str]) -> str:
        """What a prompt and the history, which has `written` before an answer, have in common: the header, without
        markers of reasoning, and without `closing`, which end the previous turn."""
        thinking = self._notation.family.message.thinking
        marks = [*_THINKING, *((thinking.open, thinking.close) if thinking else ())]
        header = opening.strip()
        for marker in closing:
            header = header.removeprefix(marker).lstrip()
        header = header[: min((header.index(mark) for mark in marks if mark in header), default=len(header))]
        lengths = (self._known.common_prefix(header, written[at:]) for at in range(len(written)))
        return header[: max(lengths, default=0) or len(header)].strip()

    def _strip_prompt(self, tail: str) -> str:
        at = tail.rfind(self._unasked) if self._unasked else -1
        return tail[:at] if at >= 0 else tail

    def _note_end(self, tail: str, between: str) -> None:
        """Treat what closes an answer as a marker from now on, if it contains no known one."""
        end = tail.strip()
        if end and not self._known.find(tail) and between.startswith(tail) and not any(map(str.isspace, end)):
            self._known = self._known.with_more(end)

    def _find_call_end(
        self, shape: MessageShape, question: Message, starts: Collection[str]
    ) -> Iterator[tuple[str, bool]]:
        """What ends a message with a call, and whether it is written when nothing follows."""
        called = [question, assistant(self._call)]
        own = self._known.find(self._strip_prompt(self._cut(shape, called, tools=[self._tool]).pieces[-1]))
        family = self._notation.family
        # A call's closer ends no turn, except one that is also a turn marker, and nanochat's, which ends the run.
        inner = set(family.syntax.markers) - set(family.message.turn_markers) if family.one_tool is None else set()
        closing = list(takewhile(lambda marker: marker not in inner, reversed(own)))
        if closing:
            yield closing[-1], True
            return
        following = self._known.find(self._cut(shape, [*called, self._result], tools=[self._tool]).pieces[-3])
        marker = next(iter(following[len(own) :]), "")
        if own and marker in starts:
            # The next turn begins right here, so this one ends with the calls.
            yield own[-1], True
        elif marker:
            yield marker, False

    def _find_shape(self) -> tuple[MessageShape, str]:
        """The first shape whose calls the family's reader reads, or else one that renders text."""
        why = ""
        for shape in () if self._no_calls else SHAPES:
            try:
                if self._is_read_back(shape):
                    return shape, ""
            except DialectError as error:
                why = why if shape.parts else why or f": {error}"
        for parts in (False, True):
            try:
                if len(self._cut(MessageShape(parts), [user(WORDS[0]), assistant(WORDS[1])]).pieces) == 5:
                    reason = f"the chat template writes no calls that the {self._notation.name} notation reads{why}"
                    return MessageShape(parts), self._no_calls or reason
            except DialectError as error:
                why = why if parts else why or f": {error}"
        if why:
            raise DialectError(f"the chat template does not write a user's question and its answer{why}")
        from ferrule.dialects.template.engine import make_inspection_error

        raise make_inspection_error(self._engine, WORDS, "what was said")

    def _is_read_back(self, shape: MessageShape) -> bool:
        called = [user(WORDS[0]), assistant(self._call)]
        cut = self._cut(shape, called, tools=[self._tool])
        asked = self._cut(shape, called[:1], prompt=True, tools=[self._tool])
        answered = [*called, self._result, assistant(WORDS[1])]
        if len(set(self._cut(shape, answered, tools=[self._tool]).numbers)) < 4:
            return False
        value = next((n for n, slot in enumerate(cut.slots.slots) if slot.kind == "value"), -1)
        if value not in cut.numbers:
            return False
        # From the question on: what precedes it may have been rewritten.
        begin, before = cut.end(cut.numbers.index(asked.numbers[-1])), asked.pieces[-1]
        common = begin + self._known.common_prefix(before, cut.text[begin:])
        said = cut.text[common:].replace(write_sentinel(self._salt, value), WORDS[4])
        reader = self._notation.reader([self._tool], opens=cut.text[begin:common], repair=False)
        events = reader.feed(said) + reader.close(stopped=True)
        read = [event.call for event in events if isinstance(event, CallFinished)]
        return [(c.name, c.decode()) for c in read] == [(self._call.name, self._call.decode())]

    def _has_system(self, shape: MessageShape, question: Message) -> bool:
        try:
            cut = self._cut(shape, [system(WORDS[3]), question])
        except DialectError:
            return False
        return len(cut.numbers) == 2

    def _find_prompt_ending(self, shape: MessageShape, question: Message) -> str | None:
        messages = encode_messages(Conversation((question,), WHEN), shape, keep_text)
        tools = encode_tools([self._tool], keep_text)
        for offered in (None, tools):
            with suppress(DialectError):
                return self._engine.record(messages, offered, WHEN, True, self._variables).ending
        return None

    def _find_image_placeholder(self, shape: MessageShape) -> str:
        """The marker that represents an image between two texts of a user message: one that a family has, or the only
        one."""
        try:
            cut = self._cut(shape, [user(WORDS[0], Image(b""), WORDS[1])])
        except DialectError:
            return ""
        written = cut.pieces[2] if cut.numbers == (0, 1) else ""
        if "{" in written:
            return ""  # the list of parts itself, as Python or JSON writes it
        markers = self._known.find(written) or _MARKER.findall(written)
        found = [marker for marker in markers if marker in list_image_placeholders()] or markers
        return found[0] if len(found) == 1 else ""

    def _is_history_rewritten(self, shape: MessageShape, no_calls: str) -> bool:
        """Whether an additional user turn changes what was written before it."""
        thought = assistant(Reasoning(WORDS[3]), WORDS[1])
        histories = [[user(WORDS[0]), thought]]
        if not no_calls:
            called = assistant(Reasoning(WORDS[3]), self._call)
            histories.append([user(WORDS[0]), called, self._result, thought])
        for messages, tools in product(histories, ((), (self._tool,))):
            try:
                cut = self._cut(shape, messages, tools=tools)
                now = cut.text[: cut.starts[-2]] + self._strip_prompt(cut.pieces[-1])
                later = self._cut(shape, [*messages, user(WORDS[2])], tools=tools).text
            except DialectError:
                continue
            if not later.startswith(now):
                return True
        return False
