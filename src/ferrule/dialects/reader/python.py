"""Reads Python literals as they arrive, and passes on the corresponding JSON, piece by piece.

Strings are passed on character by character, whatever their quotes, prefix and escapes; tuples and sets become lists,
and other keys become strings, as in `json.dumps`. Nothing is evaluated: anything but a literal is refused.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO

from ferrule.dialects.reader.json import MOST_LEVELS, Put
from ferrule.dialects.reader.python_strings import NOT_A_LITERAL, PythonStrings
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading

LEADING_ZEROS = "leading_zeros"
_WITH_ZEROS = re.compile(r"[-+]?0[0_]*[1-9][0-9_]*")
_WORD = re.compile(r"[-+.\w]++")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_PYTHON_NUMBER = re.compile(
    r"[-+]?(?:0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[\d_]*+(?:\.[\d_]*+)?(?:[eE][-+]?[\d_]++)?)", re.ASCII
)
_WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_LONGEST_NUMBER = 4000
_CLOSERS = {"[": "]", "(": ")", "{": "}"}


@dataclass(slots=True)
class _Level:
    """An open bracket: what closes it in Python and in JSON, and the keys of a dictionary.

    `bracket` is the index of a parenthesis that may only group, while that is undecided; otherwise -1.
    """

    closer: str
    json_closer: str = "]"
    keys: set[str] | None = None
    is_empty: bool = True
    bracket: int = -1


class PythonValue:
    """Reads one literal. `put` is called for every character, `repeated` for a repeated key of a dictionary.

    With `note`, a nearly valid value of a keyword is repaired, and `note` is called with the name of the repair:
    `leading_zeros` (`07`: a string if the value `is_string`, otherwise 7) and `unescaped_quote`, inside a string that
    then doesn't extend beyond `close`.
    """

    def __init__(
        self,
        stream: InputStream,
        put: Put,
        repeated: Callable[[], object] = lambda: None,
        note: Callable[[str], object] | None = None,
        *,
        is_string: bool = False,
        close: str = "",
    ) -> None:
        self._stream, self._put, self._repeated = stream, put, repeated
        self._note, self._is_string = note, is_string
        self._strings = PythonStrings(stream, self._put_or_hold, self._get_innermost_closer, note, close)
        self._levels: list[_Level] = []
        self._held = StringIO()
        self._brackets: list[tuple[int, str]] = []
        self._undecided = 0

    def read(self) -> Reading[None]:
        """Read it. Raises `NotACall` at the first character that can't belong to a literal, and `EndOfText`."""
        lead: str | None = ""
        while lead is not None:
            lead = yield from self._begin(lead)
            if lead is None:
                lead = yield from self._read_next()

    def _get_innermost_closer(self) -> str:
        return self._levels[-1].closer if self._levels else ""

    def _put_or_hold(self, fragment: str, end: int) -> None:
        """Pass on a piece of JSON, or hold it while a parenthesis before it is undecided."""
        if self._undecided and fragment:
            self._held.write(fragment)
            fragment = ""
        self._put(fragment, end)

    def _begin(self, lead: str) -> Reading[str | None]:
        """Read a value, returning None, or the bracket that opens one, returning the lead of its first item."""
        stream = self._stream
        character = yield from stream.skip_space()
        if character in ("[", "("):
            self._open(character, lead)
        elif character == "{":
            return (yield from self._read_brace(lead))
        else:
            yield from self._read_atom(character, lead)
        return None

    def _open(self, character: str, lead: str) -> None:
        if len(self._levels) >= MOST_LEVELS:
            raise NotACall("too_deep")
        level = _Level(_CLOSERS[character])
        self._levels.append(level)
        if character == "[":
            self._put_or_hold(lead + "[", self._stream.at + 1)
            return
        self._stream.take_framing(self._stream.at + 1)
        self._undecided += 1
        self._held.write(lead)
        level.bracket = len(self._brackets)
        self._brackets.append((self._held.tell(), ""))

    def _decide(self, level: _Level, bracket: str) -> None:
        """Resolve a parenthesis as a tuple or a group: `bracket` replaces it."""
        self._brackets[level.bracket] = (self._brackets[level.bracket][0], bracket)
        level.bracket = -1
        self._undecided -= 1
        if self._undecided:
            return
        text, start = self._held.getvalue(), 0
        pieces: list[str] = []
        for place, made in self._brackets:
            pieces += (text[start:place], made)
            start = place
        self._held, self._brackets = StringIO(), []
        self._put("".join((*pieces, text[start:])), self._stream.at)

    def _read_brace(self, lead: str) -> Reading[str | None]:
        """Read the beginning of a dictionary or a set, as its first item decides."""
        stream = self._stream
        if len(self._levels) >= MOST_LEVELS:
            raise NotACall("too_deep")
        stream.take_framing(stream.at + 1)
        level = _Level("}")
        self._levels.append(level)
        character = yield from stream.skip_space()
        if character == "}":
            level.json_closer = "}"
            self._put_or_hold(lead + "{", stream.at)
            return None
        level.is_empty = False
        if character in ("[", "(", "{"):
            self._put_or_hold(lead + "[", stream.at)
            return ""
        atom = yield from self._keep_atom(character)
        if (yield from stream.skip_space()) == ":":
            level.json_closer, level.keys = "}", set()
            return lead + "{" + self._make_key(level, atom)
        self._put_or_hold(lead + "[" + atom, stream.at)
        return None

    def _make_key(self, level: _Level, atom: str) -> str:
        """A key whose colon is ahead, in the form that is passed on with its value."""
        key = atom if atom.startswith('"') else f'"{atom}"'
        if level.keys is not None:
            if key in level.keys:
                self._repeated()
            level.keys.add(key)
        self._stream.take_framing(self._stream.at + 1)
        return f"{key}: "

    def _read_next(self) -> Reading[str | None]:
        """Close what ends here; returns the text before the next item, not passed on yet, or None once all is
        closed."""
        stream = self._stream
        while self._levels:
            level = self._levels[-1]
            character = yield from stream.skip_space()
            lead = ""
            if character != level.closer and not level.is_empty:
                if character != ",":
                    raise NotACall(NOT_A_LITERAL)
                stream.take_framing(stream.at + 1)
                if level.bracket >= 0:
                    self._decide(level, "[")
                lead = ", "
                character = yield from stream.skip_space()
            if character == level.closer:
                self._close(level)
                continue
            level.is_empty = False
            if level.keys is not None:
                atom = yield from self._keep_atom(character)
                if (yield from stream.skip_space()) != ":":
                    raise NotACall(NOT_A_LITERAL)
                lead += self._make_key(level, atom)
            return lead
        return None

    def _close(self, level: _Level) -> None:
        self._levels.pop()
        stream = self._stream
        if level.bracket < 0:
            self._put_or_hold(level.json_closer, stream.at + 1)
        else:
            stream.take_framing(stream.at + 1)
            self._decide(level, "[" if level.is_empty else "")
            if level.is_empty:
                self._put_or_hold("]", stream.at)

    # Strings, numbers and words.

    def _keep_atom(self, character: str) -> Reading[str]:
        """Read a string, a number or a word as framing; returns its JSON."""
        kept = StringIO()
        say, self_put = self._put, self._undecided

        def keep(fragment: str, end: int) -> None:
            kept.write(fragment)
            self._stream.take_framing(end)

        self._put, self._undecided = keep, 0
        yield from self._read_atom(character, "")
        self._put, self._undecided = say, self_put
        return kept.getvalue()

    def _read_atom(self, character: str, lead: str) -> Reading[None]:
        stream = self._stream
        if not character:
            raise EndOfText if stream.is_at_turn_end else NotACall(NOT_A_LITERAL)
        if character in "\"'":
            yield from self._strings.read("", lead)
            return
        pieces: list[str] = []
        length = 0
        while True:
            run = _WORD.match(stream.text, stream.at, stream.limit)
            if run is not None:
                pieces.append(run.group())
                length += len(run.group())
                stream.take_framing(run.end())
            if length > _LONGEST_NUMBER:
                raise NotACall(NOT_A_LITERAL)
            if stream.at < stream.limit or stream.control or stream.ended:
                break
            yield
        word = "".join(pieces)
        if stream.at < stream.limit and stream.text[stream.at] in "\"'" and word in ("r", "R", "u", "U"):
            yield from self._strings.read(word, lead)
        elif word in ("-", "+") and (yield from stream.skip_space()):
            yield from self._read_signed_atom(word, lead)
        else:
            self._put_or_hold(lead + self._convert_scalar(word), stream.at)

    def _convert_scalar(self, word: str) -> str:
        """The JSON of a number or a word."""
        if self._note is None or not _WITH_ZEROS.fullmatch(word):
            return convert_scalar(word)
        self._note(LEADING_ZEROS)
        if self._is_string and not self._levels:
            return f'"{word}"'
        return convert_scalar(word.lstrip("+-0_") if word[0] != "-" else f"-{word.lstrip('+-0_')}")

    def _read_signed_atom(self, sign: str, lead: str) -> Reading[None]:
        """Read a number separated from its sign."""
        number = yield from self._keep_atom(self._stream.text[self._stream.at])
        if number[:1] not in "0123456789":
            raise NotACall(NOT_A_LITERAL)
        self._put_or_hold(lead + (f"-{number}" if sign == "-" else number), self._stream.at)


def convert_scalar(word: str) -> str:
    """The JSON of a number or of one of Python's constants. Raises `NotACall` for anything else, and for infinity."""
    if word in _WORDS:
        return _WORDS[word]
    try:
        if _JSON_NUMBER.fullmatch(word):
            json.dumps(float(word), allow_nan=False)
            return word
        if word and _PYTHON_NUMBER.fullmatch(word):
            return json.dumps(ast.literal_eval(word), allow_nan=False)
    except (ValueError, SyntaxError, OverflowError):
        pass
    raise NotACall(NOT_A_LITERAL)
