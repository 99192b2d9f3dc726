"""Ferrule's own conversation format, lossless JSON: `from_json(to_json(conversation)) == conversation`.

    {"format": "ferrule-conversation", "version": 1, "now": "2026-01-31T12:00:00+00:00", "messages": [
        {"role": "user", "parts": [{"type": "text", "text": "What is 12 * 34?"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "call_1", "name": "calculator", "arguments": "…"}],
         "sampled": {"ids": […], "logprobs": […], "tokenizer_fingerprint": "…", "dialect": "…", "stop": "calls"}}]}

An image, audio or a file is its bytes in base64, or its hash if blobs are given to store it. Values that JSON can't
express are written as an object with one key: see `value_to_json`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from reprlib import Repr
from typing import Any, Protocol, get_args

from ferrule.conversation import (
    Audio,
    Conversation,
    File,
    Image,
    MalformedCall,
    Message,
    Part,
    Reasoning,
    ResultStatus,
    Role,
    SampledTokens,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
)
from ferrule.errors import ConversationError

FORMAT, VERSION = "ferrule-conversation", 1
DEEPEST = 200
"""How many levels deep `extra` and other data may be nested."""
_LONGEST_INTEGER = 14_000
"""In bits: of more than 4,300 digits, Python's JSON writes and reads none."""

# The text fields of a part, by its type's name, which are read and written in one place.
_PLAIN: dict[str, tuple[type[Any], tuple[str, ...]]] = {
    "text": (Text, ("text",)),
    "reasoning": (Reasoning, ("text",)),
    "tool_call": (ToolCall, ("id", "name", "arguments")),
    "malformed_call": (MalformedCall, ("id", "raw", "kind")),
}
_MEDIA = ("image", "audio", "file")
_TYPES = {kind: name for name, (kind, _) in _PLAIN.items()}
_TAGS = ("$float", "$bytes", "$tuple", "$object")
_SURROGATE = re.compile("[\ud800-\udfff]")


class ImageBlobs(Protocol):
    """Where images are stored by the SHA-256 of their content, or its beginning, such as a `BlobStore`."""

    def put(self, data: bytes, /) -> str:
        """Store `data`; returns its name."""

    def get(self, name: str, /) -> bytes | None:
        """The bytes with that name, or None if they aren't there."""


def to_json(conversation: Conversation, blobs: ImageBlobs | None = None) -> dict[str, Any]:
    """A conversation as JSON values. Images go to `blobs` if given, and are named by hash.

    Of the time zone of `now` only the offset from UTC is kept. Raises `ConversationError` if `extra` contains anything
    but data.
    """
    messages = [
        message_to_json(message, blobs, f"message {position}") for position, message in enumerate(conversation.messages)
    ]
    return {"format": FORMAT, "version": VERSION, "now": conversation.now.isoformat(), "messages": messages}


def dumps(conversation: Conversation, blobs: ImageBlobs | None = None, *, indent: int | None = None) -> str:
    """`to_json` as text. Half of a surrogate pair is escaped, so that the text can be written as UTF-8.

    JSON can't distinguish two consecutive halves from the character that they form: they are read back as that.
    """
    return escape_surrogates(json.dumps(to_json(conversation, blobs), ensure_ascii=False, indent=indent))


