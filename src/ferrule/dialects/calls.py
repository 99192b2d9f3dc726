"""The calls of one message as a reader makes them: their events, their arguments as they grow, and how they end.

What is known of an argument goes out at once; what has to wait for more (a value whose type the schema decides,
arguments before the name, a key that is given twice) is taken as framing and follows as one delta.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from io import StringIO

from ferrule.conversation import ToolCall
from ferrule.dialects.parameters import Parameter, Parameters
from ferrule.dialects.stream import NotACall, Reading, Stops, Stream
from ferrule.errors import DialectError
from ferrule.events import ArgumentsDelta, CallFinished, CallMalformed, CallStarted
from ferrule.toolspec import ToolSpec

_ESCAPED = re.compile(r'["\\\x00-\x1f]')


class Calls:
    """Numbers the calls of one message, and knows the tools that they can be of."""

    def __init__(self, tools: Sequence[ToolSpec], first_call: int = 1, repair: bool = True) -> None:
        self.tools = tools
        self._schemas = {spec.name: spec.parameters for spec in tools}
        self._known: dict[str, Parameters] = {}
        self._first = first_call
        self.index = 0
        self.current: Call | None = None
        self.repair = repair

    def parameters(self, tool: str) -> Parameters | None:
        """What is known of a tool's parameters; None for a tool that was not offered."""
        if tool not in self._known and tool in self._schemas:
            self._known[tool] = Parameters(self._schemas[tool])
        return self._known.get(tool)

    @property
    def offers_any(self) -> bool:
        """Whether the reader was told of any tool."""
        return bool(self._schemas)

    def only_fitting(self, arguments: str) -> str:
        """The name of the one tool that takes these arguments; empty where none does, or several do."""
        given = json.loads(arguments or "{}")
        known = ((name, self.parameters(name)) for name in self._schemas)
        fitting = [name for name, one in known if one and one.accepts(given) and set(given) <= set(one.names)]
        return fitting[0] if len(fitting) == 1 else ""

    def begin(self, stream: Stream) -> Call:
        """A call begins here: what is taken from now on is its own. What was taken since `stream.try_call` stays."""
        if stream.raw is None:
            stream.raw = StringIO()
        self.current = Call(self, stream, self.index, f"call_{self._first + self.index}")
        return self.current

    def ended(self) -> None:
        """The call that was open is none any more."""
        self.current = None
        self.index += 1


