"""Reads Python strings as they arrive: any quotes, prefixes and escapes, and implicit concatenation.

What looks like the end of a string may be an unescaped quote. With `note`, and if what follows shows that, it is
repaired: see `PythonValue`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from ferrule.dialects.reader.calls import escape_json
from ferrule.dialects.reader.json import Put
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading

NOT_A_LITERAL = "not_a_literal"
UNESCAPED_QUOTE = "unescaped_quote"
_BEFORE_VALUES = ("=", ",", "[", "{")
_RUNS = {'"': re.compile(r'[^"\\]++'), "'": re.compile(r"[^'\\]++")}
_BREAKS = {'"': re.compile(r'["\\]'), "'": re.compile(r"['\\]")}
_PLAIN_ESCAPES = {
    "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\n": "",
}  # fmt: skip
_HEX_ESCAPES = {"x": 2, "u": 4, "U": 8}
_HEX = re.compile(r"[0-9a-fA-F]+")
_LONGEST_NAME = 100


class PythonStrings:
    """Reads the strings of one literal. `say` passes on a piece of JSON, `closer` returns what closes the innermost
    open bracket, empty if none is open, and `limit` is what no string extends beyond once a quote in it was
    repaired."""

    def __init__(
        self,
        stream: InputStream,
        say: Put,
        closer: Callable[[], str],
        note: Callable[[str], object] | None,
        limit: str,
    ) -> None:
        self._stream, self._say, self._closer, self._note, self._limit = stream, say, closer, note, limit
        self._has_quotes = False
        # The last character of the string being read, ignoring white space.
        self._last = ""

    def read(self, prefix: str, lead: str) -> Reading[None]:
        """Read a string and those directly after it, which Python concatenates; a quote or its end is ahead."""
        stream = self._stream
        self._say(f'{lead}"', stream.at)
        while True:
            yield from self._read_string(is_raw=prefix in ("r", "R"))
            character = yield from stream.skip_space()
            prefix = ""
            if character and character in "rRuU":
                prefix = character
                stream.take_framing(stream.at + 1)
                character = yield from stream.peek()
                if character not in ("'", '"'):
                    raise NotACall(NOT_A_LITERAL)
            if not character or character not in "\"'":
                self._say('"', stream.at)
                return

    def _read_string(self, *, is_raw: bool) -> Reading[None]:
        """Read one string, from its opening quote to the closing one, both framing."""
        stream = self._stream
        closer = yield from self._open()
        quote = closer[:1]
        self._has_quotes, self._last = False, ""
        while closer:
            yield from self._put_plain(quote)
            if stream.at == stream.limit:
                yield from self._wait_for_more(quote)
            elif stream.text[stream.at] == "\\":
                yield from self._read_escape(is_raw=is_raw)
            elif (yield from stream.peek(len(closer))) == closer and (yield from self._closes(closer)):
                stream.take_framing(stream.at + len(closer))
                return
            else:
                self._say(escape_json(quote), stream.at + 1)

    def _open(self) -> Reading[str]:
        """Take the opening quote ahead; returns what closes the string, or "" for an empty string, taken as a whole."""
        stream = self._stream
        quote = yield from stream.peek()
        stream.take_framing(stream.at + 1)
        if (yield from stream.peek()) != quote:
            return quote
        stream.take_framing(stream.at + 1)
        if (yield from stream.peek()) != quote:
            return ""
        stream.take_framing(stream.at + 1)
        return quote * 3

    def _wait_for_more(self, quote: str) -> Reading[None]:
        """Wait for more of a string; a control token stands for its characters. Raises `EndOfText`."""
        stream = self._stream
        if stream.ended or stream.is_at_turn_end:
            raise EndOfText
        if stream.control:
            self._say(escape_json(stream.control), len(stream.text))
        else:
            stream.expect_run(_BREAKS[quote], self._put_text)
            yield

    def _put_plain(self, quote: str) -> Reading[None]:
        """Pass on the unescaped characters available. If quotes were repaired, they must extend up to the next quote or
        escape: `NotACall` is raised at `close`, since nothing beyond it belongs to the string."""
        stream = self._stream
        if not self._has_quotes:
            run = _RUNS[quote].match(stream.text, stream.at, stream.limit)
            if run is not None:
                self._put_text(run.end())
            return
        marker = yield from stream.scan(stream.make_stops(self._limit, structural=(quote, "\\")), self._put_text)
        if marker == self._limit:
            raise NotACall(NOT_A_LITERAL)
        if not marker:
            raise EndOfText

    def _put_text(self, end: int) -> None:
        """Pass on unescaped characters of a string."""
        text = self._stream.text[self._stream.at : end]
        self._last = text.rstrip()[-1:] or self._last
        self._say(escape_json(text), end)

    def _closes(self, quote: str) -> Reading[bool]:
        """Whether the quote ahead ends its string, as what follows tells. Raises `NotACall` if that is ambiguous."""
        if self._note is None or len(quote) > 1:
            return True
        stream = self._stream
        found = yield from self._peek_after(2)
        closer = self._closer() or ")"
        if not found or (found[-1] == ":" and closer == "}"):
            return True
        if found[-1] == closer:
            # After `print("hi")` a string continues: a quote never follows where one ends here.
            is_end = (yield from self._peek_after(len(found) + 1))[-1:] not in ("'", '"')
            if is_end:
                return True
        elif found[-1] == "," and (self._closer() or (yield from self._is_keyword(len(found)))):
            return True
        if found[-1] in "\"'" and not self._has_quotes:
            return True
        if found[-1] in "rRuU" and (yield from stream.peek(len(found) + 1))[-1:] in ("'", '"'):
            return True
        if self._last in _BEFORE_VALUES:
            # It looks like the beginning of a value: two calls or arguments would be read as one.
            raise NotACall(NOT_A_LITERAL)
        self._has_quotes, self._last = True, quote
        self._note(UNESCAPED_QUOTE)
        return False

    def _peek_after(self, length: int) -> Reading[str]:
        """The text ahead, up to the first character from `length` on that is not white space; "" if there is none."""
        while length < _LONGEST_NAME:
            seen = yield from self._stream.peek(length)
            if len(seen) < length:
                return ""
            if not seen[-1].isspace():
                return seen
            length += 1
        return ""

    def _is_keyword(self, length: int) -> Reading[bool]:
        """Whether a keyword, or the end, follows the comma that is the last of the `length` characters ahead."""
        found = yield from self._peek_after(length + 1)
        if not found or found[-1] == ")":
            return True
        while found[-1].isalnum() or found[-1] in "_-":
            seen = yield from self._stream.peek(len(found) + 1)
            if len(seen) == len(found):
                return True
            if len(seen) > _LONGEST_NAME:
                return False
            if seen[-1].isspace():
                return (yield from self._peek_after(len(seen) + 1))[-1:] in ("=", "")
            found = seen
        return found[-1] == "="

    def _read_escape(self, *, is_raw: bool) -> Reading[None]:
        stream = self._stream
        self._last = ""
        two = yield from stream.peek(2)
        if len(two) < 2:
            if not stream.control:
                raise EndOfText
            self._say("\\\\", stream.at + 1)
            return
        kind = two[1]
        if is_raw:
            self._say(escape_json(two), stream.at + 2)
        elif kind in _PLAIN_ESCAPES:
            self._say(escape_json(_PLAIN_ESCAPES[kind]), stream.at + 2)
        elif kind in _HEX_ESCAPES:
            yield from self._read_hex(_HEX_ESCAPES[kind])
        elif kind in "01234567":
            yield from self._read_octal()
        elif kind == "N":
            yield from self._read_named()
        else:
            # Python keeps the backslash of an unknown escape, which usually comes from a regular expression.
            self._say(escape_json(two), stream.at + 2)

    def _read_hex(self, count: int) -> Reading[None]:
        stream = self._stream
        digits = (yield from stream.peek(2 + count))[2:]
        if not _HEX.fullmatch(digits or "0"):
            raise NotACall(NOT_A_LITERAL)
        if len(digits) < count:
            raise EndOfText if not stream.control else NotACall(NOT_A_LITERAL)
        code = int(digits, 16)
        if code > 0x10FFFF:
            raise NotACall(NOT_A_LITERAL)
        # Half of a surrogate pair stays an escape, so that two halves form one character, as in JSON.
        made = f"\\u{code:04x}" if 0xD800 <= code < 0xE000 else escape_json(chr(code))
        self._say(made, stream.at + 2 + count)

    def _read_octal(self) -> Reading[None]:
        stream = self._stream
        length = 2
        while length < 4:
            seen = yield from stream.peek(length + 1)
            if len(seen) <= length or seen[length] not in "01234567":
                break
            length += 1
        code = int(stream.text[stream.at + 1 : stream.at + length], 8)
        self._say(escape_json(chr(code)), stream.at + length)

    def _read_named(self) -> Reading[None]:
        stream = self._stream
        length = 3
        while (seen := (yield from stream.peek(length)))[-1:] != "}":
            if len(seen) < length or length > _LONGEST_NAME:
                raise EndOfText if stream.ended else NotACall(NOT_A_LITERAL)
            length += 1
        try:
            character = unicodedata.lookup(seen[3:-1])
        except KeyError:
            raise NotACall(NOT_A_LITERAL) from None
        if seen[2] != "{":
            raise NotACall(NOT_A_LITERAL)
        self._say(escape_json(character), stream.at + length)
