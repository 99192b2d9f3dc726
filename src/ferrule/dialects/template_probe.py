"""Learns from a few short renderings what a chat template takes, how it ends a turn, whether it rewrites history."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING, Any

from ferrule.conversation import (
    Conversation,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    tool_message,
    user,
)
from ferrule.dialects.family import TextNotation
from ferrule.dialects.template_cuts import Cut, Markers
from ferrule.dialects.template_messages import Shape, Slots, messages_of, salt_for, tools_of
from ferrule.errors import DialectError
from ferrule.events import CallFinished
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.dialects.template_engine import TemplateEngine

_WHEN = datetime(2026, 1, 1, tzinfo=UTC)
_TEXTS = tuple("".join(chr(ord("a") + (n * 7 + k) % 26) for k in range(12)) for n in range(6))


@dataclass(frozen=True, slots=True)
class Learned:
    """What was found out. `no_calls` says why the template can't write calls, empty where it can; `opening` is the
    generation prompt after a user's message, also where the template has none and only writes headers."""

    shape: Shape
    no_calls: str
    opening: str
    has_prompt: bool
    stops: tuple[str, ...]
    ends: frozenset[str]
    strays: tuple[str, ...]
    rewrites_history: bool


def learn(engine: TemplateEngine, notation: TextNotation, known: Markers, variables: Mapping[str, Any]) -> Learned:
    """Render a few conversations. Raises `DialectError` where the template renders none."""
    return _Probe(engine, notation, known, variables).learned()


