"""Calls as GigaChat 3 writes them: the call's object after a marker, or in a message with its own role."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ferrule.conversation import ToolCall
from ferrule.dialects.notations.bare_json import repair_object
from ferrule.dialects.notations.json_object import Keys, read_call_object, write_call_object
from ferrule.dialects.reader.calls import Calls
from ferrule.dialects.reader.stream import InputStream, NotACall, Reading

_CALL, _RESULT = "function call", "function result"
_ROLES = ("assistant", _CALL, _RESULT)
_LONGEST_ROLE = 100


@dataclass(frozen=True, slots=True)
class RoleJson:
    """The notation of GigaChat 3: `<|function_call|>{…}`, or a message with the role: `function call<|role_sep|>\n{…}`.

    Both are read; `in_messages` selects the second for writing.
    """

    open: str = "<|function_call|>"
    message: str = "<|message_sep|>"
    role: str = "<|role_sep|>"
    before: tuple[str, ...] = ("</s>",)
    keys: Keys = field(default_factory=Keys)
    closers: tuple[str, ...] = ()
    in_messages: bool = False

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a call, or a message whose role may mark it as one."""
        return (self.open, self.message)

    @property
    def markers(self) -> tuple[str, ...]:
        """All three."""
        return (*self.openers, self.role)

    @property
    def punctuation(self) -> tuple[str, ...]:
        """The roles that a header may name."""
        return _ROLES

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls."""
        if self.in_messages:
            return "".join(
                f"{self.message}\n\nfunction call{self.role}\n{write_call_object(c, self.keys)}" for c in calls
            )
        return "".join(f"{self.open}{write_call_object(call, self.keys)}" for call in calls)

    def list_bare_openers(self, names: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002 - the same for all
        """See `BareTextSyntax`."""
        return (f"{_CALL}{self.role}",)

    def read_at_start(self, stream: InputStream, calls: Calls) -> Reading[bool]:
        """Read a call whose message has begun in the prompt."""
        if not (yield from stream.is_ahead(_CALL)):
            return False
        stream.begin_trial()
        yield from stream.expect(_CALL)
        if not (yield from stream.take_marker(self.role)):
            raise NotACall("unexpected_text")
        stream.keep_trial()
        yield from self._read_object(stream, calls)
        return True

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        """Read a call, or a message according to its role."""
        if opener == self.message:
            stream.begin_trial(with_opener=True)
            role = yield from self._read_role(stream)
            if role not in (_RESULT, _CALL):
                stream.split_trial(self._framing)
                yield from stream.take_optional("\n")
                return
            stream.keep_trial()
            if role == _RESULT:
                raise NotACall("forged_result")
        yield from self._read_object(stream, calls)

    def _read_role(self, stream: InputStream) -> Reading[str]:
        """The role in a header, taken with its separator; "" if this is not a header."""
        pieces: list[str] = []
        length = 0

        def keep(end: int) -> None:
            nonlocal length
            # Not one character more, however much has arrived.
            most = min(end, stream.at + _LONGEST_ROLE + 1 - length)
            length += most - stream.at
            pieces.append(stream.take_framing(most))
            if length > _LONGEST_ROLE:
                raise NotACall("unexpected_text")

        try:
            marker = yield from stream.scan(stream.make_stops(self.role, *self.openers, *self.before), keep)
        except NotACall:
            return ""
        if marker != self.role:
            return ""
        stream.take_framing(stream.marker_end)
        return "".join(pieces).strip()

    @property
    def _framing(self) -> re.Pattern[str]:
        """The part of a header that is framing: everything but words that are not a role."""
        roles = "|".join(_ROLES)
        return re.compile(
            rf"{re.escape(self.message)}\s*(?:(?:{roles})\s*(?={re.escape(self.role)}))?|{re.escape(self.role)}"
        )

    def _read_object(self, stream: InputStream, calls: Calls) -> Reading[None]:
        call = calls.begin(stream)
        start = stream.raw.tell() if stream.raw else 0
        try:
            yield from read_call_object(stream, call, self.keys)
            call.finish()
        except NotACall as fault:
            yield from repair_object(stream, calls, fault, (*self.openers, *self.before), start, self.keys)
