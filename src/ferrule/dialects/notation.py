"""A family's notation: offers, calls, results and messages as text, and the reader of that text.

Written text is read back before it is returned: a notation without escapes can't express every value, and this is how
it finds out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ferrule.capabilities import Loss
from ferrule.conversation import MalformedCall, Message, Reasoning, Text, ToolCall, ToolResult
from ferrule.dialects.family import (
    NO_PARALLEL,
    CallSyntax,
    EscapingSyntax,
    Family,
    PunctuatedSyntax,
    StyledSyntax,
    VariedSyntax,
)
from ferrule.dialects.message_writer import write_parts
from ferrule.dialects.reader.calls import CallBuilder, Calls
from ferrule.dialects.reader.json import MOST_LEVELS
from ferrule.dialects.reader.message import MessageMarkers, MessageReader, Thinking
from ferrule.dialects.reader.stream import InputStream, NotACall, Reading
from ferrule.dialects.segments import Control
from ferrule.errors import DialectError
from ferrule.events import CallFinished, ReaderEvent, ReasoningDelta, TextDelta
from ferrule.toolspec import ToolSpec


class TextNotation:
    """The notation of a family: see `Notation`."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.name = family.name
        markers = family.message
        thinking = (markers.thinking.open, markers.thinking.close) if markers.thinking else ()
        others = family.syntax.other_markers if isinstance(family.syntax, VariedSyntax) else ()
        found = (*family.syntax.markers, *others, *thinking, *(markers.result or ()), *markers.turn_markers)
        self.markers: tuple[str, ...] = tuple(dict.fromkeys(found))
        # Whether the syntax escapes everything that values may contain, so that its output needn't be read back.
        self.is_always_readable = isinstance(family.syntax, EscapingSyntax)

    @property
    def framing(self) -> tuple[str, ...]:
        """What `Framing` outside calls consists of, apart from white space: everything else a model writes is
        content."""
        syntax, markers = self.family.syntax, self.family.message
        around = (*markers.answer, *markers.preamble, markers.between)
        opened = (markers.thinking.open + markers.thinking.after_open,) if markers.thinking else ()
        punctuation = syntax.punctuation if isinstance(syntax, PunctuatedSyntax) else ()
        return tuple(dict.fromkeys(filter(str.strip, (*self.markers, *opened, *around, *punctuation))))

    def offer(self, tools: Sequence[ToolSpec]) -> str:
        """The text that offers tools to the model; empty if there are none."""
        return self.family.offer.write(tools) if tools else ""

    def call(self, call: ToolCall, tools: Sequence[ToolSpec] = ()) -> str:
        """One call. Raises `DialectError` for a call that can't be expressed."""
        return self.calls((call,), tools)

    def calls(self, calls: Sequence[ToolCall], tools: Sequence[ToolSpec] = ()) -> str:
        """The calls of one message, verified by reading them back. Raises `DialectError`, naming a call that
        changes."""
        return self.write_calls(calls, tools)[0]

    def write_calls(self, calls: Sequence[ToolCall], tools: Sequence[ToolSpec] = ()) -> tuple[str, CallSyntax]:
        """Like `calls`: (the calls, the syntax that wrote them)."""
        if len(calls) > 1 and NO_PARALLEL in self.family.losses:
            raise DialectError(f"the {self.name} notation allows one call per message, got {len(calls)}")
        for call in calls:
            if not call.name.strip():
                raise DialectError(f"call {call.id!r} has no name, so it would not be read as a call")
        family = self.family
        syntax = family.syntax if family.select_for_tools is None else family.select_for_tools(tools)[0]
        written = syntax.write(calls)
        if not self.is_always_readable or any(_is_deep(call.arguments) for call in calls):
            try:
                self._check(written, calls, tools)
            except DialectError:
                if not isinstance(syntax, StyledSyntax):
                    raise
                syntax = syntax.with_json_values
                written = syntax.write(calls)
                self._check(written, calls, tools)
        return written, syntax

    def _check(self, written: str, calls: Sequence[ToolCall], tools: Sequence[ToolSpec]) -> None:
        offered = {spec.name: spec for spec in tools}
        known = [offered.get(call.name) or infer_spec(call) for call in calls]
        reader = self.reader(known, repair=False)
        events = reader.feed(written) + reader.close(stopped=True)
        read = [event.call for event in events if isinstance(event, CallFinished)]
        for number, call in enumerate(calls):
            found = read[number] if number < len(read) else None
            if found is None or found.name != call.name or not _is_same_json(found.decode(), call.decode()):
                raise DialectError(
                    f"the {self.name} notation can't express call {call.id!r} of {call.name}: {call.arguments[:200]} "
                    "would be read back otherwise, since a value or name holds text that means something there"
                )
        if len(read) != len(calls):
            raise DialectError(f"the {self.name} notation would read {len(read)} calls where {len(calls)} were written")

    def result(self, result: ToolResult) -> tuple[str, list[Loss]]:
        """The text of a result. Never refuses: markers in it are broken by a visible space and reported as losses."""
        return self.results((result,))

    def results(self, results: Sequence[ToolResult], tools: Sequence[ToolSpec] = ()) -> tuple[str, list[Loss]]:
        """The results of one group of calls, in the order of the calls."""
        losses: list[Loss] = []
        texts = []
        for result in results:
            text, broken = neutralise(result.text, self.markers)
            texts.append(text)
            losses += broken
        family = self.family
        writer = family.results if family.select_for_tools is None else family.select_for_tools(tools)[1]
        return writer.write(results, texts), losses

    def message(self, message: Message, tools: Sequence[ToolSpec] = ()) -> str:
        """An assistant message as text, verified by reading it back. Raises `DialectError` if that gives another
        message."""
        written = self._write_message(message, tools)
        if not any(isinstance(part, MalformedCall) for part in message.parts):
            self._check_message(written, message, tools)
        return written

    def _check_message(self, written: str, message: Message, tools: Sequence[ToolSpec]) -> None:
        known = {
            spec.name: spec for call in message.calls if isinstance(call, ToolCall) for spec in (infer_spec(call),)
        }
        known |= {spec.name: spec for spec in tools}
        reader = self.reader(tuple(known.values()), repair=False)
        said = _join_runs(reader.feed(written) + reader.close(stopped=True))
        wanted = [(type(part), part.text) for part in message.parts if isinstance(part, Text | Reasoning) and part.text]
        if said != _merge(wanted):
            raise DialectError(
                f"the text or the reasoning of this message would change when read back in the {self.name} notation"
            )

    def _write_message(self, message: Message, tools: Sequence[ToolSpec]) -> str:
        spoken = [part for part in message.parts if isinstance(part, Text | Reasoning)]
        if self.family.message.thinking is None and any(isinstance(part, Reasoning) for part in spoken):
            raise DialectError(f"the {self.name} notation has no place for reasoning")
        for marker in self.markers:
            if any(marker in part.text for part in spoken):
                raise DialectError(f"the {self.name} notation can't write {marker!r} as plain text")
        segments = write_parts(self.family, message.parts, lambda calls: [Control(self.calls(calls, tools))])
        return "".join(segment.text for segment in segments)

    def reader(
        self,
        tools: Sequence[ToolSpec] = (),
        *,
        first_call: int = 1,
        opens: str = "",
        spelled_out: Collection[str] = (),
        repair: bool = True,
    ) -> MessageReader:
        """A reader for one assistant message; see `Dialect.reader`. Without `repair`, nearly valid JSON is
        malformed."""
        calls = Calls(tools, first_call, repair, self._recover, _read_late_calls)
        return MessageReader(self.family.syntax, self.family.message, calls, opens=opens, spelled_out=spelled_out)

    def _recover(self, stream: InputStream, calls: Calls, call: CallBuilder, raw: str) -> bool:
        from ferrule.dialects.notations.fallback import recover_call  # only needed for a call that can't be read

        return recover_call(stream, calls, call, raw, self.family.syntax)


