"""Calls of one tool that takes one text: the text between two markers is the whole call, as nanochat writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.conversation import ToolCall
from ferrule.dialects.reader.calls import Calls, escape_json
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading
from ferrule.errors import DialectError


@dataclass(frozen=True, slots=True)
class ExpressionSyntax:
    """The notation. `others` are markers that can't be inside a call: they end one that was not closed."""

    open: str
    close: str
    tool: str = "calculator"
    parameter: str = "expression"
    others: tuple[str, ...] = ()

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

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:  # noqa: ARG002 - there is one
        """Read a call, its opener taken. Raises `NotACall` if another marker comes before the closer."""
        call = calls.begin(stream)
        call.set_name(self.tool)
        call.begin_key(self.parameter)

        def put(end: int) -> None:
            call.put_value(("" if call.has_arguments else '"') + escape_json(stream.text[stream.at : end]), end)

        marker = yield from stream.scan(stream.make_stops(self.open, self.close, *self.others), put)
        if not marker:
            raise EndOfText
        if marker != self.close:
            raise NotACall("unclosed")
        stream.take_framing(stream.marker_end)
        call.put_value('"' if call.has_arguments else '""', stream.at)
        call.close_object()
        call.finish()

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls. Raises `DialectError` for another tool, or other arguments."""
        return "".join(f"{self.open}{self.get_expression(call)}{self.close}" for call in calls)

    def get_expression(self, call: ToolCall) -> str:
        """The text that a call consists of. Raises `DialectError` for another tool or other arguments."""
        if call.name != self.tool:
            raise DialectError(f"this notation can only write calls of {self.tool!r}, not of {call.name!r}")
        try:
            arguments = call.decode()
        except (ValueError, RecursionError) as error:
            raise DialectError(f"the arguments of call {call.id!r} are not JSON: {error}") from error
        if not isinstance(arguments, dict) or set(arguments) != {self.parameter}:
            raise DialectError(f"expected exactly one argument, {self.parameter!r}")
        value = arguments[self.parameter]
        if not isinstance(value, str):
            raise DialectError(f"the argument {self.parameter!r} of call {call.id!r} must be a string")
        return value
