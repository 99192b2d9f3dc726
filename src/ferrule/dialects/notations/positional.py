"""Calls with positional values: `<tool_call>Crop [100,100,300,400]</tool_call>`, as Ovis writes them.

The values are JSON, and are bound to the tool's parameters in the order of its schema. If a tool has one parameter, and
that is a list, the whole list is its value; a tool that was not offered gets the list as `values`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ferrule.conversation import Image, ToolCall, ToolResult
from ferrule.dialects.notations.common import finish_call, read_word
from ferrule.dialects.reader.calls import CallBuilder, Calls, validate_arguments
from ferrule.dialects.reader.json import read_json_value
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading
from ferrule.toolspec import ToolSpec

UNBOUND = "values"
_NAME = re.compile(r"[\w.\-]++")


@dataclass(frozen=True, slots=True)
class Positional:
    """The notation. `image` is the marker that represents an image among the results."""

    open: str
    close: str
    image: str

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
        """Openers, closers, and the marker for images."""
        return (self.open, self.close, self.image)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, each between its markers."""
        return "".join(f"{self.open}{call.name}{_write_values(call)}{self.close}" for call in calls)

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:  # noqa: ARG002 - there is one
        """Read a call, its opener taken."""
        call = calls.begin(stream)
        yield from stream.skip_space()
        call.set_name((yield from read_word(stream, _NAME)))
        if (yield from stream.skip_space()) == "[":
            names = call.parameters.names if call.parameters else (UNBOUND,)
            if len(names) == 1 and (call.parameters is None or "array" in call.parameters.get(names[0]).types):
                call.begin_key(names[0])
                yield from read_json_value(stream, call.put_fragment, call.hold)
            else:
                yield from _read_bound(stream, call, names)
            call.close_object()
        yield from finish_call(stream, call, self.close, self.open)


def _read_bound(stream: InputStream, call: CallBuilder, names: tuple[str, ...]) -> Reading[None]:
    """Read the values of a list, each for the next of `names`."""
    stream.take_framing(stream.at + 1)
    character = yield from stream.skip_space()
    for name in names:
        if character == "]":
            break
        call.begin_key(name)
        yield from read_json_value(stream, call.put_fragment, call.hold)
        character = yield from stream.skip_space()
        if character == ",":
            stream.take_framing(stream.at + 1)
            if (character := (yield from stream.skip_space())) == "]":
                raise NotACall("invalid_json")
        elif character != "]":
            raise EndOfText if stream.is_at_turn_end else NotACall("invalid_json")
    if character != "]":
        raise NotACall("too_many_arguments")
    stream.take_framing(stream.at + 1)


def _write_values(call: ToolCall) -> str:
    values = list(json.loads(validate_arguments(call)).values())
    if not values:
        return ""
    # The only list argument of a tool is written as the values themselves; but it may be the first of several
    # parameters.
    if len(values) == 1 and isinstance(values[0], list) and _find_list(call.source or "") != values:
        values = values[0]
    return f" {json.dumps(values, ensure_ascii=False, separators=(',', ':'))}"


def _find_list(source: str) -> Any:
    """The list of values that a call was written with; None if there is none."""
    try:
        return json.loads(source[source.find("[") : source.rfind("]") + 1])
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class MarkedResults:
    """Results with an image as its marker, and text between two markers."""

    open: str
    close: str
    image: str

    def write(self, results: Sequence[ToolResult], texts: Sequence[str]) -> str:
        """The results, one after the other."""
        return "\n".join(self._write_one(result, text) for result, text in zip(results, texts, strict=True))

    def _write_one(self, result: ToolResult, text: str) -> str:
        images = self.image * sum(isinstance(part, Image) for part in result.content)
        return f"{images}{self.open}{text}{self.close}" if text or not images else images


@dataclass(frozen=True, slots=True)
class UsageOffer:
    """One line per tool: how to call it, and what it does."""

    syntax: Positional
    before: str

    def write(self, tools: Sequence[ToolSpec]) -> str:
        """The block."""
        return self.before + "\n".join(self._write_usage(spec) for spec in tools)

    def _write_usage(self, spec: ToolSpec) -> str:
        names = ",".join(spec.parameters.get("properties") or ())
        return f"{self.syntax.open}{spec.name} [{names}]{self.syntax.close}: {spec.description}"
