"""Calls as JSON in a tag that names the tool: `<tool_call name="f">{"k": 1}</tool_call>`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.conversation import ToolCall
from ferrule.dialects.notations.common import finish_call, read_word
from ferrule.dialects.reader.calls import Calls, validate_arguments
from ferrule.dialects.reader.json import INVALID, read_json_value
from ferrule.dialects.reader.repair import repair_call, reread_arguments
from ferrule.dialects.reader.stream import InputStream, NotACall, Reading

_NAME = re.compile(r'[^"<>\n]++')
_NAME_END = '">'


@dataclass(frozen=True, slots=True)
class JsonInTag:
    """The notation, for one name of a tag."""

    tag: str

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a call."""
        return (f'<{self.tag} name="',)

    @property
    def closers(self) -> tuple[str, ...]:
        """What ends one."""
        return (f"</{self.tag}>",)

    @property
    def markers(self) -> tuple[str, ...]:
        """Both."""
        return (*self.openers, *self.closers)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, each in its tag."""
        opener, closer = self.markers
        return "\n".join(f"{opener}{call.name}{_NAME_END}{validate_arguments(call)}{closer}" for call in calls)

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        """Read a call, its opener taken."""
        call = calls.begin(stream)
        closer = self.closers[0]
        name = yield from read_word(stream, _NAME)
        yield from stream.expect(_NAME_END, "no_name")
        call.set_name(name)
        start = stream.raw.tell() if stream.raw is not None else 0
        try:
            character = yield from stream.skip_space()
            if character == "{":
                yield from read_json_value(stream, call.put, call.hold, call.note_first_key)
            elif character != "<":
                raise NotACall(INVALID)
            yield from finish_call(stream, call, closer, opener, kind=INVALID)
        except NotACall as fault:
            yield from repair_call(
                stream, calls, fault, start, stream.make_stops(closer, opener), closer, reread_arguments
            )
