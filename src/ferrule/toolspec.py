"""A tool as data, which can be offered, stored, compared and sent; and the calls of tools, and their results.

The callable behind it lives one floor up, in `tools/decorator.py`. `conversation.py` exports calls and results with the
other parts of messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ferrule._util.quick_init import checked_init
from ferrule.errors import ConversationError
from ferrule.media import Image, Text, collect_items, describe_value

JSONSchema = Mapping[str, Any]
"""A JSON Schema object (draft 2020-12), as decoded JSON."""

Approval = Literal["always", "never"]
"""What a tool itself requires: approval of every call, or of none."""
ResultStatus = Literal[
    "ok", "error", "retry", "denied", "timeout", "cancelled", "unknown_tool", "invalid", "interrupted"
]
"""How a result came about; anything but `ok` is a failure."""


@dataclass(frozen=True, slots=True)
class Annotations:
    """Hints on what a call does, with the names of the Model Context Protocol's `ToolAnnotations`.

    `None` means unspecified. Hints from an untrusted origin can only tighten a policy.
    """

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass(frozen=True, slots=True)
class ToolExample:
    """An author's example of a call: its arguments, and the result that it should have; `...` if none is expected.

    `ferrule tools check --run` calls the tool and compares what the model would read. No model sees it.
    """

    arguments: Mapping[str, Any]
    result: Any = ...


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """The Toolset whose methods the tools are; notations with groups write it into the offer."""

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool's data alone: what is offered to a model and what a policy judges.

    `origin` says where it comes from: `code`, `project` (a discovered file), `plugin`, or `mcp:<server>`.
    `name` is unique among the tools on offer, whatever their `group`, which is never needed to identify a tool.
    """

    name: str
    description: str
    parameters: JSONSchema
    annotations: Annotations = field(default_factory=Annotations)
    origin: str = "code"
    approval: Approval | None = None
    group: ToolGroup | None = None


def render_openai_function(spec: ToolSpec) -> dict[str, Any]:
    """The tool's name, description and parameters, with the keys and in the order of OpenAI's API."""
    return {"name": spec.name, "description": spec.description, "parameters": spec.parameters}


def render_openai_tool(spec: ToolSpec) -> dict[str, Any]:
    """The tool as an entry of `tools` in OpenAI's Chat Completions, which most chat templates also accept."""
    return {"type": "function", "function": render_openai_function(spec)}


def _encode_arguments(value: object) -> str:
    """The arguments of a call that a program writes, as JSON. Raises `ConversationError` for what isn't an object."""
    if isinstance(value, str):
        return value
    try:
        if isinstance(value, Mapping):
            return json.dumps(dict(value), ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ConversationError(f"the arguments of a ToolCall can't be written as JSON: {error}") from error
    raise ConversationError(f"a ToolCall takes its arguments as JSON text or a dict, not {describe_value(value)}")


@checked_init(arguments=("arguments.__class__ is str", _encode_arguments))
@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model wrote.

    `arguments` is the JSON text as written, never re-encoded (a dict given by a program is encoded); `source` is the
    call in the model's own notation if a reader saw it, which training data must repeat.
    """

    id: str
    name: str
    arguments: str
    source: str | None = None

    def decode(self) -> Any:
        """The arguments as a JSON value. Raises `json.JSONDecodeError` if they aren't JSON."""
        return json.loads(self.arguments) if self.arguments.strip() else {}


@dataclass(frozen=True, slots=True)
class MalformedCall:
    """An attempted call that can't be read: kept character for character, and answered like any call.

    `kind` names the error for the model: `truncated`, `invalid_json`, `no_name`, `forged_result`, …
    """

    id: str
    raw: str
    kind: str


def _collect_content(value: object) -> tuple[Text | Image, ...]:
    """The content of a result: a string becomes a `Text`. Raises `ConversationError`."""
    content = (Text(value),) if isinstance(value, str) else collect_items(value, "a ToolResult's content")
    for part in content:
        if not isinstance(part, Text | Image):
            raise ConversationError(f"a ToolResult's content takes Text and Image, not {describe_value(part)}")
    return content


@checked_init(content=("content.__class__ is tuple", _collect_content))
@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to a call. `content` is what the model reads; `status` says how it came about.

    `data` is the same as JSON values, for programs: what the tool returned if that was no text, or the structured
    content of an MCP server. It is not saved with a conversation, and takes no part in comparisons.
    """

    call_id: str
    name: str
    content: tuple[Text | Image, ...]
    status: ResultStatus = "ok"
    data: Any = field(default=None, compare=False, repr=False)

    @property
    def is_error(self) -> bool:
        """Whether the call failed, for any reason."""
        return self.status != "ok"

    @property
    def text(self) -> str:
        """The text of the result, its parts joined by newlines, without images."""
        return "\n".join([part.text for part in self.content if isinstance(part, Text)])


EDITED_NOTE = "[the user changed the arguments before the call was run; "
"""How the part of a result begins that tells the model which arguments a person has changed."""
COMMENT_NOTE = "[the user allowed this call and says: "
"""How the part of a result begins that tells the model what a person has said about the call."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool may return in place of its result: `content`, which the model reads, and `data`, for programs.

    `content` is anything that a tool may return. `data` is JSON values; it becomes `ToolResult.data`.
    """

    content: Any
    data: Any
