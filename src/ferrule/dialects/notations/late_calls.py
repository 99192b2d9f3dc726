"""Calls without an opener after text, which models of families whose calls need none write at the end of a message.

Nothing but its end tells such a call from an example in the text. So it counts only if nothing follows it, the tool was
offered, and the tool's schema accepts the arguments; until that is known, it is held back.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from io import StringIO

from ferrule.dialects.notations.common import read_word
from ferrule.dialects.notations.fallback import get_function, parse_foreign_calls
from ferrule.dialects.reader.calls import Calls
from ferrule.dialects.reader.json import read_json_value
from ferrule.dialects.reader.python import PythonValue
from ferrule.dialects.reader.repair import AFTER_TEXT, PYTHON_CALL, RepairedCall, accepts_call, apply_repair
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading

_FIRST_KEYS = frozenset({"name", "type", "function", "arguments", "parameters", "id"})
_ARGUMENTS = frozenset({"arguments", "parameters"})
_SPACE = r"[ \t\r\n]{0,64}+"
_OBJECT = rf'\{{{_SPACE}"(?:(?:{"|".join(sorted(_FIRST_KEYS))})"|\\)'
_CUT = rf'(?:\{{|\[(?:{_SPACE}\{{)?){_SPACE}(?:"[a-z]{{0,10}})?\Z'
_LONG_SPACE = rf"[{{\[]{_SPACE}[ \t\r\n]"
_BEGINNING = re.compile(rf"{_OBJECT}|\[{_SPACE}(?:\w|{_OBJECT})|{_LONG_SPACE}|(?P<cut>{_CUT})")
"""What calls begin with; the group `cut` is what ends before that can be known."""
_NAME = re.compile(r"[\w.\-]++")
_ALL = re.compile(r"(?s).+")
_SEPARATORS = ";,"


def read_late_calls(stream: InputStream, calls: Calls, native_form: str) -> Reading[None]:
    """Read calls up to the end of the message, in a trial. `native_form` is no repair in this family.

    Raises `NotACall` and `EndOfText` if they are text, with the trial still open. A bracket that begins none of them
    is taken as text, without the cost of a trial.
    """
    if not (yield from _is_call_ahead(stream)):
        stream.take_text(stream.at + 1)
        return
    stream.begin_trial()
    texts: list[str] = []
    character = yield from stream.peek()
    while character:
        start = stream.raw.tell() if stream.raw else 0
        yield from _LateCalls(stream, calls).read(character)
        texts.append(stream.raw.getvalue()[start:] if stream.raw else "")
        character = yield from _read_next(stream)
    found = [parse_foreign_calls(text, calls) for text in texts]
    listed = [one for whole in found if whole is not None for one in (whole, *whole.after)]
    if None in found or not all(_is_call(one, calls) for one in listed):
        raise NotACall("unknown_tool")
    _keep(stream, calls, [_note(one, native_form) for one in listed])


def _is_call_ahead(stream: InputStream) -> Reading[bool]:
    """Whether a call may begin at the bracket that is ahead; most brackets in a text begin none."""
    while True:
        found = _BEGINNING.match(stream.text, stream.at, stream.limit)
        if found is None or found["cut"] is None:
            return found is not None
        if stream.ended or stream.control:
            return False
        yield


def _is_call(call: RepairedCall, calls: Calls) -> bool:
    """Whether the tool was offered and accepts the arguments.

    Those in JSON must all be declared, because the JSON definition of a tool has the keys of a call.
    """
    parameters = calls.get_parameters(call.name)
    return (
        parameters is not None
        and (PYTHON_CALL in call.repairs or set(json.loads(call.arguments)) <= set(parameters.names))
        and accepts_call(calls, call.name, call)
    )


def _note(call: RepairedCall, native_form: str) -> RepairedCall:
    return replace(call, after=(), repairs=(AFTER_TEXT, *(one for one in call.repairs if one != native_form)))


def _keep(stream: InputStream, calls: Calls, found: list[RepairedCall]) -> None:
    """Turn the trial into these calls; all of its text is the first one's."""
    text = stream.raw.getvalue() if stream.raw else ""
    stream.split_trial(_ALL)
    stream.raw = StringIO()
    stream.raw.write(text)
    call = calls.begin(stream)
    apply_repair(stream, calls, call, replace(found[0], after=tuple(found[1:])))


def _read_next(stream: InputStream) -> Reading[str]:
    """The first character of the next call; "" at the end of the message. Raises `NotACall` for other text."""
    try:
        character = yield from stream.skip_space()
        if character and character in _SEPARATORS:
            stream.take_framing(stream.at + 1)
            character = yield from stream.skip_space()
    except EndOfText:
        if stream.stopped:
            return ""
        raise
    if (yield from stream.is_turn_end_ahead()):
        return ""
    if not character or character not in "{[":
        raise NotACall("unexpected_text")
    return character


class _LateCalls:
    """Recognises one object, or one list of objects or of Python calls."""

    def __init__(self, stream: InputStream, calls: Calls) -> None:
        self._stream, self._calls = stream, calls

    def read(self, character: str) -> Reading[None]:
        """Take it, its bracket ahead. Raises `NotACall` at the first character that can't be part of a call."""
        stream = self._stream
        if character == "{":
            yield from self._take_object()
            return
        stream.take_framing(stream.at + 1)
        character = yield from stream.skip_space()
        while True:
            yield from self._take_object() if character == "{" else self._take_python_call()
            character = yield from stream.skip_space()
            if character not in (",", "]"):
                raise NotACall("unexpected_text")
            stream.take_framing(stream.at + 1)
            if character == "]":
                return
            character = yield from stream.skip_space()

    def _take(self, fragment: str, end: int) -> None:  # noqa: ARG002 - a `Put`
        if end > self._stream.limit:
            # A control token is not part of a call in text, but may begin something else.
            raise NotACall("unexpected_text")
        self._stream.take_framing(end)

    def _take_object(self) -> Reading[None]:
        written: list[str] = []

        def check_key(key: str) -> None:
            if key not in _FIRST_KEYS:
                raise NotACall("unexpected_text")

        def put(fragment: str, end: int) -> None:
            self._take(fragment, end)
            written.append(fragment)

        yield from read_json_value(self._stream, put, begun=check_key)
        if _ARGUMENTS.isdisjoint(get_function(json.loads("".join(written)))):
            raise NotACall("no_arguments")

    def _take_python_call(self) -> Reading[None]:
        stream = self._stream
        name = yield from read_word(stream, _NAME)
        if self._calls.get_parameters(name) is None:
            raise NotACall("unknown_tool")
        yield from stream.expect("(")
        character = yield from stream.skip_space()
        while character != ")":
            if not (yield from read_word(stream, _NAME)) or (yield from stream.skip_space()) != "=":
                raise NotACall("unexpected_text")
            stream.take_framing(stream.at + 1)
            yield from PythonValue(stream, self._take).read()
            character = yield from stream.skip_space()
            if character == ",":
                stream.take_framing(stream.at + 1)
                character = yield from stream.skip_space()
            elif character != ")":
                raise NotACall("unexpected_text")
        stream.take_framing(stream.at + 1)
