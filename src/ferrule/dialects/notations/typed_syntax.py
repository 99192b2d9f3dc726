"""Calls in their own small syntax: `<|tool_call>call:f{k:<|"|>v<|"|>,n:2,list:[…]}<tool_call|>`.

Strings are between quotes that are tokens, without escapes: a value that contains the quote can't be written.
Everything else is bare, and typed by the schema. Strings and keys in the quotes of JSON or Python are repaired.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from ferrule.conversation import ToolCall
from ferrule.dialects.call_grammar import list_arguments
from ferrule.dialects.grammar import (
    Grammar,
    GrammarSequence,
    JsonValue,
    LiteralText,
    MarkerText,
    Repetition,
    make_text_choice,
    note_unenforced,
)
from ferrule.dialects.notations.common import finish_call, read_word
from ferrule.dialects.own_values import Member, describe_own_value
from ferrule.dialects.reader.calls import CallBuilder, Calls, escape_json, validate_arguments
from ferrule.dialects.reader.json import MOST_LEVELS, read_json_string, read_json_word
from ferrule.dialects.reader.parameters import ParameterType
from ferrule.dialects.reader.repair import JSON_STRING, SINGLE_QUOTES
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading
from ferrule.dialects.schema_limits import find_lost_keywords
from ferrule.dialects.value_terms import SCALARS, join_options, list_strings, make_text, select_types
from ferrule.toolspec import JSONSchema, ToolSpec

INVALID = "invalid_arguments"
_NAME = re.compile(r"[\w.\-/]++")
_BARE = re.compile(r"[^,{}\[\]<:\"]++")
_BARE_VALUE = re.compile(r"[^,{}\[\]<\"]++")


@dataclass(slots=True)
class _Level:
    closer: str
    keys: set[str] | None
    is_empty: bool = True


@dataclass(frozen=True, slots=True)
class TypedSyntax:
    """The notation. `quote` is at both ends of a string. `sorts_keys`: arguments are written in alphabetical order."""

    open: str
    close: str
    quote: str
    sorts_keys: bool = field(default=False, compare=False)

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a call."""
        return (self.open,)

    @property
    def closers(self) -> tuple[str, ...]:
        """What ends one."""
        return (self.close,)

    @property
    def markers(self) -> tuple[str, ...]:
        """Openers, closers, and the quote."""
        return (self.open, self.close, self.quote)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, each between its markers."""
        return "".join(f"{self.open}call:{call.name}{self._write_arguments(call)}{self.close}" for call in calls)

    def _write_arguments(self, call: ToolCall) -> str:
        arguments = json.loads(validate_arguments(call))
        return self.write_value(_sort_keys(arguments) if self.sorts_keys else arguments)

    def write_value(self, value: Any) -> str:
        """A value in this syntax."""
        if isinstance(value, Mapping):
            return "{" + ",".join(f"{key}:{self.write_value(item)}" for key, item in value.items()) + "}"
        if isinstance(value, list | tuple):
            return f"[{','.join(map(self.write_value, value))}]"
        return f"{self.quote}{value}{self.quote}" if isinstance(value, str) else json.dumps(value)

    def describe_value(self, schema: Any, root: JSONSchema) -> Grammar:
        """See `OwnValueSyntax`."""
        return describe_own_value(schema, root, self)

    def describe_plain(self, schema: Any, root: JSONSchema, types: frozenset[str]) -> Grammar:
        """Strings between quotes, and the rest as in JSON."""
        options: list[Grammar] = []
        if "string" in types:
            choices = list_strings(schema, root)
            listed = note_unenforced(make_text_choice(choices), find_lost_keywords(schema, root, "string"))
            text = listed if choices else make_text(schema, root, (self.quote,))
            options.append(GrammarSequence((MarkerText(self.quote), text, MarkerText(self.quote))))
        if scalars := types & SCALARS:
            options.append(JsonValue(select_types(schema, root, scalars)))
        return join_options(options)

    def describe_list(self, item: Grammar | None, minimum: int, maximum: int | None) -> Grammar | None:
        """`[1,2]`."""
        if item is None:
            return LiteralText("[]") if minimum == 0 else None
        more = Repetition(
            GrammarSequence((LiteralText(","), item)), max(minimum - 1, 0), None if maximum is None else maximum - 1
        )
        filled = GrammarSequence((LiteralText("["), item, more, LiteralText("]")))
        options = ([LiteralText("[]")] if minimum == 0 else []) + ([filled] if maximum != 0 else [])
        return join_options(options) if options else None

    def describe_object(self, members: Sequence[Member], *, may_be_empty: bool) -> Grammar | None:  # noqa: ARG002 - has braces
        """`{a:1,b:2}`."""
        ordered = sorted(members, key=lambda one: one.key.lower()) if self.sorts_keys else members
        written = [GrammarSequence((LiteralText(f"{one.key}:"), one.value)) for one in ordered]
        listed = list_arguments(written, [one.is_optional for one in ordered], LiteralText(","))
        return GrammarSequence((LiteralText("{"), listed, LiteralText("}")))

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:  # noqa: ARG002 - there is one
        """Read a call, its opener taken. The word `call` may be missing."""
        call = calls.begin(stream)
        yield from stream.skip_space()
        yield from stream.take_optional("call")
        yield from stream.expect(":")
        name = yield from read_word(stream, _NAME)
        if (yield from stream.skip_space()) != "{":
            raise EndOfText if stream.is_at_turn_end else NotACall("unexpected_text")
        call.set_name(name)
        yield from _Arguments(stream, call, self.quote).read()
        yield from finish_call(stream, call, self.close, self.open)


class _Arguments:
    """Reads the braces of one call."""

    def __init__(self, stream: InputStream, call: CallBuilder, quote: str) -> None:
        self._stream, self._call, self._quote = stream, call, quote
        self._quotes = stream.make_stops(quote)
        self._levels: list[_Level] = []
        self._parameter = ParameterType()

    def read(self) -> Reading[None]:
        """Read them, their brace ahead. Raises `NotACall` and `EndOfText`."""
        lead: str | None = ""
        while lead is not None:
            yield from self._begin(lead)
            lead = yield from self._read_next()

    def _begin(self, lead: str) -> Reading[None]:
        """Read a value, or the bracket that opens one."""
        stream, call = self._stream, self._call
        character = yield from stream.skip_space()
        if character and character in "{[":
            if len(self._levels) >= MOST_LEVELS:
                raise NotACall("too_deep")
            call.put(lead + character, stream.at + 1)
            self._levels.append(_Level("}", set()) if character == "{" else _Level("]", None))
        elif (yield from stream.take_marker(self._quote)):
            call.put(f'{lead}"', stream.at)
            yield from self._read_string(lambda end: call.put(escape_json(stream.text[stream.at : end]), end))
            call.put('"', stream.at)
        elif character == '"':
            self._note(JSON_STRING)
            yield from read_json_string(stream, call.put, lead)
        else:
            text = yield from self._read_bare(_BARE_VALUE)
            if text[0] == "'":
                text = json.dumps(self._unquote(text), ensure_ascii=False)
                call.put(lead + text, stream.at)
                return
            call.put(lead, stream.at)
            call.put_plain_value(self._parameter, text, stream.at)

    def _read_next(self) -> Reading[str | None]:
        """Close what ends here; returns the text before the next value, not passed on yet, or None once all is
        closed."""
        stream, call = self._stream, self._call
        while self._levels:
            level = self._levels[-1]
            character = yield from stream.skip_space()
            if character == level.closer:
                call.put(character, stream.at + 1)
                self._levels.pop()
                continue
            lead = ""
            if not level.is_empty:
                if character != ",":
                    raise EndOfText if stream.is_at_turn_end else NotACall(INVALID)
                stream.take_framing(stream.at + 1)
                lead = ", "
            level.is_empty = False
            self._parameter = ParameterType()
            if level.keys is not None:
                lead += yield from self._read_key(level.keys)
            return lead
        return None

    def _read_key(self, keys: set[str]) -> Reading[str]:
        """Read a key and its colon, as they are passed on with the value."""
        stream, call = self._stream, self._call
        yield from stream.skip_space()
        if (yield from stream.take_marker(self._quote)):
            kept = StringIO()
            yield from self._read_string(lambda end: kept.write(stream.take_framing(end)))
            key = kept.getvalue()
        elif (yield from stream.peek()) == '"':
            self._note(JSON_STRING)
            key = yield from read_json_word(stream)
        else:
            key = yield from self._read_bare(_BARE)
            key = self._unquote(key) if key[0] == "'" else key
        if (yield from stream.skip_space()) != ":":
            raise NotACall(INVALID)
        stream.take_framing(stream.at + 1)
        if key in keys:
            call.hold()
        lead_keys = bool(keys)
        keys.add(key)
        if len(self._levels) == 1:
            if not lead_keys:
                call.note_first_key(key)
            self._parameter = call.parameters.get(key) if call.parameters else ParameterType()
        return f"{json.dumps(key, ensure_ascii=False)}: "

    def _read_string(self, sink: Any) -> Reading[None]:
        """Read text up to the closing quote, which is framing."""
        if not (yield from self._stream.take_until(self._quotes, sink)):
            raise EndOfText

    def _unquote(self, text: str) -> str:
        """A text without the single quotes around it. Raises `NotACall` for any other quote in it."""
        self._note(SINGLE_QUOTES)
        inside = text[1:-1]
        if text[-1] != "'" or len(text) < 2 or "'" in inside or "\\" in inside:
            raise NotACall(INVALID)
        return inside

    def _note(self, repair: str) -> None:
        if not self._call.can_repair:
            raise NotACall(INVALID)
        self._call.note_repair(repair)

    def _read_bare(self, pattern: re.Pattern[str]) -> Reading[str]:
        """Read text without quotes, up to what ends it, and strip it."""
        stream = self._stream
        kept = StringIO()
        while True:
            run = pattern.match(stream.text, stream.at, stream.limit)
            if run is not None:
                kept.write(stream.take_framing(run.end()))
            if stream.at < stream.limit or stream.control:
                break
            if stream.ended:
                raise EndOfText
            yield
        text = kept.getvalue().strip()
        if not text:
            raise EndOfText if stream.is_at_turn_end else NotACall(INVALID)
        return text


@dataclass(frozen=True, slots=True)
class TypedOffer:
    """Tools in the same syntax: their names, descriptions and parameters, each between two markers."""

    syntax: TypedSyntax
    open: str
    close: str

    def write(self, tools: Sequence[ToolSpec]) -> str:
        """The block."""
        return "".join(
            f"{self.open}declaration:{spec.name}{self._write_declaration(spec)}{self.close}" for spec in tools
        )

    def _write_declaration(self, spec: ToolSpec) -> str:
        declared = {"description": spec.description, "parameters": _capitalize_types(dict(spec.parameters))}
        return self.syntax.write_value(declared)


def _capitalize_types(schema: Any) -> Any:
    """A schema with its types in capitals, the form these models know."""
    if isinstance(schema, Mapping):
        return {
            key: value.upper() if key == "type" and isinstance(value, str) else _capitalize_types(value)
            for key, value in schema.items()
        }
    return [_capitalize_types(item) for item in schema] if isinstance(schema, list) else schema


def _sort_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sort_keys(value[key]) for key in sorted(value, key=str.lower)}
    return list(map(_sort_keys, value)) if isinstance(value, list) else value
