"""Conversations in the shape of Google's Gemini API: `{"systemInstruction": {...}, "contents": [...]}`.

    {"systemInstruction": {"parts": [{"text": "Be brief."}]},
     "contents": [{"role": "user", "parts": [{"text": "What is 12 * 34?"}]},
                  {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "calculator",
                                                                "args": {"expression": "12 * 34"}},
                                               "thoughtSignature": "…"}]},
                  {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "calculator",
                                                                   "response": {"output": "408"}}}]}]}

`extra["google"]` contains what is sent back unchanged: the signatures of calls by their ids (`calls`), and the signed
pieces of texts and reasoning (`pieces`, see `signatures.py`). Newer Gemini models refuse unsigned calls; one from
another model is sent with the placeholder in Google's documentation, `UNSIGNED`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ferrule.capabilities import Loss
from ferrule.conversation import Audio, Conversation, File, Image, Message, Part, Reasoning, Text, ToolCall, ToolResult
from ferrule.errors import ConversationError
from ferrule.formats.calls import INVALID_KEY, keep_results, parse_arguments
from ferrule.formats.signatures import PartPositions, SignedPiece, find_pieces, match_pieces

EXTRA = "google"
UNSIGNED = "skip_thought_signature_validator"

Json = dict[str, Any]


def dump(
    conversation: Conversation, wire_name: Callable[[str], str] = str, must_sign: bool = False
) -> tuple[Json, list[Loss]]:
    """The `systemInstruction` and `contents` of a request, and what could not be written.

    `wire_name` encodes a tool's name; with `must_sign` the first call of a message is signed, whatever model wrote it.
    Raises `ConversationError` for results without a call, and for malformed calls (`adapt` the conversation first).
    """
    conversation.check()
    writer = _Writer(wire_name, must_sign)
    for position, message in enumerate(conversation.messages):
        writer.add(message, position)
    request: Json = {"contents": writer.contents}
    if writer.system:
        request = {"systemInstruction": {"parts": writer.system}, **request}
    return request, writer.losses


@dataclass(slots=True)
class _Writer:
    """A request being written."""

    wire_name: Callable[[str], str]
    must_sign: bool
    system: list[Json] = field(default_factory=list)
    contents: list[Json] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    follows_result: bool = False

    def add(self, message: Message, position: int) -> None:
        if message.role == "system" and not self.contents:
            self.system += [{"text": part.text} for part in message.parts if isinstance(part, Text) and part.text]
            return
        if message.role == "assistant":
            role, parts = "model", self._write_assistant(message, position)
        elif message.role == "tool":
            role, parts = "user", [self._write_result(message.result)]
        else:
            role, parts = "user", [_write_part(part) for part in message.parts if part != Text("")]
        if message.role == "system":
            self.losses.append(Loss("system", f"message {position} goes as a user's: it comes after the first of them"))
        # The results of one group are one content; nothing else is joined, so that a longer conversation begins with
        # exactly the contents of a shorter one.
        if message.role == "tool" and self.follows_result:
            self.contents[-1]["parts"].extend(parts)
        elif parts:
            self.contents.append({"role": role, "parts": parts})
        self.follows_result = message.role == "tool"

    def _write_result(self, result: ToolResult) -> Json:
        response: Json = {"error" if result.is_error else "output": result.text}
        written: Json = {"id": result.call_id, "name": self.wire_name(result.name), "response": response}
        if images := [_write_part(part) for part in result.content if isinstance(part, Image)]:
            written["parts"] = images
        return {"functionResponse": written}

    def _write_assistant(self, message: Message, position: int) -> list[Json]:
        kept = message.extra.get(EXTRA) or {}
        signatures = kept.get("calls", {})
        parts: list[Json] = []
        must_sign = self.must_sign
        for index in range(len(message.parts) + 1):
            part = message.parts[index] if index < len(message.parts) else None
            signed = find_pieces(kept.get("pieces", ()), index)
            parts += self._write_text(part, signed, f"message {position}")
            if isinstance(part, ToolCall):
                signature = signatures.get(part.id) or (UNSIGNED if must_sign else None)
                must_sign = False
                parts.append(self._write_call(part, signature))
            elif part is not None and not isinstance(part, Text | Reasoning):
                raise ConversationError(
                    f"message {position}: Gemini has no form for a model's {type(part).__name__};"
                    " fit the conversation with adapt() first"
                )
        return parts

    def _write_text(self, part: Part | None, signed: Sequence[SignedPiece], where: str) -> list[Json]:
        """A text or reasoning part, in its signed pieces if the part is unchanged."""
        kind = Reasoning if isinstance(part, Reasoning) else Text
        if signed and match_pieces(signed, part, kind):
            return [_write_signed(piece) for piece in signed]
        if signed:
            self.losses.append(Loss("reasoning", f"{where}: it was changed, so its signature is left out"))
        if isinstance(part, Reasoning):
            self.losses.append(Loss("reasoning", f"{where}: what was thought is not signed by Google, and is left out"))
        return [{"text": part.text}] if isinstance(part, Text) and part.text else []

    def _write_call(self, call: ToolCall, signature: str | None) -> Json:
        arguments, loss = parse_arguments(call)
        if loss is not None:
            self.losses.append(loss)
        written: Json = {"functionCall": {"id": call.id, "name": self.wire_name(call.name), "args": arguments}}
        return {**written, "thoughtSignature": signature} if signature else written


def _write_part(part: Part) -> Json:
    if isinstance(part, Text):
        return {"text": part.text}
    if isinstance(part, Image | Audio | File):
        data = base64.b64encode(part.data).decode("ascii")
        return {"inlineData": {"mimeType": part.media_type, "data": data}}
    raise ConversationError(f"a user's message can't hold a {type(part).__name__}")


def _write_signed(piece: Mapping[str, Any]) -> Json:
    written: Json = {"text": piece["text"]}
    if piece.get("thought"):
        written["thought"] = True
    if piece.get("signature"):
        written["thoughtSignature"] = piece["signature"]
    return written


def load(data: Any, own_name: Callable[[str], str] = str, *, now: datetime | None = None) -> Conversation:
    """A conversation from the decoded JSON of a request. Raises `ConversationError` naming the invalid content.

    Calls without ids get new ones, `call_1`, `call_2`, …, and results without ids answer the open calls by name.
    """
    if not isinstance(data, Mapping) or not isinstance(data.get("contents"), list):
        raise ConversationError('a conversation of Gemini is an object with a list "contents"')
    messages: list[Message] = []
    system = data.get("systemInstruction")
    if system is not None:
        messages.append(
            Message("system", tuple(_read_text_or_media(part, "system") for part in _get_parts(system, "system")))
        )
    reader = _Reader(own_name)
    for position, content in enumerate(data["contents"]):
        messages += reader.read_messages(content, f"content {position}")
    conversation = Conversation(tuple(messages)) if now is None else Conversation(tuple(messages), now)
    conversation.check()
    return conversation


@dataclass(slots=True)
class _Reader:
    """Contents being read; `open_calls` have no result yet."""

    own_name: Callable[[str], str]
    open_calls: list[ToolCall] = field(default_factory=list)
    calls: int = 0

    def read_messages(self, content: Any, where: str) -> list[Message]:
        parts = _get_parts(content, where)
        if content.get("role") == "model":
            return [self._read_model(parts, where)]
        read: list[Message] = []
        rest: list[Part] = []
        for part in parts:
            if isinstance(part.get("functionResponse"), Mapping):
                read.append(Message("tool", (self._write_result(part["functionResponse"], where),)))
            else:
                rest.append(_read_text_or_media(part, where))
        return [*read, Message("user", tuple(rest))] if rest or not read else read

    def _read_model(self, parts: Sequence[Mapping[str, Any]], where: str) -> Message:
        made: list[Part] = []
        places = PartPositions()
        signatures: dict[str, str] = {}
        pieces: list[SignedPiece] = []
        for part in parts:
            signature = part.get("thoughtSignature")
            if isinstance(part.get("functionCall"), Mapping):
                call = self._write_call(part["functionCall"], where)
                made.append(call)
                places.call()
                if signature:
                    signatures[call.id] = signature
            elif isinstance(part.get("text"), str):
                kind = Reasoning if part.get("thought") else Text
                at = places.find_index(kind, part["text"])
                if at == len(made) and part["text"]:
                    made.append(kind(part["text"]))
                elif part["text"]:
                    made[at] = kind(f"{getattr(made[at], 'text', '')}{part['text']}")
                add_piece(pieces, at, part["text"], kind is Reasoning, signature)
            else:
                raise ConversationError(f"{where}: a model's part is a text or a functionCall, not {sorted(part)}")
        return Message("assistant", tuple(made), extra=build_extra(signatures, pieces))

    def _write_call(self, written: Mapping[str, Any], where: str) -> ToolCall:
        if not isinstance(written.get("name"), str):
            raise ConversationError(f"{where}: a functionCall needs a name")
        self.calls += 1
        arguments = written.get("args") or {}
        invalid = arguments.get(INVALID_KEY) if set(arguments) == {INVALID_KEY} else None
        text = invalid if isinstance(invalid, str) else json.dumps(arguments, ensure_ascii=False)
        call = ToolCall(written.get("id") or f"call_{self.calls}", self.own_name(written["name"]), text)
        self.open_calls.append(call)
        return call

    def _write_result(self, written: Mapping[str, Any], where: str) -> ToolResult:
        identifier, name = written.get("id"), self.own_name(str(written.get("name")))
        answered = [call for call in self.open_calls if call.id == identifier or (not identifier and call.name == name)]
        if not answered:
            raise ConversationError(f"{where}: the functionResponse for {identifier or name!r} answers no open call")
        self.open_calls.remove(answered[0])
        response = written.get("response") or {}
        key = "error" if "error" in response else "output"
        only = response.get(key) if set(response) == {key} else None
        text = only if isinstance(only, str) else json.dumps(response, ensure_ascii=False)
        images = keep_results([_read_text_or_media(part, where) for part in written.get("parts", ())], where)
        return ToolResult(answered[0].id, name, (Text(text), *images), "error" if key == "error" else "ok")


def add_piece(pieces: list[SignedPiece], at: int, text: str, thought: bool, signature: str | None) -> None:
    """Add a piece of a text or of reasoning, with its signature if it has one. Unsigned ones are joined."""
    last = pieces[-1] if pieces else None
    if last is not None and last["at"] == at and not signature and "signature" not in last:
        last["text"] += text
        return
    piece: SignedPiece = {"at": at, "text": text}
    if thought:
        piece["thought"] = True
    if signature:
        piece["signature"] = signature
    pieces.append(piece)


def build_extra(signatures: Mapping[str, str], pieces: Sequence[SignedPiece]) -> dict[str, Any]:
    """The `extra` of a message: the signatures of its calls, and the pieces of the parts with a signed piece."""
    places = {piece["at"] for piece in pieces if piece.get("signature")}
    kept = {"calls": dict(signatures), "pieces": [piece for piece in pieces if piece["at"] in places]}
    filled = {key: value for key, value in kept.items() if value}
    return {EXTRA: filled} if filled else {}


def _get_parts(content: Any, where: str) -> list[Mapping[str, Any]]:
    if not isinstance(content, Mapping) or content.get("role", "user") not in ("user", "model"):
        raise ConversationError(f"{where}: it must be an object whose role is user or model")
    parts = content.get("parts")
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise ConversationError(f"{where}: it must have a list of parts")
    return parts


def _read_text_or_media(part: Any, where: str) -> Text | Image | Audio | File:
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return Text(part["text"])
    if isinstance(part, Mapping) and isinstance(part.get("inlineData"), Mapping):
        inline = part["inlineData"]
        try:
            data = base64.b64decode(str(inline.get("data", "")), validate=True)
        except ValueError as error:
            raise ConversationError(f"{where}: the inlineData is not base64: {error}") from error
        media_type = str(inline.get("mimeType", ""))
        if media_type.startswith("audio/"):
            return Audio(data, media_type)
        return Image(data, media_type) if media_type.startswith("image/") else File(data, media_type)
    raise ConversationError(f"{where}: only texts and inlineData can be read, not {part!r:.80}")
