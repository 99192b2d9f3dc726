"""Arguments as tags without a tag around them: `<rfl:parameter name="k">\nv\n</rfl:parameter>`, typed by the schema."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ferrule.conversation import ToolCall
from ferrule.dialects.notations.common import write_raw_text
from ferrule.dialects.notations.sections import UNEXPECTED, read_attributes
from ferrule.dialects.reader.calls import CallBuilder, validate_arguments
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading
from ferrule.errors import DialectError


@dataclass(frozen=True, slots=True)
class TagArguments:
    """The notation; `frame` is the white space before and after a value."""

    open: str
    close: str
    frame: str = "\n"

    def write(self, call: ToolCall) -> str:
        """The arguments of a call. Raises `DialectError` for a name that contains a quote."""
        pieces = []
        for key, value in json.loads(validate_arguments(call)).items():
            if '"' in key:
                raise DialectError(f"{key!r} can't be a name here: it contains a quote")
            text = write_raw_text(value, self.close)
            pieces.append(f'{self.open} name="{key}">{self.frame}{text}{self.frame}{self.close}')
        return "\n".join(pieces)

    @property
    def value_ends(self) -> tuple[str, ...]:
        """What ends a value."""
        return (f"{self.frame}{self.close}", self.close)

    def read(self, stream: InputStream, call: CallBuilder, *ends: str) -> Reading[None]:
        """Read the arguments up to one of `ends`, not taken, or the end of a text that the model ended. Raises
        `NotACall` for other text between them, and `EndOfText` if they are cut off."""
        stops = stream.make_stops(*ends, structural=(self.open,))
        is_blank = True

        def skip(end: int) -> None:
            nonlocal is_blank
            is_blank = not stream.take_framing(end).strip() and is_blank

        while (marker := (yield from stream.scan(stops, skip))) == self.open and is_blank:
            stream.take_framing(stream.marker_end)
            yield from self._read_one(stream, call)
        if not is_blank:
            raise NotACall(UNEXPECTED)
        if not marker and not (stream.stopped or stream.is_at_turn_end):
            raise EndOfText
        call.close_object()

    def _read_one(self, stream: InputStream, call: CallBuilder) -> Reading[None]:
        found, is_empty = yield from read_attributes(stream, ">")
        key = found.get("name")
        if key is None:
            raise NotACall("no_name")
        if is_empty:
            call.put_value(call.begin_key(key).to_json(""), stream.at)
            return
        is_framed = yield from stream.take_optional(self.frame)
        leads = ((self.close, self.frame),) if is_framed else ()
        if not (yield from call.read_raw_value(key, stream.make_stops(leads=leads, structural=(self.close,)))):
            raise EndOfText
