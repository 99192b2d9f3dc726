"""Shows the events of a run to people: on standard output, or by another `Screen`, such as the one above a prompt."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ferrule._util.terminal_text import escape_line, escape_text
from ferrule.agent.run import Run
from ferrule.conversation import Conversation, MalformedCall, ToolCall, ToolResult
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
from ferrule.execution.error_results import is_not_run
from ferrule.session.terminal.output import print_notice
from ferrule.transcript import EDITED, name_call, remove_edit_note, summarize_arguments, summarize_result

if TYPE_CHECKING:
    from rich.console import Console

    from ferrule.session.terminal.streamed_text import StreamedText

_STYLED_PIPES = {"FORCE_COLOR", "TTY_COMPATIBLE"}
"""Environment variables that may make rich style output that isn't a terminal."""


@dataclass(slots=True)
class MessageCalls:
    """The calls of the last message, by id, and how far each is."""

    by_id: dict[str, ToolCall | MalformedCall] = field(default_factory=dict)
    """Each as it runs: one that a person has edited with the new arguments."""
    edited: set[str] = field(default_factory=set)
    started: dict[str, float] = field(default_factory=dict)
    """When those that run were started."""
    progress: dict[str, ToolProgress] = field(default_factory=dict)
    """The last report of each."""
    answered: set[str] = field(default_factory=set)
    """Those that nothing is shown of any more."""


class Screen(Protocol):
    """Where a `TextRenderer` writes, and how much of it."""

    def write(self, text: str, is_reasoning: bool) -> None:
        """Show a piece of what the model writes."""

    def end_text(self) -> None:
        """End what the model wrote, so that something else can be printed."""

    def show_calls(self, calls: MessageCalls) -> None:
        """Show the calls that a message makes; `calls` goes on to tell how far they are."""

    def show_progress(self, call_id: str) -> None:
        """Show how far one of these calls is."""

    def print_result(self, result: ToolResult, *, with_diff: bool) -> None:
        """Print a call with its result; `with_diff` also what it changed."""

    def print_losses(self, event: LossesReported | ContextCompacted) -> None:
        """Print what was lost."""

    def end_turn(self, *, is_cancelled: bool) -> None:
        """End what the model wrote in a turn that is complete, or was cancelled."""

    def print_cancelled(self, call: ToolCall | MalformedCall, result: ToolResult | None, *, with_diff: bool) -> None:
        """Print a call that was cancelled, with its result if the conversation has one."""

    def notify(self, text: str) -> None:
        """Print a notice."""


