"""Shows the events of a run: as text for people, as JSON lines for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ferrule._util.terminal_text import escape_json, escape_line, escape_text
from ferrule.agent.run import Run
from ferrule.capabilities import Loss
from ferrule.conversation import Conversation, Image, MalformedCall, ToolCall, ToolResult
from ferrule.events import (
    Event,
    LossesReported,
    MessageFinished,
    ReasoningDelta,
    ResultReady,
    RunFinished,
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

_PLAIN = (dict, list, str, int, float, bool)
_STYLED_PIPES = {"FORCE_COLOR", "TTY_COMPATIBLE"}
"""Environment variables that may make rich style output that isn't a terminal."""


class Renderer(Protocol):
    """Shows the events of a run."""

    def show(self, event: Event) -> None:
        """Show one event."""

    def clear(self) -> None:
        """Move to the start of a line, so that something else can be printed."""

    def finish(self, run: Run, /, conversation_id: str | None = None) -> None:
        """Show that the run has ended, complete or not; `conversation_id` is that of the saved conversation."""

    def notify(self, text: str) -> None:
        """Show a notice that isn't part of an event."""


class JsonRenderer:
    """Prints one JSON object a line on stdout."""

    def show(self, event: Event) -> None:
        """Print the event's JSON; the end of the run is printed by `finish`."""
        if not isinstance(event, RunFinished):
            for line in event_to_json(event):
                _print_json_line(line)

    def clear(self) -> None:
        """Do nothing: every line is complete."""

    def finish(self, run: Run, /, conversation_id: str | None = None) -> None:
        """Print how the run ended, with its last answer and the id under which the conversation was saved."""
        usage = {
            "prompt": run.usage.prompt_tokens,
            "cached": run.usage.cached_tokens,
            "sampled": run.usage.sampled_tokens,
        }
        reason = run.stopped or "error"
        output = {"output": run.output} if type(run.output) in _PLAIN else {}
        if run.stop_detail:
            output["error" if reason == "error" else "detail"] = run.stop_detail
        saved = {"conversation": conversation_id} if conversation_id is not None else {}
        end = {"event": "finished", "reason": reason, "answer": run.text, **output, **saved, "tokens": usage}
        _print_json_line(end)

    def notify(self, text: str) -> None:
        """Print a notice on stderr."""
        print_notice(text)


class TextRenderer:
    """Prints each call on a line, `▸ calculator  2+2  →  4`, and the answer as it comes.

    On a terminal, a running call is shown with its progress on a line that its result replaces, text is wrapped at
    words, and an answer's Markdown is rendered. `margin` stands before each line of the answer there, so that it can't
    imitate a line of a call.
    """

    def __init__(self, margin: str = "") -> None:
        self._margin = margin
        self._is_terminal = sys.stdout.isatty()
        # rich takes a while to import, and piped output doesn't need it.
        self._console = _open_console() if self._is_terminal or _STYLED_PIPES & os.environ.keys() else None
        # Lines are overwritten only on a terminal, even where colours are forced.
        self._can_overwrite = self._console is not None and self._is_terminal and not self._console.is_dumb_terminal
        self._last = ""
        self._calls: dict[str, ToolCall | MalformedCall] = {}
        self._open_calls: dict[str, ToolCall | MalformedCall] = {}
        self._edited: set[str] = set()
        self._at_start = True
        self._is_transient = False
        self._streamed: StreamedText | None = None
        self._streamed_style = ""

    def show(self, event: Event) -> None:
        """Show one event; some have no text for people."""
        if isinstance(event, TextDelta):
            self._print_text(event.text)
        elif isinstance(event, ReasoningDelta) and self._can_overwrite:
            self._print_text(event.text, "dim")
        elif isinstance(event, MessageFinished):
            self._calls = {call.id: call for call in event.message.calls}
            self._open_calls = dict(self._calls)
            self._edited.clear()
            if self._calls:
                self._print_transient(*(self._format_call(call) for call in self._calls.values()))
        elif isinstance(event, ToolProgress) and event.call_id in self._calls:
            share = "" if event.fraction is None else f"{event.fraction:.0%} "
            last = event.text.strip().rpartition("\n")[2]
            self._print_transient(self._format_call(self._calls[event.call_id]), f"  … {share}{summarize_result(last)}")
        elif isinstance(event, ToolStarted):
            if event.is_edited:
                self._calls[event.call.id] = event.call
                self._edited.add(event.call.id)
        elif isinstance(event, ResultReady):
            self._print_result(event.result)
        elif isinstance(event, LossesReported):
            self._print_losses(event.losses)

    def clear(self) -> None:
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

    def finish(self, run: Run, /, conversation_id: str | None = None) -> None:  # noqa: ARG002 - for JSON lines
        """End the last line, to which a terminal has added `^C` after Ctrl-C, and show which calls were cancelled."""
        if run.stopped == "cancelled" and self._streamed is not None:
            self._streamed.finish(is_cut_off=True)
            self._streamed = None
        elif run.stopped == "cancelled" and self._is_terminal:
            self._at_start = False
        self.clear()
        if run.stopped == "cancelled":
            self._print_cancelled(run)
        self._open_calls.clear()

    def notify(self, text: str) -> None:
        """Print a notice on stderr."""
        print_notice(text)

    def _print_cancelled(self, run: Run) -> None:
        """Print the calls without a result, but not those that keep waiting for a decision."""
        waiting = {call.id for call in run.conversation.pending}
        results = find_last_results(run.conversation)
        for call in self._open_calls.values():
            if call.id not in waiting:
                result = results.get(call.id)
                said = "not run" if result is not None and is_not_run(result) else "cancelled"
                self._print_line(f"{self._format_call(call)}  →  ", said, "red")

    def _print_result(self, result: ToolResult) -> None:
        self.clear()
        self._open_calls.pop(result.call_id, None)
        call = self._calls.get(result.call_id)
        head = self._format_call(call) if call is not None else escape_line(result.name)
        style = "red" if result.is_error else "green"
        shown = remove_edit_note(result) if result.call_id in self._edited else result
        self._print_line(f"{head}  →  ", summarize_result(shown), style)

    def _print_losses(self, losses: Sequence[Loss]) -> None:
        self.clear()
        ends = [loss.detail for loss in losses if loss.kind == "answer"]
        lost = [f"{loss.kind}: {loss.detail}" for loss in losses if loss.kind != "answer"]
        for head, said in (("not preserved  ", lost), ("incomplete  ", ends)):
            if said:
                self._print_line(head, summarize_result("; ".join(said)), "dim", "dim")

    def _format_call(self, call: ToolCall | MalformedCall) -> str:
        head = f"▸ {name_call(call)}  {summarize_arguments(call)}".rstrip()
        return f"{head}{EDITED if call.id in self._edited else ''}"

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
        if self._console is None or not self._can_overwrite:
            return
        from ferrule.session.terminal.streamed_text import truncate

        self.clear()
        line = truncate("  ".join(pieces), self._console.width - 1)
        self._console.print(line, style="dim", end="", markup=False, emoji=False)
        sys.stdout.flush()
        self._is_transient, self._at_start = True, False

    def _print_text(self, text: str, style: str = "") -> None:
        if not text:
            return
        if self._is_transient:
            self.clear()
        if self._console is not None and self._is_terminal:
            self._stream_text(escape_text(text, self._last), style)
        else:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._at_start = text.endswith("\n")
        self._last = (self._last + text)[-2:]

    def _stream_text(self, text: str, style: str) -> None:
        from ferrule.session.terminal.streamed_text import StreamedText

        assert self._console is not None
        if self._streamed is None or style != self._streamed_style:
            self.clear()
            is_markdown = self._can_overwrite and not style
            self._streamed = StreamedText(self._console, is_markdown=is_markdown, style=style, margin=self._margin)
            self._streamed_style = style
        self._streamed.write(text)


