"""Gemini, through Google's own package: `GoogleModel("gemini-3-pro")`."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ferrule.capabilities import Capabilities, Loss, adapt
from ferrule.conversation import Conversation
from ferrule.errors import StreamBroken
from ferrule.events import Event
from ferrule.formats.google import dump
from ferrule.formats.names import ToolNames
from ferrule.models.gateway import Failure, gateway_of
from ferrule.models.google_request import config_of, is_third_generation
from ferrule.models.google_stream import GoogleReader
from ferrule.models.hosted import (
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
    from google.genai import Client
    from google.genai.errors import APIError
    from google.genai.types import GenerateContentResponse

    from ferrule.models.google_http import Answer, HttpClient

ADDRESS = "https://generativelanguage.googleapis.com"
ADDRESS_VARIABLE = "GOOGLE_GEMINI_BASE_URL"
KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")


logger = logging.getLogger(__name__)


class GoogleModel:
    """A model of the Gemini API.

    From Gemini 3 on images stand in the results themselves and calls go back with their signatures; before, an image
    follows its result as a user's. `effort` becomes a thinking level there (`none` as the least, `minimal`), and a
    budget of tokens before. An answer that Google withholds (`SAFETY`, `RECITATION`, …) ends with the stop reason
    `error`; a call that Google itself could not read is a `MalformedCall`. Whether one message may hold several calls
    can't be set. Google caches by itself what begins like an earlier request.

    Raises `ModelError` where the package or the key is missing.
    """

    def __init__(self, model: str, *, api_key: str | None = None, base_url: str | None = None) -> None:
        self.name = f"google:{model}"
        self.model = model
        self.address = base_url or os.environ.get(ADDRESS_VARIABLE) or ADDRESS
        require_package(self.name, "google-genai", "google.genai", "google")
        self._key = key_for("Google", self.name, api_key, *KEYS)
        self._gateway = gateway_of(gateway_key("google", self.address, self._key))
        self._clients: LoopClients[tuple[Client, HttpClient]] = LoopClients(self._made, _close)

    @property
    def capabilities(self) -> Capabilities:
        """What can be written for it, which depends on its generation."""
        return Capabilities(
            reasoning=True,
            ids=True,
            user_images=True,
            image_results=is_third_generation(self.model),
            malformed_calls=False,
            settings=frozenset(
                {"temperature", "top_k", "top_p", "seed", "max_tokens", "stop", "choice", "effort"}
                | {"output_schema", "extra"}
            ),
        )

    async def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        """See `Model.stream`. Raises `ProviderError` where Google refuses or fails."""
        refuse_unknown_settings(settings, self.capabilities.settings, self.name)
        names = ToolNames(tools)
        contents, config, losses = self._request(conversation, tools, names, settings)
        for lost in told(self.name, losses):
            yield lost
        client, _ = await self._clients.get()
        reader = GoogleReader(conversation, names)
        broken = False
        try:
            start = self._gateway.stream(lambda: self._open(client, contents, config), self._failure_of)
            async with aclosing(start) as chunks:
                async for chunk in chunks:
                    for event in reader.feed(chunk):
                        yield event
        except StreamBroken as error:
            if reader.assembly.is_empty:
                raise
            logger.warning("%s; what had come is kept", error)
            broken = True
        for event in reader.end():
            yield event
        dropped = [Loss("text", f"a part with {kind} has no place in a message") for kind in reader.dropped]
        for lost in told(self.name, dropped):
            yield lost
        finished = reader.finished(broken)
        if finished.stop == "error" and not broken:
            logger.warning("%s: Google ended the answer: %s", self.name, reader.reason)
        yield finished

    def _request(
        self, conversation: Conversation, tools: Sequence[ToolSpec], names: ToolNames, settings: ModelSettings
    ) -> tuple[list[Any], dict[str, Any], list[Loss]]:
        """The contents, checked by the package's own types, the fields of its config, and what could not be written."""
        fitted, losses = adapt(conversation, self.capabilities)
        body, unwritten = dump(fitted, names.wire, must_sign=is_third_generation(self.model))
        config = config_of(self.model, tools, names, settings)
        from google.genai.types import Content

        if "systemInstruction" in body:
            config["system_instruction"] = Content.model_validate(body["systemInstruction"])
        contents = [Content.model_validate(content) for content in body["contents"]]
        return contents, config, [*losses, *unwritten]

    def _made(self) -> tuple[Client, HttpClient]:
        import httpx2
        from google.genai import Client  # it takes half a second
        from google.genai.types import HttpOptions, HttpRetryOptions

        from ferrule.models.google_http import HttpClient

        # Trying again, giving up in time and how many run at once are the gateway's business.
        once = HttpRetryOptions(attempts=1)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
        http = HttpClient(timeout=None, limits=limits, follow_redirects=True)
        options = HttpOptions(base_url=self.address, retry_options=once, httpx_async_client=http)
        return Client(api_key=self._key, vertexai=False, http_options=options), http

    async def _open(
        self, client: Client, contents: list[Any], config: dict[str, Any]
    ) -> AsyncIterator[GenerateContentResponse]:
        """A request that is about to be sent."""
        from ferrule.models.google_http import Answer

        answer = Answer()
        # What is awaited here is made, but sent only when its first chunk is asked for.
        chunks = await client.aio.models.generate_content_stream(
            model=self.model,
            contents=contents,
            config=config,  # type: ignore[arg-type]
        )
        return self._chunks(chunks, answer)

    async def _chunks(
        self, chunks: AsyncIterator[GenerateContentResponse], answer: Answer
    ) -> AsyncGenerator[GenerateContentResponse, None]:
        ended = False
        answer.begin()
        try:
            async for chunk in chunks:
                feedback = chunk.prompt_feedback
                if feedback is not None and feedback.block_reason is not None:
                    said = feedback.block_reason_message or feedback.block_reason.value
                    raise RequestFailed(Failure("bad", f"{self.name}: Google answers no such prompt: {said}"))
                for candidate in chunk.candidates or ():
                    if candidate.finish_reason is not None:
                        ended = True
                        candidate.finish_message = candidate.finish_message or answer.finish_message
                yield chunk
        finally:
            await answer.close()
        if not ended:
            raise RequestFailed(Failure("failed", f"{self.name}: the answer stopped before its end"))

    def _failure_of(self, error: Exception) -> Failure | None:
        if isinstance(error, RequestFailed):
            return error.failure
        import httpx2
        from google.genai.errors import APIError, UnknownApiResponseError

        if isinstance(error, APIError):
            return self._refusal(error)
        if isinstance(error, UnknownApiResponseError):
            found = str(error).partition("Raw response: ")[2]
            if found.lstrip().startswith("{"):
                return Failure("failed", f"{self.name}: the answer stopped in the middle of a chunk")
            hint = "is that the address of the Gemini API?"
            return Failure("bad", f"{self.name}: {self.address} answers with no JSON: {found:.80}; {hint}")
        if isinstance(error, httpx2.TransportError):
            return no_connection(self.name, self.address, error)
        return None

    def _refusal(self, error: APIError) -> Failure:
        message = f"{self.name}: Google answered {error.code}: {error.message}"
        details = str(error.details)
        # A key that is none is told as a bad request.
        status = 401 if "API_KEY_INVALID" in details else int(error.code)
        headers = getattr(error.response, "headers", None) or {}
        retry_after = headers.get("retry-after") or _retry_delay(error.details)
        hint = f'check {KEYS[0]}, or give model("{self.name}", api_key=…)'
        return failure_for_status(status, message, hint, retry_after)

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self._clients.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def _close(made: tuple[Client, HttpClient]) -> None:
    client, http = made
    await http.aclose()
    client.close()


def _retry_delay(details: Any) -> str | None:
    """Seconds from the `RetryInfo` of an error's details, where Google asks for a pause in place of a header."""
    entries = details.get("error", details).get("details") if isinstance(details, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(delay := entry.get("retryDelay"), str):
            return delay.removesuffix("s")
    return None