def _read_late_calls(stream: InputStream, calls: Calls, native_form: str) -> Reading[None]:
    from ferrule.dialects.notations.late_calls import read_late_calls  # only needed where text has brackets

    yield from read_late_calls(stream, calls, native_form)


def neutralise(text: str, markers: Collection[str]) -> tuple[str, list[Loss]]:
    """`text` with each marker broken by a visible space, `< /tool_response>`, and a `Loss` for each of them."""
    losses = []
    for marker in markers:
        if marker.strip() and marker in text:
            text = text.replace(marker, f"{marker[0]} {marker[1:]}")
            losses.append(Loss("marker", f"{marker} in a result, written as plain text"))
    return text, losses


def _is_deep(arguments: str) -> bool:
    """Whether JSON may be nested deeper than readers allow."""
    return arguments.count("[") + arguments.count("{") >= MOST_LEVELS


def infer_spec(call: ToolCall) -> ToolSpec:
    """A tool that takes exactly the arguments of a call: enough to read that call back."""
    arguments = call.decode()
    items = arguments.items() if isinstance(arguments, dict) else ()
    properties = {key: {"type": _name_type(value)} for key, value in items}
    return ToolSpec(call.name, "", {"type": "object", "properties": properties})


def _name_type(value: Any) -> str:
    kinds = ((str, "string"), (bool, "boolean"), (int, "integer"), (float, "number"), (dict, "object"), (list, "array"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def _join_runs(events: Sequence[ReaderEvent]) -> list[tuple[type, str]]:
    """The text and the reasoning in events, with consecutive deltas of a kind joined."""
    kinds = {TextDelta: Text, ReasoningDelta: Reasoning}
    runs = [(kinds[type(e)], e.text) for e in events if isinstance(e, TextDelta | ReasoningDelta)]
    return _merge(runs)


def _merge(runs: Sequence[tuple[type, str]]) -> list[tuple[type, str]]:
    merged: list[tuple[type, str]] = []
    for kind, text in runs:
        if merged and merged[-1][0] is kind:
            merged[-1] = (kind, merged[-1][1] + text)
        else:
            merged.append((kind, text))
    return merged


def _is_same_json(one: Any, other: Any) -> bool:
    """Whether values are equal as JSON: 1 and true are not, 1 and 1.0 are."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same_json(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same_json, one, other))
    return bool(one == other)


@dataclass(frozen=True, slots=True)
class NoCalls:
    """A syntax without calls. `why` is the reason given to a caller that tries to write one."""

    why: str
    openers: tuple[str, ...] = ()
    closers: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()

    def write(self, calls: Sequence[ToolCall]) -> str:
        """Refuses them."""
        raise DialectError(f"{self.why}, so {calls[0].name!r} can't be called")

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:  # noqa: ARG002 - a `ReadableSyntax`
        """Never called: there is no opener."""
        yield from ()
        raise NotACall("unreadable")


def make_notation_without_calls(why: str, thinking: Thinking | None = None) -> TextNotation:
    """A notation that reads and writes only text and, between the markers of `thinking`, reasoning."""
    return TextNotation(Family(name="plain", models="any model", syntax=NoCalls(why), message=MessageMarkers(thinking)))
