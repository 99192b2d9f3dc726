"""A family of models as a declaration, and the notation that it makes: text written, and text read, nothing else.

A family names the syntax of its calls (a file in `notations/`), what stands around them (`Prose`), and how results and
offers are worded. `TextNotation` does the rest, the same for all of them. What was written is read back before it is
handed out: a notation without escapes can't express every value, and finds that out by itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ferrule.capabilities import Loss
from ferrule.conversation import MalformedCall, Message, Reasoning, Text, ToolCall, ToolResult
from ferrule.dialects.calls import Calls
from ferrule.dialects.message_reader import CallSyntax, MessageReader, Prose
from ferrule.errors import DialectError
from ferrule.events import CallFinished, ReaderEvent, ReasoningDelta, TextDelta
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.dialects.turns import Turns

NO_IDS, NO_IMAGES, NO_REASONING = "ids", "images", "reasoning"
NO_TEXT_BESIDE, NO_PARALLEL, NO_GAPS = "text beside calls", "parallel calls", "arguments after one that is left out"


class Notated(CallSyntax, Protocol):
    """A syntax that is written as well as read. `markers`: its fixed texts that a tokenizer may have tokens for."""

    @property
    def markers(self) -> tuple[str, ...]:
        """All fixed texts of it that a tokenizer may have tokens for."""
        ...

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls of one message, wrapper and all. Raises `DialectError` for what has no expression here."""
        ...


class ResultWriter(Protocol):
    """How the answers to a group of calls are worded."""

    def write(self, results: Sequence[ToolResult], texts: Sequence[str]) -> str:
        """The results, whose texts are harmless by now."""
        ...


@dataclass(frozen=True, slots=True)
class ResultRead:
    """A result as a text gives it: the tool's own name, what it gave, and whether that was an error."""

    name: str
    text: str
    is_error: bool


@runtime_checkable
class ResultReader(Protocol):
    """A wording of results that can be read again."""

    def read(self, text: str) -> list[ResultRead] | None:
        """The results of one group, None for any other text."""
        ...


class OfferWriter(Protocol):
    """How a model is told of its tools."""

    def write(self, tools: Sequence[ToolSpec]) -> str:
        """The block that goes into the system message."""
        ...


@dataclass(frozen=True, slots=True)
class WrappedResults:
    """Each result between two texts, in which `{name}` and `{id}` stand for those of its call."""

    open: str
    close: str
    before: str = ""
    between: str = "\n"
    after: str = ""

    def write(self, results: Sequence[ToolResult], texts: Sequence[str]) -> str:
        """The results, one after the other."""
        written = [
            self._filled(self.open, result) + text + self._filled(self.close, result)
            for result, text in zip(results, texts, strict=True)
        ]
        return f"{self.before}{self.between.join(written)}{self.after}"

    @staticmethod
    def _filled(text: str, result: ToolResult) -> str:
        return text.replace("{name}", result.name).replace("{id}", result.call_id)


@dataclass(frozen=True, slots=True)
class QuotedResults:
    """Each result as a JSON string, as the templates of Llama's models give it."""

    def write(self, results: Sequence[ToolResult], texts: Sequence[str]) -> str:  # noqa: ARG002 - nothing names a call
        """The results, one after the other."""
        return "\n".join(json.dumps(text, ensure_ascii=False) for text in texts)


@dataclass(frozen=True, slots=True)
class JsonOffer:
    """One line of JSON a tool, in the shape of OpenAI's API, between two texts."""

    before: str
    after: str = ""

    def write(self, tools: Sequence[ToolSpec]) -> str:
        """The block."""
        return self.before + "\n".join(offered_json(spec) for spec in tools) + self.after


