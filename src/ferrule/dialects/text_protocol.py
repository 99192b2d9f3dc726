"""A conversation with tools as plain text messages, for a model that has no tools of its own.

Offers are appended to the system message, calls are part of the assistant's text, results are the next user message.
The idea of tools in the text of any model comes from rigging.
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
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_message,
    user,
)
from ferrule.dialects.notation import TextNotation
from ferrule.dialects.reader.message import MessageParts
from ferrule.dialects.wording import ResultReader
from ferrule.errors import DialectError
from ferrule.events import CallFinished, ReasoningDelta, TextDelta
from ferrule.toolspec import ToolSpec

WRITTEN = "text_mode"
"""The key in a message's `extra` that holds its text as the model wrote it, calls included, by notation.

Next to it, `of` holds a hash of the message as it was: while that is unchanged, the text needn't be read again to see
whether it still matches, which would take longer than everything else here."""
_OF = "of"


def keep_source(notation: TextNotation, text: str, message: Message) -> Message:
    """A message read from `text`, keeping that text for the next time the message is written."""
    return replace(message, extra={**message.extra, WRITTEN: {notation.name: text, _OF: _hash_content(message)}})


def encode_conversation(
    notation: TextNotation, conversation: Conversation, tools: Sequence[ToolSpec], *, sends: Capabilities | None = None
) -> tuple[Conversation, list[Loss]]:
    """The conversation in text alone, and what was lost; a longer one begins with the same messages.

    A message that was read from text is written with that same text as long as its parts are unchanged. `sends`: what
    user messages may hold besides text, nothing if left out; images in results follow in a user message of their own.
    Raises `DialectError` for anything the notation can't express.
    """
    fitted, losses = adapt(conversation, _select_media(sends or Capabilities()))
    messages: list[Message] = []
    results: list[ToolResult] = []
    for message in fitted.messages:
        if message.role == "tool":
            results.append(message.result)
            continue
        _add_results(notation, results, tools, messages, losses)
        messages.append(_encode_message(notation, message, tools) if message.role == "assistant" else message)
    _add_results(notation, results, tools, messages, losses)
    return replace(conversation, messages=_add_offer(messages, notation.offer(tools))), losses


def _select_media(sends: Capabilities) -> Capabilities:
    """Capabilities for text, with what users may send besides."""
    return Capabilities(user_images=sends.user_images, user_media=sends.user_media, largest_file=sends.largest_file)


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


def _add_offer(messages: list[Message], offer: str) -> tuple[Message, ...]:
    if not offer:
        return tuple(messages)
    if messages and messages[0].role == "system":
        return system(f"{messages[0].text}\n\n{offer}"), *messages[1:]
    return system(offer), *messages


def _encode_message(notation: TextNotation, message: Message, tools: Sequence[ToolSpec]) -> Message:
    if not message.calls:
        return message
    thoughts = [part for part in message.parts if isinstance(part, Reasoning)]
    said = message.with_parts(part for part in message.parts if not isinstance(part, Reasoning))
    kept = message.extra.get(WRITTEN, {})
    written = kept.get(notation.name)
    if not isinstance(written, str) or not (
        kept.get(_OF) == _hash_content(message) or _is_unchanged(notation, written, said, tools)
    ):
        # White space between text and calls belongs to the notation.
        trimmed = (Text(part.text.strip()) if isinstance(part, Text) else part for part in said.parts)
        written = notation.message(said.with_parts(part for part in trimmed if part != Text("")), tools)
    elif thoughts:
        # The text still contains what was read from it.
        in_text = _read_reasoning(notation, written, tools)
        thoughts = [thought for thought in thoughts if thought.text not in in_text]
    return replace(assistant(*thoughts, written), extra=message.extra)


def _read_reasoning(notation: TextNotation, written: str, tools: Sequence[ToolSpec]) -> str:
    """The reasoning between its markers in a text."""
    reader = notation.reader(tools)
    events = reader.feed(written) + reader.close(stopped=True)
    return "".join(event.text for event in events if isinstance(event, ReasoningDelta))


def _hash_content(message: Message) -> str:
    """A hash of a message's texts and calls, but not of their ids, which no text contains."""
    said: list[str | list[str]] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            said.append([part.name, part.arguments])
        elif isinstance(part, MalformedCall):
            said.append([part.raw])
        elif isinstance(part, Text):
            said.append(part.text)
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def _is_unchanged(notation: TextNotation, written: str, message: Message, tools: Sequence[ToolSpec]) -> bool:
    """Whether a text still matches a message: its text and its calls, in order."""
    reader = notation.reader(tools)
    events = reader.feed(written) + reader.close(stopped=True)
    read = [(e.call.name, e.call.decode()) for e in events if isinstance(e, CallFinished)]
    calls = [(call.name, call.decode()) for call in message.calls if isinstance(call, ToolCall)]
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return read == calls and text == "".join(part.text for part in message.parts if isinstance(part, Text))