class _Probe:
    def __init__(
        self, engine: TemplateEngine, notation: TextNotation, known: Markers, variables: Mapping[str, Any]
    ) -> None:
        self._engine, self._notation, self._known, self._variables = engine, notation, known, variables
        name, key = notation.family.one_tool or ("weather", "place")
        schema = {"type": "object", "properties": {key: {"type": "string", "description": "What is asked about."}}}
        self._tool = ToolSpec(name, "Says what is known.", schema)
        self._call = ToolCall("call_1", name, json.dumps({key: _TEXTS[4]}))
        self._result = tool_message(ToolResult("call_1", name, (Text(_TEXTS[5]),)))
        self._salt = salt_for(*_TEXTS)

    def _cut(
        self, shape: Shape, messages: Sequence[Message], *, prompt: bool = False, tools: Sequence[ToolSpec] = ()
    ) -> Cut:
        slots = Slots(self._salt)
        # Tools first, so that a sentinel is the same in a conversation and in its beginnings.
        offered = tools_of(tools, slots.put)
        made = messages_of(Conversation(tuple(messages), _WHEN), shape, slots.put)
        text = self._engine.render(made, offered, _WHEN, prompt, self._variables)
        if shape.parts and "'text': " in text:
            raise DialectError("the chat template writes a list of parts as Python does")
        return Cut.of(text, slots)

    def learned(self) -> Learned:
        shape, no_calls = self._shape()
        question, answer, more = user(_TEXTS[0]), assistant(_TEXTS[1]), user(_TEXTS[2])
        bare, asked = self._cut(shape, [question]), self._cut(shape, [question], prompt=True)
        alone, followed = self._cut(shape, [question, answer]), self._cut(shape, [question, answer, more])
        tail, gap = alone.pieces[-1], followed.pieces[-3]
        opening = asked.text[self._known.common(asked.text, bare.text) :]
        if asked.text == bare.text and alone.text.startswith(bare.text):
            # A template that always writes headers and never a prompt: the header is the prompt.
            header = alone.text[len(bare.text) : alone.starts[-3]]
            opening = header if self._known.found(header) else ""
        ended, between = self._known.found(tail), self._known.found(gap)
        starts = {*self._known.found(opening), *(between[1:] if ended else between)} - set(ended[:1])
        stops, ends = [*ended[:1]] or [*between[:1]], {*ended[:1]}
        if ended:
            ends |= {*between[:1]}
        if not no_calls:
            for stop, is_own in self._call_end(shape, question):
                stops.append(stop)
                if is_own and stop not in starts:
                    ends.add(stop)
        if not stops:
            stops = [str(self._variables["eos_token"])] if self._variables.get("eos_token") else []
        prose = self._notation.family.prose
        ends |= set(prose.turn_markers) - starts
        strays = (*self._known.found(opening), *prose.turn_markers, *(prose.result or ()))
        # Reasoning's own markers are opened by some prompts and written by every model.
        thinking = (prose.thinking.open, prose.thinking.close) if prose.thinking else ()
        return Learned(
            shape,
            no_calls,
            opening,
            asked.text != bare.text,
            tuple(dict.fromkeys(stops)),
            frozenset(ends),
            tuple(stray for stray in dict.fromkeys(strays) if stray not in thinking),
            self._rewrites(shape, no_calls),
        )

    def _call_end(self, shape: Shape, question: Message) -> Iterator[tuple[str, bool]]:
        """With what a message that calls a tool ends, and whether it is written when nothing follows."""
        called = [question, assistant(self._call)]
        own = self._known.found(self._cut(shape, called, tools=[self._tool]).pieces[-1])
        family = self._notation.family
        # A call's closer ends no turn, but for one that is a turn marker as well, and nanochat's, which ends the run.
        inner = set(family.syntax.markers) - set(family.prose.turn_markers) if family.one_tool is None else set()
        if own and own[-1] not in inner:
            yield own[-1], True
            return
        following = self._known.found(self._cut(shape, [*called, self._result], tools=[self._tool]).pieces[-3])
        yield from ((marker, False) for marker in following[len(own) : len(own) + 1])

    def _shape(self) -> tuple[Shape, str]:
        """The first shape whose calls the family's reader reads, or else one that renders text."""
        why = ""
        for parts, as_text, nine, no_text in product((False, True), (False, True), (False, True), ("", None)):
            shape = Shape(parts, as_text, nine, no_text)
            try:
                if self._reads_back(shape):
                    return shape, ""
            except DialectError as error:
                why = why if shape.parts else why or f": {error}"
        for parts in (False, True):
            try:
                if len(self._cut(Shape(parts), [user(_TEXTS[0]), assistant(_TEXTS[1])]).pieces) == 5:
                    reason = f"the chat template writes no calls that the {self._notation.name} notation reads{why}"
                    return Shape(parts), reason
            except DialectError as error:
                why = why if parts else why or f": {error}"
        if why:
            raise DialectError(f"the chat template does not write a user's question and its answer{why}")
        from ferrule.dialects.template_engine import defeated

        raise defeated(self._engine, _TEXTS, "what was said")

    def _reads_back(self, shape: Shape) -> bool:
        called = [user(_TEXTS[0]), assistant(self._call)]
        cut = self._cut(shape, called, tools=[self._tool])
        asked = self._cut(shape, called[:1], prompt=True, tools=[self._tool])
        if len(self._cut(shape, [*called, self._result, assistant(_TEXTS[1])]).numbers) < 4:
            return False
        value = next((n for n, slot in enumerate(cut.slots.slots) if slot.kind == "value"), -1)
        if cut.after(value) < 0:
            return False
        common = self._known.common(asked.text, cut.text)
        said = cut.text[common:].replace(f"{self._salt}{value:06d}z", _TEXTS[4])
        reader = self._notation.reader([self._tool], opens=asked.text[:common], repair=False)
        events = reader.feed(said) + reader.close(stopped=True)
        read = [event.call for event in events if isinstance(event, CallFinished)]
        return [(c.name, c.decoded()) for c in read] == [(self._call.name, self._call.decoded())]

    def _rewrites(self, shape: Shape, no_calls: str) -> bool:
        """Whether one more user turn changes what was written before it."""
        thought = assistant(Reasoning(_TEXTS[3]), _TEXTS[1])
        histories = [[user(_TEXTS[0]), thought]]
        if not no_calls:
            called = assistant(Reasoning(_TEXTS[3]), self._call)
            histories.append([user(_TEXTS[0]), called, self._result, thought])
        for messages, tools in product(histories, ((), (self._tool,))):
            try:
                now = self._cut(shape, messages, tools=tools).text
                later = self._cut(shape, [*messages, user(_TEXTS[2])], tools=tools).text
            except DialectError:
                continue
            if not later.startswith(now):
                return True
        return False
