"""A gateway before a real server on loopback that answers, refuses, stalls and hangs up."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from providers import pour

from ferrule.errors import ProviderError, StreamBroken
from ferrule.models.gateway import Gateway, GatewaySettings, RequestFailure, Timeouts

WHOLE = ["one", "two", "three"]


class Server:
    """Answers its requests by one script after another, then by the last one for good.

    A script is bytes to send, or `STALL`: nothing more comes, and the line stays open. After its end the line is cut.
    """

    def __init__(self, *scripts: list) -> None:
        self.scripts = list(scripts)
        self.requests = 0
        self.open = 0
        self.most_open = 0
        self.closing = asyncio.Event()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        script = self.scripts[min(self.requests, len(self.scripts) - 1)]
        self.requests += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await reader.readuntil(b"\r\n\r\n")
                for step in script:
                    if step is STALL:
                        gone, closing = asyncio.ensure_future(reader.read()), asyncio.ensure_future(self.closing.wait())
                        await asyncio.wait([gone, closing], return_when=asyncio.FIRST_COMPLETED)
                        gone.cancel()
                        closing.cancel()
                    else:
                        writer.write(step)
                        await writer.drain()
        finally:
            self.open -= 1
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


STALL = object()


def answer(lines: list[str], status: str = "200 OK", *headers: str, cut: int | None = None) -> bytes:
    body = "".join(f"{line}\n" for line in lines).encode()
    head = "\r\n".join([f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""]).encode()
    return head + body[:cut]


@asynccontextmanager
async def serving(*scripts: list) -> AsyncIterator[tuple[Server, Client]]:
    server = Server(*scripts)
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    try:
        yield server, Client(listening.sockets[0].getsockname()[1])
    finally:
        server.closing.set()
        listening.close()
        await listening.wait_closed()
        while server.open:
            await asyncio.sleep(0.001)


class HTTPFault(Exception):
    def __init__(self, status: int, body: str, retry_after: str | None) -> None:
        super().__init__(body)
        self.status = status
        self.retry_after = retry_after


class Client:
    """The least of an HTTP client that streams lines."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def start(self) -> AsyncIterator[str]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
            status = int(head[0].split()[1])
            headers = dict(line.split(": ", 1) for line in head[1:] if line)
            length = int(headers["content-length"])
            if status != 200:
                body = (await reader.readexactly(length)).decode().strip()
                raise HTTPFault(status, body, headers.get("retry-after"))
        except BaseException:
            writer.close()
            raise
        return self._lines(reader, writer, length)

    async def _lines(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, length: int
    ) -> AsyncIterator[str]:
        try:
            while length:
                line = await reader.readuntil(b"\n")
                length -= len(line)
                yield line.decode().strip()
        finally:
            writer.close()


def failure_of(error: Exception) -> RequestFailure | None:
    if isinstance(error, HTTPFault):
        kinds = {401: "refused", 400: "bad", 429: "overloaded", 503: "overloaded", 529: "overloaded"}
        return RequestFailure(kinds.get(error.status, "failed"), str(error), error.status, error.retry_after)
    if isinstance(error, OSError | asyncio.IncompleteReadError):
        return RequestFailure("failed", f"{type(error).__name__}: {error}")
    return None


def make_gateway(**settings) -> Gateway:
    settings = {"first_delay": 0.002, "longest_delay": 0.01, "breaker_failures": 1000} | settings
    return Gateway("provider http://127.0.0.1 aa", GatewaySettings(**settings))


async def read(gateway: Gateway, client: Client) -> list[str]:
    return [line async for line in gateway.stream(client.start, failure_of)]


@pytest.mark.parametrize(
    "fault",
    [
        [answer(["slow down"], "429 Too Many Requests")],
        [answer(["slow down"], "429 Too Many Requests", "retry-after: 0.004")],
        [answer(["slow down"], "429 Too Many Requests", "retry-after: Wed, 21 Oct 2015 07:28:00 GMT")],
        [answer(["overloaded"], "529 Overloaded")],
        [answer(["oops"], "500 Internal Server Error")],
        [],
        [b"HTTP/1.1 200 "],
        [answer(WHOLE, cut=2)],
    ],
)
async def test_a_server_that_comes_to_itself_again_is_not_noticed(fault: list) -> None:
    gateway = make_gateway()
    async with serving(fault, fault, [answer(WHOLE)]) as (server, client):
        assert await read(gateway, client) == WHOLE
        assert server.requests == 3
    assert (gateway.report().retries, gateway.report().running) == (2, 0)


