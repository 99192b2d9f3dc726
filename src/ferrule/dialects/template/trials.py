"""What a chat template writes for a few messages with known contents, to find out which notation reads them back.

Contents are words that occur in no template. A template accepts calls in one of several shapes; rendering all of them
shows which.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

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
from ferrule.dialects.notation import TextNotation
from ferrule.dialects.template.cuts import TemplateMarkers
from ferrule.dialects.template.messages import MessageShape, encode_messages, encode_tools, keep_text
from ferrule.errors import DialectError
from ferrule.events import CallFinished, CallMalformed, ReasoningDelta, TextDelta
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.dialects.template.engine import TemplateEngine

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = tuple("".join(chr(ord("a") + (n * 7 + k) % 26) for k in range(12)) for n in range(6))
_IDS: tuple[Literal["given", "nine", "named"], ...] = ("given", "nine", "named")
SHAPES = tuple(
    MessageShape(parts, as_text, ids, no_text)
    for parts, as_text, ids, no_text in product((False, True), (False, True), _IDS, ("", None))
)


@dataclass(frozen=True, slots=True)
class Trial:
    """An assistant message as a template wrote it: `before` is the prompt for it, `text` the conversation that ends
    with it, and `closer` what ends a message of text alone."""

    message: Message
    before: str
    text: str
    closer: str = ""

    def split(self, known: TemplateMarkers) -> tuple[str, str]:
        """What the prompt opened, and the message after it."""
        length = known.common_prefix(self.before, self.text)
        before, after = self.before.rpartition(WORDS[0]), self.text.rpartition(WORDS[0])
        if not length > len(before[0]) and after[1]:
            # Anything earlier may have been rewritten: Mistral's tools are before the last question.
            length = len(after[0] + after[1]) + known.common_prefix(before[2], after[2])
            return before[0] + before[1] + self.text[len(after[0] + after[1]) : length], self._strip_closer(length)
        return self.before[:length], self._strip_closer(length)

    def _strip_closer(self, start: int) -> str:
        return self.text[start:].removesuffix(self.closer)


class Trials:
    """The trials of one template with one tool."""

    def __init__(self, engine: TemplateEngine, variables: Mapping[str, Any], tool: str, parameter: str) -> None:
        self._engine, self._variables = engine, variables
        kinds = {parameter: "string", "many": "integer", "is_so": "boolean", "all": "array"}
        properties = {name: {"type": kind, "description": "What is asked about."} for name, kind in kinds.items()}
        schema = {"type": "object", "properties": properties, "required": [parameter]}
        self.tool = ToolSpec(tool, "Says what is known.", schema)
        self._parameter = parameter
        self.call = self._make_call("call_1", WORDS[4])
        #: Why no call could be rendered, in the template's own words; empty if one was, in any shape.
        self.refusal = ""
        self._closers: dict[MessageShape, str] = {}

    def _make_call(self, id_: str, value: str, **more: Any) -> ToolCall:
        return ToolCall(id_, self.tool.name, json.dumps({self._parameter: value, **more}))

    def iterate_shapes(self) -> Iterator[tuple[MessageShape, Trial]]:
        """The shapes in which the template writes a call, each with that call; without duplicates."""
        seen, refusals = set(), []
        for shape in SHAPES:
            try:
                trial = self.render_trial(shape, [user(WORDS[0])], assistant(self.call))
            except DialectError as error:
                refusals.append(str(error))
                self.refusal = refusals[0] if len(refusals) == len(SHAPES) else ""
                continue
            if WORDS[4] in trial.text and trial.text not in seen:
                seen.add(trial.text)
                yield shape, trial

    def render_trial(
        self, shape: MessageShape, before: Sequence[Message], message: Message, *, offers: bool = True
    ) -> Trial:
        """Render a message and what precedes it. Raises `DialectError` if the template refuses."""
        asked = self._render(shape, before, True, offers=offers)
        return Trial(
            message, asked, self._render(shape, [*before, message], False, offers=offers), self._find_closer(shape)
        )

    def _find_closer(self, shape: MessageShape) -> str:
        """What ends a message of text, and may also end other messages."""
        if shape not in self._closers:
            try:
                text = self._render(shape, [user(WORDS[0]), assistant(WORDS[1])], False)
            except DialectError:
                text = ""
            self._closers[shape] = text.rpartition(WORDS[1])[2] if WORDS[1] in text else ""
        return self._closers[shape]

    def iterate_harder(self, shape: MessageShape) -> Iterator[Trial]:
        """More difficult messages, as far as the template accepts them."""
        question, thought, said = user(WORDS[0]), Reasoning(WORDS[3]), WORDS[1]
        several = self._make_call("call_2", WORDS[2])
        values = self._make_call("call_1", WORDS[4], many=2, is_so=True, all=[WORDS[2], 1.5, {"of": None}])
        result = tool_message(ToolResult("call_1", self.tool.name, (Text(WORDS[5]),)))
        once = [question, assistant(self.call), result]
        trials: tuple[tuple[list[Message], Message], ...] = (
            ([question], assistant(thought, self.call)),
            ([question], assistant(said, self.call)),
            ([question], assistant(self.call, several)),
            ([question], assistant(values)),
            ([question], assistant(thought, said)),
            (once, assistant(said)),
            (once, assistant(several)),
        )
        for before, message in trials:
            try:
                yield self.render_trial(shape, before, message)
            except DialectError:
                continue

    def iterate_thoughts(self) -> Iterator[Trial]:
        """A message with reasoning and without calls, in the shapes in which the template writes it."""
        for parts in (False, True):
            try:
                trial = self.render_trial(
                    MessageShape(parts), [user(WORDS[0])], assistant(Reasoning(WORDS[3]), WORDS[1]), offers=False
                )
            except DialectError:
                continue
            if WORDS[3] in trial.text:
                yield trial

    def render_conversation(self, shape: MessageShape) -> str:
        """A conversation with everything that a template may mark, as far as it accepts it."""
        thought, result = Reasoning(WORDS[3]), tool_message(ToolResult("call_1", self.tool.name, (Text(WORDS[5]),)))
        messages = [user(WORDS[0]), assistant(thought, self.call), result, assistant(WORDS[1])]
        text = ""
        for length in range(1, len(messages) + 1):
            try:
                text = self._render(shape, messages[:length], True)
            except DialectError:
                break
        return text

    def _render(self, shape: MessageShape, messages: Sequence[Message], prompt: bool, *, offers: bool = True) -> str:
        made = encode_messages(Conversation(tuple(messages), WHEN), shape, keep_text)
        offered = encode_tools([self.tool] if offers else [], keep_text)
        return self._engine.render(made, offered, WHEN, prompt, self._variables)


def reads_back(notation: TextNotation, trial: Trial, tool: ToolSpec, known: TemplateMarkers) -> bool:
    """Whether a notation reads back exactly the message, except for what the template omitted."""
    opens, said = trial.split(known)
    result = notation.family.message.result
    # Some templates already open the result that they expect.
    said = said.removesuffix(result[0]) if result else said
    reader = notation.reader([tool], opens=opens, repair=False)
    events = reader.feed(said) + reader.close(stopped=True)
    if any(isinstance(event, CallMalformed) for event in events):
        return False
    read = [(event.call.name, event.call.decode()) for event in events if isinstance(event, CallFinished)]
    if read != [(call.name, call.decode()) for call in trial.message.calls if isinstance(call, ToolCall)]:
        return False
    parts = trial.message.parts
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    thought = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    wanted = "".join(part.text for part in parts if isinstance(part, Text) and part.text in said)
    # An end of turn that the notation doesn't know doesn't matter to it.
    is_text = known.strip_from(text).strip() == wanted
    return is_text and thought.strip() == "".join(
        part.text for part in parts if isinstance(part, Reasoning) and part.text in said
    )
