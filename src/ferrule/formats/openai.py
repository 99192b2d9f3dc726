"""OpenAI's chat-completions messages, written from a conversation; `openai_reading.py` reads them.

    {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{\\"zone\\": \\"UTC\\"}"}}]}
    {"role": "tool", "tool_call_id": "call_1", "content": "12:00"}

The servers that speak this format differ in details, described by a `ChatStyle`. A message never depends on later ones,
so the messages of a conversation are a prefix of those of the same conversation with more at its end.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ferrule.capabilities import Capabilities, Loss, adapt
from ferrule.conversation import (
    Audio,
    Conversation,
    File,
    Image,
    MalformedCall,
    Message,
    Text,
    ToolCall,
    ToolResult,
)
from ferrule.errors import ConversationError
from ferrule.formats.calls import parse_arguments
from ferrule.formats.openai_reading import AUDIO_FORMATS, EXTRA, join_reasoning, load
from ferrule.formats.tool_offers import ToolNames, make_parameters_schema, make_strict_schema
from ferrule.toolspec import ToolSpec, render_openai_tool

__all__ = [
    "EXTRA",
    "FILE_CAPABILITIES",
    "MEDIA",
    "ChatStyle",
    "dump",
    "find_losses",
    "load",
    "write_messages",
    "write_offers",
]

MEDIA = (*AUDIO_FORMATS, "application/pdf")
"""The audio and files that a user's message can hold, by media type."""
FILE_CAPABILITIES = Capabilities(reasoning=True, ids=True, user_images=True, malformed_calls=False, user_media=MEDIA)
"""What the format can express, for any server."""

_BETWEEN = "…"
_NINE = re.compile(r"[A-Za-z0-9]{9}")
_LONGEST_ID = 40
_BASE = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class ChatStyle:
    """What a server accepts in addition to what all of them do."""

    reasoning: Literal["reasoning_content", "reasoning", "thinking"] | None = "reasoning_content"
    """The field for sending back reasoning, `thinking` for parts of the content (Mistral's); None: it isn't sent."""
    details: bool = True
    """Whether `reasoning_details` are sent back unchanged (OpenRouter's)."""
    developer: bool = True
    """Whether there is a role `developer` as well as `system`."""
    named: bool = True
    """Whether a message may have a `name`."""
    refusal: bool = True
    """Whether an assistant's `refusal` is a separate field."""
    text_lists: bool = True
    """Whether the content of an assistant or a tool may be a list of texts."""
    json_arguments: bool = False
    """Whether arguments must be a JSON object: many chat templates decode them, and fail otherwise."""
    user_after_result: bool = True
    """Whether a user message may directly follow a result (not with Mistral)."""
    ids: Literal["any", "short", "nine"] = "any"
    """Ids unchanged, with at most 40 characters (OpenAI's), or of nine letters and digits (Mistral's)."""


def dump(conversation: Conversation) -> tuple[list[dict[str, Any]], list[Loss]]:
    """A conversation as messages for a file, and what they can't represent.

    `load` restores what could be written: not a result's status, the sampled ids and other providers' extras.
    """
    fitted, losses = adapt(conversation, FILE_CAPABILITIES)
    messages, more = write_messages(fitted)
    return messages, [*losses, *more, *find_losses(conversation, EXTRA)]


def write_offers(specs: Sequence[ToolSpec], names: ToolNames, *, strict: bool = False) -> list[dict[str, Any]]:
    """The tools as a request offers them. `strict` asks that arguments are constrained by those schemas that can be."""
    offers = [render_openai_tool(fit_to_openai(spec, names)) for spec in specs]
    for offer in offers if strict else ():
        if make_strict_schema(offer["function"]["parameters"]) is not None:
            offer["function"]["strict"] = True
    return offers


def fit_to_openai(spec: ToolSpec, names: ToolNames) -> ToolSpec:
    """A tool with a name that OpenAI accepts, and parameters as a schema that its validator accepts."""
    return replace(spec, name=names.encode(spec.name), parameters=make_parameters_schema(spec.parameters))


