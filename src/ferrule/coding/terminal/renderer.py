"""Shows the events of a turn: what is complete is printed above the prompt, what is happening just before it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

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

_SHOWN_DIFF = 40
"""The most lines of a change that are shown with a result."""


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
        """Print what is unfinished, so that something else can be printed."""
        self._end_texts()

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

    def list_live_lines(self, height: int) -> Iterator[str]:
        """Yield the lines for what is happening now, at most about `height`: text so far, and running calls."""
        rest = self._text.rest or self._reasoning.rest
        if rest:
            width = max(4, self._find_width() - 1)
            lines = [piece for line in rest.split("\n") for piece in _fold(line, width)]
            yield from lines[-max(1, height - len(self._started)) :]
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
        self._print_line((f"{head}  →  ", ""), (summarize_result(result), style), (elapsed, "dim"))
        for line in _list_diff_lines(result.text):
            self._print_line((f"  {escape_line(line)}", _DIFF_STYLES.get(line[:1], "dim")))

    def _print_line(self, *parts: tuple[str, str]) -> None:
        self._write(render_line(*parts, width=self._find_width()))


_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def format_call(call: ToolCall | MalformedCall) -> str:
    """Format a call as one line."""
    name = escape_line(call.name) if isinstance(call, ToolCall) else "unreadable call"
    return f"▸ {name}  {summarize_arguments(call)}"


def _list_diff_lines(text: str) -> list[str]:
    """List the lines of the unified diff that a result has, if it has one."""
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines[:-1]) if line[:4] == "--- " and lines[at + 1][:4] == "+++ "), None)
    if start is None:
        return []
    shown = [line for line in lines[start + 2 :] if line[:1] in ("+", "-", "@", " ")]
    return shown if len(shown) <= _SHOWN_DIFF else [*shown[:_SHOWN_DIFF], f"… {len(shown) - _SHOWN_DIFF} more lines"]


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
