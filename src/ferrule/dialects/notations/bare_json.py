"""Calls as JSON objects without a closer: `<|python_tag|>{"name": "f", "parameters": {…}}; {…}`.

If a message begins with such an object, only its keys distinguish a call from an answer in JSON: it is a call once
arguments follow the name of a tool that was offered. A list of objects or of Python calls is repaired, and so are calls
after text, if nothing follows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from ferrule.conversation import ToolCall
from ferrule.dialects.notations.json_array import JsonArray, Named
from ferrule.dialects.notations.json_object import Keys, encode_name, read_call_object, reread_call, write_call_object
from ferrule.dialects.reader.calls import CallBuilder, Calls
from ferrule.dialects.reader.json import INVALID
from ferrule.dialects.reader.repair import JSON_CALL, JSON_LIST, PYTHON_CALL, repair_call
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading


class BareList(Protocol):
    """Reads a list of calls at the beginning of a message."""

    def read_list(self, stream: InputStream, calls: Calls, repair: str = "") -> Reading[None]:
        """Read it after its bracket, in a trial. `repair` is noted for each call. Raises `NotACall`."""
        ...


@dataclass(frozen=True, slots=True)
class BareJson:
    """The notation of Llama 3. `before` are markers that can't be inside a call, and `repair` is noted for each call,
    where a model writes this in place of its own notation. `python` reads a list of Python calls after its bracket."""

    open: str
    separator: str = ";"
    before: tuple[str, ...] = ()
    keys: Keys = field(default_factory=lambda: Keys(arguments=("parameters", "arguments")))
    closers: tuple[str, ...] = ()
    repair: str = ""
    python: BareList | None = None
    beginnings: ClassVar[tuple[str, ...]] = ("{", "[")
    native_form: ClassVar[str] = JSON_CALL

    @property
    def openers(self) -> tuple[str, ...]:
        """The marker that may precede a call, or code."""
        return (self.open,)

    @property
    def markers(self) -> tuple[str, ...]:
        """The same."""
        return (self.open,)

    @property
    def punctuation(self) -> tuple[str, ...]:
        """The text between objects, and the brackets and commas of a list."""
        return (self.separator, "[", ",", "]")

    def list_bare_openers(self, names: Sequence[str]) -> tuple[str, ...]:
        """See `BareTextSyntax`: a call has its tool's name in quotes, or in Python a parenthesis after it."""
        return (*map(encode_name, names), *(f"{name}(" for name in names))

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The objects without the marker, as the families' templates write them."""
        return f"{self.separator} ".join(write_call_object(call, self.keys) for call in calls)

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        """Read the text after the marker: a call, and the calls after it."""
        if calls.repair and (yield from stream.skip_space()) == "[":
            yield from self._read_list(stream, calls)
            return
        call = calls.begin(stream)
        try:
            yield from read_call_object(stream, call, self.keys)
            call.finish()
        except NotACall as fault:
            yield from repair_object(stream, calls, fault, (*self.openers, *self.before), len(opener), self.keys)
        yield from self._read_more(stream, calls)

    def read_at_start(self, stream: InputStream, calls: Calls) -> Reading[bool]:
        """Read a call at the beginning of a message, and those after it."""
        stream.begin_trial()
        if calls.repair and (yield from stream.skip_space()) == "[":
            yield from self._read_list(stream, calls)
            return True
        yield from self.read_tried(stream, calls)
        return True

    def read_tried(self, stream: InputStream, calls: Calls) -> Reading[None]:
        """Read a call and those after it, in a trial. Raises `NotACall` if there is none."""
        yield from self._try_call(stream, calls)
        yield from self._read_more(stream, calls)

    def _read_list(self, stream: InputStream, calls: Calls) -> Reading[None]:
        """Read a list of calls, its bracket ahead."""
        stream.take_framing(stream.at + 1)
        if (yield from stream.skip_space()) == "{":
            yield from JsonArray("[", element=Named(self.keys), before=self.before, repair=JSON_LIST).read(
                stream, calls, "["
            )
        elif self.python is not None and stream.is_trying:
            yield from self.python.read_list(stream, calls, PYTHON_CALL)
        else:
            raise NotACall(INVALID)

    def _read_more(self, stream: InputStream, calls: Calls) -> Reading[None]:
        while True:
            stream.begin_trial()
            if (yield from stream.skip_space()) == self.separator:
                stream.take_framing(stream.at + 1)
            yield from self._try_call(stream, calls)

    def _try_call(self, stream: InputStream, calls: Calls) -> Reading[None]:
        """Read a call, if there is one here; otherwise raises `NotACall` while the trial is still open."""
        if (yield from stream.skip_space()) != "{":
            raise NotACall(INVALID)
        start = stream.raw.tell() if stream.raw else 0
        call = calls.begin(stream, self.repair)

        def check_key(key: str) -> None:
            if stream.is_trying and key not in (*self.keys.name, *self.keys.arguments, *self.keys.identifier, "type"):
                raise NotACall("unexpected_text")
            if call.started and key in self.keys.arguments:
                self._settle(stream, calls, call)

        try:
            yield from read_call_object(stream, call, self.keys, check_key)
            if stream.is_trying and not call.arguments:
                raise NotACall("no_arguments")
            self._settle(stream, calls, call)
            call.finish()
        except EndOfText:
            if stream.is_trying:
                calls.current = None
            raise
        except NotACall as fault:
            if stream.is_trying:
                calls.current = None
                raise
            yield from repair_object(stream, calls, fault, (*self.openers, *self.before), start, self.keys)

    def _settle(self, stream: InputStream, calls: Calls, call: CallBuilder) -> None:
        """Accept it as a call once it has a name and arguments, if its tool was offered."""
        if stream.is_trying and calls.has_tools and call.parameters is None:
            raise NotACall("unknown_tool")
        stream.keep_trial()


def repair_object(
    stream: InputStream, calls: Calls, fault: NotACall, stops: tuple[str, ...], start: int, keys: Keys
) -> Reading[None]:
    """Like `repair_call`, for an object without a closer."""
    yield from repair_call(stream, calls, fault, start, stream.make_stops(*stops), "", reread_call(keys))