class TextRenderer:
    """A `Renderer` for people: keeps track of the calls, and lets a `Screen` print them; by default on stdout.

    `redraw` is called after each event, where what is going on is shown, too.
    """

    def __init__(self, screen: Screen | None = None, redraw: Callable[[], None] | None = None) -> None:
        self._screen: Screen = OutputScreen() if screen is None else screen
        self._redraw = redraw
        self._calls = MessageCalls()
        self._was_asked = False

    def show(self, event: Event) -> None:
        """Show one event; some have no text for people."""
        calls = self._calls
        if isinstance(event, TextDelta | ReasoningDelta):
            self._screen.write(event.text, isinstance(event, ReasoningDelta))
        elif isinstance(event, MessageFinished):
            self._calls, self._was_asked = MessageCalls({call.id: call for call in event.message.calls}), False
            self._screen.show_calls(self._calls)
        elif isinstance(event, ToolStarted):
            calls.started[event.call.id] = time.monotonic()
            if event.is_edited:
                calls.by_id[event.call.id] = event.call
                calls.edited.add(event.call.id)
        elif isinstance(event, ToolProgress):
            calls.progress[event.call_id] = event
            if event.call_id in calls.by_id:
                self._screen.show_progress(event.call_id)
        elif isinstance(event, ResultReady):
            calls.answered.add(event.result.call_id)
            is_edited = event.result.call_id in calls.edited
            result = remove_edit_note(event.result) if is_edited else event.result
            self._screen.print_result(result, with_diff=not self._was_asked)
        elif isinstance(event, LossesReported | ContextCompacted):
            self._screen.print_losses(event)
        if self._redraw is not None:
            self._redraw()

    def clear(self) -> None:
        """Print what is unfinished, so that a question can be printed, which shows what a call would change."""
        self._screen.end_text()
        self._was_asked = True

    def finish(self, run: Run, /, conversation_id: str | None = None) -> None:  # noqa: ARG002 - for JSON lines
        """Show the end of the turn, and which calls were cancelled, but not those that wait for a decision."""
        calls, is_cancelled = self._calls, run.stopped == "cancelled"
        self._screen.end_turn(is_cancelled=is_cancelled)
        if is_cancelled:
            known = calls.answered | {call.id for call in run.conversation.pending}
            results = _find_last_results(run.conversation)
            for call in [one for one in calls.by_id.values() if one.id not in known]:
                result = results.get(call.id)
                if result is not None and call.id in calls.edited:
                    result = remove_edit_note(result)
                self._screen.print_cancelled(call, result, with_diff=not self._was_asked)
        calls.answered |= calls.by_id.keys()
        calls.started.clear()
        if self._redraw is not None:
            self._redraw()

    def notify(self, text: str) -> None:
        """Show a notice."""
        self._screen.notify(text)


