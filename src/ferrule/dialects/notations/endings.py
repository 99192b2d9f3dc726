"""What several notations share at the end of a call and around its name."""

from __future__ import annotations

import re

from ferrule.dialects.calls import Call
from ferrule.dialects.stream import EndOfText, NotACall, Reading, Stream

_LONGEST_WORD = 256


def end_of_call(stream: Stream, call: Call, close: str, *others: str, kind: str = "unexpected_text") -> Reading[None]:
    """Finish a call that is whole: its closer follows, or one of `others`, or the end; nothing else may."""
    rest: list[str] = []
    marker = yield from stream.find(stream.stops(close, *others), lambda end: rest.append(stream.frame(end)))
    if "".join(rest).strip():
        raise NotACall(kind)
    if marker == close:
        stream.frame(stream.marker_end)
    call.finish()


def word(stream: Stream, pattern: re.Pattern[str]) -> Reading[str]:
    """The characters ahead that `pattern` (a possessive run of a class) matches, taken as framing.

    Raises `NotACall` where they are too many to be a name, and `EndOfText` where nothing follows them.
    """
    pieces: list[str] = []
    length = 0
    while True:
        run = pattern.match(stream.text, stream.at, stream.limit)
        if run is not None:
            length += len(run.group())
            if length > _LONGEST_WORD:
                raise NotACall("no_name")
            pieces.append(stream.frame(run.end()))
        if stream.at < stream.limit or stream.control:
            return "".join(pieces)
        if stream.ended:
            raise EndOfText
        yield


def blank(stream: Stream) -> Reading[str]:
    """As `Stream.space`, but the end of the text is "" too."""
    try:
        return (yield from stream.space())
    except EndOfText:
        return ""
