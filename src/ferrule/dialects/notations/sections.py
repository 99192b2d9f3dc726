"""Calls between tags that carry attributes, several in a section: what the notations of this kind share.

One call that can't be read does not cost the others: it is left at its own closer, and reading goes on from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import unescape
from html.entities import html5
from io import StringIO
from typing import TypeAlias

from ferrule.dialects.calls import Call, Calls
from ferrule.dialects.json_reading import Put
from ferrule.dialects.stream import EndOfText, NotACall, Reading, Stops, Stream

UNEXPECTED = "unexpected_text"
_ATTRIBUTE = re.compile(r"""([^\s="'<>/]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>/]+))""")
_LONGEST_ENTITY = 10
ReadOne: TypeAlias = Callable[[Stream, Calls, Call, str], Reading[str]]
"""Reads a call whose tag has begun, from the text on that was taken of it; returns the section's closer if met."""


@dataclass(frozen=True, slots=True)
class Section:
    """The tags of a section and of a call in it; `open` and `close` are empty where calls stand by themselves.

    `around` are texts that may stand around each call.
    """

    open: str
    close: str
    call_open: str
    call_close: str
    around: tuple[str, ...] = ()


def texts(stream: Stream, *found: str) -> Stops:
    """Structural texts to stop at; empty ones are left out."""
    return stream.stops(structural=tuple(filter(None, found)))


def section(stream: Stream, calls: Calls, opener: str, tags: Section, read_one: ReadOne) -> Reading[None]:
    """Read the calls that `opener`, of a section or of a call, began. Raises `NotACall` and `EndOfText` in a call."""
    is_bare = opener != tags.open
    if is_bare:
        calls.begin(stream)
    marker, begun = (tags.call_open, opener.rpartition(tags.call_open)[2]) if is_bare else ("", "")
    count = 0
    while True:
        if not marker:
            between = _bare_between if is_bare else _between
            marker = yield from between(stream, calls, tags, count)
        if marker != tags.call_open:
            return
        call = calls.current or calls.begin(stream)
        try:
            marker = yield from read_one(stream, calls, call, begun)
        except NotACall as fault:
            marker = yield from _left(stream, calls, tags, fault)
        begun = ""
        count += 1


def _left(stream: Stream, calls: Calls, tags: Section, fault: NotACall) -> Reading[str]:
    """Leave a call that can't be read: at its closer, at the section's, or before the next call. Raises `fault`."""
    stops = texts(stream, tags.call_open, tags.call_close, tags.close)
    marker = yield from stream.find(stops, stream.frame)
    if not marker or calls.current is None:
        raise fault
    if marker != tags.call_open:
        stream.frame(stream.marker_end)
    calls.current.fail(fault.kind)
    return marker if marker == tags.close else ""


def _between(stream: Stream, calls: Calls, tags: Section, count: int) -> Reading[str]:
    """The next call's opener, with which that call has begun, or the section's closer; anything else is malformed."""
    gap = StringIO()
    try:
        yield from stream.space()
        call = calls.begin(stream)
        stops = texts(stream, tags.call_open, tags.close)
        marker = yield from stream.find(stops, lambda end: gap.write(stream.frame(end)))
    except EndOfText:
        marker = ""
    rest = gap.getvalue()
    for text in tags.around:
        rest = rest.replace(text, "")
    is_blank = not rest.strip()
    if not marker and not (is_blank and count):
        raise EndOfText
    if marker == tags.call_open and is_blank:
        stream.frame(stream.marker_end)
        return marker
    if marker != tags.call_open:
        stream.frame(stream.marker_end if marker else stream.at)
    if is_blank and count:
        calls.current = stream.raw = None
        return tags.close
    call.fail(UNEXPECTED if not is_blank else "no_name")
    if marker == tags.call_open:
        calls.begin(stream)
        stream.frame(stream.marker_end)
    return marker


def _bare_between(stream: Stream, calls: Calls, tags: Section, count: int) -> Reading[str]:  # noqa: ARG001 - as `_between`
    """As `_between`, where the section had no opener: it ends with anything else that comes, too."""
    if not tags.close:
        return "text"
    try:
        yield from stream.space()
    except EndOfText:
        return tags.close
    if (yield from stream.follows(tags.call_open)):
        calls.begin(stream)
        stream.frame(stream.at + len(tags.call_open))
        return tags.call_open
    if (yield from stream.follows(tags.close)):
        stream.frame(stream.at + len(tags.close))
    return tags.close


def next_tag(stream: Stream, stops: Stops) -> Reading[str]:
    """The next of `stops`, taken, with white space before it. Raises `NotACall` for other text, and `EndOfText`."""
    is_blank = True

    def skip(end: int) -> None:
        nonlocal is_blank
        is_blank = not stream.frame(end).strip() and is_blank

    marker = yield from stream.find(stops, skip)
    if not marker:
        raise EndOfText
    if not is_blank:
        raise NotACall(UNEXPECTED)
    stream.frame(stream.marker_end)
    return marker


def attributes(
    stream: Stream, end: str, begun: str = "", *, escaped: bool = False
) -> Reading[tuple[Mapping[str, str], bool]]:
    """(the attributes of a tag up to `end`, whether it closes itself), after what of them is known from before."""
    text = StringIO()
    text.write(begun)
    marker = yield from stream.until(texts(stream, end), lambda at: text.write(stream.frame(at)))
    if not marker:
        raise EndOfText
    written = text.getvalue()
    found: dict[str, str] = {}
    for key, *values in _ATTRIBUTE.findall(written):
        # A tokenizer that is decoded wrongly leaves its own sign for a space in a tag.
        value = "".join(values)
        found.setdefault(key.lstrip("\u0120"), unescape(value) if escaped else value)
    return found, written.rstrip().endswith("/")


def plain_text(stream: Stream, stops: Stops, put: Put) -> Reading[str]:
    """Text up to the next of `stops`, taken and returned; `put` takes each piece, and where `&` is among the stops,
    the characters that entities stand for. Raises `EndOfText`."""
    while True:
        marker = yield from stream.until(stops, lambda end: put(stream.text[stream.at : end], end))
        if not marker:
            raise EndOfText
        if marker != "&":
            return marker
        entity = yield from _entity(stream)
        put(unescape(f"&{entity}") if entity else "&", stream.at + len(entity))


def _entity(stream: Stream) -> Reading[str]:
    """What follows an ampersand as an entity, not taken; empty where it is none."""
    for length in range(1, _LONGEST_ENTITY):
        text = yield from stream.ahead(length)
        if len(text) < length or not (text[-1].isalnum() or text[-1] in "#;"):
            return ""
        if text[-1] == ";":
            return text if text[0] == "#" or text in html5 else ""
    return ""
