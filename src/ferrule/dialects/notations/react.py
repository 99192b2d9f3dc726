"""ReAct: a thought, `Action: f`, `Action Input: {…}`; the program writes `Observation:` and the result.

Lines begin with these keywords, and nothing else marks a call: an `Action:` without its input is text. An input that is
not an object is the text of the tool's only parameter. What a model writes after `Observation:` is a forged result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO

from ferrule.conversation import ToolCall
from ferrule.dialects.notations.common import read_word, skip_blank
from ferrule.dialects.reader.calls import CallBuilder, Calls, escape_json, validate_arguments
from ferrule.dialects.reader.json import read_json_value
from ferrule.dialects.reader.markers import Stops
from ferrule.dialects.reader.repair import repair_call, reread_arguments
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading
from ferrule.errors import DialectError

ACTION, INPUT, OBSERVATION = "Action:", "Action Input:", "Observation:"
_NAME = re.compile(r"[^\n]++")
_ENDS = (f"\n{OBSERVATION}", f"\n{ACTION}", "\nThought:", "\nFinal Answer:")


@dataclass(frozen=True, slots=True)
class ReAct:
    """The notation."""

    openers: tuple[str, ...] = (f"\n{ACTION}",)
    closers: tuple[str, ...] = (_ENDS[0],)
    markers: tuple[str, ...] = _ENDS

    def write(self, calls: Sequence[ToolCall]) -> str:
        """One call. Raises `DialectError` for a name of several lines."""
        if any("\n" in call.name for call in calls):
            raise DialectError("in ReAct, the name of a tool must be on one line")
        return "\n".join(f"{ACTION} {call.name}\n{INPUT} {validate_arguments(call)}" for call in calls)

    def list_bare_openers(self, names: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002 - the same for all
        """See `BareTextSyntax`."""
        return (ACTION,)

    def read_at_start(self, stream: InputStream, calls: Calls) -> Reading[bool]:
        """Read an action at the beginning of a message."""
        stream.begin_trial()
        yield from stream.skip_space()
        yield from stream.expect(ACTION)
        yield from self._read_action(stream, calls)
        return True

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:  # noqa: ARG002 - there is one
        """Read an action, its keyword taken; without an input after it, it is text."""
        stream.begin_trial(with_opener=True)
        yield from self._read_action(stream, calls)

    def _read_action(self, stream: InputStream, calls: Calls) -> Reading[None]:
        name = (yield from read_word(stream, _NAME)).strip()
        yield from stream.skip_space()
        yield from stream.expect(INPUT)
        stream.keep_trial()
        call = calls.begin(stream)
        call.set_name(name)
        stops = stream.make_stops(*_ENDS)
        character = yield from self._peek_input(stream)
        start = stream.raw.tell() if stream.raw is not None else 0
        try:
            if character == "{":
                yield from read_json_value(stream, call.put, call.hold, call.note_first_key)
                marker = yield from self._read_end(stream, call, stops)
            elif character:
                marker = yield from self._read_text(stream, call, stops)
            else:
                if stream.ended and not stream.stopped:
                    raise EndOfText
                marker = yield from self._read_end(stream, call, stops)
        except NotACall as fault:
            yield from repair_call(stream, calls, fault, start, stops, _ENDS[0], reread_arguments)
            return
        if marker == _ENDS[0]:
            stream.raw = StringIO()
            if (yield from skip_blank(stream)):
                calls.begin(stream)
                raise NotACall("forged_result")

    def _peek_input(self, stream: InputStream) -> Reading[str]:
        """The first character of the input, after taking the white space before it; "" if there is no input."""
        while True:
            character = yield from stream.peek()
            if character == "\n":
                for end in _ENDS:
                    if (yield from stream.is_ahead(end)):
                        return ""
            elif not character or character not in " \t\r":
                return character
            stream.take_framing(stream.at + 1)

    def _read_end(self, stream: InputStream, call: CallBuilder, stops: Stops) -> Reading[str]:
        """Read what follows a complete input: one of the keywords, or the end."""
        rest: list[str] = []
        marker = yield from stream.scan(stops, lambda end: rest.append(stream.take_framing(end)))
        if "".join(rest).strip():
            raise NotACall("invalid_json")
        if marker == _ENDS[0]:
            stream.take_framing(stream.marker_end)
        call.finish()
        return marker

    def _read_text(self, stream: InputStream, call: CallBuilder, stops: Stops) -> Reading[str]:
        """Read a plain-text input: complete if one of the keywords follows, or if the model was stopped."""
        parameter = call.begin_key(_find_only_parameter(call))
        kept = StringIO()

        def sink(end: int) -> None:
            piece = stream.text[stream.at : end]
            if stream.ended and piece == "\n":
                # The line break before a stop word, which was cut off.
                stream.take_framing(end)
            elif parameter.is_string:
                call.put(escape_json(piece), end)
            else:
                kept.write(stream.take_framing(end))

        if parameter.is_string:
            call.put_value('"', stream.at)
        marker = yield from stream.scan(stops, sink)
        if not marker and not stream.stopped:
            raise EndOfText
        if parameter.is_string:
            call.end_string()
        else:
            call.put_plain_value(parameter, kept.getvalue(), stream.at)
        call.close_object()
        if marker == _ENDS[0]:
            stream.take_framing(stream.marker_end)
        call.finish()
        return marker


def _find_only_parameter(call: CallBuilder) -> str:
    """The parameter for a plain-text input: the only one, or the only required one."""
    if call.parameters is None:
        return "input"
    required = call.parameters.schema.get("required")
    for names in (call.parameters.names, tuple(required) if isinstance(required, list) else ()):
        if len(names) == 1:
            return str(names[0])
    raise NotACall("arguments_not_an_object")