def write_messages(
    conversation: Conversation, style: ChatStyle | None = None, names: ToolNames | None = None
) -> tuple[list[dict[str, Any]], list[Loss]]:
    """A conversation that was fitted by `adapt` as messages, and what was omitted or moved.

    Without `names`, tools keep their own names. Raises `ConversationError` for what `adapt` should have fitted.
    """
    writer = _Writer(style or ChatStyle(), names.encode if names else str)
    messages: list[dict[str, Any]] = []
    for at, message in enumerate(conversation.messages):
        if (
            message.role == "user"
            and messages
            and messages[-1]["role"] == "tool"
            and not writer.style.user_after_result
        ):
            messages.append({"role": "assistant", "content": _BETWEEN})
            writer.losses.append(Loss("text", f"message {at}: an assistant's {_BETWEEN!r} stands before it"))
        messages.append(writer.write_message(message, at))
    return messages, writer.losses


def encode_data_url(image: Image | File) -> str:
    """An image or a file as a data: URL."""
    return f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"


def shorten_id(call_id: str, longest: int = _LONGEST_ID) -> str:
    """An id with at most `longest` characters: the given one, or one made from its hash."""
    if len(call_id) <= longest:
        return call_id
    return f"call_{hashlib.sha256(call_id.encode()).hexdigest()[:32]}"


