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
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar
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
_EVENT_SHOWN = 300
_REQUEST_PATH = re.compile(r"/(chat/completions|completions|responses|messages|models)$")
_VERSION_PATH = re.compile(r"/v\d+[a-z]*(?=/|$)")
_EVENTS = re.compile(r"\ufeff?\s*(data|event|id|retry)?:")
"""How a stream of events begins, which some proxies send as another media type."""
_LOGIN = re.compile(r"(?P<scheme>[\w+.-]+://)(?P<login>[^/?#]*)@")

Client = TypeVar("Client")
Events: TypeAlias = Iterable[dict[str, Any]]
"""The decoded events of an answer."""
DONE: dict[str, Any] = {"type": "[DONE]"}
"""The last event of a stream that ended with `[DONE]`; compare by identity."""


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


def suggest_address(address: str, has_version: bool) -> str:
    """The address that was probably meant where nothing answers at `address`: without the path of one request.

    `has_version` says whether addresses of this API end with a version, such as `/v1`.
    """
    base = _REQUEST_PATH.sub("", address.rstrip("/"))
    found = _VERSION_PATH.search(urlsplit(base).path)
    if not has_version:
        return base[: -len(found[0])] if found and base.endswith(found[0]) else base
    return base if found else f"{base}/v1"


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
    """The server answered with something else, and not with a whole answer: its media type, and how it begins.

    `reported` is the error in it, if it is JSON that contains one: some servers report errors with status 200.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind} instead of a stream of events: {_join_lines(text)[:_BEGINNING]}")
        body = _try_json(text)
        self.reported = body.get("error") if isinstance(body, dict) else None


class UnreadableEventError(Exception):
    """An event of the answer is not a JSON object, or not one of the API's."""


def report_wrong_form(event: Mapping[str, Any]) -> UnreadableEventError:
    """The error for an event whose fields have other types than the API defines."""
    return UnreadableEventError(f"not in the API's format: {json.dumps(event, ensure_ascii=False)[:_EVENT_SHOWN]}")


class EventStreamClient:
    """Posts JSON to one address; each answer is a stream of JSON objects. Usable from several event loops.

    `login` is a user and a password for HTTP's basic authentication, instead of an `Authorization` header.
    `split_answer` makes the events of an answer that isn't streamed from its JSON; None for anything else.
    """

    def __init__(
        self,
        address: str,
        headers: Mapping[str, str],
        login: tuple[str, str] | None = None,
        split_answer: Callable[[Any], Events | None] | None = None,
    ) -> None:
        self.address = address.rstrip("/")
        self._headers = headers
        self._login = login
        self._split_answer = split_answer
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
        """Send a request; returns the JSON objects of its answer, which needn't be streamed.

        Raises `BadStatusError`, `NotAnEventStreamError` and httpx2's errors for connections; the returned generator
        also raises `UnreadableEventError`, and closes the connection when it is closed.
        """
        client = await self._clients.get()
        # What can't be encoded (half a surrogate pair) is sent as "?".
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        request = client.build_request("POST", self.address + path, content=content, headers=headers)
        response = await client.send(request, stream=True)
        try:
            return await self._open_answer(response)
        except BaseException:
            await response.aclose()
            raise

    async def _open_answer(self, response: Response) -> AsyncGenerator[dict[str, Any], None]:
        """Raises if an answer is an error, or neither a stream of events nor a whole answer."""
        if not response.is_success:
            text = await _read_text(response, _LARGEST_ERROR)
            raise BadStatusError(response.status_code, response.headers, _try_json(text))
        # Without a media type, whether it is one shows when its events are read.
        kind = response.headers.setdefault("content-type", "text/event-stream")
        if kind.partition(";")[0].strip().lower() == "text/event-stream":
            return _iterate_events(response)
        text = await _read_text(response, _LARGEST_EVENT)
        await response.aclose()
        if _EVENTS.match(text):
            media_type = {"content-type": "text/event-stream"}
            return _iterate_events(type(response)(200, headers=media_type, text=text, request=response.request))
        events = self._split_answer(_try_json(text)) if self._split_answer is not None else None
        if events is None:
            raise NotAnEventStreamError(kind, text)
        return _iterate_list(events)

    async def get(self, path: str, headers: Mapping[str, str]) -> Any:
        """Get a JSON value from a path of the server. Raises `ValueError` for anything else, and httpx2's errors."""
        client = await self._clients.get()
        response = await client.get(urljoin(self.address, path), headers=headers)
        response.raise_for_status()
        return response.json()

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self._clients.aclose()


async def _read_text(response: Response, limit: int) -> str:
    """An answer's body, up to about `limit` bytes: an error, a whole answer, or a page for people."""
    found = bytearray()
    async for piece in response.aiter_bytes():
        found += piece
        if len(found) >= limit:
            break
    return found.decode("utf-8", "replace")


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _try_json(text: str) -> Any:
    """The value of a text that is JSON; other text in one line."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _join_lines(text)


async def _iterate_list(events: Events) -> AsyncGenerator[dict[str, Any], None]:
    for event in events:
        yield event


async def _iterate_events(response: Response) -> AsyncGenerator[dict[str, Any], None]:
    """The JSON objects of a stream of events, up to its end or to `[DONE]`, which becomes `DONE`."""
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
                yield DONE
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
