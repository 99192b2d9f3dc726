"""Repairs nearly valid calls: lenient JSON, accepted if the tool's schema then accepts the arguments.

Everything but the repaired parts is kept as written, including white space; and commas and keys are held back as in
`reader/json.py`. So what that reader passed on before it failed is a prefix of the repaired text, and nothing emitted
has to be retracted. Ambiguous input is not repaired: a missing comma, a cut-off string, comments, numbers that JSON
doesn't have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from ferrule.dialects.reader.calls import CallBuilder, Calls
from ferrule.dialects.reader.json import INVALID, MOST_LEVELS
from ferrule.dialects.reader.markers import Stops
from ferrule.dialects.reader.parameters import LONGEST_SCALAR
from ferrule.dialects.reader.stream import InputStream, NotACall, Reading

JSON_CALL, JSON_LIST, JSON_ARGUMENTS, JSON_STRING = "json_call", "json_list", "json_arguments", "json_string"
PYTHON_CALL, EMPTY_ARGUMENTS, AFTER_TEXT = "python_call", "empty_arguments", "after_text"
SINGLE_QUOTES = "single_quotes"


@dataclass(frozen=True, slots=True)
class RepairedCall:
    """A body after repair: the name and the id if it contains them, the JSON of the arguments, the repairs.

    `after` are the calls that follow in the same body, if it is a list of calls.
    """

    name: str
    arguments: str
    repairs: tuple[str, ...]
    native_id: str | None = None
    after: tuple[RepairedCall, ...] = ()


Reread = Callable[[str], RepairedCall | None]
"""Rereads the whole text of a call's body leniently; returns None if that doesn't help."""


def repair_call(
    stream: InputStream, calls: Calls, fault: NotACall, start: int, stops: Stops, closer: str, reread: Reread
) -> Reading[None]:
    """Continue after `fault` up to the next of `stops`; if that is `closer`, try to repair the call.

    `start` is where its body begins in the call's raw text. Raises `fault` if the text ends. In a notation without a
    closer (`closer` empty), a call is closed by whatever follows, or by the end of a text that the model ended.
    """
    fault.is_old = fault.is_old or not stream.ended
    marker = yield from stream.scan(stops, stream.take_framing)
    call = calls.current
    is_cut = not marker and (closer or not (stream.stopped or stream.is_at_turn_end))
    if is_cut or call is None or stream.raw is None:
        raise fault
    body = stream.raw.getvalue()[start:]
    if closer:
        if marker != closer:
            call.fail(fault.kind)
            return
        stream.take_framing(stream.marker_end)
    whole = reread(body) if calls.repair and fault.kind == INVALID else None
    if whole is None or not apply_repair(stream, calls, call, whole):
        call.fail(fault.kind)


def apply_repair(stream: InputStream, calls: Calls, call: CallBuilder, whole: RepairedCall) -> bool:
    """Finish the call with what was read leniently, if the tool's schema accepts it and nothing already emitted
    contradicts it."""
    name = call.name or whole.name
    if not name or (whole.name and whole.name != name):
        return False
    if not accepts_call(calls, name, whole) or not all(accepts_call(calls, one.name, one) for one in whole.after):
        return False
    if not call.replace_arguments(whole.arguments):
        return False
    call.native_id = call.native_id or whole.native_id
    if not call.started:
        call.set_name(name)
    # Which characters belong to which call is no longer known: the first call gets all of them.
    call.finish(whole.repairs)
    for one in whole.after:
        following = calls.begin(stream)
        stream.raw = None
        following.set_name(one.name, one.native_id)
        following.replace_arguments(one.arguments)
        following.finish(one.repairs)
    return True


def accepts_call(calls: Calls, name: str, whole: RepairedCall) -> bool:
    """Whether the tool was offered and its schema accepts these arguments; any will do if no tools are known."""
    parameters = calls.get_parameters(name)
    return not calls.has_tools or (parameters is not None and parameters.accepts(json.loads(whole.arguments)))


def reread_arguments(body: str) -> RepairedCall | None:
    """`Reread` for a body that consists only of the arguments object."""
    # White space at the end was already emitted if a closing brace is missing after it.
    found = repair_json(body.lstrip())
    if found is None or not isinstance(json.loads(found[0]), dict):
        return None
    return RepairedCall("", *found)


_LITERALS = {"True": "true", "False": "false", "None": "null"}
_CLOSERS = {"{": "}", "[": "]"}
_RUNS = {'"': re.compile(r'[^"\\\x00-\x1f]++'), "'": re.compile(r"""[^'"\\\x00-\x1f]++""")}
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_SPACE = re.compile(r"[ \t\r\n]*+")
_SCALAR = re.compile(r"[-+.\w]++")
_VALID_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_NAME = re.compile(r"[^\W\d][\w$-]*+|\$[\w$-]*+")
_FENCE = re.compile(r"[ \t\r\n]*+```(?>(?:json|python|javascript|js)?)(?=[ \t\r\n{\[\"'])", re.IGNORECASE)


class _RepairError(Exception):
    """No unambiguous repair exists."""


def repair_json(text: str) -> tuple[str, tuple[str, ...]] | None:
    r"""Repair JSON; returns it with the names of the repairs, in order and without repeats.

    The names: `single_quotes`, `trailing_comma`, `python_literals` (True, False, None), `missing_closer` (braces and
    brackets missing at the very end), `extra_closer` (one, or a `;`, after the value), `fence` (three backticks around
    it), `unescaped_control` (a line break or another control character inside a string), `unquoted_key`, and
    `invalid_escape` (`\'` is a quote; before any other invalid character, the backslash is literal). Valid JSON is
    returned unchanged with no names; None means that the text can't be repaired.
    """
    reader = _LenientReader(text)
    try:
        made = reader.read_whole()
    except _RepairError:
        return None
    return made, tuple(reader.repairs)


class _LenientReader:
    """Reads the text from `at` on; `pieces` are the JSON so far, `repairs` an ordered set of names."""

    __slots__ = ("_at", "_closers", "_is_empty", "_pieces", "_text", "repairs")

    def __init__(self, text: str) -> None:
        self.repairs: dict[str, None] = {}
        self._text = text
        self._at = 0
        self._pieces: list[str] = []
        self._closers: list[str] = []
        self._is_empty = False

    def read_whole(self) -> str:
        """Read the one value that the text consists of; returns its JSON."""
        self._unfence()
        lead: str | None = self._take_white_space()
        while lead is not None:
            self._begin(lead)
            lead = self._read_next()
        self._pieces.append(self._take_white_space())
        if self._ahead in ("}", "]", ";"):
            self._take(1, "extra_closer")
            self._pieces.append(self._take_white_space())
        if self._ahead:
            raise _RepairError
        return "".join(self._pieces)

    @property
    def _ahead(self) -> str:
        """The next character, empty at the end."""
        return self._text[self._at : self._at + 1]

    def _take(self, count: int, repair: str | None = None) -> str:
        taken = self._text[self._at : self._at + count]
        self._at += count
        if repair is not None:
            self.repairs[repair] = None
        return taken

    def _match(self, pattern: re.Pattern[str]) -> str:
        """Take what matches `pattern` here; empty if nothing does."""
        found = pattern.match(self._text, self._at)
        return self._take(found.end() - self._at) if found is not None else ""

    def _take_white_space(self) -> str:
        return self._match(_SPACE)

    def _unfence(self) -> None:
        """Remove a fence around the whole text."""
        if not self._match(_FENCE):
            return
        inside = self._text.rstrip(" \t\r\n")
        if not inside.endswith("```"):
            raise _RepairError
        self._text = inside[:-3]
        self._take(0, "fence")

    def _begin(self, lead: str) -> None:
        """Read a string or a scalar, or the bracket that opens an object or a list, after the text held back."""
        character = self._ahead
        if character in _CLOSERS:
            if len(self._closers) == MOST_LEVELS:
                raise _RepairError
            self._closers.append(_CLOSERS[character])
            piece = self._take(1)
        else:
            piece = self._read_string() if character in _RUNS else self._read_scalar()
        self._is_empty = character in _CLOSERS
        self._pieces.append(lead + piece)

    def _read_next(self) -> str | None:
        """Close what ends here; returns the text before the next value, held back, or None once all is closed."""
        while self._closers:
            self._pieces.append(self._take_white_space())
            if not self._ahead:
                self._take(0, "missing_closer")
                self._pieces += reversed(self._closers)
                return None
            if self._ahead == self._closers[-1]:
                self._pieces.append(self._take(1))
                self._closers.pop()
                self._is_empty = False
                continue
            lead = ""
            if not self._is_empty:
                lead = self._take_comma()
                if self._ahead in (self._closers[-1], ""):
                    self._take(0, "trailing_comma")
                    continue
            if self._closers[-1] == "}":
                lead += self._read_key()
            return lead
        return None

    def _take_comma(self) -> str:
        if self._ahead != ",":
            raise _RepairError
        return self._take(1) + self._take_white_space()

    def _read_key(self) -> str:
        """Take a key with its colon, and the white space after both."""
        if self._ahead in _RUNS:
            key = self._read_string()
        else:
            name = self._match(_NAME)
            # As a key, `None` is a string to JavaScript and None to Python.
            if not name or name in _LITERALS:
                raise _RepairError
            self._take(0, "unquoted_key")
            key = f'"{name}"'
        key += self._take_white_space()
        if self._ahead != ":":
            raise _RepairError
        return key + self._take(1) + self._take_white_space()

    def _read_scalar(self) -> str:
        scalar = self._match(_SCALAR)
        if scalar in _LITERALS:
            self._take(0, "python_literals")
            return _LITERALS[scalar]
        if len(scalar) > LONGEST_SCALAR or not _VALID_SCALAR.fullmatch(scalar):
            raise _RepairError
        return scalar

    def _read_string(self) -> str:
        """Read a string in either kind of quotes, as JSON."""
        quote = self._take(1)
        if quote == "'":
            self._take(0, SINGLE_QUOTES)
        pieces = ['"']
        while True:
            pieces.append(self._match(_RUNS[quote]))
            character = self._ahead
            if not character:
                raise _RepairError
            if character == "\\":
                pieces.append(self._read_escape(quote))
            elif character == quote:
                self._take(1)
                pieces.append('"')
                return "".join(pieces)
            else:
                # A double quote is valid inside single ones, but JSON needs it escaped.
                pieces.append(json.dumps(self._take(1, None if character == '"' else "unescaped_control"))[1:-1])

    def _read_escape(self, quote: str) -> str:
        escape = self._match(_ESCAPE)
        if escape:
            return escape
        if self._text.startswith("'", self._at + 1):
            self._take(2, "invalid_escape" if quote == '"' else None)
            return "'"
        self._take(1, "invalid_escape")
        return r"\\"