def escape_surrogates(text: str) -> str:
    """JSON text that can be encoded as UTF-8: half of a surrogate pair is escaped."""
    return _SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def loads(text: str, blobs: ImageBlobs | None = None) -> Conversation:
    """The conversation in such a text. Raises `ConversationError`, like `from_json`, and if it isn't JSON."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConversationError(f"not JSON: {error}") from error
    return from_json(data, blobs)


def from_json(data: Any, blobs: ImageBlobs | None = None) -> Conversation:
    """The conversation from which `to_json` created these values.

    Whether its calls and results match is checked by `Conversation.check`. Raises `ConversationError` that names the
    place and what is expected there.
    """
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise ConversationError(f'a conversation of ferrule is an object with "format": "{FORMAT}"')
    version = data.get("version")
    if version != VERSION:
        newer = "; a newer ferrule wrote it" if isinstance(version, int) and version > VERSION else ""
        raise ConversationError(f"the version must be {VERSION}, not {_show(version)}{newer}")
    _refuse_unknown(data, "the conversation", ("format", "version", "now", "messages"))
    written = _get_field(data, "now", str, "the conversation")
    try:
        now = datetime.fromisoformat(written)
    except ValueError as error:
        raise ConversationError(
            f"now must be a time such as 2026-01-31T12:00:00+00:00, not {_show(written)}"
        ) from error
    entries = _get_field(data, "messages", list, "the conversation")
    return Conversation(
        tuple(message_from_json(entry, blobs, f"message {position}") for position, entry in enumerate(entries)), now
    )


def message_to_json(message: Message, blobs: ImageBlobs | None = None, where: str = "the message") -> dict[str, Any]:
    """One message as JSON values; see `to_json`."""
    parts = [_part_to_json(part, blobs, f"{where}, part {at}") for at, part in enumerate(message.parts)]
    data: dict[str, Any] = {"role": message.role, "parts": parts}
    if message.sampled is not None:
        sampled = message.sampled
        data["sampled"] = {
            "ids": list(sampled.ids),
            "logprobs": [value_to_json(logprob, where) for logprob in sampled.logprobs],
            "tokenizer_fingerprint": sampled.tokenizer_fingerprint,
            "dialect": sampled.dialect,
            "stop": sampled.stop,
        }
        if sampled.sampling_logprobs:
            drawn = [value_to_json(logprob, where) for logprob in sampled.sampling_logprobs]
            data["sampled"]["sampling_logprobs"] = drawn
        if sampled.weights_versions:
            data["sampled"]["weights_versions"] = [list(run) for run in sampled.weights_versions]
    if message.extra:
        data["extra"] = value_to_json(dict(message.extra), f"{where}, extra")
    return data


def message_from_json(data: Any, blobs: ImageBlobs | None = None, where: str = "the message") -> Message:
    """The message from which `message_to_json` created these values. Raises `ConversationError`."""
    if not isinstance(data, Mapping):
        raise ConversationError(f"{where} must be an object with role and parts")
    _refuse_unknown(data, where, ("role", "parts", "sampled", "extra"))
    role = _get_one_of(data, "role", get_args(Role), where)
    entries = _get_field(data, "parts", list, where)
    parts = tuple(_part_from_json(entry, blobs, f"{where}, part {at}") for at, entry in enumerate(entries))
    sampled = _sampled_from_json(data["sampled"], f"{where}, sampled") if "sampled" in data else None
    extra = value_from_json(_get_field(data, "extra", dict, where), f"{where}, extra") if "extra" in data else {}
    if not isinstance(extra, dict):
        raise ConversationError(f"{where}: extra must be an object with values by provider")
    return Message(role, parts, sampled, extra)


def value_to_json(value: Any, where: str) -> Any:
    """Data as JSON values, extended by what JSON lacks, nested at most `DEEPEST` levels deep.

    A float that is not finite becomes `{"$float": "nan"}`, bytes `{"$bytes": <base64>}`, a tuple `{"$tuple": […]}`, and
    an object that looks like one of these `{"$object": {…}}`. Raises `ConversationError` for anything but data.
    """
    return _write_value(value, where, 0)


def _write_value(value: Any, where: str, depth: int) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return _check_digits(value, where)
    if isinstance(value, float):
        return value if value - value == 0 else {"$float": str(value)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    depth = _go_deeper(depth, where)
    if isinstance(value, list):
        return [_write_value(one, where, depth) for one in value]
    if isinstance(value, tuple):
        return {"$tuple": [_write_value(one, where, depth) for one in value]}
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ConversationError(f"{where}: the key {_show(key)} must be a string")
        plain = {key: _write_value(one, where, depth) for key, one in value.items()}
        return {"$object": plain} if _get_tag(plain) else plain
    raise ConversationError(f"{where}: a {type(value).__name__} can't be kept; give JSON values, tuples or bytes")


def _check_digits(number: int, where: str) -> int:
    if number.bit_length() > _LONGEST_INTEGER:
        raise ConversationError(f"{where}: an integer of so many digits can't be kept; give it as a string")
    return number


def _go_deeper(depth: int, where: str) -> int:
    if depth == DEEPEST:
        raise ConversationError(f"{where}: nested more than {DEEPEST} levels deep; make it flatter")
    return depth + 1


def value_from_json(data: Any, where: str) -> Any:
    """The data from which `value_to_json` created these values. Raises `ConversationError`."""
    return _read_value(data, where, 0)


def _read_value(data: Any, where: str, depth: int) -> Any:
    if not isinstance(data, list | dict):
        return data
    depth = _go_deeper(depth, where)
    if isinstance(data, list):
        return [_read_value(one, where, depth) for one in data]
    tag = _get_tag(data)
    held = data.get(tag)
    if tag == "$float" and held in ("nan", "inf", "-inf"):
        return float(held)
    if tag == "$bytes" and isinstance(held, str):
        return _decode_base64(held, where)
    if tag == "$tuple" and isinstance(held, list):
        return tuple(_read_value(one, where, depth) for one in held)
    if tag == "$object" and isinstance(held, dict):
        data = held
    elif tag:
        raise ConversationError(f"{where}: {tag} can't hold {_show(held)}")
    return {key: _read_value(one, where, depth) for key, one in data.items()}


def _get_tag(data: Mapping[str, Any]) -> str:
    (first, *_) = data or ("",)
    return first if len(data) == 1 and first in _TAGS else ""


def _part_to_json(part: Part, blobs: ImageBlobs | None, where: str) -> dict[str, Any]:
    if isinstance(part, Image | Audio | File):
        kept = {"data": base64.b64encode(part.data).decode()} if blobs is None else {"blob": blobs.put(part.data)}
        named = {"name": part.name} if isinstance(part, File) else {}
        return {"type": type(part).__name__.lower(), "media_type": part.media_type, **named, **kept}
    if isinstance(part, ToolResult):
        content = [_part_to_json(one, blobs, where) for one in part.content]
        names = {"call_id": part.call_id, "name": part.name}
        return {"type": "tool_result", **names, "status": part.status, "content": content}
    name = _TYPES.get(type(part))
    if name is None:
        raise ConversationError(f"{where}: a {type(part).__name__} can't be a part of a message")
    data = {"type": name, **{field: getattr(part, field) for field in _PLAIN[name][1]}}
    if isinstance(part, ToolCall) and part.source is not None:
        data["source"] = part.source
    return data


def _part_from_json(data: Any, blobs: ImageBlobs | None, where: str) -> Part:
    if not isinstance(data, Mapping):
        raise ConversationError(f"{where} must be an object with a type")
    name = _get_one_of(data, "type", (*_PLAIN, *_MEDIA, "tool_result"), where)
    if name in _MEDIA:
        return _media_from_json(name, data, blobs, where)
    if name == "tool_result":
        return _result_from_json(data, blobs, where)
    kind, fields = _PLAIN[name]
    values = [_get_field(data, field, str, where) for field in fields]
    if kind is ToolCall and "source" in data:
        fields, values = (*fields, "source"), [*values, _get_field(data, "source", str, where)]
    _refuse_unknown(data, where, ("type", *fields))
    part: Part = kind(*values)
    return part


def _media_from_json(kind: str, data: Mapping[str, Any], blobs: ImageBlobs | None, where: str) -> Image | Audio | File:
    fields = ("type", "media_type", "name") if kind == "file" else ("type", "media_type")
    media_type = _get_field(data, "media_type", str, where)
    if "blob" not in data:
        _refuse_unknown(data, where, (*fields, "data"))
        content = _decode_base64(_get_field(data, "data", str, where), where)
    else:
        _refuse_unknown(data, where, (*fields, "blob"))
        content = _find_blob(kind, _get_field(data, "blob", str, where), blobs, where)
    if kind == "file":
        return File(content, media_type, _get_field(data, "name", str, where))
    return Audio(content, media_type) if kind == "audio" else Image(content, media_type)


def _find_blob(kind: str, name: str, blobs: ImageBlobs | None, where: str) -> bytes:
    found = blobs.get(name) if blobs is not None else None
    if found is None:
        lacking = "needs the blobs that it was saved with" if blobs is None else "isn't in the blobs given"
        raise ConversationError(f"{where}: the {kind} {_show(name)} {lacking}")
    if not name or not hashlib.sha256(found).hexdigest().startswith(name):
        raise ConversationError(f"{where}: the blob {_show(name)} isn't what it was when it was saved")
    return found


def _result_from_json(data: Mapping[str, Any], blobs: ImageBlobs | None, where: str) -> ToolResult:
    _refuse_unknown(data, where, ("type", "call_id", "name", "status", "content"))
    content: list[Text | Image] = []
    for at, entry in enumerate(_get_field(data, "content", list, where)):
        kind = entry.get("type") if isinstance(entry, Mapping) else None
        # Looked at first, since a result in a result in a result would be read as deep as it goes.
        part = _part_from_json(entry, blobs, f"{where}, content {at}") if kind != "tool_result" else None
        if not isinstance(part, Text | Image):
            raise ConversationError(f"{where}, content {at}: a result holds text and images only")
        content.append(part)
    status = _get_one_of(data, "status", get_args(ResultStatus), where)
    return ToolResult(
        _get_field(data, "call_id", str, where), _get_field(data, "name", str, where), tuple(content), status
    )


def _sampled_from_json(data: Any, where: str) -> SampledTokens:
    if not isinstance(data, Mapping):
        raise ConversationError(f"{where} must be an object with ids, logprobs and where they are from")
    known = ("ids", "logprobs", "tokenizer_fingerprint", "dialect", "stop", "sampling_logprobs", "weights_versions")
    _refuse_unknown(data, where, known)
    ids = _get_field(data, "ids", list, where)
    if not all(map(_is_whole, ids)):
        raise ConversationError(f"{where}: ids must be whole numbers")
    drawn = "sampling_logprobs" in data
    return SampledTokens(
        tuple(ids),
        _logprobs_from_json(data, "logprobs", len(ids), where),
        _get_field(data, "tokenizer_fingerprint", str, where),
        _get_field(data, "dialect", str, where),
        _get_one_of(data, "stop", get_args(StopReason), where),
        _logprobs_from_json(data, "sampling_logprobs", len(ids), where) if drawn else (),
        _versions_from_json(data, len(ids), where) if "weights_versions" in data else (),
    )


def _logprobs_from_json(data: Mapping[str, Any], name: str, count: int, where: str) -> tuple[float, ...]:
    logprobs = [value_from_json(one, where) for one in _get_field(data, name, list, where)]
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in logprobs):
        raise ConversationError(f"{where}: {name} must be numbers")
    if count != len(logprobs):
        raise ConversationError(f"{where}: there are {count} ids and {len(logprobs)} {name}; give one for each")
    return tuple(map(float, logprobs))


def _versions_from_json(data: Mapping[str, Any], count: int, where: str) -> tuple[tuple[int, int], ...]:
    runs = _get_field(data, "weights_versions", list, where)
    if not all(isinstance(run, list) and len(run) == 2 and all(map(_is_whole, run)) for run in runs):
        raise ConversationError(f"{where}: weights_versions must be pairs of a version and a number of ids")
    if sum(number for _, number in runs) != count:
        raise ConversationError(f"{where}: there are {count} ids, and weights_versions are for another number of them")
    return tuple((version, number) for version, number in runs)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_SHORT = Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother = 2, 60, 60
_KINDS: dict[type[Any], str] = {str: "a string", list: "a list", dict: "an object"}


def _get_field(data: Mapping[str, Any], name: str, kind: type[Any], where: str) -> Any:
    value = data.get(name)
    if not isinstance(value, kind):
        said = f"not {_show(value)}" if name in data else "which is missing"
        raise ConversationError(f"{where}: {name} must be {_KINDS[kind]}, {said}")
    return value


def _get_one_of(data: Mapping[str, Any], name: str, known: tuple[str, ...], where: str) -> Any:
    value = data.get(name)
    if value not in known:
        raise ConversationError(f"{where}: {name} must be one of {', '.join(known)}, not {_show(value)}")
    return value


def _show(value: Any) -> str:
    """A short form of a value for a message: it may be long, or nested deeply."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return "an integer of thousands of digits"


def _refuse_unknown(data: Mapping[str, Any], where: str, known: tuple[str, ...]) -> None:
    unknown = [str(key) for key in data if key not in known]
    if unknown:
        raise ConversationError(
            f"{where} has {_show(min(unknown))}, which is unknown here; it holds {', '.join(known)}"
        )


def _decode_base64(text: str, where: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ConversationError(f"{where}: not base64: {error}") from error
