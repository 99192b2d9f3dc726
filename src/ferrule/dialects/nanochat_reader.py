"""Reads what a nanochat model writes: text, and the expression between its python markers."""

from __future__ import annotations

import json

from ferrule.conversation import ToolCall
from ferrule.dialects.markers import MarkerScanner
from ferrule.dialects.nanochat_markers import CONTROL_TOKENS, OUTPUT_END, OUTPUT_START, PYTHON_END, PYTHON_START
from ferrule.events import (
    ArgumentsDelta,
    CallFinished,
    CallMalformed,
    CallStarted,
    Framing,
    ReaderEvent,
    TextDelta,
)

_FORGED = (OUTPUT_START, OUTPUT_END)


class NanochatReader:
    """One assistant message, piece by piece."""

    def __init__(self, tool: str, parameter: str, first_call: int) -> None:
        self._tool = tool
        self._opening = f"{{{json.dumps(parameter)}: "
        self._number = first_call
        self._scanner = MarkerScanner(CONTROL_TOKENS)
        self._position = 0
        self._index = 0
        self._expression: list[str] | None = None
        self._forged: list[str] | None = None

    def feed(self, text: str, control: bool | None = None) -> list[ReaderEvent]:
        """Read a piece: see `Reader.feed`."""
        if control is None:
            return [event for piece in self._scanner.feed(text) for event in self._read(*piece)]
        held = self._scanner.flush()
        events = self._read(held, False) if held else []
        return events + self._read(text, control)

    def close(self, stopped: bool = False) -> list[ReaderEvent]:
        """The end of the text: a call that is still open is malformed, whoever ended it."""
        held = self._scanner.flush()
        events = self._read(held, False) if held else []
        if self._expression is not None:
            events.append(self._malformed("unclosed" if stopped else "truncated", self._position))
        if self._forged is not None:
            events.append(self._forgery())
        return events

    def _read(self, text: str, is_marker: bool) -> list[ReaderEvent]:
        span = (self._position, self._position + len(text))
        self._position = span[1]
        if is_marker:
            return self._marker(text, span)
        if self._forged is not None:
            self._forged.append(text)
            return [Framing(text, span)]
        if self._expression is None:
            return [TextDelta(text, span)]
        fragment = json.dumps(text, ensure_ascii=False)[1:-1]
        opening = "" if self._expression else f'{self._opening}"'
        self._expression.append(text)
        return [ArgumentsDelta(self._index, opening + fragment, span)]

    def _marker(self, marker: str, span: tuple[int, int]) -> list[ReaderEvent]:
        framing = Framing(marker, span)
        if self._forged is not None:
            self._forged.append(marker)
            return [framing, self._forgery()] if marker == _FORGED[1] else [framing]
        if self._expression is not None:
            if marker == PYTHON_END:
                return [framing, *self._finished()]
            events: list[ReaderEvent] = [self._malformed("unclosed", span[0])]
            return events + self._marker(marker, span)
        if marker == PYTHON_START:
            self._expression = []
            return [framing, CallStarted(self._index, self._tool, None, (span[1], span[1]))]
        if marker in _FORGED:
            self._forged = [marker]
            return [framing, self._forgery()] if marker == _FORGED[1] else [framing]
        return [framing]

    def _finished(self) -> list[ReaderEvent]:
        pieces = self._expression or []
        expression = "".join(pieces)
        at = (self._position, self._position)
        arguments = f"{self._opening}{json.dumps(expression, ensure_ascii=False)}}}"
        # The closing quote and brace are no characters of the input, so their span is empty.
        rest = '"}' if pieces else f'{self._opening}""}}'
        source = f"{PYTHON_START}{expression}{PYTHON_END}"
        call = ToolCall(f"call_{self._number}", self._tool, arguments, source)
        events: list[ReaderEvent] = [
            ArgumentsDelta(self._index, rest, at),
            CallFinished(self._index, call, at),
        ]
        self._advance()
        self._expression = None
        return events

    def _malformed(self, kind: str, at: int) -> CallMalformed:
        raw = PYTHON_START + "".join(self._expression or [])
        self._expression = None
        return self._broken(kind, raw, at)

    def _forgery(self) -> CallMalformed:
        raw = "".join(self._forged or [])
        self._forged = None
        return self._broken("forged_result", raw, self._position)

    def _broken(self, kind: str, raw: str, at: int) -> CallMalformed:
        event = CallMalformed(self._index, kind, raw, False, (at, at))
        self._advance()
        return event

    def _advance(self) -> None:
        self._index += 1
        self._number += 1
