"""Calls as a JSON array of objects, with markers around it: `<TOOLCALL>[{"name": "f", "arguments": {…}}]</TOOLCALL>`.

Each element is a call of its own, whose events are emitted as it arrives. If only the array itself shows that there are
calls (at the beginning of a message, or in a fence), it is a call once arguments follow the name of a tool that was
offered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Protocol

from ferrule.conversation import ToolCall
from ferrule.dialects.notations.json_object import (
    Keys,
    encode_name,
    read_arguments,
    read_call_object,
    write_call_object,
)
from ferrule.dialects.reader.calls import CallBuilder, Calls, validate_arguments
from ferrule.dialects.reader.json import INVALID, read_json_word
from ferrule.dialects.reader.repair import RepairedCall, repair_call, repair_json
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading
from ferrule.events import CallFinished, CallMalformed

_FENCE = "```"


class Element(Protocol):
    """How one call is written in the array."""

    def read(self, stream: InputStream, call: CallBuilder, settle: Callable[[], object]) -> Reading[None]:
        """Read the object ahead. `settle` is called when arguments follow a name. Raises `NotACall` and `EndOfText`."""
        ...

    def write(self, call: ToolCall) -> str:
        """The object. Raises `DialectError` if the arguments are not JSON."""
        ...


@dataclass(frozen=True, slots=True)
class Named:
    """`{"name": "f", "arguments": {…}}`. `writes_id`: "first" or "last", if templates write it."""

    keys: Keys = field(default_factory=Keys)
    writes_id: str = ""

    def read(self, stream: InputStream, call: CallBuilder, settle: Callable[[], object]) -> Reading[None]:
        """Read the object."""
        keys = self.keys

        def check_key(key: str) -> None:
            if call.started and key in keys.arguments:
                settle()
            elif stream.is_trying and key not in (*keys.name, *keys.arguments, *keys.identifier):
                raise NotACall("unexpected_key")

        yield from read_call_object(stream, call, keys, check_key)

    def write(self, call: ToolCall) -> str:
        """The object, with its id if templates give it one."""
        inner = write_call_object(call, self.keys)[1:-1]
        identifier = f'"{self.keys.identifier[0]}": {json.dumps(call.id, ensure_ascii=False)}'
        places = {"first": (identifier, inner), "last": (inner, identifier)}
        return f"{{{', '.join(places.get(self.writes_id, (inner,)))}}}"


@dataclass(frozen=True, slots=True)
class Keyed:
    """`{"f": {…}}`: the name is the key."""

    def read(self, stream: InputStream, call: CallBuilder, settle: Callable[[], object]) -> Reading[None]:
        """Read the object."""
        stream.take_framing(stream.at + 1)
        if (yield from stream.skip_space()) != '"':
            raise NotACall("no_name" if (yield from stream.peek()) == "}" else INVALID)
        name = yield from read_json_word(stream)
        if (yield from stream.skip_space()) != ":":
            raise NotACall(INVALID)
        stream.take_framing(stream.at + 1)
        character = yield from stream.skip_space()
        if name == "name" and character == '"':
            # The other kind of element.
            raise NotACall(INVALID)
        call.set_name(name)
        settle()
        yield from read_arguments(stream, call, character)
        if (yield from stream.skip_space()) != "}":
            raise NotACall(INVALID)
        stream.take_framing(stream.at + 1)

    def write(self, call: ToolCall) -> str:
        """The object."""
        return f"{{{json.dumps(call.name, ensure_ascii=False)}: {validate_arguments(call)}}}"


@dataclass(frozen=True, slots=True)
class ArrayLayout:
    """What is written before, between and after the elements; `indent`: if set, elements are indented over lines."""

    before: str = "["
    between: str = ", "
    after: str = "]"
    indent: int | None = None

    def write(self, elements: Sequence[str]) -> str:
        """The array."""
        if self.indent is not None:
            return json.dumps([json.loads(element) for element in elements], ensure_ascii=False, indent=self.indent)
        return f"{self.before}{self.between.join(elements)}{self.after}"


@dataclass(frozen=True, slots=True)
class JsonArray:
    """The notation. An empty `open`: the array begins a message; an empty `close`: the array's own end closes it.

    `also` are other accepted openers, each with its closer, and `fence` is one that may begin anything else as well. An
    opener may end with the array's own bracket. `before` are markers that can't be inside a call. `in_lines`: instead
    of an array, there is an object per line up to the closer. `repair` is noted for each call, where a model writes
    this in place of its own notation.
    """

    open: str
    close: str = ""
    element: Element = field(default_factory=Named)
    layout: ArrayLayout = field(default_factory=ArrayLayout)
    also: tuple[tuple[str, str], ...] = ()
    fence: str = ""
    before: tuple[str, ...] = ()
    in_lines: bool = False
    repair: str = ""

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins an array of calls."""
        return tuple(text for text in (self.open, *(opener for opener, _ in self.also), self.fence) if text)

    @property
    def closers(self) -> tuple[str, ...]:
        """What may end one."""
        return tuple(dict.fromkeys(text for text in (self.close, *(closer for _, closer in self.also)) if text))

    @property
    def markers(self) -> tuple[str, ...]:
        """Openers and closers; a fence may be in any text and is not one of them."""
        return tuple(dict.fromkeys(text for text in (*self.openers, *self.closers) if text != self.fence))

    @property
    def punctuation(self) -> tuple[str, ...]:
        """The brackets and commas of the array, and its fence."""
        return ("[", ",", "]", *((self.fence, _FENCE) if self.fence else ()))

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls as one array."""
        array = self.layout.write([self.element.write(call) for call in calls])
        return f"{self.open.removesuffix('[')}{array}{self.close}"

    def list_bare_openers(self, names: Sequence[str]) -> tuple[str, ...]:
        """See `BareTextSyntax`."""
        return () if self.open else tuple(map(encode_name, names))

    def read_at_start(self, stream: InputStream, calls: Calls) -> Reading[bool]:
        """Read an array at the beginning of a message, if the family writes it like that."""
        if self.open:
            return False
        stream.begin_trial()
        yield from self._read_opened(stream, calls, "", "")
        if stream.is_trying:
            stream.drop_trial()
            return False
        stream.raw = None
        return True

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        """Read the array that `opener` began."""
        closer = dict(((self.open, self.close), *self.also, (self.fence, _FENCE)))[opener]
        if self.fence and opener == self.fence:
            stream.begin_trial(with_opener=True)
        yield from self._read_opened(stream, calls, opener, closer)
        stream.drop_trial()

    def _read_opened(self, stream: InputStream, calls: Calls, opener: str, closer: str) -> Reading[None]:
        """Read what follows an opener: an array, or a single object without one."""
        character = "[" if opener.endswith("[") else (yield from stream.skip_space())
        if character == "[" and not opener.endswith("["):
            for other in self.openers if stream.is_trying else ():
                if (yield from stream.is_ahead(other[:2])):
                    # Text in a dropped trial would not be scanned again.
                    raise NotACall("unexpected_text")
            stream.take_framing(stream.at + 1)
        elif character != "[" and (character != "{" or stream.is_trying):
            raise NotACall("unexpected_text")
        try:
            is_open = yield from self._read_elements(stream, calls, closer, in_array=character == "[")
            while is_open and self.in_lines and (yield from self._has_more(stream)):
                is_open = yield from self._read_elements(stream, calls, closer, in_array=False)
        except (NotACall, EndOfText):
            if stream.is_trying:
                calls.current = None
            raise
        if is_open and closer and not stream.is_trying:
            yield from self._take_closer(stream, closer)

    def _has_more(self, stream: InputStream) -> Reading[bool]:
        """Whether another object follows on a line of its own."""
        try:
            return (yield from stream.skip_space()) == "{"
        except EndOfText:
            return False

    def _read_elements(self, stream: InputStream, calls: Calls, closer: str, *, in_array: bool) -> Reading[bool]:
        """Read the calls of an array up to its end; False after an invalid one, once the closer of all was taken."""
        character = yield from stream.skip_space()
        while character != "]":
            if character != "{":
                raise NotACall(INVALID)
            if not (yield from self._read_element(stream, calls, closer)):
                return False
            stream.raw = StringIO()
            if not in_array:
                return True
            try:
                character = yield from stream.skip_space()
            except EndOfText:
                return False
            if character == ",":
                stream.take_framing(stream.at + 1)
                character = yield from stream.skip_space()
            elif character != "]":
                if not (yield from self._is_at_end(stream, closer)):
                    raise NotACall(INVALID)
                return False
        stream.take_framing(stream.at + 1)
        return True

    def _read_element(self, stream: InputStream, calls: Calls, closer: str) -> Reading[bool]:
        """Read one call; False if it could not be read as it is."""
        start = stream.raw.tell() if stream.is_trying and stream.raw else 0
        if not stream.is_trying:
            stream.raw = StringIO()
        call = calls.begin(stream, self.repair)

        def settle() -> None:
            if stream.is_trying:
                self._settle(stream, calls, call, start)

        try:
            yield from self.element.read(stream, call, settle)
            if stream.is_trying and call.arguments:
                settle()
            if stream.is_trying:
                raise NotACall("no_arguments")
            call.finish()
        except NotACall as fault:
            if stream.is_trying:
                raise
            stops = stream.make_stops(*((closer,) if closer else ()), *self.openers, *self.before)
            yield from repair_call(stream, calls, fault, 0, stops, closer, self._reread_calls)
            return False
        return True

    def _settle(self, stream: InputStream, calls: Calls, call: CallBuilder, start: int) -> None:
        """Accept a call whose text begins at `start` of the trial. Raises `NotACall` if it is not one."""
        if calls.has_tools and call.parameters is None:
            raise NotACall("unknown_tool")
        stream.keep_trial()
        tried = stream.raw.getvalue() if stream.raw else ""
        stream.raw = StringIO()
        stream.raw.write(tried[start:])

    def _take_closer(self, stream: InputStream, closer: str) -> Reading[bool]:
        """Take the closer, if it comes next; anything else does not belong to the calls."""
        try:
            yield from stream.skip_space()
        except EndOfText:
            return True
        if (yield from stream.take_marker(closer)):
            return True
        if stream.ended and closer.startswith(stream.text[stream.at :]):
            # The available part of the closer, if the text ends inside it.
            stream.take_framing(len(stream.text))
        return stream.ended and stream.at == len(stream.text)

    def _is_at_end(self, stream: InputStream, closer: str) -> Reading[bool]:
        """Whether an array whose bracket is missing ends here."""
        if closer and (yield from self._take_closer(stream, closer)):
            return True
        for marker in self.before:
            if (yield from stream.is_ahead(marker)):
                return True
        return stream.is_at_turn_end

    def _reread_calls(self, body: str) -> RepairedCall | None:
        """Read the calls in the rest of an array, from the unreadable one on."""
        found = repair_json(f"[{body.strip()}")
        if found is None:
            return None
        stream = InputStream(found[0])
        stream.ended = True
        calls = Calls((), repair=False)
        try:
            for _ in self._read_opened(stream, calls, "", ""):
                pass
        except (NotACall, EndOfText):
            return None
        if stream.at < len(stream.text) or any(isinstance(event, CallMalformed) for event in stream.events):
            return None
        first, *others = [
            RepairedCall(
                e.call.name, e.call.arguments, found[1], e.call.id if e.call.id != f"call_{e.index + 1}" else None
            )
            for e in stream.events
            if isinstance(e, CallFinished)
        ]
        return RepairedCall(first.name, first.arguments, first.repairs, first.native_id, tuple(others))
