"""Reads JSON as it arrives, and passes on each piece of it that later input can't change.

A comma is passed on with what follows it, a key with its colon, a number or an escape once complete; strings are passed
on character by character. So every prefix of the output can be continued to valid JSON. At the first deviation
`NotACall` is raised; `repair` handles nearly valid JSON, once all of it has arrived.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ferrule.dialects.reader.parameters import LONGEST_SCALAR
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading

Put: TypeAlias = Callable[[str, int], object]
"""Takes a piece of JSON, and the end of the input that it was read from: `CallBuilder.put`."""

INVALID = "invalid_json"
MOST_LEVELS = 500
"""How deep objects and lists may be nested: the result will be decoded by recursive readers."""

_RUN = re.compile(r'(?>(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))+)')
_BREAKS = re.compile(r'["\\\x00-\x1f]')
_SPACE = re.compile(r"[ \t\r\n]++")
_SCALAR = re.compile(r"[-+.\w]++")
_VALID_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_BEGUN_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")


@dataclass(slots=True)
class _Level:
    """An open object or list: its closer, its keys if it is an object, and whether it is empty."""

    closer: str
    keys: set[str] | None
    is_empty: bool = True


def read_json_value(
    stream: InputStream,
    put: Put,
    repeated: Callable[[], object] = lambda: None,
    begun: Callable[[str], object] = lambda _: None,
) -> Reading[None]:
    """Read one JSON value, passed on as it was written. `repeated` is called for a repeated key, and `begun` with the
    first key of the outermost object, before any of it is passed on.

    Raises `NotACall` at the first character that can't be JSON, and `EndOfText`.
    """
    levels: list[_Level] = []
    lead: str | None = ""
    while lead is not None:
        yield from _begin(stream, put, lead, levels)
        lead = yield from _read_next(stream, put, levels, repeated, begun)


def read_json_string(stream: InputStream, put: Put, lead: str = "") -> Reading[None]:
    """Read a JSON string whose quote is ahead, passed on as it comes."""
    put(f'{lead}"', stream.at + 1)
    while True:
        run = _RUN.match(stream.text, stream.at, stream.limit)
        if run is not None:
            put(run.group(), run.end())
        if stream.at == stream.limit:
            if stream.control:
                if stream.is_at_turn_end:
                    raise EndOfText
                # Inside a string, a sampled control token stands for its characters.
                put(json.dumps(stream.control, ensure_ascii=False)[1:-1], len(stream.text))
            elif stream.ended:
                raise EndOfText
            else:
                stream.expect_run(_BREAKS, lambda end: put(stream.text[stream.at : end], end))
                yield
            continue
        character = stream.text[stream.at]
        if character == '"':
            put(character, stream.at + 1)
            return
        if _BEGUN_ESCAPE.fullmatch(stream.text, stream.at, stream.limit) and not stream.control:
            if stream.ended:
                raise EndOfText
            yield
        else:
            raise NotACall(INVALID)


def read_json_word(stream: InputStream) -> Reading[str]:
    """Read a JSON string whose quote is ahead, taken as framing and decoded: a key, a name, an id."""
    pieces: list[str] = []

    def keep(fragment: str, end: int) -> None:
        pieces.append(fragment)
        stream.take_framing(end)

    yield from read_json_string(stream, keep)
    return str(json.loads("".join(pieces)))


def _begin(stream: InputStream, put: Put, lead: str, levels: list[_Level]) -> Reading[None]:
    """Read a string or a scalar, or the bracket that opens an object or a list."""
    lead += yield from _take_white_space(stream, put, hold=True)
    character = stream.text[stream.at]
    if character == '"':
        yield from read_json_string(stream, put, lead)
    elif character in "{[":
        if len(levels) == MOST_LEVELS:
            raise NotACall(INVALID)
        put(lead + character, stream.at + 1)
        levels.append(_Level("}", set()) if character == "{" else _Level("]", None))
    else:
        yield from _read_scalar(stream, put, lead)


def _read_next(
    stream: InputStream, put: Put, levels: list[_Level], repeated: Callable[[], object], begun: Callable[[str], object]
) -> Reading[str | None]:
    """Close what ends here; returns the text before the next value, not passed on yet, or None once all is closed."""
    while levels:
        level = levels[-1]
        lead = yield from _take_white_space(stream, put, hold=level.is_empty)
        character = stream.text[stream.at]
        if character == level.closer:
            put(lead + character, stream.at + 1)
            levels.pop()
            continue
        if not level.is_empty:
            if character != ",":
                raise NotACall(INVALID)
            put("", stream.at + 1)
            lead += ","
        level.is_empty = False
        if level.keys is not None:
            is_first = len(levels) == 1 and not level.keys
            lead += yield from _read_key(stream, put, level.keys, repeated)
            if is_first:
                begun(*level.keys)
        return lead
    return None


def _read_key(stream: InputStream, put: Put, keys: set[str], repeated: Callable[[], object]) -> Reading[str]:
    """Read a key and its colon, held back until its value is passed on."""
    held = [(yield from _take_white_space(stream, put, hold=True))]
    if stream.text[stream.at] != '"':
        raise NotACall(INVALID)

    def hold(fragment: str, end: int) -> None:
        held.append(fragment)
        put("", end)

    yield from read_json_string(stream, hold)
    key = json.loads("".join(held))
    if key in keys:
        repeated()
    keys.add(key)
    held.append((yield from _take_white_space(stream, put, hold=True)))
    if stream.text[stream.at] != ":":
        raise NotACall(INVALID)
    put("", stream.at + 1)
    return "".join((*held, ":"))


def _read_scalar(stream: InputStream, put: Put, lead: str) -> Reading[None]:
    pieces: list[str] = []
    while True:
        run = _SCALAR.match(stream.text, stream.at, stream.limit)
        if run is not None:
            pieces.append(run.group())
            put("", run.end())
        if stream.at < stream.limit or stream.control or stream.ended:
            break
        yield
    scalar = "".join(pieces)
    if len(scalar) > LONGEST_SCALAR or not _VALID_SCALAR.fullmatch(scalar):
        raise NotACall(INVALID)
    put(lead + scalar, stream.at)


def _take_white_space(stream: InputStream, put: Put, *, hold: bool) -> Reading[str]:
    """Take white space; with `hold` it is returned, otherwise passed on."""
    held = ""
    while True:
        space = _SPACE.match(stream.text, stream.at, stream.limit)
        if space is not None:
            if hold:
                held += space.group()
            put("" if hold else space.group(), space.end())
        if stream.at < stream.limit:
            return held
        if stream.control:
            raise NotACall(INVALID)
        if stream.ended:
            raise EndOfText
        yield
