"""Reads one assistant message: text, reasoning, and calls as its notation reads them.

A call drafted inside the reasoning stays reasoning and is never run, unless the notation says that calls end the
reasoning, or that its closer may be missing: then everything after a call's opener is buffered until it is known which.
A result that the model writes itself is a malformed call; unreadable text is kept, character for character.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from io import StringIO
from typing import Protocol, runtime_checkable

from ferrule.conversation import MalformedCall, Part, Reasoning, Text
from ferrule.dialects.reader.calls import Calls
from ferrule.dialects.reader.markers import Stops
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading
from ferrule.events import CallFinished, CallMalformed, ReaderEvent, ReasoningDelta, TextDelta


@dataclass(frozen=True, slots=True)
class Thinking:
    """How reasoning is marked. `after_open`, `before_close` and `after_close` are white space that belongs to the
    markers; `ends_at_call`: a call may begin without the closer; `may_stay_open`: the same if no closer comes at all
    (SGLang's and vLLM's readers of these families end the reasoning there); `read_by_syntax`: the syntax reads the
    opener itself; `closes_before_call`: whether the closer is written before a call."""

    open: str = "<think>"
    close: str = "</think>"
    after_open: str = "\n"
    before_close: str = "\n"
    after_close: str = "\n\n"
    ends_at_call: bool = False
    may_stay_open: bool = False
    read_by_syntax: bool = False
    closes_before_call: bool = True


TIGHT_THINKING = Thinking(after_open="", before_close="", after_close="")


@dataclass(frozen=True, slots=True)
class MessageMarkers:
    """What surrounds calls: reasoning, the markers that end a turn (framing), and those of results (forged).

    `before_call` is white space before an opener, and `after_calls` after a closer, that belongs to the call. If text
    has markers of its own, it is written between those of `answer`, next to calls between those of `preamble`, and
    `between` separates the parts of a message; the syntax reads all of these.
    """

    thinking: Thinking | None = None
    turn_markers: tuple[str, ...] = ()
    result: tuple[str, str] | None = None
    before_call: str = ""
    after_calls: str = ""
    answer: tuple[str, str] = ("", "")
    preamble: tuple[str, str] = ("", "")
    between: str = ""


class ReadableSyntax(Protocol):
    """How a notation's calls begin and are read.

    `openers` begin a call or a section of calls; for calls without openers see `BareCallSyntax`. `closers` are where
    reading resumes after an unreadable call.
    """

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a call, or a section of calls."""
        ...

    @property
    def closers(self) -> tuple[str, ...]:
        """Where reading resumes after an unreadable call."""
        ...

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        """Read what `opener` (already taken) began. Raises `NotACall` and `EndOfText` within a call."""
        ...


@runtime_checkable
class BareCallSyntax(Protocol):
    """A syntax in which a call may lack an opener at the beginning of a message, or of its text after the reasoning."""

    def read_at_start(self, stream: InputStream, calls: Calls) -> Reading[bool]:
        """Read a call without an opener, if there is one here; returns whether there was."""
        ...


@runtime_checkable
class LateCallSyntax(Protocol):
    """A syntax whose models also write calls without an opener after text, at the end of a message: a repair."""

    @property
    def beginnings(self) -> tuple[str, ...]:
        """The characters that such calls begin with."""
        ...

    @property
    def native_form(self) -> str:
        """The form of calls, as repairs name it, that is this syntax's own and so is no repair."""
        ...


@dataclass(slots=True)
class _Draft:
    """What follows a call's opener in reasoning, at `start` in the whole input: the `pieces` as they came, and in
    `held` their events if the reasoning turns out to be closed. `before` are events of what precedes it; `end` is where
    a turn ends, once it does."""

    start: int
    pieces: list[tuple[str, bool | None]]
    before: list[ReaderEvent]
    held: list[ReaderEvent] = field(default_factory=list)
    end: int | None = None


