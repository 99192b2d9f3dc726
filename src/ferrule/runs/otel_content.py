"""What is said, as the JSON that the semantic conventions want in a span's attributes; secrets by name are scrubbed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ferrule.conversation import Conversation, Image, MalformedCall, Message, Reasoning, Text, ToolCall
from ferrule.execution.scrubbing import scrubbed
from ferrule.toolspec import ToolSpec


def input_messages(conversation: Conversation) -> str:
    """A conversation, for `gen_ai.input.messages`."""
    return written([_message(message) for message in conversation.messages])


def output_messages(message: Message, reason: str) -> str:
    """A message that was written, for `gen_ai.output.messages`."""
    return written([{**_message(message), "finish_reason": reason}])


def tool_definitions(offered: Sequence[ToolSpec]) -> str:
    """Offers, for `gen_ai.tool.definitions`."""
    return written(
        [
            {"type": "function", "name": one.name, "description": one.description, "parameters": dict(one.parameters)}
            for one in offered
        ]
    )


def written(value: Any) -> str:
    """A value as JSON."""
    return json.dumps(scrubbed(value), ensure_ascii=False, default=str)


def _message(message: Message) -> dict[str, Any]:
    return {"role": message.role, "parts": list(_parts(message))}


def _parts(message: Message) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        yield {"type": "tool_call_response", "id": message.result.call_id, "response": message.result.text}
        return
    for part in message.parts:
        if isinstance(part, Text):
            yield {"type": "text", "content": part.text}
        elif isinstance(part, Reasoning):
            yield {"type": "reasoning", "content": part.text}
        elif isinstance(part, ToolCall):
            yield {"type": "tool_call", "id": part.id, "name": part.name, "arguments": _arguments(part)}
        elif isinstance(part, MalformedCall):
            yield {"type": "text", "content": part.raw}
        elif isinstance(part, Image):
            yield {"type": "image", "mime_type": part.media_type, "hash": part.hash}


def _arguments(call: ToolCall) -> Any:
    try:
        return call.decoded()
    except (ValueError, RecursionError):
        return call.arguments
