"""A request as plain data that can be compared: what was said, offered and set, without what differs between runs.

The time of the conversation, sampled ids and what goes back to a provider verbatim are left out; an image is its hash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ferrule.blobs import hash_blob
from ferrule.conversation import Conversation, Message
from ferrule.formats.conversation_json import escape_surrogates, message_to_json, value_to_json
from ferrule.models.protocol import ModelSettings
from ferrule.models.recording.facts import Facts
from ferrule.models.recording.secrets import scrub_forms
from ferrule.toolspec import ToolSpec, render_openai_function

Row = dict[str, Any]


class _HashOnly:
    """Blobs that are named and not kept."""

    def put(self, data: bytes) -> str:
        return hash_blob(data)

    def get(self, name: str) -> bytes | None:  # noqa: ARG002 - nothing is kept
        return None


@dataclass(frozen=True)
class Request:
    """What a model was asked, as JSON values."""

    messages: tuple[Row, ...]
    tools: tuple[Row, ...]
    settings: Row

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """A name of each message."""
        return tuple(map(compute_digest, self.messages))

    @cached_property
    def key(self) -> str:
        """The same for equal requests."""
        return compute_digest([self.digests, list(self.tools), self.settings])


def compute_digest(value: Any) -> str:
    """16 hexadecimal digits that are the same for equal JSON values."""
    return hash_blob(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def make_request(
    conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings, facts: Facts
) -> Request:
    """The request as plain data, without what has the form of a key, and with `facts` by their names."""
    given = settings.select_given(*settings.model_fields_set)
    # Through JSON, so that what comes from a file is equal: a tuple is a list there.
    chosen = {name: json.loads(json.dumps(value_to_json(given[name], name))) for name in sorted(given)}
    return Request(
        tuple(facts.hide_message(describe_message(message)) for message in conversation.messages),
        tuple(facts.hide(scrub_forms(describe_tool(spec))) for spec in tools),
        facts.hide(scrub_forms(chosen)),
    )


def describe_message(message: Message) -> Row:
    """A message as it is compared: its role and parts."""
    described: Row = scrub_forms(message_to_json(Message(message.role, message.parts), _HashOnly()))
    return described


def describe_tool(spec: ToolSpec) -> Row:
    """A tool as it is offered, as JSON values."""
    described: Row = json.loads(json.dumps(render_openai_function(spec), default=_list_fields))
    return described


def _list_fields(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value)


def dump_row(row: Mapping[str, Any]) -> bytes:
    """A row of the file as one line."""
    return (escape_surrogates(json.dumps(row, ensure_ascii=False)) + "\n").encode()
