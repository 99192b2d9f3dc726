"""The input stream that readers work on: text comes in piece by piece, events go out.

A notation is read by coroutines (`Reading`): they take what has arrived, and `yield` to wait for more. Text that was
taken is never looked at again, so the cost of a piece depends only on its own length; and every character is taken
exactly once, as text, as part of a call, or as framing, so that the spans of the events tile the input.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator, Mapping
from io import StringIO
from typing import TypeAlias, TypeVar

from ferrule.dialects.reader.markers import Stops, make_stops
from ferrule.events import Framing, ReaderEvent, ReasoningDelta, TextDelta

Result = TypeVar("Result")
Reading: TypeAlias = Generator[None, None, Result]
Sink: TypeAlias = Callable[[int], object]


class EndOfText(Exception):  # noqa: N818 - a signal between coroutines, which callers never see
    """The text ended inside a call."""


class NotACall(Exception):  # noqa: N818 - likewise
    """What began like a call is not one; `kind` says why, as in `CallMalformed`. `is_old`: it was raised before the
    text ended, so no cut is to blame for it."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind
        self.is_old = False


class InputStream:
    """The input `text[at:limit]`, and the `events` made from it; `text[0]` is at `base` in the whole input.

    `text[limit:]` is a control token, if a tokenizer reported one: it is never matched by its characters.
    `raw` collects what is taken while a call is open.
    """

    __slots__ = (
        "_by_id",
        "_parts",
        "_run",
        "_spelled_out",
        "_tried",
        "_true_parts",
        "_turn_markers",
        "at",
        "base",
        "ended",
        "events",
        "limit",
        "marker_end",
        "raw",
        "stopped",
        "text",
    )

    def __init__(self, text: str = "", spelled_out: Collection[str] = (), turn_markers: Collection[str] = ()) -> None:
        self.text = text
        self.at = 0
        self.limit = len(text)
        self.marker_end = 0
        self.ended = False
        self.stopped = False
        self.events: list[ReaderEvent] = []
        self.raw: StringIO | None = None
        self.base = 0
        self._by_id = False
        self._run: tuple[re.Pattern[str], Sink] | None = None
        self._spelled_out = frozenset(spelled_out)
        within = spelled_out.values() if isinstance(spelled_out, Mapping) else ()
        self._parts = tuple({token for tokens in within for token in tokens})
        self._true_parts: set[int] = set()
        self._tried: list[ReaderEvent] | None = None
        self._turn_markers = frozenset(turn_markers)

    def push(self, piece: str, control: bool | None) -> None:
        """Add a piece: see `Reader.feed`."""
        self._run = None
        self.base += self.at
        held = self.text[self.at :]
        self.text = held + piece if held else piece
        self.at = 0
        self.limit = len(held) if control else len(self.text)
        self._by_id = control is not None

    def push_part(self, token: str) -> None:
        """Add a control token that is not a marker but part of one: it counts as its characters."""
        self.push(token, False)
        self._true_parts = {at for at in self._true_parts if at >= self.base}
        self._true_parts.add(self.base + len(self.text) - len(token))

    def _has_true_parts(self, start: int, end: int) -> bool:
        """Whether the control tokens that belong to the marker at `text[start:end]` are there, and not just their
        text."""
        for token in self._parts:
            at = self.text.find(token, start, end)
            if at >= 0 and self.base + at not in self._true_parts:
                return False
        return True

    def expect_run(self, breaks: re.Pattern[str], sink: Sink) -> None:
        """Declare, before a `yield`, that everything was taken and that `sink` takes what comes, up to a match of
        `breaks`."""
        self._run = breaks, sink

    def continue_run(self, piece: str, control: bool | None) -> bool:
        """Whether a piece just continues the current run of text; it is taken then.

        Nearly every piece of a long value does. Resuming the coroutine would have the same effect, but goes through all
        the coroutines that wait inside each other, which costs more than everything else. Raises whatever the run's
        sink raises.
        """
        run = self._run
        if run is None or control or (control is not None) is not self._by_id:
            return False
        breaks, sink = run
        if breaks.search(piece):
            return False
        self.base += self.at
        self.at = 0
        self.text = piece
        self.limit = end = len(piece)
        # A sink that raises ends the run.
        self._run = None
        sink(end)
        self._run = run
        return True

    def finish(self, *, stopped: bool) -> None:
        """Note that no piece will follow; `stopped`: the model ended its turn itself."""
        self._run = None
        self.ended = True
        self.stopped = stopped

    @property
    def control(self) -> str:
        """The control token after the remaining text; empty if there is none."""
        return self.text[self.limit :]

    @property
    def is_at_turn_end(self) -> bool:
        """Whether a control token that ends turns is ahead: no call continues after it."""
        return self.control in self._turn_markers

    def is_turn_end_ahead(self) -> Reading[bool]:
        """Whether a marker that ends turns is ahead, as a token or, where no ids are given, by its characters."""
        if self._by_id or self.control:
            return self.is_at_turn_end and self.at == self.limit
        for marker in self._turn_markers:
            if (yield from self.is_ahead(marker)):
                return True
        return False

    @property
    def is_cut(self) -> bool:
        """Whether the text ends here although the model did not end it: a missing closer was cut off, not left out."""
        return self.ended and not self.stopped and self.at == len(self.text)

    def make_stops(
        self,
        *markers: str,
        leads: tuple[tuple[str, str], ...] = (),
        structural: tuple[str, ...] = (),
        ahead: tuple[tuple[str, str], ...] = (),
    ) -> Stops:
        """Markers to stop at, for `take_until`; created once for each set.

        `structural` are texts that are never a single token in any tokenizer: they are always matched by their
        characters. `ahead` has patterns of what must follow those of one character, unless nothing has arrived yet.
        """
        if not structural:
            return make_stops(markers, leads, self._spelled_out)
        return make_stops((*markers, *structural), leads, self._spelled_out.union(structural), ahead)

    def list_remaining(self) -> list[tuple[str, bool | None]]:
        """What has arrived and was not taken, as pieces that can be fed again."""
        text = [(self.text[self.at : self.limit], False if self._by_id else None)] if self.at < self.limit else []
        return [*text, (self.control, True)] if self.control else [*text]

    # Taking what has arrived.

    @property
    def here(self) -> tuple[int, int]:
        """An empty span at the current position."""
        return self.base + self.at, self.base + self.at

    def take(self, end: int) -> tuple[str, tuple[int, int]]:
        """Take the text up to `end`: (that text, its span in the whole input). The caller creates the event."""
        at, base = self.at, self.base
        piece = self.text[at:end]
        if self.raw is not None:
            self.raw.write(piece)
        self.at = end
        if end > self.limit:  # noqa: PLR1730 - runs for every piece, and calling `max` costs more than all of this
            self.limit = end
        return piece, (base + at, base + end)

    def take_framing(self, end: int) -> str:
        """Take the text up to `end` as framing."""
        piece, span = self.take(end)
        if piece:
            self.events.append(Framing(piece, span))
        return piece

    def take_text(self, end: int) -> None:
        """Take the text up to `end` as part of the answer."""
        self.events.append(TextDelta(*self.take(end)))

    def take_reasoning(self, end: int) -> None:
        """Take the text up to `end` as reasoning."""
        self.events.append(ReasoningDelta(*self.take(end)))

    # Waiting for more.

    def peek(self, count: int = 1) -> Reading[str]:
        """The next `count` characters, not taken; fewer if a control token or the end comes first."""
        while self.limit - self.at < count and self.limit == len(self.text) and not self.ended:
            yield
        return self.text[self.at : min(self.at + count, self.limit)]

    def take_until(self, stops: Stops, sink: Sink) -> Reading[str]:
        """Pass text to `sink`, which takes it, up to the next of `stops`, taken as framing; "" if the text ends."""
        marker = yield from self.scan(stops, sink)
        if marker:
            self.take_framing(self.marker_end)
        return marker

    def scan(self, stops: Stops, sink: Sink) -> Reading[str]:
        """Like `take_until`, but the marker is not taken: it extends to `marker_end` in the text."""
        while True:
            markers = stops.by_id if self._by_id else stops.by_text
            is_final = self.ended or self.limit < len(self.text)
            text_end, self.marker_end = markers.find_next(self.text, self.at, self.limit, final=is_final)
            while (
                self._parts
                and self._by_id
                and self.marker_end > text_end
                and not self._has_true_parts(text_end, self.marker_end)
            ):
                text_end, self.marker_end = markers.find_next(self.text, text_end + 1, self.limit, final=is_final)
            if text_end > self.at:
                sink(text_end)
            if self.marker_end > text_end:
                return stops.match_marker(self.text[text_end : self.marker_end]) or ""
            if self.limit < len(self.text):
                marker = self._scan_control(stops, sink)
                if marker or self.limit < len(self.text):
                    return marker
                continue
            if self.ended:
                if self.limit > self.at:
                    sink(self.limit)
                return ""
            if self.at == self.limit:
                self.expect_run(markers.first, sink)
            yield

    def _scan_control(self, stops: Stops, sink: Sink) -> str:
        """The control token ahead as a marker, with the text belonging to it; or as text, if it has no meaning here."""
        for lead in range(self.at, self.limit + 1):
            marker = stops.match_marker(self.text[lead:])
            if marker:
                if lead > self.at:
                    sink(lead)
                self.marker_end = len(self.text)
                return marker
        if self.raw is not None and self.is_at_turn_end:
            # The turn is over, so whatever the call still lacks will not come.
            if self.limit > self.at:
                sink(self.limit)
            return ""
        sink(len(self.text))
        return ""

    def skip_space(self) -> Reading[str]:
        """Take white space as framing; the character after it, or "" before a control token. Raises `EndOfText`."""
        while True:
            end = self.at
            text, limit = self.text, self.limit
            while end < limit and text[end] in " \t\r\n":
                end += 1
            if end > self.at:
                self.take_framing(end)
            if end < limit:
                return text[end]
            if limit < len(text):
                return ""
            if self.ended:
                raise EndOfText
            yield

    def take_optional(self, literal: str) -> Reading[bool]:
        """Take `literal` as framing if it is ahead, with as much of the white space at its end as there is; whether it
        was.

        Words are taken completely or not at all: the beginning of one may be the model's own text.
        """
        words = literal.rstrip()
        if words:
            if not (yield from self.is_ahead(words)):
                return False
            self.take_framing(self.at + len(words))
        for character in literal[len(words) :]:
            if (yield from self.peek()) != character:
                return False
            self.take_framing(self.at + 1)
        return True

    def take_one_of(self, *markers: str) -> Reading[str]:
        """Take white space, and the one of `markers` after it, as framing; "" if something else follows.

        A marker is recognised by its token or by its characters. Raises `EndOfText`.
        """
        if not (yield from self.skip_space()):
            marker = self.control if self.control in markers else ""
            if marker:
                self.take_framing(len(self.text))
            return marker
        length = 1
        while True:
            found = yield from self.peek(length)
            if found in markers:
                self.take_framing(self.at + length)
                return found
            if len(found) < length or not any(marker.startswith(found) for marker in markers):
                return ""
            length += 1

    def is_ahead(self, literal: str) -> Reading[bool]:
        """Whether `literal` is ahead, matched by its characters; nothing is taken."""
        for length in range(1, len(literal) + 1):
            if (yield from self.peek(length)) != literal[:length]:
                return False
        return True

    def take_marker(self, literal: str) -> Reading[bool]:
        """Take the marker `literal` as framing if it is ahead, matched by its id if ids are given; whether it was."""
        if (not self._by_id or literal in self._spelled_out) and (yield from self.is_ahead(literal)):
            self.take_framing(self.at + len(literal))
            return True
        yield from self.peek()
        if self.at == self.limit and self.control == literal:
            self.take_framing(len(self.text))
            return True
        return False

    def expect(self, literal: str, kind: str = "unexpected_text") -> Reading[None]:
        """Take `literal` as framing. Raises `NotACall` if something else is ahead, and `EndOfText`."""
        for character in literal:
            found = yield from self.peek()
            if not found and self.limit == len(self.text):
                raise EndOfText
            if found != character:
                raise NotACall(kind)
            self.take_framing(self.at + 1)

    # Trials: for notations without an opening marker, where only what follows tells a call from text.

    def begin_trial(self, *, with_opener: bool = False) -> None:
        """Hold back events from here on, until `keep_trial` or `drop_trial` decides what they are.

        With the opener, the marker that was just taken is part of the trial.
        """
        self._tried, self.events = self.events, []
        self.raw = StringIO()
        opener = self._tried.pop() if with_opener else None
        if isinstance(opener, Framing):
            self.events.append(opener)
            self.raw.write(opener.marker)

    @property
    def is_trying(self) -> bool:
        """Whether events are held back."""
        return self._tried is not None

    def keep_trial(self) -> None:
        """Keep the events: it is a call."""
        if self._tried is not None:
            self._tried += self.events
            self.events, self._tried = self._tried, None

    def drop_trial(self, sink: type[TextDelta] | type[ReasoningDelta] = TextDelta) -> None:
        """Turn the events into text: it was not a call."""
        if self._tried is None or self.raw is None:
            return
        text = self.raw.getvalue()
        end = self.base + self.at
        self.events, self._tried, self.raw = self._tried, None, None
        if text:
            self.events.append(sink(text, (end - len(text), end)))

    def split_trial(
        self,
        framing: re.Pattern[str],
        sink: type[TextDelta] | type[ReasoningDelta] = TextDelta,
        header: int | None = None,
    ) -> None:
        """Resolve a trial that is not a call: it is framing where `framing` matches in its first `header` characters
        (all if None), and text elsewhere."""
        if self._tried is None or self.raw is None:
            return
        text = self.raw.getvalue()
        start = self.base + self.at - len(text)
        self.events, self._tried, self.raw = self._tried, None, None
        done = 0
        for found in framing.finditer(text, 0, len(text) if header is None else header):
            if found.start() > done:
                self.events.append(sink(text[done : found.start()], (start + done, start + found.start())))
            self.events.append(Framing(found.group(), (start + found.start(), start + found.end())))
            done = found.end()
        if done < len(text):
            self.events.append(sink(text[done:], (start + done, start + len(text))))

    def drain_events(self) -> list[ReaderEvent]:
        """The events created since the last call."""
        if self._tried is not None:
            events, self._tried = self._tried, []
        else:
            events, self.events = self.events, []
        return events
