"""Conversations in the shape of Anthropic's Messages API: `{"system": [...], "messages": [...]}`.

    {"system": [{"type": "text", "text": "Be brief."}],
     "messages": [{"role": "user", "content": [{"type": "text", "text": "What is 12 * 34?"}]},
                  {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "calculator",
                                                     "input": {"expression": "12 * 34"}}]},
                  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1",
                                                "content": [{"type": "text", "text": "408"}]}]}]}

There the system prompt is separate, users and assistants alternate, and results are the first blocks of a user message.
`load` reads what was sent or stored, `dump` writes what can be sent. Reasoning is sent back only as it was signed:
`extra["anthropic"]` contains pieces (`signatures.py`) with a `signature`, or with `redacted` data.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from ferrule.capabilities import Loss
from ferrule.conversation import Audio, Conversation, File, Image, Message, Part, Reasoning, Text, ToolCall, ToolResult
from ferrule.errors import ConversationError
from ferrule.formats.calls import INVALID_KEY, keep_results, parse_arguments
from ferrule.formats.signatures import SignedPiece, find_pieces, match_pieces

EXTRA = "anthropic"
FILE_TYPES = ("application/pdf", "text/plain")
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NOT_OF_AN_ID = re.compile(r"[^a-zA-Z0-9_-]")

Block = dict[str, Any]


def dump(conversation: Conversation, wire_name: Callable[[str], str] = str) -> tuple[dict[str, Any], list[Loss]]:
    """The `system` and `messages` of a request, and what could not be written; `wire_name` encodes a tool's name.

    Raises `ConversationError` for results without a call, and for malformed calls (`adapt` the conversation first).
    """
    conversation.check()
    writer = _Writer(wire_name)
    for position, message in enumerate(conversation.messages):
        writer.add(message, position)
    request: dict[str, Any] = {"messages": writer.messages}
    if writer.system:
        request = {"system": writer.system, **request}
    return request, writer.losses


def make_wire_id(identifier: str) -> str:
    """An id that Anthropic accepts: unchanged if possible, otherwise derived from it, stable and unique."""
    if _ID.fullmatch(identifier):
        return identifier
    digest = hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{_NOT_OF_AN_ID.sub('_', identifier)[:40]}_{digest}"


@dataclass(slots=True)
class _Writer:
    """A request being written."""

    wire_name: Callable[[str], str]
    system: list[Block] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    def add(self, message: Message, position: int) -> None:
        if message.role == "system":
            texts = [_write_text(part.text) for part in message.parts if isinstance(part, Text) and part.text]
            if not self.messages:
                self.system += texts
                return
            # Moving it to the front would change what every message before it was an answer to.
            self.losses.append(Loss("system", f"message {position} goes as a user's: it comes after the first of them"))
            self._append_blocks("user", texts)
        elif message.role == "tool":
            self._append_blocks("user", [self._write_result(message.result)])
        elif message.role == "user":
            self._append_blocks("user", [block for part in message.parts for block in self._write_part(part)])
        else:
            self._append_blocks("assistant", self._write_assistant(message, position))

    def _append_blocks(self, role: str, blocks: list[Block]) -> None:
        if not blocks:
            return
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"].extend(blocks)
        else:
            self.messages.append({"role": role, "content": blocks})

    def _write_part(self, part: Part) -> list[Block]:
        if isinstance(part, Image):
            return [self._write_image(part)]
        if isinstance(part, Text):
            return [_write_text(part.text)] if part.text else []
        if isinstance(part, Audio | File):
            return [self._write_media(part)]
        raise ConversationError(f"a user's message can't hold a {type(part).__name__}")

    def _write_media(self, media: Audio | File) -> Block:
        if isinstance(media, File) and media.media_type in FILE_TYPES:
            return _write_document(media)
        kind: Literal["audio", "file"] = "audio" if isinstance(media, Audio) else "file"
        self.losses.append(Loss(kind, f"{media.hash}: Anthropic takes no {media.media_type}"))
        return _write_text(f"[{kind} {media.hash}, {media.media_type}, not shown: Anthropic takes none of its type]")

    def _write_image(self, image: Image) -> Block:
        if image.media_type not in IMAGE_TYPES:
            self.losses.append(Loss("image", f"{image.hash}: Anthropic takes no {image.media_type}"))
            return _write_text(f"[image {image.hash}, {image.media_type}, not shown: Anthropic takes no such images]")
        data = base64.b64encode(image.data).decode("ascii")
        return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}

    def _write_result(self, result: ToolResult) -> Block:
        blocks = [block for part in result.content for block in self._write_part(part)]
        block: Block = {"type": "tool_result", "tool_use_id": make_wire_id(result.call_id), "content": blocks}
        if result.is_error:
            block["is_error"] = True
        return block

    def _write_assistant(self, message: Message, position: int) -> list[Block]:
        pieces = message.extra.get(EXTRA) or ()
        blocks: list[Block] = []
        # One more than there are parts: reasoning without a text may come at the very end.
        for index in range(len(message.parts) + 1):
            part = message.parts[index] if index < len(message.parts) else None
            signed = find_pieces(pieces, index)
            if match_pieces(signed, part, Reasoning):
                blocks += [_write_thinking(piece) for piece in signed]
                unsigned = isinstance(part, Reasoning) and not signed
            else:
                unsigned = True
            if unsigned:
                why = "was changed since it was signed" if signed else "was not signed by Anthropic"
                self.losses.append(Loss("reasoning", f"message {position}: what was thought {why}, and is left out"))
            if isinstance(part, Text) and part.text:
                blocks.append(_write_text(part.text))
            elif isinstance(part, ToolCall):
                blocks.append(self._write_call(part))
            elif part is not None and not isinstance(part, Text | Reasoning):
                raise ConversationError(
                    f"message {position}: Anthropic has no form for an assistant's {type(part).__name__};"
                    " fit the conversation with adapt() first"
                )
        return blocks

    def _write_call(self, call: ToolCall) -> Block:
        arguments, loss = parse_arguments(call)
        if loss is not None:
            self.losses.append(loss)
        identifier = make_wire_id(call.id)
        if identifier != call.id:
            self.losses.append(Loss("id", f"{call.id!r} goes as {identifier!r}"))
        return {"type": "tool_use", "id": identifier, "name": self.wire_name(call.name), "input": arguments}


def _write_text(text: str) -> Block:
    return {"type": "text", "text": text}


def make_signed_piece(at: int, block: Mapping[str, Any]) -> SignedPiece:
    """The piece to keep of a thinking block, for the part at `at`, so that it can be sent back."""
    if block.get("type") == "redacted_thinking":
        return {"at": at, "text": "", "redacted": block["data"]}
    return {"at": at, "text": block["thinking"], "signature": block.get("signature", "")}


def _write_thinking(piece: Mapping[str, Any]) -> Block:
    if "redacted" in piece:
        return {"type": "redacted_thinking", "data": piece["redacted"]}
    return {"type": "thinking", "thinking": piece["text"], "signature": piece["signature"]}


def load(data: Any, own_name: Callable[[str], str] = str, *, now: datetime | None = None) -> Conversation:
    """A conversation from the decoded JSON of a request. Raises `ConversationError` naming the invalid message.

    Cache marks are dropped, as are blocks about tools that Anthropic itself runs.
    """
    if not isinstance(data, Mapping) or not isinstance(data.get("messages"), list):
        raise ConversationError('a conversation of Anthropic is an object with a list "messages"')
    messages: list[Message] = []
    if system := _get_blocks(data.get("system") or [], "the system's text"):
        messages.append(Message("system", tuple(Text(_get_string(block, "text", "system")) for block in system)))
    reader = _Reader(own_name)
    for position, entry in enumerate(data["messages"]):
        messages += reader.read_messages(entry, f"message {position}")
    conversation = Conversation(tuple(messages)) if now is None else Conversation(tuple(messages), now)
    conversation.check()
    return conversation


@dataclass(slots=True)
class _Reader:
    """A request being read: the names of the calls so far, by id."""

    own_name: Callable[[str], str]
    names: dict[str, str] = field(default_factory=dict)

    def read_messages(self, entry: Any, where: str) -> list[Message]:
        if not isinstance(entry, Mapping) or entry.get("role") not in ("user", "assistant", "system"):
            raise ConversationError(f"{where}: it must be an object whose role is user, assistant or system")
        blocks = _get_blocks(entry.get("content"), where)
        if entry["role"] == "assistant":
            return [self._read_assistant(blocks, where)]
        results = [block for block in blocks if block.get("type") == "tool_result"]
        rest = [self._read_part(block, where) for block in blocks if block.get("type") != "tool_result"]
        read = [Message("tool", (self._write_result(block, where),)) for block in results]
        return [*read, Message(entry["role"], tuple(rest))] if rest or not read else read

    def _read_assistant(self, blocks: Sequence[Mapping[str, Any]], where: str) -> Message:
        parts: list[Part] = []
        signed: list[SignedPiece] = []
        for block in blocks:
            kind = block.get("type")
            if kind == "text":
                parts.append(Text(_get_string(block, "text", where)))
            elif kind == "tool_use":
                parts.append(self._write_call(block, where))
            elif kind in ("thinking", "redacted_thinking"):
                text = _get_string(block, "thinking", where) if kind == "thinking" else ""
                last = parts[-1] if parts else None
                if text and isinstance(last, Reasoning):
                    parts[-1] = Reasoning(last.text + text)
                elif text:
                    parts.append(Reasoning(text))
                at = len(parts) - (bool(parts) and isinstance(parts[-1], Reasoning))
                signed.append(make_signed_piece(at, block))
            else:
                raise ConversationError(f"{where}: an assistant's message holds no block of type {kind!r}")
        return Message("assistant", tuple(parts), extra={EXTRA: signed} if signed else {})

    def _write_call(self, block: Mapping[str, Any], where: str) -> ToolCall:
        identifier, name = _get_string(block, "id", where), self.own_name(_get_string(block, "name", where))
        self.names[identifier] = name
        arguments = block.get("input", {})
        if (
            isinstance(arguments, Mapping)
            and set(arguments) == {INVALID_KEY}
            and isinstance(arguments[INVALID_KEY], str)
        ):
            return ToolCall(identifier, name, arguments[INVALID_KEY])
        return ToolCall(identifier, name, json.dumps(arguments, ensure_ascii=False))

    def _write_result(self, block: Mapping[str, Any], where: str) -> ToolResult:
        identifier = _get_string(block, "tool_use_id", where)
        if identifier not in self.names:
            raise ConversationError(f"{where}: the result for {identifier!r} answers no call; remove it or fix its id")
        parts = [self._read_part(inner, where) for inner in _get_blocks(block.get("content", []), where)]
        content = tuple(keep_results(parts, where))
        return ToolResult(identifier, self.names[identifier], content, "error" if block.get("is_error") else "ok")

    def _read_part(self, block: Mapping[str, Any], where: str) -> Text | Image | File:
        source = block.get("source")
        if block.get("type") == "text":
            return Text(_get_string(block, "text", where))
        if block.get("type") == "image" and isinstance(source, Mapping) and source.get("type") == "base64":
            try:
                data = base64.b64decode(_get_string(source, "data", where), validate=True)
            except ValueError as error:
                raise ConversationError(f"{where}: the data of an image is not base64: {error}") from error
            return Image(data, _get_string(source, "media_type", where))
        if block.get("type") == "document" and isinstance(source, Mapping):
            return _read_document(block, source, where)
        raise ConversationError(
            f"{where}: only texts, and images and documents as base64 can be read, not {block.get('type')!r}"
        )


def _read_document(block: Mapping[str, Any], source: Mapping[str, Any], where: str) -> File:
    name, data = str(block.get("title") or "file"), _get_string(source, "data", where)
    if source.get("type") == "text":
        return File(data.encode(), "text/plain", name)
    if source.get("type") != "base64":
        raise ConversationError(f"{where}: a document of type {source.get('type')!r} is not fetched; give it as base64")
    try:
        return File(base64.b64decode(data, validate=True), _get_string(source, "media_type", where), name)
    except ValueError as error:
        raise ConversationError(f"{where}: the data of a document is not base64: {error}") from error


def _write_document(file: File) -> Block:
    text = file.text if file.media_type == "text/plain" else None
    if text is not None:
        source = {"type": "text", "media_type": "text/plain", "data": text}
    else:
        data = base64.b64encode(file.data).decode("ascii")
        source = {"type": "base64", "media_type": "application/pdf", "data": data}
    return {"type": "document", "source": source, "title": file.name}


def _get_blocks(content: Any, where: str) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [_write_text(content)]
    if not isinstance(content, list) or not all(isinstance(block, Mapping) for block in content):
        raise ConversationError(f"{where}: the content must be a string or a list of blocks")
    return content


def _get_string(block: Mapping[str, Any], key: str, where: str) -> str:
    if not isinstance(block.get(key), str):
        raise ConversationError(f"{where}: a block of type {block.get('type')!r} needs a string {key!r}")
    return str(block[key])
