"""`ferrule parse`: parse what a model wrote, in the notation of its family."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferrule.cli.completion import complete_family
from ferrule.cli.options import AsJson

if TYPE_CHECKING:
    from ferrule.events import ReaderEvent
    from ferrule.toolspec import ToolSpec

_BLOCK = 65_536


def parse(
    file: Annotated[Path, typer.Argument(help="What the model wrote; - reads standard input as it arrives.")],
    dialect: Annotated[str, typer.Option(help="The family: see `ferrule dialects`.", autocompletion=complete_family)],
    tools: Annotated[Path | None, typer.Option(help="A JSON list of tools, in OpenAI's or Anthropic's shape.")] = None,
    opens: Annotated[str, typer.Option(help="How the prompt ended, such as <think> if it opened reasoning.")] = "",
    repair: Annotated[bool, typer.Option(help="Repair calls with small errors.")] = True,
    as_json: AsJson = False,
) -> None:
    """Parse what a model wrote: text, reasoning, and calls.

    What can't be parsed is shown in its place, and the exit status is 1.
    """
    from ferrule.dialects.catalogue import get_notation

    reader = get_notation(dialect).reader(read_tool_specs(tools) if tools else (), opens=opens, repair=repair)
    printer = None if as_json else EventPrinter()
    show = print_json_events if printer is None else printer.show
    is_readable = True
    try:
        for piece in read_pieces(file):
            is_readable &= show(reader.feed(piece))
        is_readable &= show(reader.close(stopped=True))
    finally:
        if printer is not None:
            printer.finish()
    if not is_readable:
        raise typer.Exit(1)


def read_pieces(file: Path) -> Iterator[str]:
    """Yield the text of a file, or of stdin as it arrives. Raises `OSError` and `SettingsError`."""
    from ferrule.errors import SettingsError

    if str(file) != "-":
        # As bytes, since text mode would change line ends, and the spans with them.
        yield file.read_bytes().decode("utf-8")
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while data := os.read(sys.stdin.fileno(), _BLOCK):
            if text := decoder.decode(data):
                yield text
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise SettingsError(f"standard input is not UTF-8 text: {error.reason}") from error


def read_tool_specs(file: Path) -> list[ToolSpec]:
    """Read the tools of a JSON file. Raises `SettingsError`, naming the tool and its problem."""
    from ferrule.errors import SettingsError

    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SettingsError(f"{file} is not valid JSON: {error}") from error
    found = data.get("tools", data) if isinstance(data, dict) else data
    found = [found] if isinstance(found, dict) else found
    if not isinstance(found, list):
        raise SettingsError(f"{file} must be a list of tools")
    return [_read_tool_spec(tool, f"{file}: tool {number}") for number, tool in enumerate(found, 1)]


def _read_tool_spec(tool: Any, place: str) -> ToolSpec:
    from ferrule.errors import SettingsError
    from ferrule.formats.tool_offers import SCHEMA_KEYS
    from ferrule.toolspec import ToolSpec

    tool = tool.get("function", tool) if isinstance(tool, dict) else tool
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        raise SettingsError(f"{place} has no name")
    schema: Any = next((tool[key] for key in SCHEMA_KEYS if tool.get(key)), {})
    if not isinstance(schema, dict):
        raise SettingsError(f"{place} ({tool['name']}): its parameters must be a JSON Schema object")
    return ToolSpec(tool["name"], str(tool.get("description") or ""), schema)


def print_json_events(events: Sequence[ReaderEvent]) -> bool:
    """Print a JSON object for each event, adjacent framing merged; returns whether everything could be parsed."""
    from ferrule._util.terminal_text import escape_json
    from ferrule.events import CallMalformed

    for event in _merge_framing(events):
        print(escape_json(reader_event_to_json(event)), flush=True)
    return not any(isinstance(event, CallMalformed) for event in events)


def _merge_framing(events: Sequence[ReaderEvent]) -> Iterator[ReaderEvent]:
    """Merge adjacent framing events: the punctuation of a call is many small ones."""
    from ferrule.events import Framing

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


def reader_event_to_json(event: ReaderEvent) -> dict[str, Any]:
    """Convert an event to JSON data. `span` is its position in the text, in characters."""
    from ferrule.events import (
        ArgumentsDelta,
        CallFinished,
        CallMalformed,
        CallStarted,
        Framing,
        ReasoningDelta,
        TextDelta,
    )
    from ferrule.session.renderer import arguments_to_json

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
            data = {"event": "call", "index": index, "id": call.id, "name": call.name}
            data |= {"arguments": arguments_to_json(call)}
            data |= {"repairs": list(repairs)} if repairs else {}
        case CallMalformed(index, kind, raw, recoverable):
            data = {"event": "malformed", "index": index, "kind": kind, "raw": raw, "recoverable": recoverable}
        case Framing(marker):
            data = {"event": "framing", "text": marker}
    return {**data, "span": list(event.span or ())}


class EventPrinter:
    """Prints events for people: text as it is, reasoning dim, and a line for each call."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
        self._at_start = True
        self._last = ""
        self._is_reasoning = False

    def show(self, events: Sequence[ReaderEvent]) -> bool:
        """Show events; returns whether everything could be parsed."""
        from ferrule._util.terminal_text import escape_line
        from ferrule.events import CallFinished, CallMalformed, ReasoningDelta, TextDelta
        from ferrule.transcript import summarize_arguments

        is_readable = True
        for event in events:
            match event:
                case TextDelta(text):
                    self._write(text, None)
                case ReasoningDelta(text):
                    self._write(text, "dim")
                case CallFinished(_, call, _, repairs):
                    note = f"  (repaired: {', '.join(repairs)})" if repairs else ""
                    self._write_line(f"▸ {escape_line(call.name)}  {summarize_arguments(call)}{note}", "cyan")
                case CallMalformed(_, kind, raw):
                    self._write_line(f"✗ not a call ({kind}): {escape_line(raw)}", "red")
                    is_readable = False
        return is_readable

    def finish(self) -> None:
        """End the last line, so that what comes next isn't a part of it."""
        if not self._at_start:
            self._console.print()
        self._at_start = True

    def _write(self, text: str, style: str | None) -> None:
        from ferrule._util.terminal_text import escape_text

        # Without colours, only a line end separates reasoning from the answer.
        if self._is_reasoning != (style is not None) and text:
            self.finish()
        self._is_reasoning = style is not None
        shown = escape_text(text, self._last) if self._console.is_terminal else text
        self._console.print(shown, style=style, end="")
        self._last = (self._last + text)[-2:]
        self._at_start = text.endswith("\n")

    def _write_line(self, text: str, style: str) -> None:
        if not self._at_start:
            self._console.print()
        self._console.print(text, style=style)
        self._at_start = True
