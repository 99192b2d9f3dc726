"""Events as JSON objects, for programs that watch a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ferrule.conversation import Image, MalformedCall, ToolCall, ToolResult
from ferrule.events import Event, LossesReported, MessageFinished, ReasoningDelta, ResultReady, TextDelta, ToolProgress


def event_json(event: Event) -> Iterator[dict[str, Any]]:
    """The objects that tell of an event. Calls are told whole, when the message that makes them is finished."""
    if isinstance(event, TextDelta):
        yield {"event": "text", "text": event.text}
    elif isinstance(event, ReasoningDelta):
        yield {"event": "reasoning", "text": event.text}
    elif isinstance(event, LossesReported):
        yield from ({"event": "loss", "kind": loss.kind, "detail": loss.detail} for loss in event.losses)
    elif isinstance(event, MessageFinished):
        yield from map(_call, event.message.calls)
        yield {"event": "message", "stop": event.stop}
    elif isinstance(event, ToolProgress):
        yield {"event": "progress", "id": event.call_id, "text": event.text, "fraction": event.fraction}
    elif isinstance(event, ResultReady):
        yield {"event": "result", "id": event.result.call_id, **result_json(event.result)}


def result_json(result: ToolResult) -> dict[str, Any]:
    """A result: its images by kind, size and hash."""
    images = [
        {"media_type": part.media_type, "bytes": len(part.data), "hash": part.hash}
        for part in result.content
        if isinstance(part, Image)
    ]
    return {"name": result.name, "status": result.status, "text": result.text, **({"images": images} if images else {})}


def _call(call: ToolCall | MalformedCall) -> dict[str, Any]:
    if isinstance(call, MalformedCall):
        return {"event": "malformed_call", "id": call.id, "kind": call.kind, "raw": call.raw}
    try:
        arguments = call.decoded()
    except (ValueError, RecursionError):
        arguments = call.arguments
    return {"event": "call", "id": call.id, "name": call.name, "arguments": arguments}