def decode_conversation(
    notation: TextNotation, conversation: Conversation, tools: Sequence[ToolSpec] = ()
) -> Conversation:
    """The conversation that was encoded as this one: with calls, results, and no offer of `tools` in the system
    message.

    Results are assigned to the calls right before them, in order. A user message that is not a group of results, or has
    more or fewer than there were calls, stays a user message. Raises `DialectError` for a notation whose results can't
    be read, `ConversationError` if calls are left without a result.
    """
    reader = notation.family.results
    if not isinstance(reader, ResultReader):
        raise DialectError(f"in the {notation.name} notation, results can't be distinguished from user messages")
    messages: list[Message] = []
    calls: Sequence[ToolCall | MalformedCall] = ()
    number = conversation.next_call_number
    for message in conversation.messages:
        if message.role == "assistant":
            lifted = _decode_assistant(notation, message, tools, number)
            number += len(lifted.calls) - len(message.calls)
            calls = lifted.calls
            messages.append(lifted)
            continue
        results = _decode_results(reader, message, calls) if message.role == "user" and calls else []
        if message.role == "system":
            messages += _remove_offer(notation, message, tools)
        else:
            messages += map(tool_message, results) if results else [message]
        calls = ()
    found = replace(conversation, messages=tuple(messages))
    found.check()
    return found


def _decode_assistant(notation: TextNotation, message: Message, tools: Sequence[ToolSpec], number: int) -> Message:
    parts: list[Part] = []
    for part in message.parts:
        parts += _read(notation, part.text, tools, number) if isinstance(part, Text) else [part]
    lifted = message.with_parts(parts)
    # Encoding it again gives the same text.
    return keep_source(notation, message.text, replace(lifted, extra=message.extra)) if lifted.calls else lifted


def _read(notation: TextNotation, text: str, tools: Sequence[ToolSpec], number: int) -> list[Part]:
    reader = notation.reader(tools, first_call=number)
    read = MessageParts(number)
    read.add(reader.feed(text) + reader.close(stopped=True))
    return read.parts


def _decode_results(
    reader: ResultReader, message: Message, calls: Sequence[ToolCall | MalformedCall]
) -> Sequence[ToolResult]:
    found = reader.read(message.text)
    if found is None or len(found) != len(calls):
        return ()
    return [
        ToolResult(
            call.id,
            call.name if isinstance(call, ToolCall) else "",
            (Text(one.text),),
            "error" if one.is_error else "ok",
        )
        for call, one in zip(calls, found, strict=True)
    ]


def _remove_offer(notation: TextNotation, message: Message, tools: Sequence[ToolSpec]) -> list[Message]:
    offer = notation.offer(tools)
    if not offer or not message.text.endswith(offer):
        return [message]
    said = message.text.removesuffix(offer).removesuffix("\n\n")
    return [message.with_parts([Text(said)])] if said else []
