"""A conversation in plain text, as `lowering.py` writes it, with its calls and results found again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ferrule.conversation import Conversation, MalformedCall, Message, Part, Text, ToolCall, ToolResult, tool_message
from ferrule.dialects.family import ResultReader, TextNotation
from ferrule.dialects.lowering import as_written
from ferrule.dialects.parts import MessageParts
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec


def lift(notation: TextNotation, conversation: Conversation, tools: Sequence[ToolSpec] = ()) -> Conversation:
    """The conversation that was lowered to this one: calls, results, and no offer of `tools` in the system message.

    Results are those of the calls right before them, in their order. A user's message that is no group of results, or
    of more or fewer than there were calls, stays what the user said. Raises `DialectError` for a notation whose
    results can't be read, `ConversationError` where calls are left without a result.
    """
    reader = notation.family.results
    if not isinstance(reader, ResultReader):
        raise DialectError(f"results in the {notation.name} notation can't be told from what a user says")
    messages: list[Message] = []
    calls: Sequence[ToolCall | MalformedCall] = ()
    number = conversation.next_call_number
    for message in conversation.messages:
        if message.role == "assistant":
            lifted = _assistant(notation, message, tools, number)
            number += len(lifted.calls) - len(message.calls)
            calls = lifted.calls
            messages.append(lifted)
            continue
        results = _results(reader, message, calls) if message.role == "user" and calls else []
        if message.role == "system":
            messages += _without_offer(notation, message, tools)
        else:
            messages += map(tool_message, results) if results else [message]
        calls = ()
    found = replace(conversation, messages=tuple(messages))
    found.check()
    return found


def _assistant(notation: TextNotation, message: Message, tools: Sequence[ToolSpec], number: int) -> Message:
    parts: list[Part] = []
    for part in message.parts:
        parts += _read(notation, part.text, tools, number) if isinstance(part, Text) else [part]
    lifted = message.with_parts(parts)
    # Lowered again, it is what it was.
    return as_written(notation, message.text, replace(lifted, extra=message.extra)) if lifted.calls else lifted


def _read(notation: TextNotation, text: str, tools: Sequence[ToolSpec], number: int) -> list[Part]:
    reader = notation.reader(tools, first_call=number)
    read = MessageParts(number)
    read.add(reader.feed(text) + reader.close(stopped=True))
    return read.parts


def _results(reader: ResultReader, message: Message, calls: Sequence[ToolCall | MalformedCall]) -> Sequence[ToolResult]:
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


def _without_offer(notation: TextNotation, message: Message, tools: Sequence[ToolSpec]) -> list[Message]:
    offer = notation.offer(tools)
    if not offer or not message.text.endswith(offer):
        return [message]
    said = message.text.removesuffix(offer).removesuffix("\n\n")
    return [message.with_parts([Text(said)])] if said else []
