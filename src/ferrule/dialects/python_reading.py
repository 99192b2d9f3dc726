"""Reads Python literals as they arrive, and passes on the JSON that they stand for, piece by piece.

Strings go out character by character, whatever their quotes, prefix and escapes; tuples and sets become lists, and
keys that are no strings become strings, as `json.dumps` has it. Nothing is evaluated: what is no literal is refused.
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO

from ferrule.dialects.calls import escaped
from ferrule.dialects.json_reading import Put
from ferrule.dialects.repair import MOST_LEVELS
from ferrule.dialects.stream import EndOfText, NotACall, Reading, Stream

NOT_A_LITERAL = "not_a_literal"
_RUNS = {'"': re.compile(r'[^"\\]++'), "'": re.compile(r"[^'\\]++")}
_BREAKS = {'"': re.compile(r'["\\]'), "'": re.compile(r"['\\]")}
_WORD = re.compile(r"[-+.\w]++")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_PYTHON_NUMBER = re.compile(
    r"[-+]?(?:0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[\d_]*\.?[\d_]*(?:[eE][-+]?[\d_]+)?)", re.ASCII
)
_WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_PLAIN_ESCAPES = {
    "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\n": "",
}  # fmt: skip
_HEX_ESCAPES = {"x": 2, "u": 4, "U": 8}
_HEX = re.compile(r"[0-9a-fA-F]+")
_LONGEST_NUMBER = 4000
_LONGEST_NAME = 100
_CLOSERS = {"[": "]", "(": ")", "{": "}"}


@dataclass(slots=True)
class _Level:
    """A bracket that is open: what closes it in Python and in JSON, and the keys of a dictionary.

    `bracket` is the number of a parenthesis among those that may only group, while it may; else -1.
    """

    closer: str
    json_closer: str = "]"
    keys: set[str] | None = None
    is_empty: bool = True
    bracket: int = -1


class PythonValue:
    """Reads one literal. `put` is told of every character, `repeated` of a key that its dictionary has already."""

    def __init__(self, stream: Stream, put: Put, repeated: Callable[[], object] = lambda: None) -> None:
        self._stream, self._put, self._repeated = stream, put, repeated
        self._levels: list[_Level] = []
        self._held = StringIO()
        self._brackets: list[tuple[int, str]] = []
        self._undecided = 0

    def read(self) -> Reading[None]:
        """Read it. Raises `NotACall` at the first character that no literal has there, and `EndOfText`."""
        lead: str | None = ""
        while lead is not None:
            lead = yield from self._begin(lead)
            if lead is None:
                lead = yield from self._next()

    def _say(self, fragment: str, end: int) -> None:
        """Pass on a piece of JSON, or keep it while a parenthesis before it is undecided."""
        if self._undecided and fragment:
            self._held.write(fragment)
            fragment = ""
        self._put(fragment, end)

    def _begin(self, lead: str) -> Reading[str | None]:
        """A value whole, or the bracket that opens one: then the lead of its first item; else None."""
        stream = self._stream
        character = yield from stream.space()
        if character in ("[", "("):
            self._open(character, lead)
        elif character == "{":
            return (yield from self._brace(lead))
        else:
            yield from self._atom(character, lead)
        return None

    def _open(self, character: str, lead: str) -> None:
        if len(self._levels) >= MOST_LEVELS:
            raise NotACall("too_deep")
        level = _Level(_CLOSERS[character])
        self._levels.append(level)
        if character == "[":
            self._say(lead + "[", self._stream.at + 1)
            return
        self._stream.frame(self._stream.at + 1)
        self._undecided += 1
        self._held.write(lead)
        level.bracket = len(self._brackets)
        self._brackets.append((self._held.tell(), ""))

    def _decide(self, level: _Level, bracket: str) -> None:
        """It is known whether a parenthesis makes a tuple: `bracket` stands for it."""
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

    def _brace(self, lead: str) -> Reading[str | None]:
        """A dictionary or a set: which of them its first item tells."""
        stream = self._stream
        if len(self._levels) >= MOST_LEVELS:
            raise NotACall("too_deep")
        stream.frame(stream.at + 1)
        level = _Level("}")
        self._levels.append(level)
        character = yield from stream.space()
        if character == "}":
            level.json_closer = "}"
            self._say(lead + "{", stream.at)
            return None
        level.is_empty = False
        if character in ("[", "(", "{"):
            self._say(lead + "[", stream.at)
            return ""
        atom = yield from self._kept_atom(character)
        if (yield from stream.space()) == ":":
            level.json_closer, level.keys = "}", set()
            return lead + "{" + self._key(level, atom)
        self._say(lead + "[" + atom, stream.at)
        return None

    def _key(self, level: _Level, atom: str) -> str:
        """A key whose colon is ahead, as it goes out with its value."""
        key = atom if atom.startswith('"') else f'"{atom}"'
        if level.keys is not None:
            if key in level.keys:
                self._repeated()
            level.keys.add(key)
        self._stream.frame(self._stream.at + 1)
        return f"{key}: "

    def _next(self) -> Reading[str | None]:
        """Close what ends here; then what stands before the next item, not passed on yet. None where all is closed."""
        stream = self._stream
        while self._levels:
            level = self._levels[-1]
            character = yield from stream.space()
            lead = ""
            if character != level.closer and not level.is_empty:
                if character != ",":
                    raise NotACall(NOT_A_LITERAL)
                stream.frame(stream.at + 1)
                if level.bracket >= 0:
                    self._decide(level, "[")
                lead = ", "
                character = yield from stream.space()
            if character == level.closer:
                self._close(level)
                continue
            level.is_empty = False
            if level.keys is not None:
                atom = yield from self._kept_atom(character)
                if (yield from stream.space()) != ":":
                    raise NotACall(NOT_A_LITERAL)
                lead += self._key(level, atom)
            return lead
        return None

    def _close(self, level: _Level) -> None:
        self._levels.pop()
        stream = self._stream
        if level.bracket < 0:
            self._say(level.json_closer, stream.at + 1)
        else:
            stream.frame(stream.at + 1)
            self._decide(level, "[" if level.is_empty else "")
            if level.is_empty:
                self._say("]", stream.at)

    # Strings, numbers and words.

    def _kept_atom(self, character: str) -> Reading[str]:
        """A string, a number or a word, taken as framing: the JSON that it is."""
        kept = StringIO()
        say, self_put = self._put, self._undecided

        def keep(fragment: str, end: int) -> None:
            kept.write(fragment)
            self._stream.frame(end)

        self._put, self._undecided = keep, 0
        yield from self._atom(character, "")
        self._put, self._undecided = say, self_put
        return kept.getvalue()

    def _atom(self, character: str, lead: str) -> Reading[None]:
        stream = self._stream
        if not character:
            raise EndOfText if stream.ends_here else NotACall(NOT_A_LITERAL)
        if character in "\"'":
            yield from self._strings("", lead)
            return
        pieces: list[str] = []
        length = 0
        while True:
            run = _WORD.match(stream.text, stream.at, stream.limit)
            if run is not None:
                pieces.append(run.group())
                length += len(run.group())
                stream.frame(run.end())
            if length > _LONGEST_NUMBER:
                raise NotACall(NOT_A_LITERAL)
            if stream.at < stream.limit or stream.control or stream.ended:
                break
            yield
        word = "".join(pieces)
        if stream.at < stream.limit and stream.text[stream.at] in "\"'" and word in ("r", "R", "u", "U"):
            yield from self._strings(word, lead)
        elif word in ("-", "+") and (yield from stream.space()):
            yield from self._atom_after(word, lead)
        else:
            self._say(lead + json_scalar(word), stream.at)

    def _atom_after(self, sign: str, lead: str) -> Reading[None]:
        """A number that stands apart from its sign."""
        number = yield from self._kept_atom(self._stream.text[self._stream.at])
        if number[:1] not in "0123456789":
            raise NotACall(NOT_A_LITERAL)
        self._say(lead + (f"-{number}" if sign == "-" else number), self._stream.at)

    def _strings(self, prefix: str, lead: str) -> Reading[None]:
        """A string and those that follow it directly, which Python makes one of; a quote or its end is ahead."""
        stream = self._stream
        self._say(f'{lead}"', stream.at)
        while True:
            yield from self._string(is_raw=prefix in ("r", "R"))
            character = yield from stream.space()
            prefix = ""
            if character and character in "rRuU":
                prefix = character
                stream.frame(stream.at + 1)
                character = yield from stream.ahead()
                if character not in ("'", '"'):
                    raise NotACall(NOT_A_LITERAL)
            if not character or character not in "\"'":
                self._say('"', stream.at)
                return

    def _string(self, *, is_raw: bool) -> Reading[None]:
        """One string, from its opening quote to the closing one, both framing."""
        stream = self._stream
        quote = yield from stream.ahead()
        stream.frame(stream.at + 1)
        closer = quote
        if (yield from stream.ahead()) == quote:
            stream.frame(stream.at + 1)
            if (yield from stream.ahead()) != quote:
                return
            stream.frame(stream.at + 1)
            closer = quote * 3
        run_of = _RUNS[quote]
        while True:
            run = run_of.match(stream.text, stream.at, stream.limit)
            if run is not None:
                self._say(escaped(run.group()), run.end())
            if stream.at == stream.limit:
                if stream.ended or stream.ends_here:
                    raise EndOfText
                if stream.control:
                    # Sampled inside of a string, a control token is what its characters say.
                    self._say(escaped(stream.control), len(stream.text))
                else:
                    stream.expect_run(_BREAKS[quote], lambda end: self._say(escaped(stream.text[stream.at : end]), end))
                    yield
            elif stream.text[stream.at] == "\\":
                yield from self._escape(is_raw=is_raw)
            elif (yield from stream.ahead(len(closer))) == closer:
                stream.frame(stream.at + len(closer))
                return
            else:
                self._say(escaped(quote), stream.at + 1)

    def _escape(self, *, is_raw: bool) -> Reading[None]:
        stream = self._stream
        two = yield from stream.ahead(2)
        if len(two) < 2:
            if not stream.control:
                raise EndOfText
            self._say("\\\\", stream.at + 1)
            return
        kind = two[1]
        if is_raw:
            self._say(escaped(two), stream.at + 2)
        elif kind in _PLAIN_ESCAPES:
            self._say(escaped(_PLAIN_ESCAPES[kind]), stream.at + 2)
        elif kind in _HEX_ESCAPES:
            yield from self._hex(_HEX_ESCAPES[kind])
        elif kind in "01234567":
            yield from self._octal()
        elif kind == "N":
            yield from self._named()
        else:
            # Python keeps the backslash of an escape that it doesn't know: a regular expression's, as a rule.
            self._say(escaped(two), stream.at + 2)

    def _hex(self, count: int) -> Reading[None]:
        stream = self._stream
        digits = (yield from stream.ahead(2 + count))[2:]
        if not _HEX.fullmatch(digits or "0"):
            raise NotACall(NOT_A_LITERAL)
        if len(digits) < count:
            raise EndOfText if not stream.control else NotACall(NOT_A_LITERAL)
        code = int(digits, 16)
        if code > 0x10FFFF:
            raise NotACall(NOT_A_LITERAL)
        # A half of a surrogate pair stays an escape, so that two halves make one character, as in JSON.
        made = f"\\u{code:04x}" if 0xD800 <= code < 0xE000 else escaped(chr(code))
        self._say(made, stream.at + 2 + count)

    def _octal(self) -> Reading[None]:
        stream = self._stream
        length = 2
        while length < 4:
            seen = yield from stream.ahead(length + 1)
            if len(seen) <= length or seen[length] not in "01234567":
                break
            length += 1
        code = int(stream.text[stream.at + 1 : stream.at + length], 8)
        self._say(escaped(chr(code)), stream.at + length)

    def _named(self) -> Reading[None]:
        stream = self._stream
        length = 3
        while (seen := (yield from stream.ahead(length)))[-1:] != "}":
            if len(seen) < length or length > _LONGEST_NAME:
                raise EndOfText if stream.ended else NotACall(NOT_A_LITERAL)
            length += 1
        try:
            character = unicodedata.lookup(seen[3:-1])
        except KeyError:
            raise NotACall(NOT_A_LITERAL) from None
        if seen[2] != "{":
            raise NotACall(NOT_A_LITERAL)
        self._say(escaped(character), stream.at + length)


def json_scalar(word: str) -> str:
    """The JSON of a number or of one of Python's words. Raises `NotACall` for what is neither, and for infinity."""
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
