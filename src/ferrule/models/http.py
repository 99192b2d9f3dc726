"""HTTP and server-sent events for all hosted models: a client of our own on httpx2, without the providers' SDKs.

A provider only needs one POST of JSON whose answer is a stream of events. The SDKs add retries, time limits and typed
objects, which the gateway and the answer readers already provide, and each had to be worked around: OpenAI's traverses
the whole request by its types, and makes objects of each chunk, which chunks of servers that only speak its format
don't fit; Google's drops what its models wrote of a malformed call, and keeps the connection of an abandoned answer;
Anthropic's reads whole events only through a private interface. httpx2 is what all three use for sending.
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
from urllib.parse import unquote, urljoin, urlsplit
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

PACKAGE = "httpx2"
"""The package that sends and receives."""
EXTRA = "hosted"
"""The extra that installs it."""
CONNECT_SECONDS = 60.0
"""The time limit for a TCP connection: less than a server may take to begin its answer, and long enough for one busy
event loop to open a thousand at once."""
_LARGEST_EVENT = 64 << 20
_LARGEST_ERROR = 1 << 16
_DRAIN_SECONDS = 0.2
"""How long to wait for the end of an answer after `[DONE]`: a connection can be reused only once it was read."""
_BEGINNING = 80
_LOGIN = re.compile(r"(?P<scheme>[\w+.-]+://)(?P<login>[^/?#]*)@")

Client = TypeVar("Client")


def is_installed() -> bool:
    """Whether httpx2 can be imported, without importing it: that takes a tenth of a second."""
    try:
        return find_spec(PACKAGE) is not None
    except (ModuleNotFoundError, ValueError):
        return False


def find_address_problem(address: str) -> str | None:
    """What is wrong with an address; None if it is valid."""
    if not address.startswith(("http://", "https://")):
        return "must begin with http:// or https://"
    try:
        parts = urlsplit(address)
        if parts.hostname and parts.port != 0 and not re.search(r"\s", address):
            return None
    except ValueError as error:
        return f"is not a valid address: {error}"
    return "is not a valid address: it needs a host, and no spaces"


def split_login(address: str) -> tuple[str, tuple[str, str] | None]:
    """An address without the user and password in it (`http://user:password@host`), and these."""
    found = _LOGIN.match(address)
    if found is None:
        return address, None
    user, _, password = found["login"].partition(":")
    return found["scheme"] + address[found.end() :], (unquote(user), unquote(password))


class BadStatusError(Exception):
    """The server answered with an error; `body` is its decoded JSON, or its text."""

    def __init__(self, status: int, headers: Mapping[str, str], body: Any) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.headers = headers
        self.body = body


class NotAnEventStreamError(Exception):
    """The server answered with something else: its media type, and how it begins.

    `reported` is the error in it, if it is JSON that contains one: some servers report errors with status 200.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind} instead of a stream of events: {text[:_BEGINNING]}")
        body = _try_json(text)
        self.reported = body.get("error") if isinstance(body, dict) else None


class UnreadableEventError(Exception):
    """An event of the answer is not a JSON object."""


class EventStreamClient:
    """Posts JSON to one address; each answer is a stream of JSON objects. Usable from several event loops.

    `login` is a user and a password for HTTP's basic authentication, instead of an `Authorization` header.
    """

    def __init__(self, address: str, headers: Mapping[str, str], login: tuple[str, str] | None = None) -> None:
        self.address = address.rstrip("/")
        self._headers = headers
        self._login = login
        self._clients: LoopClients[AsyncClient] = LoopClients(self._make_client, lambda client: client.aclose())

    def _make_client(self) -> AsyncClient:
        import httpx2

        # The gateway is responsible for retries, other time limits and concurrency. Redirects are not followed: a key
        # must not go to an address that the user did not give.
        return httpx2.AsyncClient(
            headers={"user-agent": "ferrule", "content-type": "application/json", **self._headers},
            auth=self._login,
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
            follow_redirects=False,
        )

    async def open(self) -> None:
        """Create the client of this event loop: importing httpx2 must not count as the provider's time."""
        await self._clients.get()

    async def post(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Send a request; returns the JSON objects of its answer.

        Raises `BadStatusError`, `NotAnEventStreamError` and httpx2's errors for connections; the returned generator
        also raises `UnreadableEventError`, and closes the connection when it is closed.
        """
        client = await self._clients.get()
        # What can't be encoded (half a surrogate pair) is sent as "?".
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        request = client.build_request("POST", self.address + path, content=content, headers=headers)
        response = await client.send(request, stream=True)
        try:
            await _check(response)
        except BaseException:
            await response.aclose()
            raise
        return _iterate_events(response)

    async def get(self, path: str, headers: Mapping[str, str]) -> Any:
        """Get a JSON value from a path of the server. Raises `ValueError` for anything else, and httpx2's errors."""
        client = await self._clients.get()
        response = await client.get(urljoin(self.address, path), headers=headers)
        response.raise_for_status()
        return response.json()

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self._clients.aclose()


async def _check(response: Response) -> None:
    """Raise if an answer is an error, or not a stream of events."""
    if not response.is_success:
        raise BadStatusError(response.status_code, response.headers, _try_json(await _read_beginning(response)))
    # Without a media type, whether it is one shows when its events are read.
    kind = response.headers.setdefault("content-type", "text/event-stream")
    if kind.partition(";")[0].strip().lower() != "text/event-stream":
        raise NotAnEventStreamError(kind, await _read_beginning(response))


async def _read_beginning(response: Response) -> str:
    """The beginning of an answer's body, in one line: an error, or a page for people."""
    found = b""
    async for piece in response.aiter_bytes():
        found += piece
        if len(found) >= _LARGEST_ERROR:
            break
    return " ".join(found.decode("utf-8", "replace").split())


def _try_json(text: str) -> Any:
    """The value of a text that is JSON; other text unchanged."""
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
        raise UnreadableEventError(f"not JSON ({error}): {data[:_BEGINNING]}") from error
    if not isinstance(event, dict):
        raise UnreadableEventError(f"not a JSON object: {data[:_BEGINNING]}")
    return event


class LoopClients(Generic[Client]):
    """One client per event loop: a connection opened by one loop can't be used by another.

    A client is closed with its loop, if not before. Few users will close a model that is used in one line, and a socket
    that outlives its loop can no longer be closed.
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
    """A client, and the generator that closes it."""

    client: Client
    lifetime: AsyncGenerator[None, None]


async def _keep_open(client: Client, close: Callable[[Client], Awaitable[None]]) -> AsyncGenerator[None, None]:
    """Close the client with its loop: an event loop closes its suspended generators when it shuts down."""
    try:
        yield
    finally:
        await close(client)