def offered_json(spec: ToolSpec) -> str:
    """A tool in the shape of OpenAI's API, on one line."""
    function = {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Family:
    """One family. `losses` are what its notation has no place for; `models` is one line for people; `one_tool` the
    tool, and its parameter, of a family that knows no other; `turns` how whole conversations are framed, if known, and
    `other_turns` how other models of it frame them, each with its name; `among` gives the syntax and the results'
    wording for tools on offer, where calls and results name the group of a tool too."""

    name: str
    models: str
    syntax: Notated
    prose: Prose = field(default_factory=Prose)
    results: ResultWriter = field(default_factory=lambda: WrappedResults("", ""))
    offer: OfferWriter = field(default_factory=lambda: JsonOffer("You may call these tools:\n"))
    losses: frozenset[str] = frozenset({NO_IDS, NO_IMAGES})
    aliases: tuple[str, ...] = ()
    one_tool: tuple[str, str] | None = None
    turns: Turns | None = None
    other_turns: tuple[tuple[str, Turns], ...] = ()
    among: Callable[[Sequence[ToolSpec]], tuple[Notated, ResultWriter]] | None = None


class TextNotation:
    """The notation of a family: see `Notation`."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.name = family.name
        prose = family.prose
        thinking = (prose.thinking.open, prose.thinking.close) if prose.thinking else ()
        found = (*family.syntax.markers, *thinking, *(prose.result or ()), *prose.turn_markers)
        self.markers: tuple[str, ...] = tuple(dict.fromkeys(found))

    def offer(self, tools: Sequence[ToolSpec]) -> str:
        """How the model is told of its tools; empty where there are none."""
        return self.family.offer.write(tools) if tools else ""

    def call(self, call: ToolCall, tools: Sequence[ToolSpec] = ()) -> str:
        """One call. Raises `DialectError` for what can't be expressed."""
        return self.calls((call,), tools)

    def calls(self, calls: Sequence[ToolCall], tools: Sequence[ToolSpec] = ()) -> str:
        """The calls of one message, read back to be sure. Raises `DialectError`, naming the call that is lost."""
        if len(calls) > 1 and NO_PARALLEL in self.family.losses:
            raise DialectError(f"the {self.name} notation holds one call a message, and here are {len(calls)}")
        family = self.family
        syntax = family.syntax if family.among is None else family.among(tools)[0]
        written = syntax.write(calls)
        self._check(written, calls, tools)
        return written

    def _check(self, written: str, calls: Sequence[ToolCall], tools: Sequence[ToolSpec]) -> None:
        offered = {spec.name: spec for spec in tools}
        known = [offered.get(call.name) or _spec_of(call) for call in calls]
        reader = self.reader(known)
        events = reader.feed(written) + reader.close(stopped=True)
        read = [event.call for event in events if isinstance(event, CallFinished)]
        for number, call in enumerate(calls):
            found = read[number] if number < len(read) else None
            if found is None or found.name != call.name or not _same(found.decoded(), call.decoded()):
                raise DialectError(
                    f"the {self.name} notation can't express call {call.id!r} of {call.name}: {call.arguments[:200]} "
                    "would be read back otherwise, since a value or name holds text that means something there"
                )
        if len(read) != len(calls):
            raise DialectError(f"the {self.name} notation would read {len(read)} calls where {len(calls)} were written")

    def result(self, result: ToolResult) -> tuple[str, list[Loss]]:
        """The text of a result. Never refuses: markers in it are broken by a visible space and reported."""
        return self.results((result,))

    def results(self, results: Sequence[ToolResult], tools: Sequence[ToolSpec] = ()) -> tuple[str, list[Loss]]:
        """The results of one group of calls, in the order of the calls."""
        losses: list[Loss] = []
        texts = []
        for result in results:
            text, broken = neutralised(result.text, self.markers)
            texts.append(text)
            losses += broken
        family = self.family
        writer = family.results if family.among is None else family.among(tools)[1]
        return writer.write(results, texts), losses

    def message(self, message: Message, tools: Sequence[ToolSpec] = ()) -> str:
        """What the assistant wrote, as text, read back to be sure. Raises `DialectError` for what is not as it was."""
        written = self._written(message, tools)
        if not any(isinstance(part, MalformedCall) for part in message.parts):
            self._check_message(written, message, tools)
        return written

    def _check_message(self, written: str, message: Message, tools: Sequence[ToolSpec]) -> None:
        known = {spec.name: spec for call in message.calls if isinstance(call, ToolCall) for spec in (_spec_of(call),)}
        known |= {spec.name: spec for spec in tools}
        reader = self.reader(tuple(known.values()))
        said = _said(reader.feed(written) + reader.close(stopped=True))
        wanted = [(type(part), part.text) for part in message.parts if isinstance(part, Text | Reasoning) and part.text]
        if said != _merged(wanted):
            raise DialectError(
                f"the {self.name} notation would read the text or the reasoning of this message otherwise"
            )

    def _written(self, message: Message, tools: Sequence[ToolSpec]) -> str:
        prose = self.family.prose
        pieces: list[str] = []
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        before, after = prose.preamble if calls else prose.answer
        # Whether a call that comes next stands beside text, and not behind a marker.
        is_open = False
        for following, part in enumerate(message.parts, 1):
            if isinstance(part, Reasoning):
                if prose.thinking is None:
                    raise DialectError(f"the {self.name} notation has no place for reasoning")
                thinking = prose.thinking
                text = self._plain(part.text)
                opened, closed = thinking.open + thinking.after_open, thinking.before_close + thinking.close
                goes_on = bool(calls) and message.parts[following : following + 1] == (calls[0],)
                is_open = goes_on and not thinking.closes_before_call
                pieces.append(f"{opened}{text}" + ("" if is_open else f"{closed}{thinking.after_close}"))
            elif isinstance(part, Text):
                if calls and NO_TEXT_BESIDE in self.family.losses and part.text:
                    raise DialectError(f"the {self.name} notation has no place for text beside calls")
                is_open = bool(part.text) and not after
                pieces.append(f"{before}{self._plain(part.text)}{after}")
            elif isinstance(part, MalformedCall):
                pieces.append(part.raw)
            elif calls and part is calls[0]:
                pieces.append((prose.before_call if is_open else "") + self.calls(calls, tools))
        return prose.between.join(pieces)

    def _plain(self, text: str) -> str:
        for marker in self.markers:
            if marker in text:
                raise DialectError(f"the {self.name} notation can't write {marker!r} as plain text")
        return text

    def reader(
        self,
        tools: Sequence[ToolSpec] = (),
        *,
        first_call: int = 1,
        opens: str = "",
        spelled_out: Collection[str] = (),
        repair: bool = True,
    ) -> MessageReader:
        """A reader for one assistant message; see `Dialect.reader`. Without `repair` nearly JSON is malformed."""
        calls = Calls(tools, first_call, repair)
        return MessageReader(self.family.syntax, self.family.prose, calls, opens=opens, spelled_out=spelled_out)


def neutralised(text: str, markers: Collection[str]) -> tuple[str, list[Loss]]:
    """`text` with each marker broken by a visible space: `< /tool_response>`, and a `Loss` for each that was there."""
    losses = []
    for marker in markers:
        if marker.strip() and marker in text:
            text = text.replace(marker, f"{marker[0]} {marker[1:]}")
            losses.append(Loss("marker", f"{marker} in a result, written as plain text"))
    return text, losses


def _spec_of(call: ToolCall) -> ToolSpec:
    """A tool that takes just what a call gives: enough to read the call back."""
    arguments = call.decoded()
    items = arguments.items() if isinstance(arguments, dict) else ()
    properties = {key: {"type": _type_name(value)} for key, value in items}
    return ToolSpec(call.name, "", {"type": "object", "properties": properties})


def _type_name(value: Any) -> str:
    kinds = ((str, "string"), (bool, "boolean"), (int, "integer"), (float, "number"), (dict, "object"), (list, "array"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def _said(events: Sequence[ReaderEvent]) -> list[tuple[type, str]]:
    """The text and the reasoning that events tell of, each run of them in one."""
    kinds = {TextDelta: Text, ReasoningDelta: Reasoning}
    runs = [(kinds[type(e)], e.text) for e in events if isinstance(e, TextDelta | ReasoningDelta)]
    return _merged(runs)


def _merged(runs: Sequence[tuple[type, str]]) -> list[tuple[type, str]]:
    merged: list[tuple[type, str]] = []
    for kind, text in runs:
        if merged and merged[-1][0] is kind:
            merged[-1] = (kind, merged[-1][1] + text)
        else:
            merged.append((kind, text))
    return merged


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 and true are not, 1 and 1.0 are."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
