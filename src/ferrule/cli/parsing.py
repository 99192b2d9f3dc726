"""The parts of `ferrule parse`: text as it arrives, tools from a file, and events for people and programs."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ferrule.cli.words import answer_words, arguments_words
from ferrule.errors import SettingsError
from ferrule.events import (
    ArgumentsDelta,
    CallFinished,
    CallMalformed,
    CallStarted,
    Framing,
    ReaderEvent,
    ReasoningDelta,
    TextDelta,
)
from ferrule.execution.showing import visible
from ferrule.toolspec import ToolSpec

_BLOCK = 65_536


def pieces_of(file: Path) -> Iterator[str]:
    """The text of a file, or of standard input as it arrives. Raises `OSError` and `SettingsError`."""
    if str(file) != "-":
        yield file.read_text(encoding="utf-8")
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while data := os.read(sys.stdin.fileno(), _BLOCK):
            if text := decoder.decode(data):
                yield text
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise SettingsError(f"standard input is not UTF-8 text: {error.reason}") from error


def read_tools(file: Path) -> list[ToolSpec]:
    """The tools of a JSON file. Raises `SettingsError`, saying what is wrong with which of them."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SettingsError(f"{file} is not JSON: {error}") from error
    found = data.get("tools", data) if isinstance(data, dict) else data
    found = [found] if isinstance(found, dict) else found
    if not isinstance(found, list):
        raise SettingsError(f"{file} holds no list of tools")
    return [_spec(tool, f"{file}: tool {number}") for number, tool in enumerate(found, 1)]


def _spec(tool: Any, place: str) -> ToolSpec:
    tool = tool.get("function", tool) if isinstance(tool, dict) else tool
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        raise SettingsError(f"{place} has no name")
    schema = tool.get("parameters", tool.get("input_schema", {}))
    if not isinstance(schema, dict):
        raise SettingsError(f"{place} ({tool['name']}): its parameters are no JSON Schema object")
    return ToolSpec(tool["name"], str(tool.get("description") or ""), schema)


def json_lines(events: Sequence[ReaderEvent]) -> bool:
    """Print one JSON object an event, adjacent framing as one; whether all could be read."""
    for event in _merged(events):
        print(json.dumps(parse_json(event), ensure_ascii=False), flush=True)
    return not any(isinstance(event, CallMalformed) for event in events)


def _merged(events: Sequence[ReaderEvent]) -> Iterator[ReaderEvent]:
    """The events with the framing of one piece of text in one: a call's own punctuation is many small ones."""
    framing: list[Framing] = []
    for event in (*events, None):
        if isinstance(event, Framing):
            framing.append(event)
            continue
        if framing:
            first, last = framing[0].span or (0, 0), framing[-1].span or (0, 0)
            yield Framing("".join(one.marker for one in framing), (first[0], last[1]))
            framing = []
        if event is not None:
            yield event


def parse_json(event: ReaderEvent) -> dict[str, Any]:
    """An event as data. `span` is where it stands in the text, in characters."""
    match event:
        case TextDelta(text):
            data: dict[str, Any] = {"event": "text", "text": text}
        case ReasoningDelta(text):
            data = {"event": "reasoning", "text": text}
        case CallStarted(index, name, native_id):
            data = {"event": "call_started", "index": index, "name": name, "native_id": native_id}
        case ArgumentsDelta(index, fragment):
            data = {"event": "arguments", "index": index, "json": fragment}
        case CallFinished(index, call, _, repairs):
            data = {"event": "call", "index": index, "id": call.id, "name": call.name, "arguments": call.decoded()}
            data |= {"repairs": list(repairs)} if repairs else {}
        case CallMalformed(index, kind, raw, recoverable):
            data = {"event": "malformed", "index": index, "kind": kind, "raw": raw, "recoverable": recoverable}
        case Framing(marker):
            data = {"event": "framing", "text": marker}
    return {**data, "span": list(event.span or ())}


class PeopleParse:
    """Text as it is, reasoning dim, and a line for each call."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
        self._at_start = True

    def show(self, events: Sequence[ReaderEvent]) -> bool:
        """Show events; whether all could be read."""
        is_whole = True
        for event in events:
            match event:
                case TextDelta(text):
                    self._write(text, None)
                case ReasoningDelta(text):
                    self._write(text, "dim")
                case CallFinished(_, call, _, repairs):
                    mended = f"  (put right: {', '.join(repairs)})" if repairs else ""
                    self._line(f"▸ {visible(call.name)}  {arguments_words(call)}{mended}", "cyan")
                case CallMalformed(_, kind, raw):
                    self._line(f"✗ not a call ({kind}): {visible(raw)}", "red")
                    is_whole = False
        return is_whole

    def _write(self, text: str, style: str | None) -> None:
        shown = answer_words(text) if self._console.is_terminal else text
        self._console.print(shown, style=style, end="")
        self._at_start = text.endswith("\n")

    def _line(self, text: str, style: str) -> None:
        if not self._at_start:
            self._console.print()
        self._console.print(text, style=style)
        self._at_start = True