class OutputScreen:
    """Prints each call on a line, `▸ calculator  2+2  →  4`, and the answer as it comes; notices go to stderr.

    On a terminal, a running call is shown with its progress on a line that its result replaces, text is wrapped at
    words, and an answer's Markdown is rendered. `margin` stands before each line of the answer there, so that it can't
    imitate a line of a call.
    """

    def __init__(self, margin: str = "") -> None:
        self._margin = margin
        self._is_terminal = sys.stdout.isatty()
        self._console: Console | None = None
        if self._is_terminal or _STYLED_PIPES & os.environ.keys():
            # It takes a while to import, and piped output doesn't need it.
            from rich.console import Console

            self._console = Console(highlight=False, soft_wrap=True)
        # Lines are overwritten only on a terminal, even where colours are forced.
        self._can_overwrite = self._console is not None and self._is_terminal and not self._console.is_dumb_terminal
        self._calls = MessageCalls()
        self._last = ""
        self._at_start = True
        self._is_transient = False
        self._streamed: StreamedText | None = None
        self._streamed_style = ""

    def write(self, text: str, is_reasoning: bool) -> None:
        """Print a piece of text; reasoning only on a terminal."""
        if not text or (is_reasoning and not self._can_overwrite):
            return
        if self._is_transient:
            self.end_text()
        if self._console is not None and self._is_terminal:
            self._stream_text(escape_text(text, self._last), "dim" if is_reasoning else "")
        else:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._at_start = text.endswith("\n")
        self._last = (self._last + text)[-2:]

    def end_text(self) -> None:
        """Erase a transient line, or end an unfinished one."""
        if self._streamed is not None:
            self._streamed.finish()
            self._streamed = None
        elif self._is_transient:
            sys.stdout.write("\r\x1b[K")
            self._is_transient = False
        elif not self._at_start:
            sys.stdout.write("\n")
        self._at_start = True
        sys.stdout.flush()

    def show_calls(self, calls: MessageCalls) -> None:
        """Show the calls on a line that their results replace."""
        self._calls = calls
        if calls.by_id and self._can_overwrite:
            self._print_transient(*map(self._format_call, calls.by_id.values()))

    def show_progress(self, call_id: str) -> None:
        """Show the last report on the line of the call."""
        if not self._can_overwrite:
            return
        report = self._calls.progress[call_id]
        share = "" if report.fraction is None else f"{report.fraction:.0%} "
        last = report.text.strip().rpartition("\n")[2]
        self._print_transient(self._format_call(self._calls.by_id[call_id]), f"  … {share}{summarize_result(last)}")

    def print_result(self, result: ToolResult, *, with_diff: bool) -> None:  # noqa: ARG002 - for a larger screen
        """Print the call with its result on one line."""
        self.end_text()
        call = self._calls.by_id.get(result.call_id)
        head = self._format_call(call) if call is not None else escape_line(result.name)
        self._print_line(f"{head}  →  ", summarize_result(result), "red" if result.is_error else "green")

    def print_losses(self, event: LossesReported | ContextCompacted) -> None:
        """Print losses on a line, and why an answer is incomplete on another."""
        if isinstance(event, ContextCompacted):
            return
        self.end_text()
        ends = [loss.detail for loss in event.losses if loss.kind == "answer"]
        lost = [f"{loss.kind}: {loss.detail}" for loss in event.losses if loss.kind != "answer"]
        for head, said in (("not preserved  ", lost), ("incomplete  ", ends)):
            if said:
                self._print_line(head, summarize_result("; ".join(said)), "dim", "dim")

    def end_turn(self, *, is_cancelled: bool) -> None:
        """End the last line, to which a terminal has added `^C` after Ctrl-C."""
        if is_cancelled and self._streamed is not None:
            self._streamed.finish(is_cut_off=True)
            self._streamed = None
        elif is_cancelled and self._is_terminal:
            self._at_start = False
        self.end_text()

    def print_cancelled(self, call: ToolCall | MalformedCall, result: ToolResult | None, *, with_diff: bool) -> None:  # noqa: ARG002
        """Print whether the call was run."""
        said = "not run" if result is not None and is_not_run(result) else "cancelled"
        self._print_line(f"{self._format_call(call)}  →  ", said, "red")

    def notify(self, text: str) -> None:
        """Print a notice on stderr."""
        print_notice(text)

    def _format_call(self, call: ToolCall | MalformedCall) -> str:
        head = f"▸ {name_call(call)}  {summarize_arguments(call)}".rstrip()
        return f"{head}{EDITED if call.id in self._calls.edited else ''}"

    def _print_line(self, head: str, tail: str, style: str, head_style: str = "") -> None:
        if self._console is not None and self._console.is_terminal:
            from rich.text import Text

            mark = "▸" if head.startswith("▸") else ""
            line = Text.assemble((mark, "cyan"), (head.removeprefix(mark), head_style), (tail, style))
            width, margin = self._console.width - 1, self._margin
            if margin and line.cell_len > width:
                line = Text(f"\n{margin}").join(line.wrap(self._console, width - len(margin), overflow="fold"))
            self._console.print(line, soft_wrap=bool(margin))
        else:
            sys.stdout.write(f"{head}{tail}\n")
            sys.stdout.flush()

    def _print_transient(self, *pieces: str) -> None:
        """Print a line that the next output replaces."""
        from ferrule.session.terminal.streamed_text import truncate

        assert self._console is not None
        self.end_text()
        line = truncate("  ".join(pieces), self._console.width - 1)
        self._console.print(line, style="dim", end="", markup=False, emoji=False)
        sys.stdout.flush()
        self._is_transient, self._at_start = True, False

    def _stream_text(self, text: str, style: str) -> None:
        from ferrule.session.terminal.streamed_text import StreamedText

        assert self._console is not None
        if self._streamed is None or style != self._streamed_style:
            self.end_text()
            is_markdown = self._can_overwrite and not style
            self._streamed = StreamedText(self._console, is_markdown=is_markdown, style=style, margin=self._margin)
            self._streamed_style = style
        self._streamed.write(text)


def _find_last_results(conversation: Conversation) -> dict[str, ToolResult]:
    """Find the results of the last calls, by call id."""
    found: dict[str, ToolResult] = {}
    for message in reversed(conversation.messages):
        if message.role != "tool":
            break
        found.setdefault(message.result.call_id, message.result)
    return found
