"""What people and programs see of a run: its events, as lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Protocol

from ferrule.capabilities import Loss
from ferrule.cli.event_json import event_json
from ferrule.cli.words import answer_words, arguments_words, result_words
from ferrule.conversation import MalformedCall, ToolCall, ToolResult
from ferrule.events import (
    Event,
    LossesReported,
    MessageFinished,
    ReasoningDelta,
    ResultReady,
    RunFinished,
    TextDelta,
    ToolProgress,
)
from ferrule.pipeline import Run


class Screen(Protocol):
    """Where a run is shown."""

    def hear(self, event: Event) -> None:
        """Show one event."""

    def clear(self) -> None:
        """Leave the cursor at the start of a line: somebody else writes next."""

    def finish(self, run: Run, /) -> None:
        """The run is over, whole or not."""


class JsonScreen:
    """One JSON object a line on stdout."""

    def hear(self, event: Event) -> None:
        """Print what a program may want; the end of the run is `finish`'s."""
        if not isinstance(event, RunFinished):
            for line in event_json(event):
                _print_json(line)

    def clear(self) -> None:
        """Every line is whole."""

    def finish(self, run: Run, /) -> None:
        """Print how the run ended, with its last answer."""
        usage = {
            "prompt": run.usage.prompt_tokens,
            "cached": run.usage.cached_tokens,
            "sampled": run.usage.sampled_tokens,
        }
        reason = run.stopped or "error"
        _print_json({"event": "finished", "reason": reason, "answer": run.text, "tokens": usage})


class PeopleScreen:
    """Calls a line each, `▸ calculator  2+2  →  4`, and the answer as it comes.

    On a terminal a call that runs is shown, with what it tells of itself, in a line that its result replaces.
    """

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(highlight=False, soft_wrap=True)
        # What overwrites a line is for a terminal only, whatever is said about colours.
        self._moves = sys.stdout.isatty() and not self._console.is_dumb_terminal
        self._calls: dict[str, ToolCall | MalformedCall] = {}
        self._at_start = True
        self._passing = False

    def hear(self, event: Event) -> None:
        """Show one event; those that say nothing to people are passed over."""
        if isinstance(event, TextDelta):
            self._write(event.text)
        elif isinstance(event, ReasoningDelta) and self._moves:
            self._write(event.text, "dim")
        elif isinstance(event, MessageFinished):
            self._calls = {call.id: call for call in event.message.calls}
            if self._calls:
                self._pass(*(self._head(call) for call in self._calls.values()))
        elif isinstance(event, ToolProgress) and event.call_id in self._calls:
            share = "" if event.fraction is None else f"{event.fraction:.0%} "
            self._pass(self._head(self._calls[event.call_id]), f"  … {share}{result_words(event.text)}")
        elif isinstance(event, ResultReady):
            self._result(event.result)
        elif isinstance(event, LossesReported):
            self._not_carried(event.losses)

    def clear(self) -> None:
        """Wipe a passing line, or end the one that was begun."""
        if self._passing:
            sys.stdout.write("\r\x1b[K")
            self._passing = False
        elif not self._at_start:
            sys.stdout.write("\n")
        self._at_start = True
        sys.stdout.flush()

    def finish(self, run: Run, /) -> None:
        """End the last line; after Ctrl-C a terminal has written `^C` into it."""
        if run.stopped == "cancelled" and self._moves:
            self._at_start = False
        self.clear()

    def _result(self, result: ToolResult) -> None:
        self.clear()
        call = self._calls.get(result.call_id)
        head = self._head(call) if call is not None else result.name
        style = "red" if result.is_error else "green"
        self._line(f"{head}  →  ", result_words(result), style)

    def _not_carried(self, losses: Sequence[Loss]) -> None:
        self.clear()
        said = "; ".join(f"{loss.kind}: {loss.detail}" for loss in losses)
        self._line("not carried  ", result_words(said), "dim", "dim")

    def _head(self, call: ToolCall | MalformedCall) -> str:
        name = call.name if isinstance(call, ToolCall) else "unreadable call"
        return f"▸ {name}  {arguments_words(call)}"

    def _line(self, head: str, tail: str, style: str, head_style: str = "") -> None:
        from rich.text import Text

        if self._console.is_terminal:
            mark = "▸" if head.startswith("▸") else ""
            self._console.print(Text.assemble((mark, "cyan"), (head.removeprefix(mark), head_style), (tail, style)))
        else:
            sys.stdout.write(f"{head}{tail}\n")
            sys.stdout.flush()

    def _pass(self, *pieces: str) -> None:
        """Show a line that the next thing shown replaces."""
        from rich.text import Text

        if not self._moves:
            return
        self.clear()
        line = Text("  ".join(pieces), style="dim")
        line.truncate(max(1, self._console.width - 1), overflow="ellipsis")
        self._console.print(line, end="")
        sys.stdout.flush()
        self._passing, self._at_start = True, False

    def _write(self, text: str, style: str = "") -> None:
        if not text:
            return
        if self._passing:
            self.clear()
        shown = answer_words(text) if self._moves else text
        if style:
            self._console.print(shown, style=style, end="", markup=False, emoji=False)
        else:
            sys.stdout.write(shown)
        sys.stdout.flush()
        self._at_start = text.endswith("\n")


def _print_json(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False), flush=True)
