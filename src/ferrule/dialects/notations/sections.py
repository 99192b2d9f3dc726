"""Calls between tags with attributes, several in a section: what the notations of this kind share.

One malformed call does not affect the others: it ends at its own closer, and reading resumes from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import unescape
from html.entities import html5
from io import StringIO
from typing import TypeAlias

from ferrule.dialects.reader.calls import CallBuilder, Calls
from ferrule.dialects.reader.json import Put
from ferrule.dialects.reader.markers import Stops
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading

UNEXPECTED = "unexpected_text"
# A name is matched only from its beginning: starting at each of its letters would take quadratic time.
_ATTRIBUTE = re.compile(r"""(?<![^\s="'<>/])([^\s="'<>/]++)\s*+=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>/]+))""")
_LONGEST_ENTITY = 10
ReadOne: TypeAlias = Callable[[InputStream, Calls, CallBuilder, str], Reading[str]]
"""Reads a call whose tag has begun, given the text already taken of it; returns the section's closer if met."""


@dataclass(frozen=True, slots=True)
class SectionTags:
    """The tags of a section and of a call in it; `open` and `close` are empty for calls without a section.

    `around` are texts that may surround each call.
    """

    open: str
    close: str
    call_open: str
    call_close: str
    around: tuple[str, ...] = ()


def make_structural_stops(stream: InputStream, *found: str) -> Stops:
    """Structural texts to stop at; empty ones are ignored."""
    return stream.make_stops(structural=tuple(filter(None, found)))


def read_section(stream: InputStream, calls: Calls, opener: str, tags: SectionTags, read_one: ReadOne) -> Reading[None]:
    """Read the calls that `opener`, of a section or a call, began. Raises `NotACall` and `EndOfText` in a call."""
    is_bare = opener != tags.open
    if is_bare:
        calls.begin(stream)
    marker, begun = (tags.call_open, opener.rpartition(tags.call_open)[2]) if is_bare else ("", "")
    count = 0
    while True:
        if not marker:
            between = _read_bare_between if is_bare else _read_between
            marker = yield from between(stream, calls, tags, count)
        if marker != tags.call_open:
            return
        call = calls.current or calls.begin(stream)
        try:
            marker = yield from read_one(stream, calls, call, begun)
        except NotACall as fault:
            marker = yield from _skip_call(stream, calls, tags, fault)
        begun = ""
        count += 1


def _skip_call(stream: InputStream, calls: Calls, tags: SectionTags, fault: NotACall) -> Reading[str]:
    """Skip a malformed call up to its closer, the section's, or the next call. Raises `fault`."""
    fault.is_old = fault.is_old or not stream.ended
    stops = make_structural_stops(stream, tags.call_open, tags.call_close, tags.close)
    marker = yield from stream.scan(stops, stream.take_framing)
    if not marker or calls.current is None:
        raise fault
    if marker != tags.call_open:
        stream.take_framing(stream.marker_end)
    calls.current.fail(fault.kind)
    return marker if marker == tags.close else ""


def _read_between(stream: InputStream, calls: Calls, tags: SectionTags, count: int) -> Reading[str]:
    """Begin the next call at its opener, or take the section's closer; anything else is malformed."""
    gap = StringIO()
    try:
        yield from stream.skip_space()
        call = calls.begin(stream)
        stops = make_structural_stops(stream, tags.call_open, tags.close)
        marker = yield from stream.scan(stops, lambda end: gap.write(stream.take_framing(end)))
    except EndOfText:
        marker = ""
    is_blank = _is_around(gap.getvalue(), tags)
    if not marker and not (is_blank and count):
        raise EndOfText
    if marker == tags.call_open and is_blank:
        stream.take_framing(stream.marker_end)
        return marker
    if marker != tags.call_open:
        stream.take_framing(stream.marker_end if marker else stream.at)
    if is_blank and count:
        calls.current = stream.raw = None
        return tags.close
    call.fail(UNEXPECTED if not is_blank else "no_name")
    if marker == tags.call_open:
        calls.begin(stream)
        stream.take_framing(stream.marker_end)
    return marker


def _is_around(gap: str, tags: SectionTags) -> bool:
    """Whether only white space and texts that may surround calls are between two of them."""
    around = "|".join(map(re.escape, tags.around))
    return re.fullmatch(rf"(?>(?:\s|{around})*)" if around else r"\s*+", gap) is not None


def _read_bare_between(stream: InputStream, calls: Calls, tags: SectionTags, count: int) -> Reading[str]:  # noqa: ARG001 - like `_read_between`
    """Like `_read_between`, for a section without an opener: it also ends with anything else that follows."""
    if not tags.close:
        return "text"
    try:
        yield from stream.skip_space()
    except EndOfText:
        return tags.close
    if (yield from stream.is_ahead(tags.call_open)):
        calls.begin(stream)
        stream.take_framing(stream.at + len(tags.call_open))
        return tags.call_open
    if (yield from stream.is_ahead(tags.close)):
        stream.take_framing(stream.at + len(tags.close))
    return tags.close


def take_next_tag(stream: InputStream, stops: Stops) -> Reading[str]:
    """Take the next of `stops`, with white space before it. Raises `NotACall` for other text, and `EndOfText`."""
    is_blank = True

    def skip(end: int) -> None:
        nonlocal is_blank
        is_blank = not stream.take_framing(end).strip() and is_blank

    marker = yield from stream.scan(stops, skip)
    if not marker:
        raise EndOfText
    if not is_blank:
        raise NotACall(UNEXPECTED)
    stream.take_framing(stream.marker_end)
    return marker


def read_attributes(
    stream: InputStream, end: str, begun: str = "", *, escaped: bool = False
) -> Reading[tuple[Mapping[str, str], bool]]:
    """(the attributes of a tag up to `end`, whether it closes itself); `begun` is the part already taken."""
    text = StringIO()
    text.write(begun)
    marker = yield from stream.take_until(
        make_structural_stops(stream, end), lambda at: text.write(stream.take_framing(at))
    )
    if not marker:
        raise EndOfText
    written = text.getvalue()
    found: dict[str, str] = {}
    for key, *values in _ATTRIBUTE.findall(written):
        # A tokenizer that is decoded incorrectly leaves its own symbol for a space in a tag.
        value = "".join(values)
        found.setdefault(key.lstrip("\u0120"), unescape(value) if escaped else value)
    return found, written.rstrip().endswith("/")


def read_plain_text(stream: InputStream, stops: Stops, put: Put) -> Reading[str]:
    """Read text up to the next of `stops`, taken and returned; `put` receives each piece and, if `&` is among the
    stops, the characters that entities represent. Raises `EndOfText`."""
    while True:
        marker = yield from stream.take_until(stops, lambda end: put(stream.text[stream.at : end], end))
        if not marker:
            raise EndOfText
        if marker != "&":
            return marker
        entity = yield from _peek_entity(stream)
        put(unescape(f"&{entity}") if entity else "&", stream.at + len(entity))


def _peek_entity(stream: InputStream) -> Reading[str]:
    """The entity after an ampersand, not taken; empty if it is not one."""
    for length in range(1, _LONGEST_ENTITY):
        text = yield from stream.peek(length)
        if len(text) < length or not (text[-1].isalnum() or text[-1] in "#;"):
            return ""
        if text[-1] == ";":
            return text if text[0] == "#" or text in html5 else ""
    return ""
