"""Calls as the text between two markers: one tool's expression, as nanochat writes it, or also calls with keywords.

`ExpressionSyntax` is the notation of one tool that takes one text. In `ExpressionOrCallSyntax` the text is Python: a
call with keywords is that tool's, `f(a=1)`, anything else one tool's expression.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ferrule.conversation import ToolCall
from ferrule.dialects.grammar import (
    NOTHING,
    CharacterSet,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    LiteralText,
    Repetition,
)
from ferrule.dialects.notations.pythonic import Pythonic, write_python_call
from ferrule.dialects.reader.calls import Calls, escape_json
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading
from ferrule.errors import DialectError
from ferrule.toolspec import JSONSchema

_LONGEST_BEGINNING = 256
_DIGITS = "0123456789"
_SIGNS = ".,+-*/%^×÷·−[]:"
_BLANKS = " \t\n"
_CALL = re.compile(r"\s*[\w.\-]+\(\s*(?:\)|[\w\-]+\s*=)")
_BEGINNING = re.compile(r"\s*(?:[\w.\-]+(?:\(\s*(?:[\w\-]+\s*)?)?)?")


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

    def describe_value(self, schema: Any, root: JSONSchema) -> Grammar:  # noqa: ARG002 - whatever the tool is
        """See `OwnValueSyntax`."""
        return make_expression_grammar()

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


@dataclass(frozen=True, slots=True)
class ExpressionOrCallSyntax:
    """The notation. `expressions` reads and writes the calls of the one tool that takes an expression.

    No expression has a keyword or empty parentheses, so how a call begins decides what it is.
    """

    expressions: ExpressionSyntax

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a call."""
        return self.expressions.openers

    @property
    def closers(self) -> tuple[str, ...]:
        """What ends one."""
        return self.expressions.closers

    @property
    def markers(self) -> tuple[str, ...]:
        """Both."""
        return self.expressions.markers

    @property
    def _named(self) -> Pythonic:
        return Pythonic(self.expressions.open, self.expressions.close, is_list=False)

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        """Read a call, its opener taken. Raises `NotACall` for what is neither, and `EndOfText`."""
        syntax = self._named if (yield from _is_call_ahead(stream)) else self.expressions
        yield from syntax.read(stream, calls, opener)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls. Raises `DialectError` for arguments that aren't a JSON object."""
        return "".join(f"{self.expressions.open}{self.write_call(call)}{self.expressions.close}" for call in calls)

    def write_call(self, call: ToolCall) -> str:
        """The text of one call between the markers."""
        try:
            expression = self.expressions.get_expression(call)
        except DialectError:
            return write_python_call(call)
        return write_python_call(call) if _CALL.match(expression) else expression


def _is_call_ahead(stream: InputStream) -> Reading[bool]:
    """Whether a call with keywords, or without arguments, begins here; nothing is taken."""
    for length in range(1, _LONGEST_BEGINNING):
        found = yield from stream.peek(length)
        if _CALL.fullmatch(found):
            return True
        if len(found) < length or not _BEGINNING.fullmatch(found):
            return False
    return False


def make_expression_grammar(copy: Grammar | None = None) -> Grammar:
    """The characters and words of the calculator's expressions, and texts in quotes: nothing that names another tool.

    With a grammar of what may be copied, its texts are such copies, or single characters. Parentheses aren't empty.
    """
    if copy is None:
        quoted = tuple(_quote(quote, Repetition(_make_character(quote))) for quote in "\"'")
    else:
        quoted = (_quote('"', GrammarChoice((copy, _make_character('"'), NOTHING))),)
    # Words stand where an expression has them, so that no name of another tool begins as one: `count_stock`, `enclose`.
    grouped = GrammarSequence((CharacterSet(_DIGITS), CharacterSet("_eE")))
    opened = GrammarSequence((
        GrammarChoice((LiteralText("("), LiteralText("len("), LiteralText(".count("))),
        Repetition(GrammarChoice((CharacterSet(f"({_BLANKS}"), LiteralText("len(")))),
        GrammarChoice((CharacterSet(_DIGITS + _SIGNS), grouped, *quoted)),
    ))  # fmt: skip
    one = GrammarChoice((CharacterSet(f"{_DIGITS}{_SIGNS}){_BLANKS}"), grouped, opened, *quoted))
    return GrammarSequence((one, Repetition(one)))


def _quote(quote: str, text: Grammar) -> Grammar:
    return GrammarSequence((LiteralText(quote), text, LiteralText(quote)))


def _make_character(quote: str) -> Grammar:
    escaped = GrammarSequence((LiteralText("\\"), CharacterSet("", is_excluded=True)))
    return GrammarChoice((CharacterSet(f"{quote}\\", is_excluded=True), escaped))
