"""What a server may ask of its client: a person's answer (elicitation) and a model's message (sampling).

Both are declared to the server only where a program supplies the function that answers them.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ferrule.conversation import Conversation, Image, Message, StopReason, Text
from ferrule.errors import FerruleError
from ferrule.toolspec import JSONSchema

if TYPE_CHECKING:
    from mcp.client.session import ClientRequestContext, ElicitationFnT, SamplingFnT
    from mcp_types import (
        CreateMessageRequestParams,
        CreateMessageResult,
        ElicitRequestParams,
        ElicitResult,
        ErrorData,
        SamplingMessage,
    )

_REASONS: Mapping[StopReason, str] = {"turn": "endTurn", "length": "maxTokens", "context": "maxTokens"}


@dataclass(frozen=True, slots=True)
class ElicitationRequest:
    """A server's question to a person: `schema` describes the answer, an object of plain values.

    If `url` is given instead, the person is to open that address, where the question is asked.
    """

    server: str
    message: str
    schema: JSONSchema
    url: str | None = None


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """A server's request for a message of the client's model; `origin` is the one of its tools."""

    server: str
    origin: str
    conversation: Conversation
    max_tokens: int
    temperature: float | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SamplingAnswer:
    """The text that a model wrote, its name, and why it stopped."""

    text: str
    model: str
    stop: StopReason = "turn"


Elicit: TypeAlias = Callable[[ElicitationRequest], Awaitable["Mapping[str, Any] | Literal['decline', 'cancel']"]]
"""Asks a person; returns the answer (empty for a `url`), or that the person declined or gave none. A field that the
answer leaves out has its default."""
Sample: TypeAlias = Callable[[SamplingRequest], Awaitable[SamplingAnswer]]
"""Asks a model. Raises `FerruleError` with the reason, for the server, if it isn't asked."""


@dataclass(frozen=True, slots=True)
class ClientAnswers:
    """The functions that answer a server's requests; None where it may not ask."""

    elicit: Elicit | None = None
    sample: Sample | None = None


def make_elicitation_callback(server: str, elicit: Elicit) -> ElicitationFnT:
    """Make the SDK's callback for the questions of a server."""

    async def answer(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:  # noqa: ARG001 - the SDK's
        from mcp_types import ElicitRequestFormParams, ElicitResult

        if isinstance(params, ElicitRequestFormParams):
            request = ElicitationRequest(server, params.message, params.requested_schema)
        else:
            request = ElicitationRequest(server, params.message, {"type": "object", "properties": {}}, params.url)
        answered = await elicit(request)
        if isinstance(answered, str):
            return ElicitResult(action=answered)
        content = None if request.url is not None else _list_defaults(request.schema) | dict(answered)
        return ElicitResult(action="accept", content=content)

    return answer


def _list_defaults(schema: JSONSchema) -> dict[str, Any]:
    """The defaults of the fields of a question, for those that the answer leaves out."""
    fields = schema.get("properties", {})
    return {name: one["default"] for name, one in fields.items() if isinstance(one, Mapping) and "default" in one}


def make_sampling_callback(server: str, origin: str, sample: Sample) -> SamplingFnT:
    """Make the SDK's callback for the sampling requests of a server; a refusal is an error that gives its reason."""

    async def answer(
        context: ClientRequestContext,  # noqa: ARG001 - the SDK's
        params: CreateMessageRequestParams,
    ) -> CreateMessageResult | ErrorData:
        from mcp_types import INVALID_REQUEST, CreateMessageResult, ErrorData, TextContent

        request = SamplingRequest(
            server,
            origin,
            _read_conversation(params.messages, params.system_prompt),
            params.max_tokens,
            params.temperature,
            tuple(params.stop_sequences or ()),
        )
        try:
            answered = await sample(request)
        except FerruleError as error:
            return ErrorData(code=INVALID_REQUEST, message=str(error))
        return CreateMessageResult(
            role="assistant",
            content=TextContent(text=answered.text),
            model=answered.model,
            stop_reason=_REASONS.get(answered.stop, "endTurn"),
        )

    return answer


def _read_conversation(messages: Sequence[SamplingMessage], system_prompt: str | None) -> Conversation:
    """Convert the messages; what isn't text or an image becomes a note that says what was left out."""
    read = [Message("system", (Text(system_prompt),))] if system_prompt else []
    for message in messages:
        blocks = message.content if isinstance(message.content, list) else [message.content]
        read.append(Message(message.role, tuple(map(_read_block, blocks))))
    return Conversation(tuple(read))


def _read_block(block: Any) -> Text | Image:
    if block.type == "text":
        return Text(block.text)
    if block.type == "image":
        return Image(base64.b64decode(block.data), block.mime_type)
    return Text(f"[left out: {block.type}]")
