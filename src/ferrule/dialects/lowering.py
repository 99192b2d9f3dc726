"""A conversation with tools as plain text messages, for a model that has no tools of its own.

The offer joins the system message, calls are a part of what the assistant says, results are what the user says next.
The idea of tools in the text of any model is the fifth seed's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

from ferrule.capabilities import Capabilities, Loss, adapt
from ferrule.conversation import (
    Conversation,
    MalformedCall,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    user,
)
from ferrule.dialects.family import TextNotation
from ferrule.events import CallFinished, TextDelta
from ferrule.toolspec import ToolSpec

WRITTEN = "text_mode"
"""The key of a message's `extra` that holds its text as the model wrote it, calls included, by notation.

Beside it, under `of`, is what the message then was: while it is still that, the text needn't be read to see whether it
says the same, which takes longer than all else here."""
_OF = "of"


def as_written(notation: TextNotation, text: str, message: Message) -> Message:
    """A message that was read from `text`, with that text for the next time that it is shown."""
    return replace(message, extra={**message.extra, WRITTEN: {notation.name: text, _OF: _shape(message)}})


def lower(
    notation: TextNotation, conversation: Conversation, tools: Sequence[ToolSpec], *, user_images: bool = False
) -> tuple[Conversation, list[Loss]]:
    """The conversation in text alone, and what was lost; a longer one begins with the same messages.

    A message that was read from text stands as it was written, while it still says the same. `user_images`: whether
    user messages may hold images; those of results follow in one. Raises `DialectError` for what the notation can't
    express.
    """
    fitted, losses = adapt(conversation, Capabilities(user_images=user_images))
    messages: list[Message] = []
    results: list[ToolResult] = []
    for message in fitted.messages:
        if message.role == "tool":
            results.append(message.result)
            continue
        _add_results(notation, results, tools, messages, losses)
        messages.append(_lowered(notation, message, tools) if message.role == "assistant" else message)
    _add_results(notation, results, tools, messages, losses)
    return replace(conversation, messages=_with_offer(messages, notation.offer(tools))), losses


def _add_results(
    notation: TextNotation,
    results: list[ToolResult],
    tools: Sequence[ToolSpec],
    messages: list[Message],
    losses: list[Loss],
) -> None:
    if results:
        text, broken = notation.results(results, tools)
        messages.append(user(text))
        losses += broken
        results.clear()


def _with_offer(messages: list[Message], offer: str) -> tuple[Message, ...]:
    if not offer:
        return tuple(messages)
    if messages and messages[0].role == "system":
        return system(f"{messages[0].text}\n\n{offer}"), *messages[1:]
    return system(offer), *messages


def _lowered(notation: TextNotation, message: Message, tools: Sequence[ToolSpec]) -> Message:
    if not message.calls:
        return message
    thoughts = [part for part in message.parts if isinstance(part, Reasoning)]
    said = message.with_parts(part for part in message.parts if not isinstance(part, Reasoning))
    kept = message.extra.get(WRITTEN, {})
    written = kept.get(notation.name)
    if not isinstance(written, str) or not (kept.get(_OF) == _shape(message) or _says(notation, written, said, tools)):
        # White space between text and calls is the notation's own.
        trimmed = (Text(part.text.strip()) if isinstance(part, Text) else part for part in said.parts)
        written = notation.message(said.with_parts(part for part in trimmed if part != Text("")), tools)
    return replace(assistant(*thoughts, written), extra=message.extra)


def _shape(message: Message) -> str:
    """A hash of a message's texts and calls: of their ids nothing, since no text holds them."""
    said: list[str | list[str]] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            said.append([part.name, part.arguments])
        elif isinstance(part, MalformedCall):
            said.append([part.raw])
        elif isinstance(part, Text):
            said.append(part.text)
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def _says(notation: TextNotation, written: str, message: Message, tools: Sequence[ToolSpec]) -> bool:
    """Whether a text is still what a message says: its text and its calls, in their order."""
    reader = notation.reader(tools)
    events = reader.feed(written) + reader.close(stopped=True)
    read = [(e.call.name, e.call.decoded()) for e in events if isinstance(e, CallFinished)]
    calls = [(call.name, call.decoded()) for call in message.calls if isinstance(call, ToolCall)]
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return read == calls and text == "".join(part.text for part in message.parts if isinstance(part, Text))
