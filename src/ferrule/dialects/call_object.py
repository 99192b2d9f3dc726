"""Reads `{"name": …, "arguments": …}` as it arrives, so that the arguments can be passed on before they are whole.

It follows the JSON only as far as is needed to know where strings, the two values and the object end; whether the
whole is JSON is asked of the standard reader once, at the end.
"""

from __future__ import annotations

import json
import re
from enum import Enum, auto
from typing import NoReturn

_STRING = re.compile(r'(?:[^"\\\x00-\x1f]++|\\[^\x00-\x1f])++')
_SPACE = re.compile(r"[ \t\n\r]+")
_SCALAR = re.compile(r"[-+.\w]+")
# A `<` outside of a string is never JSON: it is how a marker begins, and the end of reading.
_NESTED = re.compile(r'[^"{}\[\]<]+')


class PieceKind(Enum):
    """What a piece of the object is; `NAMED` is no text but the moment at which the name is known."""

    FRAME = auto()
    ARGUMENTS = auto()
    NAMED = auto()


class _Slot(Enum):
    KEY = auto()
    COLON = auto()
    VALUE = auto()
    AFTER = auto()


class CallObject:
    """One object. `is_done` once its last brace was read, `is_broken` once it can't be JSON any more."""

    def __init__(self, name_key: str = "name", arguments_key: str = "arguments") -> None:
        self._name_key, self._arguments_key = name_key, arguments_key
        self._depth = 0
        self._slot = _Slot.KEY
        self._key = ""
        self._keys: set[str] = set()
        self._literal: list[str] = []
        self._arguments: list[str] = []
        self._is_escaped = False
        self._in_scalar = False
        self._cuts: list[tuple[PieceKind, int, int]] = []
        self.in_string = False
        self.is_done = False
        self.is_broken = False
        self.name: str | None = None

    @property
    def arguments(self) -> str:
        """The arguments as they were written; empty where there are none."""
        return "".join(self._arguments)

    def feed(self, text: str, at: int) -> tuple[int, list[tuple[PieceKind, str]]]:
        """Read from `at` until the text or the object ends, or breaks: the position reached, and what was read."""
        self._cuts = []
        while at < len(text) and not self.is_done and not self.is_broken:
            at = self._step(text, at)
        pieces = [(kind, text[start:end]) for kind, start, end in self._cuts]
        self._arguments += [piece for kind, piece in pieces if kind is PieceKind.ARGUMENTS]
        return at, pieces

    def fault(self, body: str) -> str | None:
        """What is wrong with the whole object, whose text is `body`: `invalid_json`, `no_name`, or nothing."""
        try:
            decoded = json.loads(body, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return "invalid_json"
        if not isinstance(decoded.get(self._name_key), str) or not decoded[self._name_key]:
            return "no_name"
        return None

    def _step(self, text: str, at: int) -> int:
        if self.in_string:
            return self._string(text, at)
        if self._depth > 1:
            return self._nested(text, at)
        space = _SPACE.match(text, at)
        if space is not None:
            self._end_scalar()
            return self._take(at, space.end(), PieceKind.FRAME)
        return self._top(text, at)

    def _top(self, text: str, at: int) -> int:
        """One character, or one scalar, of the object itself."""
        character = text[at]
        if self._depth == 0:
            if character != "{":
                return self._break(at)
            self._depth = 1
            return self._take(at, at + 1, PieceKind.FRAME)
        if self._slot is _Slot.VALUE:
            return self._value(text, at)
        if self._slot is _Slot.KEY and character == '"':
            self._literal = []
            self.in_string = True
        elif self._slot is _Slot.COLON and character == ":":
            self._slot = _Slot.VALUE
        elif self._slot is _Slot.AFTER and character == ",":
            self._slot = _Slot.KEY
        elif character == "}" and (self._slot is _Slot.AFTER or not self._keys):
            self._depth = 0
            self.is_done = True
        else:
            return self._break(at)
        return self._take(at, at + 1, PieceKind.FRAME)

    def _value(self, text: str, at: int) -> int:
        scalar = _SCALAR.match(text, at)
        if scalar is not None:
            self._in_scalar = True
            return self._take(at, scalar.end(), self._value_kind())
        if self._in_scalar:
            self._end_scalar()
            return at
        if text[at] == '"':
            self._literal = []
            self.in_string = True
        elif text[at] in "{[":
            self._depth = 2
        else:
            return self._break(at)
        return self._take(at, at + 1, self._value_kind())

    def _nested(self, text: str, at: int) -> int:
        plain = _NESTED.match(text, at)
        if plain is not None:
            return self._take(at, plain.end(), self._value_kind())
        kind = self._value_kind()
        if text[at] == '"':
            self.in_string = True
        elif text[at] in "{[":
            self._depth += 1
        elif text[at] == "<":
            return self._break(at)
        else:
            self._depth -= 1
            if self._depth == 1:
                self._slot = _Slot.AFTER
        return self._take(at, at + 1, kind)

    def _string(self, text: str, at: int) -> int:
        kind = PieceKind.FRAME if self._slot is _Slot.KEY else self._value_kind()
        run = None if self._is_escaped else _STRING.match(text, at)
        end = run.end() if run is not None else at + 1
        character = text[at]
        if run is None and not self._is_escaped and character == '"':
            self.in_string = False
            self._take(at, end, kind)
            if self._depth == 1:
                self._end_literal(at)
            return end
        if run is None and character < " ":
            return self._break(at)
        self._is_escaped = run is None and not self._is_escaped and character == "\\"
        if self._depth == 1 and kind is PieceKind.FRAME:
            self._literal.append(text[at:end])
        return self._take(at, end, kind)

    def _end_literal(self, at: int) -> None:
        """A string of the object itself has ended: a key, or a value."""
        is_key = self._slot is _Slot.KEY
        self._slot = _Slot.COLON if is_key else _Slot.AFTER
        if not is_key and self._key != self._name_key:
            return
        try:
            value = json.loads('"' + "".join(self._literal) + '"')
        except ValueError:
            self._break(at)
            return
        if is_key:
            self._key = value
            # A key given twice would have been shown with one value and run with the other.
            self.is_broken = value in self._keys
            self._keys.add(value)
        elif value:
            self.name = value
            self._cuts.append((PieceKind.NAMED, at + 1, at + 1))

    def _end_scalar(self) -> None:
        if self._in_scalar:
            self._in_scalar = False
            self._slot = _Slot.AFTER

    def _value_kind(self) -> PieceKind:
        return PieceKind.ARGUMENTS if self._key == self._arguments_key else PieceKind.FRAME

    def _take(self, at: int, end: int, kind: PieceKind) -> int:
        if self._cuts and self._cuts[-1][0] is kind:
            self._cuts[-1] = (kind, self._cuts[-1][1], end)
        else:
            self._cuts.append((kind, at, end))
        return end

    def _break(self, at: int) -> int:
        self.is_broken = True
        return at


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
