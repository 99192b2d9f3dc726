"""The way to an OpenAI-compatible server: its address and key, the official SDK's client, and what comes back."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from ferrule.capabilities import Loss
from ferrule.errors import ModelError, StreamBroken
from ferrule.events import Event
from ferrule.models.compatible import Provider, provider_of
from ferrule.models.gateway import Failure, gateway_of
from ferrule.models.hosted import CONNECT_SECONDS, RequestFailed, gateway_key, key_for, require_package, told
from ferrule.models.loop_clients import LoopClients
from ferrule.models.openai_answer import Answer, Listener
from ferrule.models.openai_failures import Failures

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream


class Raw(Protocol):
    """The SDK's raw response, of which a stream of anything can be made."""

    def parse(self, *, to: type[AsyncStream[object]]) -> AsyncStream[object]:
        """The stream."""
        ...


class Connection:
    """One model's way to its provider. Raises `ModelError` for a key, an address or a package that is missing."""

    def __init__(self, name: str, provider: Provider, api_key: str | None, base_url: str | None) -> None:
        require_package(name, "openai", "openai", "openai")
        self.name = name
        self.provider = provider
        from_environment = os.environ.get(provider.url, "") if provider.url else ""
        self.address = base_url or from_environment or provider.base_url
        if not self.address:
            raise ModelError(f'no address for {name}: give model("{name}", base_url="http://…/v1")')
        if provider.needs_key:
            self._key = key_for(provider.label, name, api_key, provider.key)
        else:
            # A server that needs none is sent a word, for the SDK insists on one.
            self._key = api_key or os.environ.get(provider.key) or "none"
        # One for both of OpenAI's APIs: its limits are of the account.
        self._gateway = gateway_of(gateway_key(provider.name.partition("-")[0], self.address, self._key))
        self._failures = Failures(name, provider, self.address)
        self._clients: LoopClients[AsyncOpenAI] = LoopClients(self._made, lambda sdk: sdk.close())

    async def client(self) -> AsyncOpenAI:
        """The SDK's client for the running event loop. It is closed with that, if not before."""
        return await self._clients.get()

    def _made(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI, Timeout

        # Retries and other time limits are the gateway's. The key is said as a header too, so that the environment's
        # OPENAI_CUSTOM_HEADERS can't put another in its place.
        headers = {"Authorization": f"Bearer {self._key}"}
        timeout = Timeout(None, connect=CONNECT_SECONDS)
        client = AsyncOpenAI(
            api_key=self._key, base_url=self.address, max_retries=0, timeout=timeout, default_headers=headers
        )
        if self.provider.url is None:
            # Those are of an account with OpenAI, which is nobody else's business.
            client.organization = client.project = None
        return client

    async def events(
        self, create: Callable[[], Awaitable[Raw]], listener: Callable[[], Listener], answer: Answer
    ) -> AsyncGenerator[Event, None]:
        """The events of one answer, the last of them a `MessageFinished`.

        `create` sends the request and gives the SDK's raw response, once for each attempt; `listener` makes one for
        each of these. Raises `ProviderError` where the provider refuses or fails, and `StreamBroken` where it stops
        before anything that can be kept; an answer that stops later ends with what came of it.
        """
        try:
            chunks = self._gateway.stream(lambda: self._opened(create, listener()), self._failures)
            async with aclosing(chunks):
                async for chunk in chunks:
                    for event in answer.feed(chunk):
                        yield event
        except StreamBroken as error:
            if answer.is_empty:
                raise
            for lost in told(self.name, [Loss("text", str(error))]):
                yield lost
        for event in answer.close():
            yield event
        finished = answer.finished()
        if finished.stop == "error" and answer.ended:
            for lost in told(self.name, [Loss("text", f"{self.provider.label} ended the answer: {answer.ended}")]):
                yield lost
        yield finished

    async def _opened(self, create: Callable[[], Awaitable[Raw]], listener: Listener) -> AsyncGenerator[Any, None]:
        """Send a request; the chunks of its answer as decoded JSON, from the first one that says something: until then
        it can be sent again."""
        from openai import AsyncStream

        # To make its own objects of the chunks takes the SDK longer than everything else about them together.
        stream = (await create()).parse(to=AsyncStream[object])
        found = stream.response.headers.get("content-type", "text/event-stream")
        if found.partition(";")[0].strip().lower() != "text/event-stream":
            status = stream.response.status_code
            await stream.close()
            raise RequestFailed(
                Failure(
                    "bad",
                    f"{self.name}: {self.address} answers with {found} and no stream of events;"
                    f" is that the address of {self.provider.label}'s API?",
                    status,
                )
            )
        return self._chunks(stream, listener)

    async def _chunks(self, stream: AsyncStream[object], listener: Listener) -> AsyncGenerator[Any, None]:
        begun = False
        try:
            async for chunk in stream:
                begun = listener.hears(chunk) or begun
                if begun:
                    yield chunk
        finally:
            await stream.close()
        if not listener.ended:
            raise RequestFailed(Failure("failed", f"{self.name}: the answer stopped before its end"))

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self._clients.aclose()


class OpenAIModel:
    """What both models have in common: a name, a provider, and a connection that closing the model closes."""

    def __init__(self, name: str, provider: str | Provider, api_key: str | None, base_url: str | None) -> None:
        self.provider = provider_of(provider)
        self.name = f"{self.provider.name}:{name}"
        self._model = name
        self._connection = Connection(self.name, self.provider, api_key, base_url)

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self._connection.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
