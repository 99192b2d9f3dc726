"""Reads one assistant message: text, reasoning, and the calls that a notation knows how to read.

A call drafted inside of the reasoning is reasoning and never run, unless the notation says that calls end it; a result
that the model writes itself is a malformed call; what can't be read is kept, character for character.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from io import StringIO
from typing import Protocol, runtime_checkable

from ferrule.dialects.calls import Calls
from ferrule.dialects.stream import EndOfText, NotACall, Reading, Stops, Stream
from ferrule.events import ReaderEvent, ReasoningDelta, TextDelta


@dataclass(frozen=True, slots=True)
class Thinking:
    """How reasoning is marked. `after_open`, `before_close` and `after_close` are white space that belongs to the
    markers; `ends_at_call`: a call may begin without the closer; `read_by_syntax`: the syntax knows the opener;
    `closes_before_call`: whether the closer is written before a call."""

    open: str = "<think>"
    close: str = "</think>"
    after_open: str = "\n"
    before_close: str = "\n"
    after_close: str = "\n\n"
    ends_at_call: bool = False
    read_by_syntax: bool = False
    closes_before_call: bool = True


@dataclass(frozen=True, slots=True)
class Prose:
    """What stands around calls: reasoning, the markers that end a turn (framing), and those of results (forged).

    `before_call` is white space before an opener, and `after_calls` after a closer, that belongs to the call. Where
    text has markers of its own, it is written between those of `answer`, beside calls between those of `preamble`,
    and `between` stands between the parts of a message; they are the syntax's to read.
    """

    thinking: Thinking | None = None
    turn_markers: tuple[str, ...] = ()
    result: tuple[str, str] | None = None
    before_call: str = ""
    after_calls: str = ""
    answer: tuple[str, str] = ("", "")
    preamble: tuple[str, str] = ("", "")
    between: str = ""


class CallSyntax(Protocol):
    """How a notation's calls begin and are read.

    `openers` begin a call or a section of calls; calls that have none are for `BareCalls`. `closers` are where reading
    goes on after a call that could not be read.
    """

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a call, or a section of calls."""
        ...

    @property
    def closers(self) -> tuple[str, ...]:
        """Where reading goes on after a call that could not be read."""
        ...

    def read(self, stream: Stream, calls: Calls, opener: str) -> Reading[None]:
        """Read what `opener` (taken already) began. Raises `NotACall` and `EndOfText` within a call."""
        ...


@runtime_checkable
class BareCalls(Protocol):
    """A syntax some of whose calls have no opener: they are looked for where a message, or its text after the
    reasoning, begins."""

    def first(self, stream: Stream, calls: Calls) -> Reading[bool]:
        """Read a call that has no opener, if one stands here; whether there was one."""
        ...


