"""The calls of one message as a reader makes them: their events, their arguments as they grow, and how they end.

What is certain about an argument is emitted at once; what has to wait (a value whose type the schema decides, arguments
before the name, a repeated key) is taken as framing and emitted later as one delta.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any, NoReturn, TypeAlias

from ferrule.conversation import ToolCall
from ferrule.dialects.reader.markers import Stops
from ferrule.dialects.reader.parameters import ParameterType, ToolParameters
from ferrule.dialects.reader.stream import InputStream, NotACall, Reading
from ferrule.errors import DialectError
from ferrule.events import ArgumentsDelta, CallFinished, CallMalformed, CallStarted
from ferrule.toolspec import ToolSpec

NULL_AS_TEXT, UNWRAPPED, NUMBER_AS_BOOLEAN = "null_as_text", "unwrapped", "number_as_boolean"
_BOOLEANS = {"1": "true", "0": "false"}
_BOOLEAN_TYPES = frozenset({"boolean", "null"})
# The raw text of these holds no call, whatever it looks like.
_UNRECOVERABLE = frozenset({"truncated", "forged_result", "repeated_key", "too_deep", "arguments_outside"})
_NULLS = ('"null"', '"None"')
_WRAPPERS = frozenset({"input", "properties", "parameters", "arguments"})
_WRAPPED = re.compile(rf'\s*\{{\s*"(?:{"|".join(sorted(_WRAPPERS))})"\s*:\s*')
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_DEEPEST = 200
"""How many levels deep the arguments of a call that is written may be nested."""


class Calls:
    """Numbers the calls of one message, and knows the tools that they may call.

    `recover` reads a failed call's raw text as another notation, and finishes the call if that succeeds. `read_late`
    reads calls without an opener at the end of a message: see `LateCallSyntax`.
    """

    def __init__(
        self,
        tools: Sequence[ToolSpec],
        first_call: int = 1,
        repair: bool = True,
        recover: Recover | None = None,
        read_late: ReadLate | None = None,
    ) -> None:
        self.tools = tools
        self.recover = recover if repair else None
        self.read_late = read_late if repair and tools else None
        self._schemas = {spec.name: spec.parameters for spec in tools}
        self._known: dict[str, ToolParameters] = {}
        self._first = first_call
        self.index = 0
        self.current: CallBuilder | None = None
        self.repair = repair

    def get_parameters(self, tool: str) -> ToolParameters | None:
        """What is known of a tool's parameters; None for a tool that was not offered."""
        if tool not in self._known and tool in self._schemas:
            self._known[tool] = ToolParameters(self._schemas[tool])
        return self._known.get(tool)

    @property
    def has_tools(self) -> bool:
        """Whether the reader was given any tool."""
        return bool(self._schemas)

    def find_only_fitting(self, arguments: str) -> str:
        """The name of the only tool that accepts these arguments; empty if none or several do."""
        given = json.loads(arguments or "{}")
        known = ((name, self.get_parameters(name)) for name in self._schemas)
        fitting = [name for name, one in known if one and one.accepts(given) and set(given) <= set(one.names)]
        return fitting[0] if len(fitting) == 1 else ""

    def begin(self, stream: InputStream, repair: str = "") -> CallBuilder:
        """Begin a call: text taken from now on belongs to it, as does text taken since `stream.begin_trial`. `repair`
        is noted, if any."""
        if stream.raw is None:
            stream.raw = StringIO()
        self.current = CallBuilder(self, stream, self.index, f"call_{self._first + self.index}")
        if repair:
            self.current.note_repair(repair)
        return self.current

    def close_current(self) -> None:
        """Note that the open call has ended."""
        self.current = None
        self.index += 1


Recover: TypeAlias = "Callable[[InputStream, Calls, CallBuilder, str], bool]"
ReadLate: TypeAlias = "Callable[[InputStream, Calls, str], Reading[None]]"
"""Reads calls up to the end of the message, as a trial, given the syntax's native form. Raises `NotACall` and
`EndOfText`, in which case it was text, and so is what follows. A bracket that begins no call is taken as text."""


