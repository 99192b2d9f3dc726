"""The items of OpenAI's Responses API, written from a conversation.

    {"type": "message", "role": "user", "content": "What is 12 * 34?"}
    {"type": "function_call", "call_id": "call_1", "name": "calculator", "arguments": "{\\"expression\\": \\"12*34\\"}"}
    {"type": "function_call_output", "call_id": "call_1", "output": "408"}

What a model thought goes back as it came, encrypted: `Message.extra["openai_responses"]` holds these items with their
places, as long as the rest of the message is what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ferrule.capabilities import Loss
from ferrule.conversation import Conversation, Image, Message, Part, Reasoning, Text, ToolCall, ToolResult
from ferrule.errors import ConversationError
from ferrule.formats import openai
from ferrule.formats.names import ToolNames
from ferrule.toolspec import ToolSpec

EXTRA = "openai_responses"
_LONGEST_ID = 64

Item = dict[str, Any]


def offered(specs: Sequence[ToolSpec], names: ToolNames) -> list[Item]:
    """The tools as a request offers them. Without `strict: false` this API would make every parameter required."""
    return [{"type": "function", **openai.function_of(spec, names), "strict": False} for spec in specs]


def written(conversation: Conversation, names: ToolNames | None = None) -> tuple[list[Item], list[Loss]]:
    """The `input` of a request from a conversation that was fitted by `adapt`, and what was left out."""
    writer = _Writer(names.wire if names else str)
    for at, message in enumerate(conversation.messages):
        writer.add(message, at)
    return writer.items, writer.losses


def kept(reasoning: Sequence[tuple[int, Item]], phases: dict[int, str], message: Message) -> dict[str, Any]:
    """What a message's `extra` holds for the way back: items of reasoning with how many other parts come before each,
    the phases of texts by their place among those parts, and what the message must still be for them to hold."""
    if not reasoning and not phases:
        return {}
    items = [{"before": before, "item": item} for before, item in reasoning]
    return {"reasoning": items, "phases": {str(at): phase for at, phase in phases.items()}, "of": _shape(message)}


def _shape(message: Message) -> list[str]:
    """What a message is made of, in as far as items of reasoning depend on it."""
    others = ["text" if isinstance(part, Text) else "call" for part in message.parts if not isinstance(part, Reasoning)]
    return [openai.joined_reasoning(message), *others]


@dataclass(slots=True)
class _Writer:
    wire: Callable[[str], str]
    items: list[Item] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    def add(self, message: Message, at: int) -> None:
        if message.role == "tool":
            self.items.append(self._output(message.result))
        elif message.role == "assistant":
            self._said(message, at)
        else:
            role: str = message.role
            if role == "system" and message.extra.get(openai.EXTRA, {}).get("role") == "developer":
                role = "developer"
            self.items.append({"type": "message", "role": role, "content": _content(message.parts)})

    def _said(self, message: Message, at: int) -> None:
        back = message.extra.get(EXTRA) or {}
        holds = bool(back) and list(back.get("of", ())) == _shape(message)
        before: dict[int, list[Item]] = {}
        for entry in back.get("reasoning", ()) if holds else ():
            before.setdefault(entry["before"], []).append(dict(entry["item"]))
        if not before and (thought := openai.joined_reasoning(message)):
            why = "it was changed since" if back else "another model's, or not encrypted"
            self.losses.append(Loss("reasoning", f"message {at}: {len(thought)} characters do not go back: {why}"))
        phases = back.get("phases", {}) if holds else {}
        others = [part for part in message.parts if not isinstance(part, Reasoning)]
        for place, part in enumerate(others):
            self.items += before.get(place, ())
            phase = {"phase": phases[str(place)]} if str(place) in phases else {}
            self.items.append({**self._part(part, at), **phase})

    def _part(self, part: Part, at: int) -> Item:
        if isinstance(part, Text):
            return {"type": "message", "role": "assistant", "content": part.text}
        if isinstance(part, ToolCall):
            identifier = openai.short_id(part.id, _LONGEST_ID)
            arguments = part.arguments if part.arguments.strip() else "{}"
            name = self.wire(part.name)
            return {"type": "function_call", "call_id": identifier, "name": name, "arguments": arguments}
        if isinstance(part, Image):
            self.losses.append(Loss("image", f"{part.hash}: message {at} (assistant) can't hold an image"))
            note = f"[image {part.hash}, {part.media_type}, not shown]"
            return {"type": "message", "role": "assistant", "content": note}
        raise ConversationError(f"message {at} (assistant) holds a {type(part).__name__}; adapt the conversation first")

    def _output(self, result: ToolResult) -> Item:
        identifier = openai.short_id(result.call_id, _LONGEST_ID)
        return {"type": "function_call_output", "call_id": identifier, "output": _content(result.content)}


def _content(parts: Iterable[Part]) -> str | list[Item]:
    written_parts = [_input(part) for part in parts]
    if not written_parts:
        return ""
    if len(written_parts) == 1 and written_parts[0]["type"] == "input_text":
        return str(written_parts[0]["text"])
    return written_parts


def _input(part: Part) -> Item:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": openai.data_url(part), "detail": "auto"}
    raise ConversationError(f"only an assistant can hold a {type(part).__name__}")
