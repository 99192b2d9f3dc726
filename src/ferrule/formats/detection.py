"""Detects the format of a conversation file by its shape, and loads and dumps each format by name.

What several formats write alike (users and assistants who only write text) is read as nanochat's: each would give the
same conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ferrule.capabilities import Loss
from ferrule.conversation import Conversation
from ferrule.errors import ConversationError
from ferrule.formats.conversation_json import FORMAT, from_json, to_json
from ferrule.formats.tool_offers import OFFER_KEYS, read_offers
from ferrule.toolspec import ToolSpec

FORMATS = ("ferrule", "openai", "openai-responses", "anthropic", "nanochat", "ovis")
_WRITE_LOSSES = ("openai", "openai-responses", "anthropic")
_PLAIN = "nanochat"
_RESPONSES = "openai-responses"

# What is unique to one format, by place.
_ROLES = {"tool": "openai", "developer": "openai", "function": "openai"}
_KEYS = dict.fromkeys(
    ("tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content", "reasoning_details"), "openai"
)
_PARTS = {
    **dict.fromkeys(("image_url", "input_audio", "refusal"), "openai"),
    **dict.fromkeys(("tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"), "anthropic"),
    **dict.fromkeys(("python", "python_output"), "nanochat"),
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), _RESPONSES),
}
_ITEMS = ("function_call", "function_call_output", "reasoning", "item_reference")


@dataclass(frozen=True, slots=True)
class FileRow:
    """One row of a file of conversations: a conversation, the tools offered in it, and the fields that neither can
    hold, with their places ("weight of message 1")."""

    conversation: Conversation
    tools: tuple[ToolSpec, ...]
    ignored: tuple[str, ...]


def load_row(data: Any, name: str | None = None) -> FileRow:
    """A conversation and its tools from decoded JSON, in the format with this name, or in the detected one.

    The tools may be offered next to the messages or in one of them, as OpenAI, Anthropic or MCP write them. Raises
    `ConversationError` as `load` does, and for a tool that is not a function.
    """
    found = check_format(name) if name else detect_format(data)
    return FileRow(load(data, name), tuple(read_offers(data)), tuple(list_left_out_fields(data, found)))


def load(data: Any, name: str | None = None) -> Conversation:
    """A conversation from decoded JSON, in the format with this name, or in the detected one.

    The tools offered in it are not part of a conversation: `load_row` returns both.

    Raises `ConversationError` for an unknown format, or with the reason why it isn't in that format.
    """
    found = check_format(name) if name else detect_format(data)
    try:
        if found == "ferrule":
            return from_json(data)
        if found == "nanochat" and isinstance(data, list):
            data = {"messages": data}
        conversation: Conversation = _import_format(found).load(data)
    except RecursionError as error:
        raise ConversationError("it is nested too deeply to be read") from error
    except ConversationError as error:
        read_as = "" if name else f" (read as {found}, which it looks like)"
        raise ConversationError(f"{error}{read_as}") from error
    return conversation


def dump(conversation: Conversation, name: str) -> tuple[Any, list[Loss]]:
    """A conversation as JSON values in the format with this name, and what it can't represent.

    Raises `ConversationError` for an unknown format, and for what a format refuses to write.
    """
    if check_format(name) == "ferrule":
        return to_json(conversation), []
    written = _import_format(name).dump(conversation)
    return written if name in _WRITE_LOSSES else (written, [])


def check_format(name: str) -> str:
    """The name of a format. Raises `ConversationError` for any other."""
    if name not in FORMATS:
        raise ConversationError(f"unknown format {name!r}; expected one of {', '.join(FORMATS)}")
    return name


def detect_format(data: Any) -> str:
    """The name of the format that decoded JSON looks like.

    Raises `ConversationError` if it looks like none, or like two.
    """
    outer = data if isinstance(data, Mapping) else {}
    if outer.get("format") == FORMAT:
        return "ferrule"
    if _is_response(outer):
        return _RESPONSES
    entries = outer.get("conversations", outer.get("messages")) if outer else data
    if not isinstance(entries, list):
        raise ConversationError(
            f'a conversation is a list of messages, or an object with a list "messages" or "conversations", with '
            f'"input" or "output" of OpenAI\'s Responses, or with "format": "{FORMAT}"; not {_describe(data)}'
        )
    reasons: dict[str, str] = {}
    for name, sign in _find_outer_signs(outer):
        reasons.setdefault(name, sign)
    messages = [(position, entry) for position, entry in enumerate(entries) if isinstance(entry, Mapping)]
    among_items = any(map(_is_item, (entry for _, entry in messages)))
    for position, entry in messages:
        for name, sign in _find_signs(entry, among_items):
            reasons.setdefault(name, f"message {position} has {sign}")
    if len(reasons) > 1:
        said = " and ".join(f"{name} ({reason})" for name, reason in sorted(reasons.items()))
        raise ConversationError(f"it looks like {said}; name its format")
    if not reasons and among_items:
        return _RESPONSES
    # Servers that speak OpenAI's format adopted these marks from Anthropic's, so they have little weight.
    is_marked = any("cache_control" in part for _, entry in messages for part in _get_parts(entry))
    return next(iter(reasons), "anthropic" if is_marked else _PLAIN)


def _is_response(outer: Mapping[str, Any]) -> bool:
    """Whether it is a request to the Responses API, or a response from it."""
    if "messages" in outer or "conversations" in outer:
        return False
    return isinstance(outer.get("input"), str | list) or isinstance(outer.get("output"), list)


def _is_item(entry: Mapping[str, Any]) -> bool:
    """Whether it looks like an item, if only by its type and a text. Anthropic's responses have that type, too, with a
    list of parts, which items name differently."""
    if entry.get("type") == "message" and isinstance(entry.get("content"), str):
        return True
    return entry.get("type") in _ITEMS or any(
        _PARTS.get(str(part.get("type"))) == _RESPONSES for part in _get_parts(entry)
    )


def _find_outer_signs(outer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is unique to one format outside the messages: its name, and the sign."""
    if "conversations" in outer:
        yield "ovis", 'it has "conversations"'
    if "system" in outer:
        yield "anthropic", '"system" stands beside the messages'
    tools = outer.get("tools")
    first = tools[0] if isinstance(tools, list) and tools else None
    if isinstance(first, Mapping) and "input_schema" in first:
        yield "anthropic", 'its tools have "input_schema"'
    elif isinstance(first, Mapping) and "function" in first:
        yield "openai", 'its tools have "function"'


