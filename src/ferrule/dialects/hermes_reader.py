"""Reads what a model of the Hermes family writes: reasoning, text, and calls as JSON between two markers.

    <think>\\nIt asks for Paris.\\n</think>\\n\\nOne moment.
    <tool_call>\\n{"name": "weather", "arguments": {"city": "Paris"}}\\n</tool_call>

Where the family leaves room, this reader takes these sides: a call drafted inside of the reasoning is reasoning and
never run; a call whose JSON is whole counts even where its closer is missing; a closer inside of a JSON string is a
part of that string; a result that the model writes itself is a malformed call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum, auto

from ferrule.conversation import ToolCall
from ferrule.dialects.call_object import CallObject, PieceKind
from ferrule.dialects.hermes_wording import HermesWording
from ferrule.dialects.markers import MarkerSet
from ferrule.events import (
    ArgumentsDelta,
    CallFinished,
    CallMalformed,
    CallStarted,
    Framing,
    ReaderEvent,
    ReasoningDelta,
    TextDelta,
)


class _State(Enum):
    TEXT = auto()
    REASONING = auto()
    BODY = auto()
    AFTER_BODY = auto()
    BROKEN = auto()
    FORGED = auto()


class HermesReader:
    """One assistant message, piece by piece."""

    def __init__(
        self, wording: HermesWording, first_call: int, opens: str = "", spelled_out: Collection[str] = ()
    ) -> None:
        self._wording = wording
        self._number = first_call
        self._index = 0
        self._position = 0
        self._held = ""
        self._holds_newline = False
        self._newlines_to_skip = 0
        think, end_think = wording.reasoning
        reasons = opens.rfind(think) > opens.rfind(end_think)
        self._state = _State.REASONING if reasons else _State.TEXT
        self._events: list[ReaderEvent] = []
        self._waiting: list[ReaderEvent] | None = None
        self._raw: list[str] = []
        self._body: list[str] = []
        self._object = CallObject()
        self._by_text = self._marker_sets(wording.markers)
        self._by_id = self._marker_sets(spelled_out)
        self._texts: dict[_State, Callable[[str], None]] = {
            _State.TEXT: self._text,
            _State.REASONING: self._text,
            _State.AFTER_BODY: self._after_body,
            _State.BROKEN: self._junk,
            _State.FORGED: self._junk,
        }

    def _marker_sets(self, known: Collection[str]) -> dict[_State, MarkerSet]:
        """The markers that mean something in each state, of those that are known by their text."""
        wording = self._wording
        turn = {wording.turn_start, *wording.ends}
        of_state: dict[_State, set[str]] = {
            _State.TEXT: set(wording.markers),
            _State.REASONING: turn | {wording.reasoning[1]},
            _State.AFTER_BODY: turn | set(wording.call),
            _State.BROKEN: turn | set(wording.call),
            _State.FORGED: turn | set(wording.result),
        }
        return {state: MarkerSet(markers & set(known)) for state, markers in of_state.items()}

    def feed(self, text: str, control: bool | None = None) -> list[ReaderEvent]:
        """Read a piece: see `Reader.feed`."""
        if control:
            self._release()
            self._marker(text)
        else:
            self._read(text, self._by_text if control is None else self._by_id)
        return self._taken()

    def close(self, stopped: bool = False) -> list[ReaderEvent]:
        """The end of the text: a call whose JSON is not whole is malformed, whoever ended it."""
        if self._state is _State.AFTER_BODY:
            # What is held back may be the beginning of the closer: no reason to lose a whole call.
            held, self._held = self._held, ""
            self._frame(held)
            self._finish()
        self._release()
        self._release_newline()
        if self._state is _State.BODY:
            self._malformed("unclosed" if stopped else "truncated")
        elif self._state is _State.BROKEN:
            self._malformed("invalid_json")
        elif self._state is _State.FORGED:
            self._malformed("forged_result")
        return self._taken()

    def _taken(self) -> list[ReaderEvent]:
        events, self._events = self._events, []
        return events

    def _read(self, piece: str, markers: dict[_State, MarkerSet]) -> None:
        text = self._held + piece
        self._held = ""
        at = 0
        while at < len(text):
            if self._state is _State.BODY:
                at = self._call_body(text, at)
                continue
            text_end, marker_end = markers[self._state].next(text, at)
            state = self._state
            if text_end > at:
                self._texts[state](text[at:text_end])
            if self._state is not state:
                at = text_end
            elif marker_end > text_end:
                self._marker(text[text_end:marker_end])
                at = marker_end
            else:
                self._held = text[text_end:]
                return

    def _release(self) -> None:
        """What was held back is text after all."""
        held, self._held = self._held, ""
        if held:
            self._texts[self._state](held)

    # Text of each state.

    def _text(self, text: str) -> None:
        while self._newlines_to_skip and text.startswith("\n"):
            self._frame("\n")
            self._newlines_to_skip -= 1
            text = text[1:]
        if not text:
            return
        self._newlines_to_skip = 0
        self._release_newline()
        # The last newline belongs to the marker that may follow it.
        self._holds_newline = text.endswith("\n")
        self._say(text[:-1] if self._holds_newline else text)

    def _say(self, text: str) -> None:
        if text:
            delta = ReasoningDelta if self._state is _State.REASONING else TextDelta
            self._events.append(delta(text, self._advance(text)))

    def _release_newline(self) -> None:
        if self._holds_newline:
            self._holds_newline = False
            self._say("\n")

    def _after_body(self, text: str) -> None:
        self._frame(text)
        if not text.isspace():
            self._state = _State.BROKEN

    def _junk(self, text: str) -> None:
        self._frame(text)

    def _call_body(self, text: str, at: int) -> int:
        end, pieces = self._object.feed(text, at)
        for kind, piece in pieces:
            if kind is PieceKind.NAMED:
                self._start()
            else:
                self._body_piece(kind, piece)
        if self._object.is_done or self._object.is_broken:
            self._settle_waiting()
            self._state = _State.AFTER_BODY if self._object.is_done else _State.BROKEN
        return end

    def _body_piece(self, kind: PieceKind, piece: str) -> None:
        self._body.append(piece)
        self._raw.append(piece)
        span = self._advance(piece)
        is_argument = kind is PieceKind.ARGUMENTS
        if is_argument and self._object.name is None and self._waiting is None:
            self._waiting = []
        event = ArgumentsDelta(self._index, piece, span) if is_argument else Framing(piece, span)
        (self._events if self._waiting is None else self._waiting).append(event)

    def _start(self) -> None:
        """The name is known: arguments that came before it can follow now."""
        waiting, self._waiting = self._waiting or [], None
        at = waiting[0].span[0] if waiting and waiting[0].span else self._position
        self._events.append(CallStarted(self._index, self._object.name or "", None, (at, at)))
        self._events += waiting

    def _settle_waiting(self) -> None:
        """Arguments of a call that will never have a name are framing: no call was started that they could join."""
        waiting, self._waiting = self._waiting or [], None
        for event in waiting:
            if isinstance(event, ArgumentsDelta):
                event = Framing(event.json_fragment, event.span)  # noqa: PLW2901 - the same piece under another name
            self._events.append(event)

    # Markers.

    def _marker(self, marker: str) -> None:
        wording = self._wording
        is_turn_marker = marker == wording.turn_start or marker in wording.ends
        self._newlines_to_skip = 0
        if self._state is _State.REASONING and not is_turn_marker and marker != wording.reasoning[1]:
            self._text(marker)
        elif self._state in (_State.TEXT, _State.REASONING):
            self._marker_in_text(marker)
        elif self._state is _State.FORGED:
            self._marker_in_forgery(marker, is_turn_marker)
        else:
            self._marker_in_call(marker, is_turn_marker)

    def _marker_in_text(self, marker: str) -> None:
        wording = self._wording
        if self._holds_newline and marker in (wording.call[0], wording.reasoning[1]):
            self._holds_newline = False
            self._frame("\n")
        self._release_newline()
        if marker in wording.result:
            self._raw = []
            self._state = _State.FORGED
            self._marker_in_forgery(marker, is_turn_marker=False)
            return
        if marker == wording.call[0]:
            self._state = _State.BODY
            self._raw, self._body, self._object = [], [], CallObject()
        elif marker == wording.reasoning[0]:
            self._state, self._newlines_to_skip = _State.REASONING, 1
        elif marker == wording.reasoning[1]:
            self._state, self._newlines_to_skip = _State.TEXT, 2
        else:
            self._state = _State.TEXT
        self._frame(marker)

    def _marker_in_forgery(self, marker: str, is_turn_marker: bool) -> None:
        if is_turn_marker:
            self._malformed("forged_result")
            self._marker_in_text(marker)
            return
        self._frame(marker)
        if marker == self._wording.result[1]:
            self._malformed("forged_result")

    def _marker_in_call(self, marker: str, is_turn_marker: bool) -> None:
        if self._state is _State.BODY and self._object.in_string and not is_turn_marker:
            self._call_body(marker, 0)
            return
        self._settle_waiting()
        is_closer = marker == self._wording.call[1]
        if is_closer:
            self._frame(marker)
        elif not is_turn_marker and marker != self._wording.call[0]:
            self._state = _State.BROKEN
            self._frame(marker)
            return
        if self._state is _State.AFTER_BODY:
            self._finish()
        else:
            self._malformed("unclosed" if self._state is _State.BODY and not is_closer else "invalid_json")
        if not is_closer:
            self._marker_in_text(marker)

    def _finish(self) -> None:
        fault = self._object.fault("".join(self._body))
        if fault is not None:
            self._malformed(fault)
            return
        at = (self._position, self._position)
        arguments = self._object.arguments
        if not arguments:
            arguments = "{}"
            self._events.append(ArgumentsDelta(self._index, arguments, at))
        call = ToolCall(f"call_{self._number}", self._object.name or "", arguments, "".join(self._raw))
        self._events.append(CallFinished(self._index, call, at))
        self._next_call()

    def _malformed(self, kind: str) -> None:
        self._settle_waiting()
        at = (self._position, self._position)
        self._events.append(CallMalformed(self._index, kind, "".join(self._raw), False, at))
        self._next_call()

    def _next_call(self) -> None:
        self._index += 1
        self._number += 1
        self._state = _State.TEXT

    def _frame(self, text: str) -> None:
        if text:
            self._raw.append(text)
            self._events.append(Framing(text, self._advance(text)))

    def _advance(self, text: str) -> tuple[int, int]:
        start = self._position
        self._position += len(text)
        return start, self._position
