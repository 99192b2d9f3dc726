"""nanochat's conversation format: an assistant's turn is a list of `text`, `python` and `python_output` parts.

    {"messages": [{"role": "user", "content": "What is 12 * 34?"},
                  {"role": "assistant", "content": [{"type": "python", "text": "12 * 34"},
                                                    {"type": "python_output", "text": "408"},
                                                    {"type": "text", "text": "12 × 34 is 408."}]}]}

One turn there is several messages here: the assistant's, its results, and the assistant's next one. Saving joins them
again. Other keys of a conversation or a message, and whether a content was a string, are kept in `extra`.

A conversation with `"tools": [{"name": …, "description": …, "parameters": …}]` offers these: in its python parts
`get_weather(city="Paris", days=2)` is a call of that tool, and any text that isn't a call of an offered tool is the
calculator's expression. An assistant's message with `"trained": false` was written in the model's place, and isn't
learnt.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferrule._util.syntax_tree import parse_python
from ferrule.conversation import Conversation, Message, Part, ResultStatus, Text, ToolCall, ToolResult, tool_message
from ferrule.dialects.notations.pythonic import write_keyword_call
from ferrule.errors import ConversationError
from ferrule.formats.tool_offers import read_offers
from ferrule.toolspec import ToolSpec

_EXTRA = "nanochat"
TOOL, PARAMETER = "calculator", "expression"


def load(data: Any) -> Conversation:
    """A conversation from decoded JSON. Raises `ConversationError` naming the message and what is expected."""
    if not isinstance(data, Mapping) or not isinstance(data.get("messages"), list):
        raise ConversationError('a nanochat conversation is an object with a list "messages"')
    messages: list[Message] = []
    number = 1
    offered = frozenset(spec.name for spec in read_offered_tools(data) or ())
    for position, entry in enumerate(data["messages"]):
        turn = _Turn(entry, position, number, offered)
        messages.extend(turn.read_messages())
        number = turn.number
    if messages:
        rest = {key: value for key, value in data.items() if key != "messages"}
        if rest:
            first = messages[0]
            extra = {_EXTRA: {**first.extra.get(_EXTRA, {}), "conversation": rest}}
            messages[0] = Message(first.role, first.parts, None, extra)
    return Conversation(tuple(messages))


@dataclass(slots=True)
class _Turn:
    """Converts one message of the file to several messages."""

    entry: Any
    position: int
    number: int
    offered: frozenset[str] = frozenset()

    def read_messages(self) -> list[Message]:
        role, content = self._read_role_and_content()
        is_trained = self.entry.get("trained", True)
        if not isinstance(is_trained, bool):
            raise ConversationError(f"message {self.position}: trained must be true or false, not {is_trained!r:.60}")
        own = ("role", "content") if is_trained else ("role", "content", "trained")
        kept = {key: value for key, value in self.entry.items() if key not in own}
        if isinstance(content, str):
            extra = {_EXTRA: {"string": True, **({"keys": kept} if kept else {})}}
            found = [Message(role, (Text(content),), None, extra)]
        else:
            found = self._read_parts(role, content)
            extra = {_EXTRA: {"starts": True, **({"keys": kept} if kept else {})}}
            found[0] = Message(found[0].role, found[0].parts, None, extra)
        return found if is_trained else [message.mark_untrained() for message in found]

    def _read_role_and_content(self) -> tuple[Any, Any]:
        where = f"message {self.position}"
        if not isinstance(self.entry, Mapping):
            raise ConversationError(f"{where} must be an object with role and content")
        role, content = self.entry.get("role"), self.entry.get("content")
        if role not in ("system", "user", "assistant"):
            raise ConversationError(f"{where}: the role must be system, user or assistant, not {role!r}")
        if not isinstance(content, str | list):
            raise ConversationError(f"{where}: the content must be a string or a list of parts")
        return role, content

    def _read_parts(self, role: Any, content: list[Any]) -> list[Message]:
        messages: list[Message] = []
        parts: list[Part] = []
        open_calls: list[ToolCall] = []
        for at, part in enumerate(content):
            kind, text = self._read_part(part, at)
            if role != "assistant" and kind != "text":
                raise ConversationError(f"message {self.position}, part {at}: only an assistant has {kind} parts")
            if kind == "python_output":
                if not open_calls:
                    raise ConversationError(
                        f"message {self.position}, part {at}: an output without a python part before it"
                    )
                if parts:
                    messages.append(Message(role, tuple(parts)))
                    parts = []
                status: ResultStatus = "error" if text.startswith("error:") else "ok"
                call = open_calls.pop(0)
                messages.append(tool_message(ToolResult(call.id, call.name, (Text(text),), status)))
            elif kind == "python":
                call = self._read_call(text, f"message {self.position}, part {at}")
                self.number += 1
                open_calls.append(call)
                parts.append(call)
            else:
                parts.append(Text(text))
        if parts or not messages:
            messages.append(Message(role, tuple(parts)))
        return messages

    def _read_call(self, text: str, where: str) -> ToolCall:
        """The call of an offered tool, or else of the calculator."""
        name = text.partition("(")[0]
        if name not in self.offered or name == TOOL:
            name, arguments = TOOL, json.dumps({PARAMETER: text}, ensure_ascii=False)
        else:
            try:
                arguments = json.dumps(parse_call_arguments(text), ensure_ascii=False, allow_nan=False)
            except (ValueError, TypeError, RecursionError) as error:
                raise ConversationError(f"{where}: {text!r} is no call of {name!r} with keywords: {error}") from error
        return ToolCall(f"call_{self.number}", name, arguments)

    def _read_part(self, part: Any, at: int) -> tuple[str, str]:
        where = f"message {self.position}, part {at}"
        if not isinstance(part, Mapping) or not isinstance(part.get("text"), str):
            raise ConversationError(f"{where}: a part is an object with a type and a text")
        kind = part.get("type")
        if kind not in ("text", "python", "python_output") or set(part) != {"type", "text"}:
            raise ConversationError(
                f"{where}: a part has a text and a type, which is text, python or python_output, and no more"
            )
        return kind, part["text"]


def read_offered_tools(data: Mapping[str, Any]) -> list[ToolSpec] | None:
    """The tools that a conversation offers, in their order; None without `tools`: then it has the calculator alone.

    Raises `ConversationError` for what isn't a list of tools.
    """
    return read_offers({"tools": data["tools"]}) if "tools" in data else None


def get_offered_tools(conversation: Conversation) -> list[ToolSpec] | None:
    """The tools that a loaded conversation offers, as `read_offered_tools` gives them."""
    first = conversation.messages[0] if conversation.messages else None
    kept = first.extra.get(_EXTRA, {}) if first is not None else {}
    return read_offered_tools(kept.get("conversation", {}))


def parse_call_arguments(text: str) -> dict[str, Any]:
    """The arguments of `name(key=value, …)`, whose values are Python literals. Raises ValueError."""
    try:
        node = parse_python(text, mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"not Python: {error}") from error
    if not isinstance(node, ast.Call) or node.args or any(keyword.arg is None for keyword in node.keywords):
        raise ValueError("expected name(key=value, …)")
    return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}


def write_call(name: str, arguments: Mapping[str, Any]) -> str:
    """`name(key=value, …)`, with texts in double quotes. Raises `ConversationError` for an object in an argument."""
    for value in arguments.values():
        if _holds_object(value):
            raise ConversationError(f"the nanochat format has no nested objects in arguments: {value!r}")
    return write_keyword_call(name, arguments)


def _holds_object(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_holds_object, value)))


def dump(conversation: Conversation) -> dict[str, Any]:
    """Decoded JSON from a conversation; `dump(load(data)) == data`.

    Raises `ConversationError` for what the format can't represent: images, tools not offered, malformed calls.
    """
    entries: list[dict[str, Any]] = []
    outer: dict[str, Any] = {}
    for message in conversation.messages:
        kept = message.extra.get(_EXTRA, {})
        outer.update(kept.get("conversation", {}))
    offered = frozenset(spec.name for spec in read_offered_tools(outer) or ())
    for message in conversation.messages:
        kept = message.extra.get(_EXTRA, {})
        starts = bool(kept) or message.role in ("system", "user")
        continues = entries and entries[-1]["role"] == "assistant" and _belongs_to(message, entries[-1])
        if continues and not starts and isinstance(entries[-1]["content"], list):
            entries[-1]["content"].extend(_write_parts(message, offered))
            continue
        if message.role == "tool":
            raise ConversationError(f"the result for {message.result.call_id!r} follows no assistant's turn")
        content: Any = _write_parts(message, offered)
        if kept.get("string") or (message.role in ("system", "user") and not kept):
            content = message.text
        untrained = {} if message.is_trained else {"trained": False}
        entries.append({"role": message.role, "content": content, **untrained, **kept.get("keys", {})})
    return {"messages": entries, **outer}


def _belongs_to(message: Message, entry: Mapping[str, Any]) -> bool:
    """Whether a message may be part of an assistant's entry: what is trained and what isn't are two."""
    is_trained = entry.get("trained") is not False
    return message.role == "tool" or (message.role == "assistant" and message.is_trained == is_trained)


def _write_parts(message: Message, offered: frozenset[str]) -> list[dict[str, str]]:
    if message.role == "tool":
        return [{"type": "python_output", "text": message.result.text}]
    parts = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append({"type": "text", "text": part.text})
        elif isinstance(part, ToolCall) and part.name == TOOL:
            parts.append({"type": "python", "text": _get_expression(part)})
        elif isinstance(part, ToolCall) and part.name in offered:
            parts.append({"type": "python", "text": write_call(part.name, _decode(part))})
        else:
            raise ConversationError(f"the nanochat format has no part for {type(part).__name__}")
    return parts


def _get_expression(call: ToolCall) -> str:
    arguments = _decode(call)
    if set(arguments) != {PARAMETER} or not isinstance(arguments[PARAMETER], str):
        raise ConversationError(f"the nanochat format holds one text for a call, {PARAMETER!r}; {call.id!r} has others")
    return str(arguments[PARAMETER])


def _decode(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = call.decode()
    except json.JSONDecodeError as error:
        raise ConversationError(f"the arguments of {call.id!r} are not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise ConversationError(f"the arguments of {call.id!r} are not a JSON object")
    return arguments


def read_jsonl(path: Path) -> Iterator[Conversation]:
    """The conversations of a JSONL file. Raises `ConversationError` naming the file and line."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield load(json.loads(line))
            except ValueError as error:
                raise ConversationError(f"{path}:{number}: not JSON: {error}") from error
            except ConversationError as error:
                raise ConversationError(f"{path}:{number}: {error}") from error