class CallBuilder:
    """One call. It ends in `finish` or in `fail`, which the notation decides."""

    __slots__ = (
        "_arguments",
        "_calls",
        "_keys",
        "_lead",
        "_repairs",
        "_sent",
        "_stream",
        "_waits",
        "identifier",
        "index",
        "name",
        "native_id",
        "parameters",
        "started",
    )

    def __init__(self, calls: Calls, stream: InputStream, index: int, identifier: str) -> None:
        self._calls, self._stream = calls, stream
        self._arguments = StringIO()
        self._sent = 0
        self._waits = False
        self._keys: set[str] = set()
        self._lead = ""
        self._repairs: dict[str, None] = {}
        self.index = index
        self.identifier = identifier
        self.name = ""
        self.native_id: str | None = None
        self.parameters: ToolParameters | None = None
        self.started = False

    # What is known about the call.

    def set_name(self, name: str, native_id: str | None = None) -> None:
        """Set its name, which starts the call. Raises `NotACall` for a blank name."""
        if not name.strip():
            raise NotACall("no_name")
        self.name = name
        self.native_id = native_id or self.native_id
        self.parameters = self._calls.get_parameters(name)
        self.started = True
        self._stream.events.append(CallStarted(self.index, name, self.native_id, self._stream.here))

    def hold(self) -> None:
        """From here on, emit its arguments only when it ends."""
        self._waits = True

    @property
    def can_repair(self) -> bool:
        """Whether nearly valid input may be repaired: for a tool that was offered, or if no tools are known."""
        return self._calls.repair and (self.parameters is not None or not self._calls.has_tools)

    @property
    def is_repaired(self) -> bool:
        """Whether any repair was noted so far."""
        return bool(self._repairs)

    def note_repair(self, repair: str) -> None:
        """Report with the finished call that this was repaired, or is probably not what was meant."""
        self._repairs[repair] = None

    def note_first_key(self, key: str) -> None:
        """Note the first key of the arguments: if it may be a wrapper around them, they are held back."""
        if key in _WRAPPERS and self.parameters is not None and key not in self.parameters.names:
            self.hold()

    def put(self, fragment: str, end: int) -> None:
        """Take the text up to `end`, which produced `fragment` of the arguments' JSON."""
        stream = self._stream
        self._arguments.write(fragment)
        if self._waits or not self.started or not fragment:
            stream.take_framing(end)
            return
        # Every piece of a long value passes through here, so it makes no call that can be avoided.
        span = stream.take(end)[1]
        self._sent += len(fragment)
        stream.events.append(ArgumentsDelta(self.index, fragment, span))

    # Arguments whose keys and values are not JSON.

    def begin_key(self, key: str) -> ParameterType:
        """Begin a value for `key`; returns what the schema says about it."""
        if key in self._keys:
            # The later value counts, as in JSON; but one already emitted must not be shown as if it did.
            self.hold()
        if not self._keys:
            self.note_first_key(key)
        self._lead = f"{', ' if self._keys else '{'}{json.dumps(key, ensure_ascii=False)}: "
        self._keys.add(key)
        return self.parameters.get(key) if self.parameters else ParameterType()

    def put_value(self, fragment: str, end: int) -> None:
        """Like `put`, for a piece of the last key's value."""
        lead, self._lead = self._lead, ""
        self.put(lead + fragment, end)

    def put_plain_value(self, parameter: ParameterType, text: str, end: int) -> None:
        """Like `put_value`, for a whole text without quotes, converted as its type says; notes a possible null, and a
        number for a boolean."""
        written = parameter.to_json(text)
        if written in _NULLS:
            self.note_repair(NULL_AS_TEXT)
        elif self._calls.repair and parameter.types and parameter.types <= _BOOLEAN_TYPES and text.strip() in _BOOLEANS:
            written = _BOOLEANS[text.strip()]
            self.note_repair(NUMBER_AS_BOOLEAN)
        self.put_value(written, end)

    def end_string(self) -> None:
        """End a string without quotes, which was emitted as it came."""
        arguments = self._arguments
        self.put('"', self._stream.at)
        # Including the colon before it, since a value may also end like this: inside a value, the quote is escaped.
        arguments.seek(max(arguments.tell() - len(_NULLS[0]) - 2, 0))
        if arguments.read() in (f": {null}" for null in _NULLS):
            self.note_repair(NULL_AS_TEXT)

    def put_fragment(self, fragment: str, end: int) -> None:
        """Like `put_value`; an empty piece is framing, and the key waits for the next piece."""
        if fragment:
            self.put_value(fragment, end)
        else:
            self._stream.take_framing(end)

    def read_raw_value(self, key: str, stops: Stops, declared: ParameterType | None = None) -> Reading[str]:
        """A value that arrives as plain text, up to one of `stops`, which is returned.

        A string is emitted as it comes; anything else once it is complete. Returns "" if the text ends. `declared` is
        the type that the call itself gives, used if the schema has none.
        """
        stream = self._stream
        parameter = self.begin_key(key)
        if declared is not None and not parameter.types:
            parameter = declared
        if parameter.is_string:
            self.put_value('"', stream.at)
            marker = yield from stream.take_until(
                stops, lambda end: self.put(escape_json(stream.text[stream.at : end]), end)
            )
            if marker:
                self.end_string()
            return marker
        text = StringIO()
        marker = yield from stream.take_until(stops, lambda end: text.write(stream.take_framing(end)))
        if marker:
            self.put_plain_value(parameter, text.getvalue(), stream.at)
        return marker

    def close_object(self) -> None:
        """Close the arguments after the last key."""
        self.put("}" if self._keys else "{}", self._stream.at)

    @property
    def has_arguments(self) -> bool:
        """Whether any of its arguments were read."""
        return bool(self._arguments.tell())

    @property
    def keys(self) -> frozenset[str]:
        """The keys read so far."""
        return frozenset(self._keys)

    # How it ends.

    @property
    def arguments(self) -> str:
        """The JSON of its arguments, as far as it is known."""
        return self._arguments.getvalue()

    def replace_arguments(self, arguments: str) -> bool:
        """Replace the arguments read so far by repaired ones; False if that would contradict what was already
        emitted."""
        if not arguments.startswith(self.arguments[: self._sent]):
            return False
        self._arguments = StringIO()
        self._arguments.write(arguments)
        return True

    def finish(self, repairs: tuple[str, ...] = ()) -> None:
        """Finish a call that was read completely. Raises `NotACall` if it has no name."""
        if not self.started:
            raise NotACall("no_name")
        stream = self._stream
        source = stream.raw.getvalue() if stream.raw is not None else None
        stream.raw = None
        if not self._arguments.tell():
            self._arguments.write("{}")
        if self._calls.repair:
            self._unwrap()
        arguments = self._arguments.getvalue()
        rest = arguments[self._sent :] if self._sent else arguments
        if rest:
            stream.events.append(ArgumentsDelta(self.index, rest, stream.here))
        call = ToolCall(self.native_id or self.identifier, self.name, arguments, source)
        stream.events.append(CallFinished(self.index, call, stream.here, (*repairs, *self._repairs)))
        self._calls.close_current()

    def _unwrap(self) -> None:
        """Unwrap arguments inside another object whose only key is not one of the tool's parameters."""
        names = self.parameters.names if self.parameters is not None else ()
        # Arguments that may be wrapped were held back, except for the brace.
        if not names or self._sent > 1 or not _WRAPPED.match(self._arguments.getvalue()):
            return
        found = unwrap_arguments(self._arguments.getvalue(), names)
        if (
            found is not None
            and self.parameters is not None
            and not self.parameters.has_more
            and self.replace_arguments(found)
        ):
            self.note_repair(UNWRAPPED)

    def fail(self, kind: str, recoverable: bool = False) -> None:
        """End a call that can't be read: everything taken of it is its raw text; if that is blank, it was not a call.
        It is finished after all if its text is a call of another notation."""
        stream, recover = self._stream, self._calls.recover
        raw = stream.raw.getvalue() if stream.raw is not None else ""
        if not raw.strip():
            self._calls.current = stream.raw = None
            return
        if recover is not None and kind not in _UNRECOVERABLE and recover(stream, self._calls, self, raw):
            return
        stream.raw = None
        stream.events.append(CallMalformed(self.index, kind, raw, recoverable, stream.here))
        self._calls.close_current()


