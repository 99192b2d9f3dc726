"""Reads the items of OpenAI's Responses API into a conversation: a request's `input`, a response's `output`, a list.

Consecutive reasoning, text and calls are one assistant message. An item of reasoning that can be sent back (it contains
the reasoning, encrypted or not) is kept unchanged, next to its summary; ids of other items are not kept, nor are
annotations and log-probabilities. `CallOrder` in `calls.py` handles call ids and the order of results. `build_extra`
defines what a message keeps of these items, mainly encrypted reasoning, so that they can be sent back as long as the
rest of the message is unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias

from ferrule.conversation import Conversation, File, Image, Message, Part, Reasoning, Text, system, user
from ferrule.errors import ConversationError
from ferrule.formats import openai_reading as openai
from ferrule.formats.calls import CallOrder, keep_results
from ferrule.formats.openai_reading import join_reasoning

EXTRA = "openai_responses"

Item: TypeAlias = dict[str, Any]


def can_be_sent_back(item: Mapping[str, Any]) -> bool:
    """Whether an item of reasoning has content, encrypted or not. Requests store nothing, so an id alone is useless."""
    return bool(item.get("encrypted_content") or item.get("content"))


def build_extra(reasoning: Sequence[tuple[int, Item]], phases: dict[int, str], message: Message) -> dict[str, Any]:
    """A message's `extra` for sending it back: items of reasoning with the number of other parts before each, the
    phases of texts by their index among those parts, and the shape of the message for which they are valid."""
    if not reasoning and not phases:
        return {}
    items = [{"before": before, "item": item} for before, item in reasoning]
    return {
        "reasoning": items,
        "phases": {str(at): phase for at, phase in phases.items()},
        "of": describe_shape(message),
    }


def describe_shape(message: Message) -> list[str]:
    """The contents of a message, as far as items of reasoning depend on it."""
    others = ["text" if isinstance(part, Text) else "call" for part in message.parts if not isinstance(part, Reasoning)]
    return [join_reasoning(message), *others]


_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")
_HELD = "message, function_call, function_call_output and reasoning"


def load(data: Any, *, now: datetime | None = None) -> Conversation:
    """A conversation from a list of items, from a request (`input`), a response (`output`), or both in one object.

    `now` is the time of the conversation, by default the current one. Raises `ConversationError` naming the item by its
    index and what to do.
    """
    reader = _Reader()
    for at, item in enumerate(_get_items(data)):
        reader.read(item, at)
    reader.end()
    messages = (*_get_instructions(data), *reader.messages)
    conversation = Conversation(messages) if now is None else Conversation(messages, now)
    conversation.check()
    return conversation


def _get_items(data: Any) -> list[Any]:
    if isinstance(data, list):
        return data
    outer = data if isinstance(data, Mapping) else {}
    given, made = outer.get("input", []), outer.get("output", [])
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list) or not isinstance(made, list) or not ("input" in outer or "output" in outer):
        raise ConversationError('OpenAI\'s Responses items are a list, or an object with a list "input" or "output"')
    return [*given, *made]


def _get_instructions(data: Any) -> tuple[Message, ...]:
    said = data.get("instructions") if isinstance(data, Mapping) else None
    return (system(said),) if isinstance(said, str) and said else ()


@dataclass(slots=True)
class _AssistantDraft:
    """An assistant message being read: its parts, and the contents of its `extra`."""

    parts: list[Part] = field(default_factory=list)
    reasoning: list[tuple[int, Item]] = field(default_factory=list)
    phases: dict[int, str] = field(default_factory=dict)
    refusal: str = ""

    @property
    def others(self) -> int:
        """The number of parts other than reasoning."""
        return sum(not isinstance(part, Reasoning) for part in self.parts)

    def make_message(self) -> Message:
        """The message so far."""
        message = Message("assistant", tuple(self.parts))
        extra: dict[str, Any] = {openai.EXTRA: {"refusal": self.refusal}} if self.refusal else {}
        if back := build_extra(self.reasoning, self.phases, message):
            extra[EXTRA] = back
        return replace(message, extra=extra)


@dataclass(slots=True)
class _Reader:
    messages: list[Message] = field(default_factory=list)
    calls: CallOrder = field(default_factory=CallOrder)
    said: _AssistantDraft | None = None

    def read(self, entry: Any, at: int) -> None:
        if not isinstance(entry, Mapping):
            raise ConversationError(f"item {at} must be an object with a type")
        item = dict(entry)
        kind = item.get("type", "message")
        where = f"item {at} ({kind})"
        if kind == "function_call_output":
            self._read_result(item, where)
        elif kind == "message" and item.get("role") != "assistant":
            self.end()
            self.messages.append(_read_plain(item, where))
        elif kind in ("message", "function_call", "reasoning"):
            self._add(kind, item, where)
        else:
            raise ConversationError(
                f"{where} can't be held, only {_HELD} can; leave it out, or write it as one of them"
            )

    def end(self) -> None:
        """End a message, or the results for it."""
        if self.said is not None:
            self.messages.append(self.said.make_message())
            self.said = None
        self.messages += self.calls.take_results()

    def _add(self, kind: str, item: Item, where: str) -> None:
        if self.said is None:
            self.end()
            self.calls.begin()
            self.said = _AssistantDraft()
        if kind == "message":
            _read_text(self.said, item, where)
        elif kind == "reasoning":
            _read_reasoning(self.said, item, where)
        else:
            name, arguments = item.get("name"), item.get("arguments", "")
            if not isinstance(name, str):
                raise ConversationError(f"{where}: a call needs the name of its function")
            if not isinstance(arguments, str):
                arguments = json.dumps(arguments, ensure_ascii=False)
            self.said.parts.append(self.calls.call(_get_call_id(item), name, arguments))

    def _read_result(self, item: Item, where: str) -> None:
        if self.said is not None:
            self.messages.append(self.said.make_message())
            self.said = None
        wanted = _get_call_id(item)
        content = keep_results([_read_part(part, where) for part in _read_content(item.get("output"), where)], where)
        if not wanted or not self.calls.answer(wanted, content):
            raise ConversationError(
                f"{where}: the output for {wanted!r} answers no open call; remove it, or fix its call_id "
                "or the function_call before it"
            )


def _get_call_id(item: Item) -> str:
    found = item.get("call_id")
    return found if isinstance(found, str) else ""


def _read_text(said: _AssistantDraft, item: Item, where: str) -> None:
    for content in _read_content(item.get("content"), where):
        is_refusal = content.get("type") == "refusal" and isinstance(content.get("refusal"), str)
        part = Text(content["refusal"]) if is_refusal else _read_part(content, where)
        if not isinstance(part, Text):
            raise ConversationError(f"{where}: an assistant can't show an image; move it into a user's message")
        if is_refusal:
            said.refusal += part.text
        if part.text:
            said.parts.append(part)
            if isinstance(phase := item.get("phase"), str):
                said.phases[said.others - 1] = phase


def _read_reasoning(said: _AssistantDraft, item: Item, where: str) -> None:
    thoughts = [_read_part(part, where) for part in item.get("summary") or item.get("content") or ()]
    text = "\n\n".join(part.text for part in thoughts if isinstance(part, Text))
    if can_be_sent_back(item):
        back = {key: value for key, value in item.items() if value is not None and key != "status"}
        said.reasoning.append((said.others, back))
    if text:
        said.parts.append(Reasoning(text))


def _read_plain(item: Item, where: str) -> Message:
    """A message of a system, developer or user."""
    role = item.get("role")
    if role not in ("system", "developer", "user"):
        raise ConversationError(f"{where}: the role must be system, developer, user or assistant, not {role!r}")
    content = list(_read_content(item.get("content"), where))
    parts = [_read_part(part, where) for part in content]
    if role == "user":
        details = {
            image.hash: part["detail"]
            for image, part in zip(parts, content, strict=True)
            if isinstance(image, Image) and isinstance(part.get("detail"), str) and part["detail"] != "auto"
        }
        return replace(user(*parts), extra={openai.EXTRA: {"details": details}} if details else {})
    if not all(isinstance(part, Text) for part in parts):
        raise ConversationError(f"{where}: only a user can show an image; move it into a user's message")
    extra = {openai.EXTRA: {"role": role}} if role == "developer" else {}
    return Message("system", tuple(parts), None, extra)


def _read_content(content: Any, where: str) -> Iterator[Item]:
    if isinstance(content, str):
        yield {"type": "input_text", "text": content}
        return
    if not isinstance(content, list):
        raise ConversationError(f"{where}: the content must be a text or a list of parts")
    for part in content:
        if not isinstance(part, Mapping):
            raise ConversationError(f"{where}: a part of the content must be an object with a type")
        yield dict(part)


def _read_part(part: Any, where: str) -> Text | Image | File:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in _TEXTS and isinstance(part.get("text"), str):
        return Text(part["text"])
    if kind == "input_image":
        return openai.decode_data_url(part.get("image_url"), where)
    if kind == "input_file":
        return openai.read_file(part, where)
    raise ConversationError(
        f"{where}: a part of type {kind!r} can't be held; give a text, an input_image or an input_file"
    )
