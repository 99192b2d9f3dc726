"""HTTP and server-sent events for all hosted models: one client of our own over httpx2, and no provider's SDK.

All that a model needs of a provider is one POST of JSON whose answer is a stream of events. The SDKs add retries, time
limits and typed objects, which the gateway and the readers of the answers do already, and each had to be worked around:
OpenAI's walks through the whole request by its types, and makes objects of each chunk that servers which only speak its
format don't fit; Google's drops what its models wrote of a malformed call, and holds the connection of an answer that
is left in the middle; Anthropic's reads whole events only by a private way. httpx2 is what all three send by.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

PACKAGE = "httpx2"
"""What sends and receives."""
EXTRA = "hosted"
"""The extra that brings it."""
CONNECT_SECONDS = 60.0
"""How long a TCP connection may take: less than a server that has one may take to begin its answer, and long enough
that a thousand of them, begun at once by one busy event loop, are no outage."""
_LARGEST_EVENT = 64 << 20
_LARGEST_ERROR = 1 << 16
_DRAIN_SECONDS = 0.2
"""How long the end of an answer is waited for after `[DONE]`: a connection can be used again only once it is read."""
_BEGINNING = 80

Client = TypeVar("Client")


def is_installed() -> bool:
    """Whether httpx2 can be imported. It isn't imported yet: that takes a tenth of a second."""
    try:
        return find_spec(PACKAGE) is not None
    except (ModuleNotFoundError, ValueError):
        return False


def find_address_problem(address: str) -> str | None:
    """What is wrong with an address, None where it can be asked."""
    if not address.startswith(("http://", "https://")):
        return "must begin with http:// or https://"
    try:
        parts = urlsplit(address)
        if parts.hostname and parts.port != 0 and not re.search(r"\s", address):
            return None
    except ValueError as error:
        return f"is no address: {error}"
    return "is no address: it needs a host, and no spaces"


class BadStatusError(Exception):
    """The server answered with an error; `body` is its decoded JSON, or its text."""

    def __init__(self, status: int, headers: Mapping[str, str], body: Any) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.headers = headers
        self.body = body


class NotAnEventStreamError(Exception):
    """The server answered with something else: what that is, and how it begins.

    `reported` is the error in it, where it is JSON that holds one: some servers report errors with status 200.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind} and no stream of events: {text[:_BEGINNING]}")
        body = _try_json(text)
        self.reported = body.get("error") if isinstance(body, dict) else None


class UnreadableEventError(Exception):
    """An event of the answer is no JSON object."""


class EventStreamClient:
    """Posts JSON to one address; each answer is a stream of JSON objects. It may be used from several event loops."""

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        self.address = address.rstrip("/")
        self._headers = headers
        self._clients: LoopClients[AsyncClient] = LoopClients(self._make_client, lambda client: client.aclose())

    def _make_client(self) -> AsyncClient:
        import httpx2

        # Retries, other time limits and how many requests run are the gateway's. Redirects are not followed: a key
        # must not go to an address that nobody gave.
        return httpx2.AsyncClient(
            headers={"user-agent": "ferrule", "content-type": "application/json", **self._headers},
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
            follow_redirects=False,
        )

    async def open(self) -> None:
        """Make the client of this event loop: importing httpx2 must not count as the provider's time."""
        await self._clients.get()

    async def post(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Send a request; the JSON objects of its answer.

        Raises `BadStatusError`, `NotAnEventStreamError` and what httpx2 raises for connections; the generator that it
        returns raises `UnreadableEventError`, too, and closes the connection when it is closed.
        """
        client = await self._clients.get()
        # What is no text at all (half a surrogate pair) can't be sent; a "?" stands for it.
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        request = client.build_request("POST", self.address + path, content=content, headers=headers)
        response = await client.send(request, stream=True)
        try:
            await _check(response)
        except BaseException:
            await response.aclose()
            raise
        return _iterate_events(response)

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self._clients.aclose()


async def _check(response: Response) -> None:
    """Raise where an answer is an error, or no stream of events."""
    if not response.is_success:
        raise BadStatusError(response.status_code, response.headers, _try_json(await _read_beginning(response)))
    # A server that doesn't say what it sends is taken at its word when its events are read.
    kind = response.headers.setdefault("content-type", "text/event-stream")
    if kind.partition(";")[0].strip().lower() != "text/event-stream":
        raise NotAnEventStreamError(kind, await _read_beginning(response))


async def _read_beginning(response: Response) -> str:
    """The beginning of an answer's body, in one line: an error, or a page that a person would be shown."""
    found = b""
    async for piece in response.aiter_bytes():
        found += piece
        if len(found) >= _LARGEST_ERROR:
            break
    return " ".join(found.decode("utf-8", "replace").split())


def _try_json(text: str) -> Any:
    """The value of a text that is JSON; other text as it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


async def _iterate_events(response: Response) -> AsyncGenerator[dict[str, Any], None]:
    """The JSON objects of a stream of events, up to its end or to `[DONE]`."""
    from httpx2 import EventSource

    response.encoding = "utf-8"
    events = aiter(EventSource(response, max_event_size=_LARGEST_EVENT))
    try:
        async for event in events:
            if event.data.startswith("[DONE]"):
                with suppress(Exception):
                    async with asyncio.timeout(_DRAIN_SECONDS):
                        async for _ in events:
                            pass
                return
            if event.data:
                yield _decode(event.data)
    finally:
        await response.aclose()


def _decode(data: str) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableEventError(f"no JSON ({error}): {data[:_BEGINNING]}") from error
    if not isinstance(event, dict):
        raise UnreadableEventError(f"no JSON object: {data[:_BEGINNING]}")
    return event


class LoopClients(Generic[Client]):
    """One client for each event loop: a connection that one loop opened can't be used by another.

    A client is closed with its loop, if not before. Few will close a model that is used in one line, and a socket that
    outlives its loop can't be closed any more.
    """

    def __init__(self, make: Callable[[], Client], close: Callable[[Client], Awaitable[None]]) -> None:
        self._make = make
        self._close = close
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, _OpenClient[Client]] = WeakKeyDictionary()

    async def get(self) -> Client:
        """The client of the running event loop."""
        loop = asyncio.get_running_loop()
        found = self._clients.get(loop)
        if found is None:
            client = self._make()
            found = self._clients[loop] = _OpenClient(client, _keep_open(client, self._close))
            await anext(found.lifetime)
        return found.client

    async def aclose(self) -> None:
        """Close the client of this event loop."""
        found = self._clients.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found.lifetime.aclose()


@dataclass(frozen=True, slots=True)
class _OpenClient(Generic[Client]):
    """A client, and what closes it."""

    client: Client
    lifetime: AsyncGenerator[None, None]


async def _keep_open(client: Client, close: Callable[[Client], Awaitable[None]]) -> AsyncGenerator[None, None]:
    """Close the client with its loop: an event loop that is shut down closes the generators that wait in it."""
    try:
        yield
    finally:
        await close(client)