def unwrap_arguments(written: str, names: Sequence[str]) -> str | None:
    """The only member of an object, if that is a wrapper: an object of a tool's parameters, possibly inside a string;
    otherwise None."""
    begun = _WRAPPED.match(written)
    given = json.loads(written)
    if begun is None or len(given) != 1 or set(given) & set(names):
        return None
    [inner] = given.values()
    if isinstance(inner, str):
        text, inner = inner.strip(), decode_object(inner)
    else:
        text = written[begun.end() :].rstrip().removesuffix("}").rstrip()
    is_whole = isinstance(inner, dict) and bool(inner) and set(inner) <= set(names)
    # A repeated key leaves more than one object.
    return text if is_whole and decode_object(text) == inner else None


def decode_object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text contains; None if it is something else."""
    try:
        found = json.loads(text)
        json.dumps(found, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def escape_json(text: str) -> str:
    """Text as it is written inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1] if _ESCAPED.search(text) else text


def validate_arguments(call: ToolCall) -> str:
    """The JSON of a call's arguments, to be written. Raises `DialectError` if it is not a JSON object."""
    try:
        arguments = _decode_strictly(call.arguments) if call.arguments.strip() else {}
    except (ValueError, RecursionError) as error:
        raise DialectError(f"the arguments of call {call.id!r} ({call.name}) are not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise DialectError(f"the arguments of call {call.id!r} ({call.name}) are not a JSON object")
    if call.arguments.count("{") + call.arguments.count("[") > _DEEPEST and _is_deep(arguments):
        raise DialectError(
            f"the arguments of call {call.id!r} ({call.name}) are nested more than {_DEEPEST} levels deep, which no "
            "dialect writes"
        )
    return call.arguments.strip() or "{}"


def _is_deep(value: Any) -> bool:
    """Whether JSON is nested more than `_DEEPEST` levels deep, found without recursion."""
    level = [value]
    for _ in range(_DEEPEST + 1):
        level = [
            held
            for one in level
            if isinstance(one, dict | list)
            for held in (one.values() if isinstance(one, dict) else one)
        ]
    return bool(level)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


# Python accepts NaN and Infinity as JSON; no reader here does.
_decode_strictly = json.JSONDecoder(parse_constant=_refuse).decode