class MessageReader:
    """One assistant message, piece by piece: see `Reader`."""

    def __init__(
        self,
        syntax: ReadableSyntax,
        markers: MessageMarkers,
        calls: Calls,
        *,
        opens: str = "",
        spelled_out: Collection[str] = (),
    ) -> None:
        self._syntax, self._markers, self._calls = syntax, markers, calls
        self._spelling, self._spelled_out = spelled_out, frozenset(spelled_out)
        self._draft: _Draft | None = None
        self._successor: MessageReader | None = None
        self._stream = InputStream("", spelled_out, markers.turn_markers)
        thinking = markers.thinking
        self._thinks = thinking is not None and opens.rfind(thinking.open) > opens.rfind(thinking.close)
        # White space that belongs to the closer, which the prompt wrote.
        self._after_closer = thinking.after_close if thinking and opens.endswith(thinking.close) else ""
        self._late = syntax if calls.read_late is not None and isinstance(syntax, LateCallSyntax) else None
        self._in_text, self._in_thought, self._after_failure = self._make_stop_sets()
        self._in_open_thought = self._in_thought
        if thinking is not None and thinking.may_stay_open:
            self._in_open_thought = self._make_thought_stops(syntax.openers)
        self._reading = self._read_message()
        next(self._reading)

    def _make_stop_sets(self) -> tuple[Stops, Stops, Stops]:
        """The markers that end a run of text, of reasoning, and of an unreadable call."""
        stream, markers, syntax = self._stream, self._markers, self._syntax
        thinking = markers.thinking
        marks = (thinking.open, thinking.close) if thinking else ()
        leads = self._leads
        results = markers.result or ()
        own_markers = () if thinking and thinking.read_by_syntax else marks
        in_text = stream.make_stops(
            *syntax.openers,
            *own_markers,
            *results,
            *markers.turn_markers,
            leads=leads,
            structural=self._late.beginnings if self._late else (),
            ahead=self._list_late_beginnings(),
        )
        in_thought = self._make_thought_stops(syntax.openers if thinking and thinking.ends_at_call else ())
        return in_text, in_thought, stream.make_stops(*syntax.closers, *syntax.openers, *markers.turn_markers)

    def _list_late_beginnings(self) -> tuple[tuple[str, str], ...]:
        """What follows the brackets of calls after text. Most brackets in a text begin none."""
        if self._late is None:
            return ()
        names = re.escape("".join(sorted({spec.name[:1] for spec in self._calls.tools})))
        return ("{", r'[ \t\r\n]*+(?:"|\Z)'), ("[", rf"[ \t\r\n]*+(?:[{{{names}]|\Z)")

    @property
    def _leads(self) -> tuple[tuple[str, str], ...]:
        """White space before markers that belongs to them. A model may write less of it than its template does."""
        markers = self._markers
        spaces = [markers.before_call[at:] for at in range(len(markers.before_call))]
        leads = tuple((opener, space) for opener in self._syntax.openers for space in spaces)
        thinking = markers.thinking
        return (*leads, (thinking.close, thinking.before_close)) if thinking and thinking.before_close else leads

    def _make_thought_stops(self, openers: tuple[str, ...]) -> Stops:
        """The markers that end a run of reasoning."""
        markers = self._markers
        ends = (markers.thinking.close,) if markers.thinking else ()
        kept = tuple(lead for lead in self._leads if lead[0] in (*openers, *ends))
        return self._stream.make_stops(*openers, *ends, *markers.turn_markers, leads=kept)

    def feed(self, text: str, control: bool | None = None) -> list[ReaderEvent]:
        """Read a piece: see `Reader.feed`."""
        if self._successor is not None:
            return self._successor.feed(text, control)
        if self._draft is not None:
            self._draft.pieces.append((text, control))
        stream = self._stream
        if text:
            try:
                if not stream.continue_run(text, control):
                    if control and self._is_part(text):
                        stream.push_part(text)
                    else:
                        stream.push(text, control)
                    next(self._reading)
            except NotACall as fault:
                # The sink of the run refused this piece: handle it as if the coroutine had been resumed with it.
                self._reading.throw(fault)
        return stream.drain_events() if self._draft is None else self._drain_draft()

    def _drain_draft(self) -> list[ReaderEvent]:
        """The events that can be passed on during a draft: those before it and, once its turn is over, its own."""
        draft, events = self._draft, self._stream.drain_events()
        if draft is None:
            return events
        draft.held += events
        before, draft.before = draft.before, []
        if draft.end is None:
            return before
        found = self._reread_draft(draft, stopped=True)
        if found is not None:
            return before + found
        self._draft = None
        next(self._reading)
        return before + draft.held + self._drain_draft()

    def _reread_draft(self, draft: _Draft, *, stopped: bool) -> list[ReaderEvent] | None:
        """The events of a draft if the reasoning ended before it; None if that gives no call."""
        index = self._calls.index
        reader = MessageReader(self._syntax, self._markers, self._calls, spelled_out=self._spelling)
        reader._stream.base = draft.start
        events = [event for piece in draft.pieces for event in reader.feed(*piece)]
        if draft.end is None:
            events += reader.close(stopped)
        if _holds_calls(events, draft.end, stopped=stopped):
            self._successor = reader
            return events
        self._calls.index, self._calls.current = index, None
        return None

    def _is_part(self, token: str) -> bool:
        """Whether a token is not a marker but part of one: then it counts as its characters."""
        known = (self._in_text, self._in_thought, self._after_failure)
        return any(token in marker for marker in self._spelled_out) and not any(s.match_marker(token) for s in known)

    def close(self, stopped: bool = False) -> list[ReaderEvent]:
        """End the text; an incomplete call is malformed, whether the model or a limit ended it."""
        if self._successor is not None:
            return self._successor.close(stopped)
        draft, self._draft = self._draft, None
        if draft is not None:
            found = self._reread_draft(draft, stopped=stopped)
            if found is not None:
                return draft.before + found
            self._stream.events = draft.before + draft.held + self._stream.events
        self._stream.finish(stopped=stopped)
        next(self._reading, None)
        return self._stream.drain_events()

    def _read_message(self) -> Reading[None]:
        yield
        stream = self._stream
        marker = ""
        if not self._thinks:
            yield from stream.take_optional(self._after_closer)
            yield from self._read_calls("")
        while not (stream.ended and not marker and stream.at == len(stream.text)):
            if not marker:
                marker = yield from self._read_reasoning() if self._thinks else self._read_text()
            marker = yield from self._handle_marker(marker)

    def _read_text(self) -> Reading[str]:
        """Read text up to the next marker, which is taken. Returns "" after calls without an opener, too."""
        stream = self._stream
        marker = yield from stream.scan(self._in_text, stream.take_text)
        read_late = self._calls.read_late
        if self._late is not None and read_late is not None and marker in self._late.beginnings:
            try:
                yield from read_late(stream, self._calls, self._late.native_form)
            except (NotACall, EndOfText):
                self._drop_trial(in_thought=False)
            return ""
        if marker:
            stream.take_framing(stream.marker_end)
        return marker

    def _read_reasoning(self) -> Reading[str]:
        """Read reasoning up to the marker that ends it, which is taken."""
        stream, thinking = self._stream, self._markers.thinking
        marker = yield from stream.scan(self._in_open_thought, stream.take_reasoning)
        if thinking and thinking.may_stay_open and marker in self._syntax.openers:
            self._draft = _Draft(stream.here[0], stream.list_remaining(), stream.drain_events())
            stream.take_reasoning(stream.marker_end)
            marker = yield from stream.scan(self._in_thought, stream.take_reasoning)
            if thinking.close == marker:
                stream.events = self._draft.before + self._draft.held + stream.events
                self._draft = None
            elif marker:
                self._draft.end = stream.here[0]
                yield
        if marker:
            stream.take_framing(stream.marker_end)
        return marker

    def _handle_marker(self, marker: str) -> Reading[str]:
        """Handle what a marker begins or ends; returns the next marker that was met and not handled."""
        thinking, result = self._markers.thinking, self._markers.result
        if thinking and marker == thinking.open:
            self._thinks = True
            yield from self._stream.take_optional(thinking.after_open)
        elif thinking and marker == thinking.close:
            self._thinks = False
            yield from self._stream.take_optional(thinking.after_close)
            return (yield from self._read_calls(""))
        elif marker in self._syntax.openers:
            in_thought, self._thinks = self._thinks, False
            return (yield from self._read_calls(marker, in_thought=in_thought))
        elif result and marker in result:
            yield from self._read_forged_result(marker, result[1])
        else:
            self._thinks = False
        return ""

    def _read_calls(self, opener: str, *, in_thought: bool = False) -> Reading[str]:
        """Read a call or a section of calls, and recover from errors in it. Returns an opener met in the process."""
        stream, calls = self._stream, self._calls
        try:
            if opener:
                stream.raw = StringIO()
                stream.raw.write(opener)
                yield from self._syntax.read(stream, calls, opener)
                stream.raw = None
                yield from stream.take_optional(self._markers.after_calls)
            elif isinstance(self._syntax, BareCallSyntax):
                yield from self._syntax.read_at_start(stream, calls)
        except EndOfText:
            if stream.is_trying:
                self._drop_trial(in_thought=in_thought)
            else:
                self._fail_call("unclosed" if stream.stopped or stream.control else "truncated")
        except NotACall as fault:
            if stream.is_trying:
                self._drop_trial(in_thought=in_thought)
            else:
                is_cut_off = stream.ended and not stream.stopped and not fault.is_old
                return (yield from self._skip_call("truncated" if is_cut_off else fault.kind))
        return ""

    def _drop_trial(self, *, in_thought: bool) -> None:
        """Treat what was tried as text or reasoning, which continues."""
        self._stream.drop_trial(ReasoningDelta if in_thought else TextDelta)
        self._thinks = in_thought
        self._calls.current = None

    def _skip_call(self, kind: str) -> Reading[str]:
        """Take the rest of an unreadable call, up to its end or the beginning of something else."""
        stream = self._stream
        marker = yield from stream.scan(self._after_failure, stream.take_framing)
        if marker in self._syntax.closers:
            stream.take_framing(stream.marker_end)
            marker = ""
        self._fail_call(kind)
        if marker:
            stream.take_framing(stream.marker_end)
        return marker

    def _fail_call(self, kind: str) -> None:
        (self._calls.current or self._calls.begin(self._stream)).fail(kind)

    def _read_forged_result(self, marker: str, closer: str) -> Reading[None]:
        """Read a result that the model wrote itself, which never counts as a tool's result.

        In families whose models end their calls with a result's opener, only the opener is framing.
        """
        stream = self._stream
        while stream.at == len(stream.text) and not stream.ended:
            yield
        if marker != closer and stream.stopped and stream.at == len(stream.text):
            return
        stream.raw = StringIO()
        stream.raw.write(marker)
        self._calls.begin(stream)
        if marker != closer:
            stops = stream.make_stops(closer, *self._markers.turn_markers)
            found = yield from stream.scan(stops, stream.take_framing)
            if found == closer:
                stream.take_framing(stream.marker_end)
        self._fail_call("forged_result")