class Call:
    """One call. It ends in `finish` or in `fail`; which of them is for the notation to say."""

    __slots__ = (
        "_arguments",
        "_calls",
        "_keys",
        "_lead",
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

    def __init__(self, calls: Calls, stream: Stream, index: int, identifier: str) -> None:
        self._calls, self._stream = calls, stream
        self._arguments = StringIO()
        self._sent = 0
        self._waits = False
        self._keys: set[str] = set()
        self._lead = ""
        self.index = index
        self.identifier = identifier
        self.name = ""
        self.native_id: str | None = None
        self.parameters: Parameters | None = None
        self.started = False

    # What is known of it.

    def named(self, name: str, native_id: str | None = None) -> None:
        """Its name is known, so it has started. Raises `NotACall` for an empty name."""
        if not name:
            raise NotACall("no_name")
        self.name = name
        self.native_id = native_id or self.native_id
        self.parameters = self._calls.parameters(name)
        self.started = True
        self._stream.events.append(CallStarted(self.index, name, self.native_id, self._stream.here))

    def wait(self) -> None:
        """From here on its arguments go out when it ends."""
        self._waits = True

    def put(self, fragment: str, end: int) -> None:
        """Take the text up to `end`, which makes this much of the arguments' JSON."""
        stream = self._stream
        self._arguments.write(fragment)
        if self._waits or not self.started or not fragment:
            stream.frame(end)
            return
        # The one place that every piece of a long value goes through: nothing is called here that can be left out.
        span = stream.take(end)[1]
        self._sent += len(fragment)
        stream.events.append(ArgumentsDelta(self.index, fragment, span))

    # Arguments whose keys and values are no JSON.

    def key(self, key: str) -> Parameter:
        """A value for `key` comes next; what the schema says of it."""
        if key in self._keys:
            # The later value counts, as in JSON; but one that was passed on already must not be shown as if it did.
            self.wait()
        self._lead = f"{', ' if self._keys else '{'}{json.dumps(key, ensure_ascii=False)}: "
        self._keys.add(key)
        return self.parameters.of(key) if self.parameters else Parameter()

    def value(self, fragment: str, end: int) -> None:
        """As `put`, for a piece of the value of the last key."""
        lead, self._lead = self._lead, ""
        self.put(lead + fragment, end)

    def fragment(self, fragment: str, end: int) -> None:
        """As `value`; a piece that says nothing yet is framing, and the key waits for the next."""
        if fragment:
            self.value(fragment, end)
        else:
            self._stream.frame(end)

    def raw_value(self, key: str, stops: Stops, told: Parameter | None = None) -> Reading[str]:
        """A value that arrives as plain text, up to one of `stops`, which is returned.

        A string goes out as it comes; anything else once it is whole. Returns "" where the text ends. `told` is what
        the call itself says of the value, where the schema says nothing.
        """
        stream = self._stream
        parameter = self.key(key)
        if told is not None and not parameter.types:
            parameter = told
        if parameter.is_string:
            self.value('"', stream.at)
            marker = yield from stream.until(stops, lambda end: self.put(escaped(stream.text[stream.at : end]), end))
            if marker:
                self.put('"', stream.at)
            return marker
        text = StringIO()
        marker = yield from stream.until(stops, lambda end: text.write(stream.frame(end)))
        if marker:
            self.value(parameter.json_of(text.getvalue()), stream.at)
        return marker

    def close_object(self) -> None:
        """All keys were given."""
        self.put("}" if self._keys else "{}", self._stream.at)

    @property
    def arguments_begun(self) -> bool:
        """Whether anything of its arguments was read."""
        return bool(self._arguments.tell())

    @property
    def keys(self) -> frozenset[str]:
        """The keys that were given so far."""
        return frozenset(self._keys)

    # How it ends.

    @property
    def arguments(self) -> str:
        """The JSON of its arguments as far as it is known."""
        return self._arguments.getvalue()

    def replace(self, arguments: str) -> bool:
        """Repaired arguments in place of those read so far; False where they would take back what has gone out."""
        if not arguments.startswith(self.arguments[: self._sent]):
            return False
        self._arguments = StringIO()
        self._arguments.write(arguments)
        return True

    def finish(self, repairs: tuple[str, ...] = ()) -> None:
        """It was read whole. Raises `NotACall` where no name was given."""
        if not self.started:
            raise NotACall("no_name")
        stream = self._stream
        source = stream.raw.getvalue() if stream.raw is not None else None
        stream.raw = None
        if not self._arguments.tell():
            self._arguments.write("{}")
        arguments = self._arguments.getvalue()
        rest = arguments[self._sent :] if self._sent else arguments
        if rest:
            stream.events.append(ArgumentsDelta(self.index, rest, stream.here))
        call = ToolCall(self.native_id or self.identifier, self.name, arguments, source)
        stream.events.append(CallFinished(self.index, call, stream.here, repairs))
        self._calls.ended()

    def fail(self, kind: str, recoverable: bool = False) -> None:
        """It can't be read: all that was taken of it is its raw text."""
        stream = self._stream
        raw = stream.raw.getvalue() if stream.raw is not None else ""
        stream.raw = None
        stream.events.append(CallMalformed(self.index, kind, raw, recoverable, stream.here))
        self._calls.ended()


def escaped(text: str) -> str:
    """Text as it stands inside of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1] if _ESCAPED.search(text) else text


def arguments_of(call: ToolCall) -> str:
    """The JSON of a call's arguments, to be written. Raises `DialectError` where they are no JSON object."""
    try:
        arguments = call.decoded()
    except (ValueError, RecursionError) as error:
        raise DialectError(f"the arguments of call {call.id!r} ({call.name}) are not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise DialectError(f"the arguments of call {call.id!r} ({call.name}) are no JSON object")
    return call.arguments.strip() or "{}"