@pytest.mark.parametrize("stalled", [[STALL], [answer(WHOLE, cut=0), STALL]])
async def test_a_server_that_stalls_is_hung_up_on_and_asked_again(stalled: list) -> None:
    # Many attempts, so that a slow machine only makes the test slow.
    gateway = make_gateway(attempts=100, timeouts={"connect": 0.05, "first": 0.05})
    async with serving(stalled, [answer(WHOLE)]) as (server, client):
        assert await read(gateway, client) == WHOLE
        assert server.requests >= 2


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ([answer(WHOLE, cut=8), STALL], "nothing more within 0.05 s"),
        ([answer(WHOLE, cut=8)], "IncompleteReadError: 0 bytes read"),
        ([answer(WHOLE, cut=10)], "IncompleteReadError: 2 bytes read"),
    ],
)
async def test_a_server_that_leaves_in_the_middle_breaks_the_stream(script: list, words: str) -> None:
    gateway, lines = make_gateway(timeouts={"silence": 0.05}), []
    async with serving(script, [answer(WHOLE)]) as (server, client):
        with pytest.raises(StreamBroken, match=words):
            await pour(gateway.stream(client.start, failure_of), lines.append)
        assert lines == ["one", "two"]
        assert server.requests == 1


async def test_a_key_that_is_refused_is_sent_once() -> None:
    async with serving([answer(["no such key"], "401 Unauthorized")]) as (server, client):
        with pytest.raises(ProviderError, match=r"^no such key$") as raised:
            await read(make_gateway(), client)
        assert (raised.value.status, server.requests) == (401, 1)


async def test_a_server_that_is_gone_is_told_as_such() -> None:
    async with serving() as (_, client):
        pass
    with pytest.raises(ProviderError, match=r"ConnectionRefusedError.*\(4 attempts in"):
        await read(make_gateway(), client)


async def test_what_came_while_the_loop_stood_still_is_read_and_no_silence() -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        line, _ = listening.accept()
        with line:
            line.sendall(b"one\n")
            time.sleep(0.3)
            line.sendall(b"two\n")

    async def lines() -> AsyncGenerator[bytes, None]:
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        async for line in reader:
            yield line
        writer.close()

    async def start() -> AsyncGenerator[bytes, None]:
        return lines()

    thread = threading.Thread(target=serve)
    thread.start()
    asyncio.get_running_loop().call_later(0.1, time.sleep, 1.0)
    gateway = Gateway("provider http://127.0.0.1 aa", GatewaySettings(attempts=1, timeouts=Timeouts(silence=0.5)))
    assert [line async for line in gateway.stream(start, failure_of)] == [b"one\n", b"two\n"]
    await asyncio.to_thread(thread.join)
    listening.close()
    assert (gateway.report().finished, gateway.report().failures) == (1, {})


async def test_leaving_in_the_middle_hangs_up() -> None:
    gateway = make_gateway()
    async with serving([answer(WHOLE, cut=8), STALL]) as (server, client):
        asked = asyncio.create_task(read(gateway, client))
        while not gateway.report().first_chunk.count:
            await asyncio.sleep(0.001)
        asked.cancel()
        await asyncio.wait([asked])
        assert asked.cancelled()
        while server.open:
            await asyncio.sleep(0.001)
    assert (gateway.report().given_up, gateway.report().running) == (1, 0)


async def test_a_thousand_conversations_through_forty_lines_lose_nothing() -> None:
    well, fault, busy = [answer(WHOLE)], [], [answer(["slow down"], "429 Too Many Requests", "retry-after: 0.001")]
    scripts = [fault if i % 31 == 0 else busy if i % 97 == 0 else well for i in range(1200)]
    gateway = make_gateway(concurrency=40, attempts=50)
    async with serving(*scripts, well) as (server, client):
        assert await asyncio.gather(*(read(gateway, client) for _ in range(1000))) == [WHOLE] * 1000
        assert server.most_open <= 40
    report = gateway.report()
    assert (report.finished, report.running, report.waiting) == (1000, 0, 0)
    assert report.attempts == server.requests
