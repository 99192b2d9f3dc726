"""Claude, through Anthropic's own package: `AnthropicModel("claude-sonnet-5")`."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ferrule.capabilities import Capabilities, Loss, adapt
from ferrule.conversation import Conversation
from ferrule.errors import StreamBroken
from ferrule.events import Event
from ferrule.formats.anthropic import dump
from ferrule.formats.names import ToolNames
from ferrule.models.anthropic_request import Request, mark_for_cache, request_of
from ferrule.models.anthropic_stream import AnthropicReader
from ferrule.models.gateway import Failure, gateway_of
from ferrule.models.hosted import (
    CONNECT_SECONDS,
    RequestFailed,
    failure_for_status,
    gateway_key,
    key_for,
    no_connection,
    require_package,
    told,
)
from ferrule.models.loop_clients import LoopClients
from ferrule.models.protocol import ModelSettings, refuse_unknown_settings
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic, AsyncStream
    from anthropic.types import RawMessageStreamEvent

ADDRESS = "https://api.anthropic.com"
ADDRESS_VARIABLE = "ANTHROPIC_BASE_URL"
KEY = "ANTHROPIC_API_KEY"
# The statuses of errors that come as an event, after the answer's own status has said that all is well.
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


logger = logging.getLogger(__name__)


class AnthropicModel:
    """A model of Anthropic's Messages API.

    `max_tokens` is the most tokens of a message where the settings don't say, which this API must be told; thinking
    counts. With `cache`, the offers, the system's words and the messages so far are marked to be kept for five
    minutes, so that each step of a conversation pays in full only for what is new; writing the cache costs a quarter
    more than reading, so switch it off where a conversation is asked once.

    `effort` becomes adaptive thinking from Claude 4.6 on (`minimal` as `low`), and a budget of tokens before. The
    temperature, top_k and top_p are sent only where they were set, by the API's version 2023-06-01: newer models
    refuse them. A refusal of the model ends its message with the stop reason `error`.

    Raises `ModelError` where the package or the key is missing.
    """

    capabilities = Capabilities(
        reasoning=True,
        ids=True,
        user_images=True,
        image_results=True,
        malformed_calls=False,
        settings=frozenset(
            {"temperature", "top_k", "top_p", "max_tokens", "stop", "choice", "parallel_calls", "effort"}
            | {"output_schema", "extra"}
        ),
    )

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_tokens: int = 32_000,
        cache: bool = True,
    ) -> None:
        self.name = f"anthropic:{model}"
        self.model = model
        self.max_tokens = max_tokens
        self.cache = cache
        self.address = base_url or os.environ.get(ADDRESS_VARIABLE) or ADDRESS
        require_package(self.name, "anthropic", "anthropic", "anthropic")
        self._key = key_for("Anthropic", self.name, api_key, KEY)
        self._gateway = gateway_of(gateway_key("anthropic", self.address, self._key))
        self._clients: LoopClients[AsyncAnthropic] = LoopClients(self._made, lambda sdk: sdk.close())

    async def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        """See `Model.stream`. Raises `ProviderError` where Anthropic refuses or fails."""
        refuse_unknown_settings(settings, self.capabilities.settings, self.name)
        names = ToolNames(tools)
        request, losses = self._request(conversation, tools, names, settings)
        for lost in told(self.name, losses):
            yield lost
        # Made here, since importing the package would count as the provider's time otherwise.
        client = await self._clients.get()
        reader = AnthropicReader(conversation, names)
        broken = False
        try:
            async with aclosing(self._gateway.stream(lambda: self._open(client, request), self._failure_of)) as chunks:
                async for chunk in chunks:
                    for event in reader.feed(chunk):
                        yield event
        except StreamBroken as error:
            if reader.assembly.is_empty:
                raise
            logger.warning("%s; what had come is kept", error)
            broken = True
        for event in reader.assembly.cut() if broken else reader.end():
            yield event
        if reader.refusal:
            logger.warning("%s: the model refused to go on: %s", self.name, reader.refusal)
        dropped = [Loss("text", f"a block of type {kind} has no place in a message") for kind in reader.dropped]
        for lost in told(self.name, dropped):
            yield lost
        yield reader.finished(broken)

    def _request(
        self, conversation: Conversation, tools: Sequence[ToolSpec], names: ToolNames, settings: ModelSettings
    ) -> tuple[Request, list[Loss]]:
        fitted, losses = adapt(conversation, self.capabilities)
        body, unwritten = dump(fitted, names.wire)
        request = request_of(self.model, body, tools, names, settings, self.max_tokens)
        if settings.output_schema is not None:
            from anthropic import transform_schema

            request["output_config"]["format"]["schema"] = transform_schema(settings.output_schema)
        if self.cache:
            mark_for_cache(request)
        return request, [*losses, *unwritten]

    def _made(self) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic, Timeout  # it takes a second

        # Trying again and giving up in time is the gateway's business, once there is a connection.
        timeout = Timeout(None, connect=CONNECT_SECONDS)
        return AsyncAnthropic(api_key=self._key, base_url=self.address, max_retries=0, timeout=timeout)

    async def _open(self, client: AsyncAnthropic, request: Request) -> AsyncIterator[Mapping[str, Any]]:
        """Send a request; what comes back are the events of its answer."""
        stream: AsyncStream[RawMessageStreamEvent] = await client.messages.create(**request, stream=True)
        found = stream.response.headers.get("content-type", "nothing")
        if found.partition(";")[0].strip() != "text/event-stream":
            await stream.close()
            raise RequestFailed(
                Failure(
                    "bad",
                    f"{self.name}: {self.address} answers with {found} and no stream of events;"
                    " is that the address of Anthropic's API?",
                    stream.response.status_code,
                )
            )
        return self._events(stream)

    async def _events(self, stream: AsyncStream[RawMessageStreamEvent]) -> AsyncGenerator[Mapping[str, Any], None]:
        """The events, pings among them: they show that the other side is there.

        Those before the first block are held back until it comes, because a request is tried again only where
        nothing was passed on, and an overload is often told right after the beginning.
        """
        held: list[Mapping[str, Any]] | None = []
        ended = False
        try:
            async for sent in stream.raw_events(stream.response):
                event = self._decoded(sent.data)
                ended = ended or event.get("type") == "message_stop"
                if held is not None and event.get("type") in ("message_start", "ping"):
                    held.append(event)
                    continue
                for earlier in held or ():
                    yield earlier
                held = None
                yield event
        finally:
            await stream.close()
        if not ended:
            raise RequestFailed(Failure("failed", f"{self.name}: the answer stopped before its end"))

    def _decoded(self, data: str) -> Mapping[str, Any]:
        try:
            event = json.loads(data or "{}")
        except ValueError:
            event = None
        if not isinstance(event, Mapping):
            raise RequestFailed(Failure("failed", f"{self.name}: an event of the answer is no JSON object: {data:.80}"))
        if event.get("type") == "error":
            error = event.get("error") or {}
            kind = str(error.get("type"))
            status = _STATUS.get(kind, 500)
            message = f"{self.name}: Anthropic broke off with {kind}: {error.get('message')}"
            raise RequestFailed(failure_for_status(status, message, self._key_hint))
        return event

    @property
    def _key_hint(self) -> str:
        return f'check {KEY}, or give model("{self.name}", api_key=…)'

    def _failure_of(self, error: Exception) -> Failure | None:
        if isinstance(error, RequestFailed):
            return error.failure
        import anthropic
        import httpx2

        if isinstance(error, anthropic.APIStatusError):
            said = error.api_message or error.message
            message = f"{self.name}: Anthropic answered {error.status_code}: {said}"
            retry_after = error.response.headers.get("retry-after")
            return failure_for_status(error.status_code, message, self._key_hint, retry_after)
        if isinstance(error, anthropic.APIConnectionError | httpx2.TransportError):
            return no_connection(self.name, self.address, error.__cause__ or error)
        return None

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self._clients.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