def _holds_calls(events: list[ReaderEvent], end: int | None, *, stopped: bool) -> bool:
    """Whether there are calls among the events, up to `end` if a turn ends there. If the text was cut off, only a
    complete call with no text after it counts."""
    calls = [e for e in events if isinstance(e, CallFinished | CallMalformed) and (end is None or _get_end(e) <= end)]
    if not calls or stopped:
        return bool(calls)
    said = [e for e in events if isinstance(e, TextDelta | ReasoningDelta) and e.text.strip()]
    is_last = not said or _get_end(said[-1]) <= _get_end(calls[-1])
    return is_last and any(isinstance(call, CallFinished) for call in calls)


def _get_end(event: ReaderEvent) -> int:
    return event.span[1] if event.span else 0


@dataclass(slots=True)
class MessageParts:
    """Collects a reader's events as the parts of one message.

    `first_call` is the number that the reader was given: malformed calls get their ids from it on, like the others.
    """

    first_call: int
    parts: list[Part] = field(default_factory=list)
    calls: int = 0
    """How many calls there are among the parts, malformed ones included."""

    def add(self, events: Iterable[ReaderEvent]) -> None:
        """Add events in order."""
        for event in events:
            if isinstance(event, TextDelta | ReasoningDelta):
                kind = Text if isinstance(event, TextDelta) else Reasoning
                last = self.parts[-1] if self.parts else None
                if isinstance(last, kind):
                    self.parts[-1] = kind(last.text + event.text)
                else:
                    self.parts.append(kind(event.text))
            elif isinstance(event, CallFinished):
                self.parts.append(event.call)
                self.calls += 1
            elif isinstance(event, CallMalformed):
                self.parts.append(MalformedCall(f"call_{self.first_call + self.calls}", event.raw, event.kind))
                self.calls += 1
