"""What shows the events of a run: the protocol, and JSON lines for programs; `terminal/` shows them to people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol

from ferrule._util.terminal_text import escape_json
from ferrule.agent.run import Run
from ferrule.conversation import Image, MalformedCall, ToolCall, ToolResult
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
from ferrule.session.terminal.output import print_notice

_PLAIN = (dict, list, str, int, float, bool)


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
