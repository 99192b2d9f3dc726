"""Parts of a request that a server may refuse, although it takes the same request without them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from ferrule.conversation import Conversation, Message, Text, user
from ferrule.errors import ProviderError
from ferrule.models.protocol import ModelSettings

# Errors about each part, in the words of different servers.
_REFUSALS = {
    # The names of the parameters of all APIs, and how servers call the feature.
    "schema": r"response[_ ]?format|json_schema|text\.format|output_(config|format)|response_?(json_?)?schema"
    r"|response mime type|json mode|json schema|structured output|guided|grammar",
    "stream_options": r"stream[_ ]options|include_usage",
    "parallel_tool_calls": r"parallel[_ -]?(tool|function)[_ -]?call",
    # Gemma's templates, Google; OpenAI; Mistral's templates
    "system": r"(system (role|message|prompt|instruction)s?|developer instruction)\W{0,2} "
    r"((is|are) )?not (supported|enabled)|do(es)? ?n[o']t support \W?system"
    r"|only user(,| and) assistant .{0,20}roles are supported|roles must alternate",
}
_REMEDIES = {
    "schema": "the schema of the answer is stated in the prompt instead",
    "stream_options": "requests are sent without stream_options, so the server may not report the usage of tokens",
    "parallel_tool_calls": "requests are sent without parallel_tool_calls, so a message may have several calls or one",
    "system": "the system text is sent at the beginning of the first user message instead",
}


def list_parts(body: Mapping[str, Any], conversation: Conversation, settings: ModelSettings) -> Collection[str]:
    """The parts of a request: its fields, except those that the user added, `schema` if the answer has one, and the
    roles of the messages."""
    parts = (body.keys() - settings.extra.keys()) | {message.role for message in conversation.messages}
    return parts if settings.output_schema is None else parts | {"schema"}


def find_refused_part(error: ProviderError, sent: Collection[str]) -> tuple[str, str] | None:
    """Which of the parts that were sent the server refused, and what is done instead; None for any other error."""
    if error.status is None or error.status in (401, 403, 408, 413, 429, 503, 529):
        return None
    for part, pattern in _REFUSALS.items():
        if part in sent and re.search(pattern, str(error), re.IGNORECASE):
            return part, _REMEDIES[part]
    return None


def merge_system(conversation: Conversation) -> Conversation:
    """The conversation with each system text at the beginning of the user message that follows it.

    A user message of its own holds the text if no user message follows.
    """
    merged: list[Message] = []
    pending = ""
    for message in conversation.messages:
        if message.role == "system":
            pending += f"{message.text}\n\n"
            continue
        if pending and message.role == "user":
            message = _prepend(pending, message)  # noqa: PLW2901
        elif pending:
            merged.append(user(pending.rstrip()))
        merged.append(message)
        pending = ""
    if pending:
        merged.append(user(pending.rstrip()))
    return Conversation(tuple(merged), conversation.now)


def _prepend(text: str, message: Message) -> Message:
    begin, *rest = message.parts or (Text(""),)
    if isinstance(begin, Text):
        return message.with_parts((Text(text + begin.text), *rest))
    return message.with_parts((Text(text), begin, *rest))
