"""Reads OpenAI's chat-completions messages into a conversation: current, legacy, and other servers' variants.

`CallOrder` in `calls.py` handles ids and the order of results. An invalid conversation (an orphan result) is refused
with its message's number.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ferrule.conversation import (
    Audio,
    Conversation,
    File,
    Image,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
)
from ferrule.errors import ConversationError
from ferrule.formats.calls import CallOrder

AUDIO_FORMATS = {"audio/wav": "wav", "audio/mpeg": "mp3"}
"""The formats of recorded sound, by media type."""
EXTRA = "openai"
"""The key of `Message.extra` for what a message has besides its parts: its name, the role `developer`, a refusal."""

_ROLES = "system, developer, user, assistant, tool or function"
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w=.+-]+)*;base64,(.*)", re.DOTALL)


def load(data: Any, *, now: datetime | None = None) -> Conversation:
    """A conversation from a list of messages, or from a request: an object with a list `messages`.

    `now` is the time of the conversation, by default the current one. Raises `ConversationError` naming the message by
    its index and what to do.
    """
    entries = data.get("messages") if isinstance(data, Mapping) else data
    if not isinstance(entries, list):
        raise ConversationError('an OpenAI conversation is a list of messages, or an object with a list "messages"')
    reader = _Reader()
    for at, entry in enumerate(entries):
        reader.read(entry, at)
    reader.end_results()
    messages = tuple(reader.messages)
    conversation = Conversation(messages) if now is None else Conversation(messages, now)
    conversation.check()
    return conversation


@dataclass(slots=True)
class _Reader:
    """The messages so far, and the calls waiting for results."""

    messages: list[Message] = field(default_factory=list)
    calls: CallOrder = field(default_factory=CallOrder)

    def read(self, entry: Any, at: int) -> None:
        if not isinstance(entry, Mapping):
            raise ConversationError(f"message {at} must be an object with role and content")
        role = entry.get("role")
        where = f"message {at} ({role})"
        if role in ("tool", "function"):
            self._read_result(entry, where)
            return
        self.end_results()
        if role == "assistant":
            self._read_assistant(entry, where)
        elif role in ("system", "developer", "user"):
            self.messages.append(_read_plain(entry, role, where))
        else:
            raise ConversationError(f"message {at}: the role must be {_ROLES}, not {role!r}")

    def end_results(self) -> None:
        """End a group of results: they are put into the order of their calls."""
        self.messages += self.calls.take_results()

    def _read_assistant(self, entry: Mapping[str, Any], where: str) -> None:
        if entry.get("audio"):
            raise ConversationError(f"{where}: audio can't be held; replace it by its transcript")
        thought = entry.get("reasoning_content") or entry.get("reasoning") or ""
        if not isinstance(thought, str):
            raise ConversationError(f"{where}: reasoning must be a text")
        parts: list[Part] = [Reasoning(thought)] if thought else []
        parts += [part for part in _read_parts(entry.get("content"), where) if part != Text("")]
        extra = _read_name(entry)
        if isinstance(refusal := entry.get("refusal"), str) and refusal:
            parts.append(Text(refusal))
            extra["refusal"] = refusal
        if details := entry.get("reasoning_details"):
            reasoning = "".join(part.text for part in parts if isinstance(part, Reasoning))
            extra.update(reasoning_details=details, reasoning=reasoning)
        self.calls.begin()
        parts += self._read_calls(entry, where)
        self.messages.append(Message("assistant", tuple(parts), None, {EXTRA: extra} if extra else {}))

    def _read_calls(self, entry: Mapping[str, Any], where: str) -> list[ToolCall]:
        written = entry.get("tool_calls") or ()
        if not isinstance(written, list | tuple):
            raise ConversationError(f"{where}: tool_calls must be a list of calls")
        if legacy := entry.get("function_call"):
            written = [*written, {"function": legacy}]
        return [self._read_call(call, f"{where}, call {place}") for place, call in enumerate(written)]

    def _read_call(self, entry: Any, where: str) -> ToolCall:
        if isinstance(entry, Mapping) and entry.get("type", "function") not in ("function", None):
            raise ConversationError(
                f"{where}: a call of type {entry['type']!r} can't be held; give it as a function with arguments"
            )
        function = entry.get("function") if isinstance(entry, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise ConversationError(f"{where}: a call is an object with an id and a function with name and arguments")
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
        native = entry.get("id") or ""
        if not isinstance(native, str):
            raise ConversationError(f"{where}: the id must be a text, not {native!r}")
        return self.calls.call(native, function["name"], arguments)

    def _read_result(self, entry: Mapping[str, Any], where: str) -> None:
        key = "tool_call_id" if entry["role"] == "tool" else "name"
        wanted = entry.get(key)
        if not isinstance(wanted, str):
            raise ConversationError(f"{where}: a result needs the {key} of the call that it answers")
        content = [part for part in _read_parts(entry.get("content"), where) if isinstance(part, Text | Image)]
        if not self.calls.answer(wanted, content, by_name=key == "name"):
            raise ConversationError(
                f"{where}: the result for {wanted!r} answers no open call; remove it, or fix its {key} "
                "or the assistant message before it"
            )


def _read_plain(entry: Mapping[str, Any], role: str, where: str) -> Message:
    """A message of a system, developer or user."""
    extra = _read_name(entry)
    if role == "developer":
        extra["role"] = role
    content = entry.get("content")
    if content is None:
        raise ConversationError(f"{where}: the content must be a text or a list of parts")
    parts = _read_parts(content, where)
    if role != "user" and any(not isinstance(part, Text) for part in parts):
        raise ConversationError(f"{where}: only a user can show an image; move it into a user message")
    if isinstance(content, list) and (details := _get_details(content, parts)):
        extra["details"] = details
    return Message("user" if role == "user" else "system", tuple(parts), None, {EXTRA: extra} if extra else {})


def _read_name(entry: Mapping[str, Any]) -> dict[str, Any]:
    name = entry.get("name")
    return {"name": name} if isinstance(name, str) and name else {}


def _get_details(content: list[Any], parts: list[Part]) -> dict[str, str]:
    """The requested detail of images, by their hashes."""
    images = [part for part in parts if isinstance(part, Image)]
    asked = [entry["image_url"].get("detail") for entry in content if entry.get("type") == "image_url"]
    return {image.hash: detail for image, detail in zip(images, asked, strict=True) if isinstance(detail, str)}


def _read_parts(content: Any, where: str) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)]
    if not isinstance(content, list):
        raise ConversationError(f"{where}: the content must be a text or a list of parts")
    return [_read_part(entry, f"{where}, part {place}") for place, entry in enumerate(content)]


def _read_part(entry: Any, where: str) -> Part:
    kind = entry.get("type") if isinstance(entry, Mapping) else None
    if kind in ("text", "refusal") and isinstance(entry.get(kind), str):
        return Text(entry[kind])
    if kind == "thinking" and isinstance(entry.get("thinking"), list):
        return Reasoning("".join(str(piece.get("text", "")) for piece in entry["thinking"]))
    if kind == "image_url" and isinstance(entry.get("image_url"), Mapping):
        return decode_data_url(entry["image_url"].get("url"), where)
    if kind == "input_audio" and isinstance(entry.get("input_audio"), Mapping):
        return _read_audio(entry["input_audio"], where)
    if kind == "file" and isinstance(entry.get("file"), Mapping):
        return read_file(entry["file"], where)
    raise ConversationError(
        f"{where}: a part of type {kind!r} can't be held; give a text, an image_url, an input_audio or a file"
    )


def _read_audio(sent: Mapping[str, Any], where: str) -> Audio:
    media_type = next((kind for kind, name in AUDIO_FORMATS.items() if name == sent.get("format")), None)
    try:
        data = base64.b64decode(str(sent.get("data", "")), validate=True)
    except binascii.Error:
        data = b""
    if media_type is None or not data:
        raise ConversationError(f"{where}: an input_audio needs the format wav or mp3, and data in base64")
    return Audio(data, media_type)


def read_file(sent: Mapping[str, Any], where: str) -> File:
    """A file with its `filename` and `file_data`. Raises `ConversationError` for one that is only named by an id."""
    if not isinstance(sent.get("file_data"), str):
        raise ConversationError(f"{where}: a file that was uploaded is not fetched; give it as file_data, a data: URL")
    matched = _DATA_URL.fullmatch(sent["file_data"])
    try:
        data = base64.b64decode(matched[2], validate=True) if matched else b""
    except binascii.Error:
        data = b""
    if matched is None or not data:
        raise ConversationError(f"{where}: a file is given as data:application/pdf;base64,… with its bytes in base64")
    return File(data, matched[1], str(sent.get("filename") or "file"))


def decode_data_url(url: Any, where: str) -> Image:
    """The image in a data: URL. Raises `ConversationError` for any other address."""
    if not isinstance(url, str):
        raise ConversationError(f"{where}: an image needs a url")
    if not url.startswith("data:"):
        raise ConversationError(
            f"{where}: the image at {url[:80]!r} is not fetched; load it and give it as data:image/png;base64,…"
        )
    matched = _DATA_URL.fullmatch(url)
    try:
        data = base64.b64decode(matched[2], validate=True) if matched else b""
    except binascii.Error:
        data = b""
    if matched is None or not data:
        raise ConversationError(f"{where}: an image is given as data:image/png;base64,… with its bytes in base64")
    return Image(data, matched[1])


def join_reasoning(message: Message) -> str:
    """All reasoning in a message; what is kept in its `extra` is valid only while this is unchanged."""
    return "".join(part.text for part in message.parts if isinstance(part, Reasoning))