def _find_signs(entry: Mapping[str, Any], among_items: bool) -> Iterator[tuple[str, str]]:
    """What is unique to one format in a message."""
    if "from" in entry and "value" in entry:
        yield "ovis", '"from" and "value"'
    if entry.get("type") in _ITEMS:
        yield _RESPONSES, f'the type "{entry["type"]}"'
        return
    role = entry.get("role")
    if isinstance(role, str) and role in _ROLES and not (among_items and role == "developer"):
        yield _ROLES[role], f'the role "{role}"'
    if "content" in entry and entry["content"] is None:
        yield "openai", "no content"
    yield from ((_KEYS[key], f'"{key}"') for key in entry if key in _KEYS)
    for part in _get_parts(entry):
        kind = part.get("type")
        if kind == "refusal" and entry.get("type") == "message":
            yield _RESPONSES, "an item that refuses"
        elif kind == "thinking" and isinstance(part.get("thinking"), list):
            yield "openai", "thoughts in a list"
        elif isinstance(kind, str) and kind in _PARTS:
            yield _PARTS[kind], f'a part of type "{kind}"'


def _get_parts(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = entry.get("content")
    return [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []


def _describe(data: Any) -> str:
    if isinstance(data, Mapping):
        return f"an object with {', '.join(map(repr, list(data)[:5])) or 'nothing'}"
    return {list: "a list", str: "a text", bool: "true or false", type(None): "null"}.get(type(data), "a number")


def _import_format(name: str) -> Any:
    return import_module(f"ferrule.formats.{name.replace('-', '_')}")


_READ = {
    "openai": {"messages"},
    "openai-responses": {"input", "output", "instructions"},
    "anthropic": {"messages", "system"},
}
_READ_OF_MESSAGES = {
    "openai": {"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal"}
    | {"reasoning_content", "reasoning", "reasoning_details", "audio"},
    "anthropic": {"role", "content"},
    "nanochat": {"role", "content", "trained"},
    "ovis": {"from", "value"},
}
_OF_ASSISTANTS = frozenset({"tool_calls", "function_call", "refusal", "reasoning_content", "reasoning"})


def list_left_out_fields(data: Any, form: str) -> list[str]:
    """The fields of decoded JSON in the format with this name that a `FileRow` can't contain, with their places.

    Of what nanochat's and Ovis's formats have next to the messages only a system prompt is listed, since nobody else
    will see it, but of a message every field: it may say whether it is to be trained (`weight`), or contain reasoning.
    """
    outer = data if isinstance(data, Mapping) else {}
    known = _READ.get(form)
    if known is not None:
        fields = [key for key in outer if key not in known and key not in OFFER_KEYS]
    else:
        fields = [key for key in ("system", "instructions") if form in ("nanochat", "ovis") and outer.get(key)]
    of_messages = _READ_OF_MESSAGES.get(form)
    entries = outer.get("messages", outer.get("conversations")) if isinstance(data, Mapping) else data
    if of_messages is None or not isinstance(entries, list):
        return fields
    found = [(at, key, entry) for at, entry in enumerate(entries) if isinstance(entry, Mapping) for key in entry]
    named = (
        f"{key} of message {at}"
        for at, key, entry in found
        if (key not in of_messages and key not in OFFER_KEYS) or _is_misplaced(key, entry)
    )
    return [*fields, *named]


def _is_misplaced(key: str, entry: Mapping[str, Any]) -> bool:
    """Whether only a message of an assistant may have this field, and another has it, with a value."""
    return key in _OF_ASSISTANTS and bool(entry[key]) and entry.get("role") != "assistant"
