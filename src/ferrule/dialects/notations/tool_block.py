"""Calls as a block under the name of a tool, which contains a command or JSON: `<tool: f>\nls -l\n</tool>`.

A block that contains a JSON object gives the arguments in it, and anything else is the argument `command`. Under the
name `function` the first word of the block is the tool's name. A mention of the opening tag is text: a block begins on
its own line, or ends on the line where it began.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.conversation import ToolCall
from ferrule.dialects.notations.common import finish_call, read_word, take_text_until
from ferrule.dialects.notations.json_object import note_empty_arguments, read_arguments
from ferrule.dialects.reader.calls import CallBuilder, Calls, escape_json, validate_arguments
from ferrule.dialects.reader.json import INVALID
from ferrule.dialects.reader.parameters import ParameterType
from ferrule.dialects.reader.repair import apply_repair, repair_call, reread_arguments
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading

_COMMAND = "command"
_TEXT = ParameterType(frozenset({"string"}))
_ANY_TOOL = "function"
_NAME = re.compile(r"[\w.:/-]++")
_WORD = re.compile(r"[^\s<>{}\[\]\"'`]++")
_UNCLOSED = "unclosed_tag"


@dataclass(frozen=True, slots=True)
class ToolBlock:
    """The notation."""

    open: str = "<tool:"
    close: str = "</tool>"
    between: str = "\n"

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a call."""
        return (self.open,)

    @property
    def closers(self) -> tuple[str, ...]:
        """What ends one."""
        return (self.close,)

    @property
    def markers(self) -> tuple[str, ...]:
        """Both."""
        return (self.open, self.close)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, each in its block."""
        return self.between.join(f"{self.open} {c.name}>\n{self._write_body(c)}\n{self.close}" for c in calls)

    def _write_body(self, call: ToolCall) -> str:
        text = validate_arguments(call)
        arguments = json.loads(text)
        command = arguments.get(_COMMAND)
        is_alone = isinstance(command, str) and len(arguments) == 1
        is_plain = is_alone and command and command == command.strip() and command[0] not in '{["'
        return command if is_plain and self.close not in command else text

    def list_value_ends(self, names: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002 - the same for all
        """See `PlainTextSyntax`: of a command."""
        return (f"\n{self.close}", self.close)

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:  # noqa: ARG002 - there is but one
        """Read a block, its opener taken."""
        stream.begin_trial(with_opener=True)
        yield from stream.take_optional(" ")
        name = yield from read_word(stream, _NAME)
        is_closed = yield from stream.take_optional(">")
        if not name or not (is_closed or calls.repair):
            raise NotACall("unexpected_text")
        while (yield from stream.peek()) in (" ", "\t"):
            stream.take_framing(stream.at + 1)
        if not is_closed or (yield from stream.peek()) not in ("\n", "\r"):
            yield from self._read_line(stream, calls, name, "" if is_closed else _UNCLOSED)
            return
        stream.keep_trial()
        yield from self._read_lines(stream, calls, name)

    def _read_line(self, stream: InputStream, calls: Calls, name: str, repair: str) -> Reading[None]:
        """Read a block that ends on this line. Raises `NotACall` if it doesn't: it was a mention of the tag."""
        stops = stream.make_stops(structural=(self.close, self.open, "\n"))
        body, marker = yield from take_text_until(stream, stops)
        if marker != self.close:
            raise NotACall("unexpected_text")
        stream.take_framing(stream.marker_end)
        stream.keep_trial()
        call = calls.begin(stream, repair)
        if _is_any_tool(calls, name):
            name, _, body = body.strip().partition(" ")
        try:
            call.set_name(name)
            self._take_body(stream, calls, call, body.strip())
        except NotACall as fault:
            call.fail(fault.kind)

    def _take_body(self, stream: InputStream, calls: Calls, call: CallBuilder, body: str) -> None:
        if body.startswith("{"):
            whole = reread_arguments(body)
            if whole is None or not apply_repair(stream, calls, call, whole):
                raise NotACall(INVALID)
            return
        if body:
            call.begin_key(_COMMAND)
            call.put_value(f'"{escape_json(body)}"', stream.at)
            call.close_object()
        else:
            note_empty_arguments(call, "")
        call.finish()

    def _read_lines(self, stream: InputStream, calls: Calls, name: str) -> Reading[None]:
        call = calls.begin(stream)
        character = yield from stream.skip_space()
        if _is_any_tool(calls, name):
            name = yield from read_word(stream, _WORD)
            character = yield from stream.skip_space()
        call.set_name(name)
        start = stream.raw.tell() if stream.raw is not None else 0
        try:
            if character == "<" and (yield from stream.is_ahead(self.close)):
                note_empty_arguments(call, "")
            elif character == "{":
                yield from read_arguments(stream, call, character)
            else:
                yield from self._read_command(stream, call)
                return
            yield from finish_call(stream, call, self.close, kind=INVALID)
        except NotACall as fault:
            stops = stream.make_stops(self.close, self.open)
            yield from repair_call(stream, calls, fault, start, stops, self.close, reread_arguments)

    def _read_command(self, stream: InputStream, call: CallBuilder) -> Reading[None]:
        stops = stream.make_stops(leads=((self.close, "\n"),), structural=(self.close,))
        if not (yield from call.read_raw_value(_COMMAND, stops, _TEXT)):
            raise EndOfText
        call.close_object()
        call.finish()


def _is_any_tool(calls: Calls, name: str) -> bool:
    """Whether a block's name stands for any tool, whose name follows."""
    return name == _ANY_TOOL and calls.get_parameters(name) is None
