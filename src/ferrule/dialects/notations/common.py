"""What several notations share: the end of a call, names, and plain-text values."""

from __future__ import annotations

import json
import re
from io import StringIO
from typing import Any, Literal, TypeAlias

from ferrule.dialects.reader.calls import CallBuilder
from ferrule.dialects.reader.markers import Stops
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading

_LONGEST_WORD = 256
ValueStyle: TypeAlias = Literal["json", "python scalars", "python"]
"""How values are written that aren't strings: all as JSON, or scalars or all of them as Python's `str` does."""


def finish_call(
    stream: InputStream, call: CallBuilder, close: str, *others: str, kind: str = "unexpected_text"
) -> Reading[None]:
    """Finish a complete call: its closer follows, or one of `others`, or the end; nothing else may."""
    rest: list[str] = []
    marker = yield from stream.scan(
        stream.make_stops(close, *others), lambda end: rest.append(stream.take_framing(end))
    )
    if "".join(rest).strip():
        raise NotACall(kind)
    if marker == close:
        stream.take_framing(stream.marker_end)
    call.finish()


def read_word(stream: InputStream, pattern: re.Pattern[str]) -> Reading[str]:
    """The characters ahead that match `pattern` (a possessive run of a class), taken as framing.

    Raises `NotACall` if they are too many for a name, and `EndOfText` if nothing follows them.
    """
    pieces: list[str] = []
    length = 0
    while True:
        run = pattern.match(stream.text, stream.at, stream.limit)
        if run is not None:
            length += len(run.group())
            if length > _LONGEST_WORD:
                raise NotACall("no_name")
            pieces.append(stream.take_framing(run.end()))
        if stream.at < stream.limit or stream.control:
            return "".join(pieces)
        if stream.ended:
            raise EndOfText
        yield


def skip_blank(stream: InputStream) -> Reading[str]:
    """Like `InputStream.skip_space`, but returns "" at the end of the text, too."""
    try:
        return (yield from stream.skip_space())
    except EndOfText:
        return ""


def write_raw_text(value: Any, closer: str, style: ValueStyle = "json") -> str:
    """A value as written: a string unchanged, anything else as JSON, with `closer` escaped as JSON allows, or as Python
    writes it. Null is always JSON's: `None` may be a string.

    A string that contains the closer can't be expressed; reading back the written text detects that.
    """
    if isinstance(value, str):
        return value
    is_scalar = not isinstance(value, dict | list)
    if value is not None and (style == "python" or (style == "python scalars" and is_scalar)):
        return str(value)
    text = json.dumps(value, ensure_ascii=False)
    return text.replace(closer, f"\\u{ord(closer[0]):04x}{closer[1:]}")


def take_text_until(stream: InputStream, stops: Stops) -> Reading[tuple[str, str]]:
    """(the text before the next of `stops`, that marker); the text is taken, the marker not. Raises `EndOfText`."""
    text = StringIO()
    marker = yield from stream.scan(stops, lambda end: text.write(stream.take_framing(end)))
    if not marker:
        raise EndOfText
    return text.getvalue(), marker
