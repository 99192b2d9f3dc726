"""Shows the events of a turn: what is complete is printed above the prompt, what is happening just before it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from ferrule._util.terminal_text import escape_line
from ferrule.agent.run import Run
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
    ToolStarted,
)
from ferrule.session.terminal.call_lines import BAR, DIFF_STYLES, format_call, summarize_lines
from ferrule.session.terminal.markdown_blocks import MARGIN, MarkdownBlocks, render_block, render_line
from ferrule.session.terminal.renderer import find_last_results
from ferrule.transcript import remove_edit_note

_SHOWN_LIVE = 5
"""The most lines of a running command's output."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")


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
        self._answered: set[str] = set()
        self._started: dict[str, float] = {}
        self._progress: dict[str, str] = {}
        self._edited: set[str] = set()
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
            self._begin_calls(event.message.calls)
        elif isinstance(event, ToolStarted):
            self._start(event)
        elif isinstance(event, ToolProgress):
            self._progress[event.call_id] = event.text
        elif isinstance(event, ResultReady):
            self._print_result(event.result)
        elif isinstance(event, LossesReported | ContextCompacted):
            self._end_texts()
            for notice in _describe_losses(event):
                self.notify(notice)
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
            results = find_last_results(run.conversation)
            for call_id in [one for one in self._calls if one not in self._answered | waiting and one in results]:
                self._print_result(results[call_id])
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
            width, shown = max(4, width - len(MARGIN)), max(1, height - len(self._started))
            # Drawn again with each token: of a long text only the end is looked at.
            lines = [piece for line in rest.split("\n")[-shown:] for piece in _fold(line, width)]
            yield from (f"{MARGIN}{line}" for line in lines[-shown:])
        now = time.monotonic()
        open_calls = [one for one in self._calls.items() if one[0] not in self._answered][:height]
        for call_id, call in open_calls:
            head, started = self._format_call(call), self._started.get(call_id)
            most = max(1, min(_SHOWN_LIVE, height // len(open_calls)))
            said = list_last_lines(self._progress.get(call_id, ""), most)
            elapsed = "waits" if started is None else f"… {now - started:.0f} s"
            # A report of progress is one line, the output of a command several.
            line = f"{head}  {elapsed}{f'  {said[0]}' if len(said) == 1 else ''}"
            width = self._find_width() - 1
            yield _shorten(line, f"…  {elapsed}", width)
            yield from (_shorten(f"{BAR}{one}", "…", width) for one in (said if len(said) > 1 else ()))

    def exclude_time(self, call_id: str | None, seconds: float) -> None:
        """Leave out the time in which a person was asked by a running call; None for all of them."""
        for one in self._started if call_id is None else self._started.keys() & {call_id}:
            self._started[one] += seconds

    def _begin_calls(self, calls: Sequence[ToolCall | MalformedCall]) -> None:
        self._end_texts()
        self._calls = {call.id: call for call in calls}
        for known in (self._answered, self._started, self._edited, self._progress):
            known.clear()
        self._was_asked = False

    def _start(self, event: ToolStarted) -> None:
        """Remember since when a call runs, and with which arguments."""
        self._started[event.call.id] = time.monotonic()
        if event.is_edited:
            self._calls[event.call.id] = event.call
            self._edited.add(event.call.id)

    def _format_call(self, call: ToolCall | MalformedCall) -> str:
        return format_call(call, is_edited=call.id in self._edited)

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
        self._answered.add(result.call_id)
        head = self._format_call(call) if call is not None else f"▸ {escape_line(result.name)}"
        elapsed = f"  ({seconds:.1f} s)" if seconds >= 1 else ""
        style = "red" if result.is_error else "green"
        if result.call_id in self._edited:
            result = remove_edit_note(result)
        summary, below = summarize_lines(result, with_diff=not self._was_asked)
        self._print_line((f"{head}  →  ", ""), (summary, style), (elapsed, "dim"))
        for line in below:
            self._print_line((f"{BAR}{line}", DIFF_STYLES.get(line[:1], "dim")), indent=BAR)

    def _print_line(self, *parts: tuple[str, str], indent: str = MARGIN) -> None:
        self._write(render_line(*parts, width=self._find_width(), indent=indent))


def _describe_losses(event: LossesReported | ContextCompacted) -> Iterator[str]:
    if isinstance(event, ContextCompacted):
        yield f"the context was full: {event.dropped} messages were left out for the model, and are kept"
        return
    for loss in event.losses:
        yield f"{'incomplete' if loss.kind == 'answer' else f'not preserved: {loss.kind}'}: {loss.detail}"


def list_last_lines(text: str, most: int) -> list[str]:
    """List the last lines of what a running call has written, escaped, without colours and what was overwritten."""
    lines = [_COLOUR.sub("", line.rstrip("\r").rpartition("\r")[2]) for line in text.split("\n")]
    return [escape_line(line) for line in lines if line.strip()][-most:]


def _shorten(line: str, end: str, width: int) -> str:
    """Cut a line that is too long for the terminal, with `end` in place of what is left out."""
    from ferrule.session.terminal.streamed_text import measure_width

    if measure_width(line) <= width:
        return line
    return next(_fold(line, max(4, width - measure_width(end)))) + end


def _fold(line: str, width: int) -> Iterator[str]:
    """Cut a line into pieces that the terminal has room for."""
    from ferrule.session.terminal.streamed_text import measure_width

    piece = ""
    for character in line.replace("\t", "    "):
        if measure_width(piece + character) > width:
            yield piece
            piece = ""
        piece += character
    yield piece
