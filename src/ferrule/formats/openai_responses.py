"""The items of OpenAI's Responses API, written from a conversation; `openai_responses_reading.py` reads them.

    {"type": "message", "role": "user", "content": "What is 12 * 34?"}
    {"type": "function_call", "call_id": "call_1", "name": "calculator", "arguments": "{\\"expression\\": \\"12*34\\"}"}
    {"type": "function_call_output", "call_id": "call_1", "output": "408"}

Reasoning is sent back unchanged, encrypted: see `build_extra` in `openai_responses_reading.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from ferrule.capabilities import Capabilities, Loss, adapt
from ferrule.conversation import Conversation, File, Image, Message, Part, Reasoning, Text, ToolCall, ToolResult
from ferrule.errors import ConversationError
from ferrule.formats import openai
from ferrule.formats.openai_reading import join_reasoning
from ferrule.formats.openai_responses_reading import EXTRA, Item, describe_shape, load
from ferrule.formats.tool_offers import ToolNames
from ferrule.toolspec import ToolSpec, render_openai_function

__all__ = ["EXTRA", "FILE_CAPABILITIES", "MEDIA", "dump", "load", "write_items", "write_offers"]

MEDIA = ("application/pdf",)
"""The files that a user's message can hold, by media type."""
FILE_CAPABILITIES = Capabilities(
    reasoning=True, ids=True, user_images=True, image_results=True, malformed_calls=False, user_media=MEDIA
)
"""What the format can express, for any server."""

_LONGEST_ID = 64


def dump(conversation: Conversation) -> tuple[list[Item], list[Loss]]:
    """A conversation as items for a file, and what they can't represent; `load` restores what could be written.

    Reasoning that is not in encrypted items becomes a summary, which no request may contain.
    """
    fitted, losses = adapt(conversation, FILE_CAPABILITIES)
    writer = _Writer(str, is_file=True)
    for at, message in enumerate(fitted.messages):
        if at and message.role == "assistant" == fitted.messages[at - 1].role:
            writer.losses.append(Loss("text", f"message {at} (assistant): it is read as a part of the one before it"))
        if name := message.extra.get(openai.EXTRA, {}).get("name"):
            writer.losses.append(Loss("extra", f"message {at} ({message.role}): the name {name!r}"))
        writer.add(message, at)
    return writer.items, [*losses, *writer.losses, *openai.find_losses(conversation, openai.EXTRA, EXTRA)]


def write_offers(specs: Sequence[ToolSpec], names: ToolNames) -> list[Item]:
    """The tools as in a request. Without `strict: false` this API would make every parameter required."""
    return [
        {"type": "function", **render_openai_function(openai.fit_to_openai(spec, names)), "strict": False}
        for spec in specs
    ]


def write_items(conversation: Conversation, names: ToolNames | None = None) -> tuple[list[Item], list[Loss]]:
    """The `input` of a request from a conversation that was fitted by `adapt`, and what was omitted."""
    writer = _Writer(names.encode if names else str)
    for at, message in enumerate(conversation.messages):
        writer.add(message, at)
    return writer.items, writer.losses


@dataclass(slots=True)
class _Writer:
    encode_name: Callable[[str], str]
    is_file: bool = False
    """Whether it is written for a file: a request may contain less."""
    items: list[Item] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    def add(self, message: Message, at: int) -> None:
        if message.role == "tool":
            self.items.append(self._write_output(message.result))
        elif message.role == "assistant":
            self._write_assistant(message, at)
        else:
            role: str = message.role
            if role == "system" and message.extra.get(openai.EXTRA, {}).get("role") == "developer":
                role = "developer"
            details = message.extra.get(openai.EXTRA, {}).get("details", {})
            self.items.append({"type": "message", "role": role, "content": _write_content(message.parts, details)})

    def _write_assistant(self, message: Message, at: int) -> None:
        back = message.extra.get(EXTRA) or {}
        holds = bool(back) and list(back.get("of", ())) == describe_shape(message)
        before: dict[int, list[Item]] = {}
        for entry in back.get("reasoning", ()) if holds else ():
            before.setdefault(entry["before"], []).append(dict(entry["item"]))
        if not before and not self.is_file and (thought := join_reasoning(message)):
            why = "it was changed since" if back else "another model's, or not encrypted"
            self.losses.append(Loss("reasoning", f"message {at}: {len(thought)} characters do not go back: {why}"))
        phases = back.get("phases", {}) if holds else {}
        refusal = message.extra.get(openai.EXTRA, {}).get("refusal") if self.is_file else None
        place = 0
        for part in message.parts:
            if isinstance(part, Reasoning):
                if self.is_file and not before:
                    self.items.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": part.text}]})
                continue
            self.items += before.get(place, ())
            phase = {"phase": phases[str(place)]} if str(place) in phases else {}
            self.items.append({**self._write_part(part, at, refusal), **phase})
            place += 1
        if self.is_file:  # a request may not end with an item that nothing follows
            self.items += before.get(place, ())

    def _write_part(self, part: Part, at: int, refusal: str | None) -> Item:
        if isinstance(part, Text) and part.text == refusal:
            return {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": refusal}]}
        if isinstance(part, Text):
            return {"type": "message", "role": "assistant", "content": part.text}
        if isinstance(part, ToolCall):
            identifier = openai.shorten_id(part.id, _LONGEST_ID)
            arguments = part.arguments if part.arguments.strip() else "{}"
            name = self.encode_name(part.name)
            return {"type": "function_call", "call_id": identifier, "name": name, "arguments": arguments}
        if isinstance(part, Image):
            self.losses.append(Loss("image", f"{part.hash}: message {at} (assistant) can't hold an image"))
            note = f"[image {part.hash}, {part.media_type}, not shown]"
            return {"type": "message", "role": "assistant", "content": note}
        raise ConversationError(f"message {at} (assistant) holds a {type(part).__name__}; adapt the conversation first")

    def _write_output(self, result: ToolResult) -> Item:
        identifier = openai.shorten_id(result.call_id, _LONGEST_ID)
        return {"type": "function_call_output", "call_id": identifier, "output": _write_result(result)}


def _write_result(result: ToolResult) -> str | list[Item]:
    if all(isinstance(part, Text) for part in result.content):
        return result.text  # which every server takes
    return _write_content(result.content)


def _write_content(parts: Iterable[Part], details: Mapping[str, str] = MappingProxyType({})) -> str | list[Item]:
    written_parts = [_write_input(part, details) for part in parts]
    if not written_parts:
        return ""
    if len(written_parts) == 1 and written_parts[0]["type"] == "input_text":
        return str(written_parts[0]["text"])
    return written_parts


def _write_input(part: Part, details: Mapping[str, str]) -> Item:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, Image):
        detail = details.get(part.hash, "auto")
        return {"type": "input_image", "image_url": openai.encode_data_url(part), "detail": detail}
    if isinstance(part, File):
        return {"type": "input_file", "filename": part.name, "file_data": openai.encode_data_url(part)}
    raise ConversationError(f"only an assistant can hold a {type(part).__name__}")