class MessageReader:
    """One assistant message, piece by piece: see `Reader`."""

    def __init__(
        self,
        syntax: CallSyntax,
        prose: Prose,
        calls: Calls,
        *,
        opens: str = "",
        spelled_out: Collection[str] = (),
    ) -> None:
        self._syntax, self._prose, self._calls = syntax, prose, calls
        self._spelled_out = frozenset(spelled_out)
        self._stream = Stream("", spelled_out, prose.turn_markers)
        thinking = prose.thinking
        self._thinks = thinking is not None and opens.rfind(thinking.open) > opens.rfind(thinking.close)
        self._in_text, self._in_thought, self._after_failure = self._stop_sets()
        self._reading = self._message()
        next(self._reading)

    def _stop_sets(self) -> tuple[Stops, Stops, Stops]:
        """What ends a run of text, of reasoning, and of what could not be read."""
        stream, prose, syntax = self._stream, self._prose, self._syntax
        thinking = prose.thinking
        marks = (thinking.open, thinking.close) if thinking else ()
        leads = tuple((opener, prose.before_call) for opener in syntax.openers) if prose.before_call else ()
        if thinking and thinking.before_close:
            leads += ((thinking.close, thinking.before_close),)
        results = prose.result or ()
        told = () if thinking and thinking.read_by_syntax else marks
        in_text = stream.stops(*syntax.openers, *told, *results, *prose.turn_markers, leads=leads)
        early = syntax.openers if thinking and thinking.ends_at_call else ()
        kept = tuple(lead for lead in leads if lead[0] in early or lead[0] in marks)
        in_thought = stream.stops(*early, *marks[1:], *prose.turn_markers, leads=kept)
        return in_text, in_thought, stream.stops(*syntax.closers, *syntax.openers, *prose.turn_markers)

    def feed(self, text: str, control: bool | None = None) -> list[ReaderEvent]:
        """Read a piece: see `Reader.feed`."""
        stream = self._stream
        if text:
            try:
                if not stream.goes_on(text, control):
                    if control and self._is_part(text):
                        stream.push_part(text)
                    else:
                        stream.push(text, control)
                    next(self._reading)
            except NotACall as fault:
                # What takes the run of text refused this piece of it: as if the reading had been woken for it.
                self._reading.throw(fault)
        return stream.taken()

    def _is_part(self, token: str) -> bool:
        """Whether a token is no marker, but a part of some: then it counts as its characters."""
        known = (self._in_text, self._in_thought, self._after_failure)
        return any(token in marker for marker in self._spelled_out) and not any(s.named(token) for s in known)

    def close(self, stopped: bool = False) -> list[ReaderEvent]:
        """The text has ended; a call that is not whole is malformed, whoever ended it."""
        self._stream.finish(stopped=stopped)
        next(self._reading, None)
        return self._stream.taken()

    def _message(self) -> Reading[None]:
        yield
        stream = self._stream
        marker = ""
        if not self._thinks:
            yield from self._guarded("")
        while not (stream.ended and not marker and stream.at == len(stream.text)):
            if not marker:
                stops = self._in_thought if self._thinks else self._in_text
                marker = yield from stream.until(stops, stream.think if self._thinks else stream.say)
            marker = yield from self._marker(marker)

    def _marker(self, marker: str) -> Reading[str]:
        """What a marker begins or ends; the marker that was met after it and not dealt with."""
        thinking, result = self._prose.thinking, self._prose.result
        if thinking and marker == thinking.open:
            self._thinks = True
            yield from self._stream.optional(thinking.after_open)
        elif thinking and marker == thinking.close:
            self._thinks = False
            yield from self._stream.optional(thinking.after_close)
            return (yield from self._guarded(""))
        elif marker in self._syntax.openers:
            in_thought, self._thinks = self._thinks, False
            return (yield from self._guarded(marker, in_thought=in_thought))
        elif result and marker in result:
            yield from self._forged(marker, result[1])
        else:
            self._thinks = False
        return ""

    def _guarded(self, opener: str, *, in_thought: bool = False) -> Reading[str]:
        """Read a call or a section of them, and survive what is wrong with it. An opener met meanwhile is returned."""
        stream, calls = self._stream, self._calls
        try:
            if opener:
                stream.raw = StringIO()
                stream.raw.write(opener)
                yield from self._syntax.read(stream, calls, opener)
                stream.raw = None
                yield from stream.optional(self._prose.after_calls)
            elif isinstance(self._syntax, BareCalls):
                yield from self._syntax.first(stream, calls)
        except EndOfText:
            if stream.is_trying:
                self._drop(in_thought=in_thought)
            else:
                self._failed("unclosed" if stream.stopped or stream.control else "truncated")
        except NotACall as fault:
            if stream.is_trying:
                self._drop(in_thought=in_thought)
            else:
                return (yield from self._skipped(fault.kind))
        return ""

    def _drop(self, *, in_thought: bool) -> None:
        """What was tried is text, or reasoning, and what it stands in goes on."""
        self._stream.drop(ReasoningDelta if in_thought else TextDelta)
        self._thinks = in_thought
        self._calls.current = None

    def _skipped(self, kind: str) -> Reading[str]:
        """Take what is left of a call that can't be read, up to where it ends or the next thing begins."""
        stream = self._stream
        marker = yield from stream.find(self._after_failure, stream.frame)
        if marker in self._syntax.closers:
            stream.frame(stream.marker_end)
            marker = ""
        self._failed(kind)
        if marker:
            stream.frame(stream.marker_end)
        return marker

    def _failed(self, kind: str) -> None:
        (self._calls.current or self._calls.begin(self._stream)).fail(kind)

    def _forged(self, marker: str, closer: str) -> Reading[None]:
        """A result that the model wrote itself: nothing that a model says of a tool's answer is one."""
        stream = self._stream
        stream.raw = StringIO()
        stream.raw.write(marker)
        self._calls.begin(stream)
        if marker != closer:
            stops = stream.stops(closer, *self._prose.turn_markers)
            found = yield from stream.find(stops, stream.frame)
            if found == closer:
                stream.frame(stream.marker_end)
        self._failed("forged_result")