def make_nine_character_id(call_id: str) -> str:
    """An id of nine letters and digits: the given one, or one made from its hash."""
    if _NINE.fullmatch(call_id):
        return call_id
    number = int.from_bytes(hashlib.sha256(call_id.encode()).digest()[:8], "big")
    return "".join(_BASE[number // len(_BASE) ** place % len(_BASE)] for place in range(9))


@dataclass(slots=True)
class _Writer:
    """Writes one message after another, and collects what can't be represented."""

    style: ChatStyle
    encode_name: Callable[[str], str]
    losses: list[Loss] = field(default_factory=list)

    def write_message(self, message: Message, at: int) -> dict[str, Any]:
        if message.role == "tool":
            return self._write_result(message.result)
        kept = message.extra.get(EXTRA, {})
        named = {"name": kept["name"]} if "name" in kept and self.style.named else {}
        if message.role == "assistant":
            return {"role": "assistant", **named, **self._write_assistant(message, kept, at)}
        if message.role == "system":
            role = "developer" if kept.get("role") == "developer" and self.style.developer else "system"
            return {"role": role, **named, "content": _write_content(self._write_texts(message, at))}
        parts = [self._write_user_part(part, kept, at) for part in message.parts]
        return {"role": "user", **named, "content": _write_content(parts)}

    def _write_texts(self, message: Message, at: int) -> list[dict[str, Any]]:
        """The texts of a message that can otherwise only contain calls and reasoning."""
        texts = []
        for part in message.parts:
            if isinstance(part, Text):
                texts.append({"type": "text", "text": part.text})
            elif isinstance(part, Image):
                self.losses.append(Loss("image", f"{part.hash}: {_find_place(message, at)} can't hold an image"))
                texts.append({"type": "text", "text": f"[image {part.hash}, {part.media_type}, not shown]"})
            elif isinstance(part, MalformedCall | ToolResult):
                raise ConversationError(
                    f"{_find_place(message, at)} holds a {type(part).__name__}; adapt the conversation first"
                )
        return texts

    def _write_user_part(self, part: Any, kept: dict[str, Any], at: int) -> dict[str, Any]:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        if isinstance(part, Image):
            detail = kept.get("details", {}).get(part.hash)
            url = {"url": encode_data_url(part), **({"detail": detail} if detail else {})}
            return {"type": "image_url", "image_url": url}
        if isinstance(part, Audio):
            data = base64.b64encode(part.data).decode()
            return {"type": "input_audio", "input_audio": {"data": data, "format": AUDIO_FORMATS[part.media_type]}}
        if isinstance(part, File):
            return {"type": "file", "file": {"filename": part.name, "file_data": encode_data_url(part)}}
        raise ConversationError(f"message {at} (user) holds a {type(part).__name__}, which only an assistant can")

    def _write_assistant(self, message: Message, kept: dict[str, Any], at: int) -> dict[str, Any]:
        texts = self._write_texts(message, at)
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        kinds = [type(part) for part in message.parts]
        if calls and Text in kinds[kinds.index(ToolCall) :]:
            self.losses.append(Loss("text", f"{_find_place(message, at)}: text after a call stands before it"))
        refused = kept.get("refusal")
        said: dict[str, Any] = {}
        if self.style.refusal and refused and refused == message.text:
            said.update(content=None, refusal=refused)
        elif not texts:
            said["content"] = None if calls else ""
        else:
            said["content"] = _write_content(texts) if self.style.text_lists else join_texts(texts)
        self._write_reasoning(message, kept, said, at)
        if calls:
            said["tool_calls"] = [self._write_call(call) for call in calls]
        return said

    def _write_reasoning(self, message: Message, kept: dict[str, Any], said: dict[str, Any], at: int) -> None:
        thought = join_reasoning(message)
        details = kept.get("reasoning_details")
        if details and self.style.details and kept.get("reasoning") == thought:
            said["reasoning_details"] = details
        if not thought:
            return
        if self.style.reasoning is None:
            self.losses.append(
                Loss("reasoning", f"{_find_place(message, at)}: {len(thought)} characters do not go back")
            )
        elif self.style.reasoning == "thinking":
            thinking = {"type": "thinking", "thinking": [{"type": "text", "text": thought}]}
            said["content"] = [thinking, *self._write_texts(message, at)]
        else:
            said[self.style.reasoning] = thought

    def _write_call(self, call: ToolCall) -> dict[str, Any]:
        function = {"name": self.encode_name(call.name), "arguments": self._write_arguments(call)}
        return {"id": self._write_id(call.id), "type": "function", "function": function}

    def _write_arguments(self, call: ToolCall) -> str:
        if not self.style.json_arguments:
            return call.arguments
        arguments, loss = parse_arguments(call)
        if loss is None:
            return call.arguments if call.arguments.strip() else "{}"
        self.losses.append(loss)
        return json.dumps(arguments, ensure_ascii=False)

    def _write_result(self, result: ToolResult) -> dict[str, Any]:
        texts = []
        for part in result.content:
            if isinstance(part, Image):
                raise ConversationError(
                    f"the result for {result.call_id!r} holds an image; adapt the conversation first"
                )
            texts.append({"type": "text", "text": part.text})
        content = _write_content(texts) if self.style.text_lists else result.text
        return {"role": "tool", "tool_call_id": self._write_id(result.call_id), "content": content}

    def _write_id(self, call_id: str) -> str:
        if self.style.ids == "nine":
            return make_nine_character_id(call_id)
        return shorten_id(call_id) if self.style.ids == "short" else call_id


def _write_content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """The content: a string for a single text or none, which every server accepts."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return str(parts[0]["text"])
    return parts


def join_texts(texts: list[dict[str, Any]]) -> str:
    """The texts of a message as one."""
    return "".join(part["text"] for part in texts)


def _find_place(message: Message, at: int) -> str:
    return f"message {at} ({message.role})"


def find_losses(conversation: Conversation, *held: str) -> list[Loss]:
    """What a format's messages can't represent; `held` are the keys of `extra` that they can."""
    losses = []
    for at, message in enumerate(conversation.messages):
        if message.role == "tool" and message.result.is_error:
            losses.append(Loss("status", f"{_find_place(message, at)}: that the result is {message.result.status!r}"))
        if message.sampled is not None:
            losses.append(Loss("sampled", f"{_find_place(message, at)}: the ids that were sampled"))
        if any(isinstance(part, ToolCall) and part.source is not None for part in message.parts):
            losses.append(Loss("call", f"{_find_place(message, at)}: a call as the model wrote it"))
        if others := sorted(set(message.extra) - set(held)):
            losses.append(Loss("extra", f"{_find_place(message, at)}: what {', '.join(others)} wants back"))
    return losses
