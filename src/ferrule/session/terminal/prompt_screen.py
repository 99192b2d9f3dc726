"""Shows a turn around a prompt: what is complete is printed above it, what is happening just before it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator

from ferrule._util.terminal_text import escape_line
from ferrule.conversation import MalformedCall, ToolCall, ToolResult
from ferrule.events import ContextCompacted, LossesReported
from ferrule.session.terminal.call_lines import BAR, DIFF_STYLES, format_call, summarize_lines
from ferrule.session.terminal.markdown_blocks import MARGIN, MarkdownBlocks, render_block, render_line
from ferrule.session.terminal.renderer import MessageCalls

_SHOWN_LIVE = 5
"""The most lines of a running command's output."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")


class PromptScreen:
    """A `Screen` with a prompt, above which `write_above` prints; `list_live_lines` are for just before it."""

    def __init__(self, write_above: Callable[[str], object], find_width: Callable[[], int]) -> None:
        self._write_above = write_above
        self._find_width = find_width
        self._text = MarkdownBlocks()
        self._reasoning = MarkdownBlocks()
        self._calls = MessageCalls()

    def write(self, text: str, is_reasoning: bool) -> None:
        """Print the blocks that are complete now."""
        if not is_reasoning:
            self._end_reasoning()
        blocks = self._reasoning if is_reasoning else self._text
        for block in blocks.write(text):
            self._print_block(block, is_dim=is_reasoning)

    def end_text(self) -> None:
        """Print what isn't complete."""
        self._end_reasoning()
        rest = self._text.close()
        if rest.strip():
            self._print_block(rest)

    def show_calls(self, calls: MessageCalls) -> None:
        """Show these calls before the prompt from now on."""
        self.end_text()
        self._calls = calls

    def show_progress(self, call_id: str) -> None:
        """Do nothing: `list_live_lines` shows it."""

    def print_result(self, result: ToolResult, *, with_diff: bool) -> None:
        """Print a call with its result, how long it took, and below it what a person wants to see."""
        self.end_text()
        started = self._calls.started.pop(result.call_id, None)
        call = self._calls.by_id.get(result.call_id)
        seconds = 0.0 if started is None else time.monotonic() - started
        head = self._format_call(call) if call is not None else f"▸ {escape_line(result.name)}"
        elapsed = f"  ({seconds:.1f} s)" if seconds >= 1 else ""
        summary, below = summarize_lines(result, with_diff=with_diff)
        self._print_line((f"{head}  →  ", ""), (summary, "red" if result.is_error else "green"), (elapsed, "dim"))
        for line in below:
            self._print_line((f"{BAR}{line}", DIFF_STYLES.get(line[:1], "dim")), indent=BAR)

    def print_losses(self, event: LossesReported | ContextCompacted) -> None:
        """Print a notice for each loss."""
        self.end_text()
        for notice in _describe_losses(event):
            self.notify(notice)

    def end_turn(self, *, is_cancelled: bool) -> None:  # noqa: ARG002 - nothing is cut off here
        """Print what isn't complete."""
        self.end_text()

    def print_cancelled(self, call: ToolCall | MalformedCall, result: ToolResult | None, *, with_diff: bool) -> None:  # noqa: ARG002
        """Print the result of a call that was cancelled, as far as it has one."""
        if result is not None:
            self.print_result(result, with_diff=with_diff)

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
            width, shown = max(4, width - len(MARGIN)), max(1, height - len(self._calls.started))
            # Drawn again with each token: of a long text only the end is looked at.
            lines = [piece for line in rest.split("\n")[-shown:] for piece in _fold(line, width)]
            yield from (f"{MARGIN}{line}" for line in lines[-shown:])
        now = time.monotonic()
        open_calls = [one for one in self._calls.by_id.items() if one[0] not in self._calls.answered][:height]
        for call_id, call in open_calls:
            head, started = self._format_call(call), self._calls.started.get(call_id)
            most = max(1, min(_SHOWN_LIVE, height // len(open_calls)))
            report = self._calls.progress.get(call_id)
            said = [] if report is None else list_last_lines(report.text, most)
            elapsed = "waits" if started is None else f"… {now - started:.0f} s"
            # A report of progress is one line, the output of a command several.
            line = f"{head}  {elapsed}{f'  {said[0]}' if len(said) == 1 else ''}"
            width = self._find_width() - 1
            yield _shorten(line, f"…  {elapsed}", width)
            yield from (_shorten(f"{BAR}{one}", "…", width) for one in (said if len(said) > 1 else ()))

    def exclude_time(self, call_id: str | None, seconds: float) -> None:
        """Leave out the time in which a person was asked by a running call; None for all of them."""
        started = self._calls.started
        for one in started if call_id is None else started.keys() & {call_id}:
            started[one] += seconds

    def _format_call(self, call: ToolCall | MalformedCall) -> str:
        return format_call(call, is_edited=call.id in self._calls.edited)

    def _end_reasoning(self) -> None:
        rest = self._reasoning.close()
        if rest.strip():
            self._print_block(rest, is_dim=True)

    def _print_block(self, block: str, *, is_dim: bool = False) -> None:
        self._write_above(f"{render_block(block, self._find_width(), is_dim=is_dim)}\n")

    def _print_line(self, *parts: tuple[str, str], indent: str = MARGIN) -> None:
        self._write_above(render_line(*parts, width=self._find_width(), indent=indent))


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
