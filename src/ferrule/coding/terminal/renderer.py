"""Shows the events of a turn: what is complete is printed above the prompt, what is happening just before it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator

from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line
from ferrule.agent.run import Run
from ferrule.coding.terminal.markdown_blocks import MarkdownBlocks, render_block, render_line
from ferrule.conversation import MalformedCall, ToolCall, ToolResult
from ferrule.events import (
    ContextCompacted,
    Event,
    LossesReported,
    MessageFinished,
    ReasoningDelta,
    ResultReady,
    TextDelta,
    ToolProgress,
)
from ferrule.transcript import summarize_arguments, summarize_result

DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
"""The colours of a diff's lines, by how they begin."""
_SHOWN_DIFF = 40
"""The most lines of a change that are shown with a result."""
_SHOWN_OUTPUT = 9
"""The most further lines of what a command has written."""
_SUBJECTS = ("command", "path", "pattern", "prompt")
"""The arguments that say what a call is about."""
_SHORT = 40
_QUIET = ("read_file", "search", "list_files", "read_result")
"""Tools of which only the length of a result is shown: the model reads it, the person has the files."""


class TerminalRenderer:
    """A `Renderer` for the terminal. `write` prints above the prompt, `refresh` draws `list_live_lines` again."""

    def __init__(
        self, write: Callable[[str], object], find_width: Callable[[], int], refresh: Callable[[], None]
    ) -> None:
        self._write = write
        self._find_width = find_width
        self._refresh = refresh
        self._text = MarkdownBlocks()
        self._reasoning = MarkdownBlocks()
        self._calls: dict[str, ToolCall | MalformedCall] = {}
        self._started: dict[str, float] = {}
        self._progress: dict[str, str] = {}
        self._was_asked = False

    def show(self, event: Event) -> None:
        """Show one event; some have no text for people."""
        if isinstance(event, TextDelta):
            self._end_reasoning()
            self._print_blocks(self._text.write(event.text))
        elif isinstance(event, ReasoningDelta):
            for block in self._reasoning.write(event.text):
                self._write(f"{render_block(block, self._find_width(), is_dim=True)}\n")
        elif isinstance(event, MessageFinished):
            self._end_texts()
            self._calls = {call.id: call for call in event.message.calls}
            self._started = dict.fromkeys(self._calls, time.monotonic())
            self._progress.clear()
            self._was_asked = False
        elif isinstance(event, ToolProgress):
            self._progress[event.call_id] = summarize_result(event.text)
        elif isinstance(event, ResultReady):
            self._print_result(event.result)
        elif isinstance(event, LossesReported):
            self._end_texts()
            for loss in event.losses:
                self.notify(
                    f"{'incomplete' if loss.kind == 'answer' else f'not preserved: {loss.kind}'}: {loss.detail}"
                )
        elif isinstance(event, ContextCompacted):
            self._end_texts()
            self.notify(f"the context was full: {event.dropped} messages were left out for the model, and are kept")
        self._refresh()

    def clear(self) -> None:
        """Print what is unfinished, so that a question can be printed, which shows what a call would change."""
        self._end_texts()
        self._was_asked = True

    def finish(self, run: Run, /, conversation_id: str | None = None) -> None:  # noqa: ARG002 - for JSON lines
        """Show the end of the turn."""
        self._end_texts()
        if run.stopped == "cancelled":
            waiting = {call.id for call in run.conversation.pending}
            for call_id, call in self._calls.items():
                if call_id in self._started and call_id not in waiting:
                    self._print_line((f"{format_call(call)}  →  ", ""), ("cancelled", "red"))
        self._calls, self._started = {}, {}
        self._refresh()

    def notify(self, text: str) -> None:
        """Print a notice."""
        self._print_line(("; ".join(escape_line(line) for line in text.splitlines()), "yellow"))

    def print_lines(self, lines: Iterable[str], is_diff: bool = False) -> None:
        """Print escaped lines, wrapped at words."""
        for line in lines:
            self._print_line((line, DIFF_STYLES.get(line[:1], "") if is_diff else ""))

    def list_live_lines(self, height: int) -> Iterator[str]:
        """Yield the lines for what is happening now, at most about `height`: text so far, and running calls."""
        rest = self._text.rest or self._reasoning.rest
        if rest:
            width = max(4, self._find_width() - 1)
            shown = max(1, height - len(self._started))
            # Drawn again with each token: of a long text only the end is looked at.
            lines = [piece for line in rest.split("\n")[-shown:] for piece in _fold(line, width)]
            yield from lines[-shown:]
        now = time.monotonic()
        for call_id, started in list(self._started.items())[:height]:
            progress = self._progress.get(call_id, "")
            yield f"{format_call(self._calls[call_id])}  … {now - started:.0f} s{f'  {progress}' if progress else ''}"

    def _print_blocks(self, blocks: list[str]) -> None:
        for block in blocks:
            self._write(f"{render_block(block, self._find_width())}\n")

    def _end_reasoning(self) -> None:
        rest = self._reasoning.close()
        if rest.strip():
            self._write(f"{render_block(rest, self._find_width(), is_dim=True)}\n")

    def _end_texts(self) -> None:
        self._end_reasoning()
        rest = self._text.close()
        if rest.strip():
            self._print_blocks([rest])

    def _print_result(self, result: ToolResult) -> None:
        self._end_texts()
        started = self._started.pop(result.call_id, None)
        call = self._calls.get(result.call_id)
        seconds = 0.0 if started is None else time.monotonic() - started
        head = format_call(call) if call is not None else escape_line(result.name)
        elapsed = f"  ({seconds:.1f} s)" if seconds >= 1 else ""
        style = "red" if result.is_error else "green"
        summary, below = summarize_lines(result, with_diff=not self._was_asked)
        self._print_line((f"{head}  →  ", ""), (summary, style), (elapsed, "dim"))
        for line in below:
            self._print_line((f"  {escape_line(line)}", DIFF_STYLES.get(line[:1], "dim")))

    def _print_line(self, *parts: tuple[str, str]) -> None:
        self._write(render_line(*parts, width=self._find_width()))