def find_last_results(conversation: Conversation) -> dict[str, ToolResult]:
    """Find the results of the last calls, by call id."""
    found: dict[str, ToolResult] = {}
    for message in reversed(conversation.messages):
        if message.role != "tool":
            break
        found.setdefault(message.result.call_id, message.result)
    return found


def _open_console() -> Console:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def event_to_json(event: Event) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of an event. Calls are complete: they come when their message is finished."""
    if isinstance(event, TextDelta):
        yield {"event": "text", "text": event.text}
    elif isinstance(event, ReasoningDelta):
        yield {"event": "reasoning", "text": event.text}
    elif isinstance(event, LossesReported):
        yield from ({"event": "loss", "kind": loss.kind, "detail": loss.detail} for loss in event.losses)
    elif isinstance(event, MessageFinished):
        confidences = event.confidences or (None,) * len(event.message.calls)
        yield from map(_call_json, event.message.calls, confidences)
        for call, confidence in zip(event.withheld, event.confidences, strict=False):
            yield {**_call_json(call, confidence), "event": "withheld_call"}
        yield {"event": "message", "stop": event.stop}
    elif isinstance(event, ToolStarted):
        if event.is_edited:
            arguments = arguments_to_json(event.call)
            yield {"event": "edited", "id": event.call.id, "name": event.call.name, "arguments": arguments}
    elif isinstance(event, ToolProgress):
        yield {"event": "progress", "id": event.call_id, "text": event.text, "fraction": event.fraction}
    elif isinstance(event, ResultReady):
        yield {"event": "result", "id": event.result.call_id, **result_to_json(event.result)}


def result_to_json(result: ToolResult) -> dict[str, Any]:
    """Convert a result to JSON data, with the media type, size and hash of each image."""
    images = [
        {"media_type": part.media_type, "bytes": len(part.data), "hash": part.hash}
        for part in result.content
        if isinstance(part, Image)
    ]
    return {"name": result.name, "status": result.status, "text": result.text, **({"images": images} if images else {})}


def arguments_to_json(call: ToolCall) -> Any:
    """Decode the arguments of a call, or return their text if standard JSON can't express them (such as infinity)."""
    try:
        arguments = call.decode()
        json.dumps(arguments, allow_nan=False)
    except (ValueError, RecursionError):
        return call.arguments
    return arguments


def _call_json(call: ToolCall | MalformedCall, confidence: float | None) -> dict[str, Any]:
    if isinstance(call, MalformedCall):
        return {"event": "malformed_call", "id": call.id, "kind": call.kind, "raw": call.raw}
    known = {} if confidence is None else {"confidence": float(f"{confidence:.4g}")}
    return {"event": "call", "id": call.id, "name": call.name, "arguments": arguments_to_json(call), **known}


def _print_json_line(value: object) -> None:
    print(escape_json(value), flush=True)