def format_call(call: ToolCall | MalformedCall) -> str:
    """Format a call as one line: what it is about, and what else is short."""
    if isinstance(call, MalformedCall):
        return f"▸ unreadable call  {summarize_arguments(call)}"
    name = f"▸ {escape_line(call.name)}  "
    try:
        arguments = call.decode()
    except (ValueError, RecursionError):
        arguments = None
    subject = next(
        (one for one in _SUBJECTS if isinstance(arguments, dict) and isinstance(arguments.get(one), str)), None
    )
    if subject is None:
        return name + summarize_arguments(call)
    others = {key: json.dumps(value, ensure_ascii=False) for key, value in arguments.items() if key != subject}
    short = [escape_line(f"  {key}={value}") for key, value in others.items() if len(value) <= _SHORT]
    return name + summarize_result(arguments[subject]) + "".join(short)


def summarize_lines(result: ToolResult, with_diff: bool) -> tuple[str, list[str]]:
    """Return a line about a result, and lines to show below it: of a change its diff, of a command its output."""
    text = result.text.strip("\n")
    lines = text.split("\n")
    if len(lines) < 2 or len(result.content) != 1:
        return summarize_result(result), []
    if result.name in _QUIET and not result.is_error:
        return pluralize(len(lines), "line"), []
    head, diff = _split_diff(lines)
    if diff:
        return "; ".join(escape_line(line) for line in head if line), _shorten_lines(diff) if with_diff else []
    return escape_line(lines[0]), _shorten_lines(lines[1:], _SHOWN_OUTPUT)


def _split_diff(lines: list[str]) -> tuple[list[str], list[str]]:
    """Split the lines of a result into those before its unified diff, and the diff."""
    start = next((at for at, line in enumerate(lines) if line.startswith("@@ ")), None)
    if start is None:
        return lines, []
    head = [line for line in lines[:start] if line != "Diff:" and line[:4] not in ("--- ", "+++ ")]
    return head, lines[start:]


def _shorten_lines(lines: list[str], most: int = _SHOWN_DIFF) -> list[str]:
    """Leave out the middle of many lines."""
    if len(lines) <= most:
        return lines
    left_out = len(lines) - most + 1
    return [*lines[: most // 2], f"… {left_out} more lines", *lines[len(lines) - (most - most // 2 - 1) :]]


def _fold(line: str, width: int) -> Iterator[str]:
    """Cut a line into pieces that the terminal has room for."""
    from ferrule.session.streamed_text import measure_width

    piece = ""
    for character in line.replace("\t", "    "):
        if measure_width(piece + character) > width:
            yield piece
            piece = ""
        piece += character
    yield piece
