"""What an event loop that stands still makes of a provider that is well: nothing that others would be told of it."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import openai_server
import pytest
from asking import HOSTED, events_of
from elsewhere import elsewhere
from providers import failure_of

from ferrule.errors import ProviderError
from ferrule.models import anthropic, google_http, openai_connection
from ferrule.models.gateway import Gateway, GatewayReport, GatewaySettings, Timeouts, configure
from ferrule.models.openai_chat import OpenAIChat
from ferrule.models.stalls import stalls_of

LIMIT = 0.2


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (anthropic, google_http, openai_connection):
        monkeypatch.setattr(module, "CONNECT_SECONDS", LIMIT)


@contextmanager
def busy_loop() -> Iterator[None]:
    """Each turn of the running event loop takes longer than a connection may."""
    loop, on = asyncio.get_running_loop(), True

    def work() -> None:
        if on:
            time.sleep(LIMIT * 3)
            loop.call_soon(work)

    loop.call_soon(work)
    yield
    on = False


def report_of(model: Any) -> GatewayReport:
    shop: Gateway = (model._connection if isinstance(model, OpenAIChat) else model)._gateway
    return shop.report()


async def test_a_connection_that_our_own_loop_was_too_busy_to_make_opens_no_breaker() -> None:
    reply = openai_server.says("It rains.")
    with elsewhere(lambda: openai_server.server(reply, reply)) as url:
        configure(url, GatewaySettings(attempts=1, breaker_failures=1))
        # Each has connections of its own, and all of them one gateway.
        first, second, third = (OpenAIChat("m", api_key=openai_server.KEY, base_url=f"{url}/v1") for _ in range(3))
        assert (await events_of(first))[-1].message.text == "It rains."
        with busy_loop(), pytest.raises(ProviderError, match=r"busy: its event loop stood still for \d"):
            await events_of(second)
        assert (await events_of(third))[-1].message.text == "It rains."
        for made in (first, second, third):
            await made.aclose()
    report = report_of(first)
    assert (report.failures, report.breaker, report.finished) == ({"stalled": 1}, "closed", 2)


@pytest.mark.parametrize("make", HOSTED.values(), ids=HOSTED)
async def test_a_connection_that_a_provider_does_not_take_opens_it(make: Callable[[str], Any], deaf: str) -> None:
    configure(deaf, GatewaySettings(attempts=1, breaker_failures=1))
    made = make(deaf)
    with pytest.raises(ProviderError, match="no connection to"):
        await events_of(made)
    with pytest.raises(ProviderError, match="the circuit breaker is open"):
        await events_of(made)
    await made.aclose()
    assert (report_of(made).failures, report_of(made).breaker) == ({"failed": 1}, "open")


@pytest.mark.parametrize("make", HOSTED.values(), ids=HOSTED)
async def test_each_sdk_tells_that_a_time_limit_has_passed(make: Callable[[str], Any], deaf: str) -> None:
    configure(deaf, GatewaySettings(attempts=1, breaker_failures=1))
    made = make(deaf)
    with busy_loop(), pytest.raises(ProviderError, match="this process was busy"):
        await events_of(made)
    await made.aclose()
    assert (report_of(made).failures, report_of(made).breaker) == ({"stalled": 1}, "closed")


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
    shop = Gateway("shop http://127.0.0.1 aa", GatewaySettings(attempts=1, timeouts=Timeouts(silence=0.5)))
    assert [line async for line in shop.stream(start, failure_of)] == [b"one\n", b"two\n"]
    await asyncio.to_thread(thread.join)
    listening.close()
    assert (shop.report().finished, shop.report().failures) == (1, {})


async def test_stalls_are_counted_while_somebody_follows_them() -> None:
    stalls = stalls_of(asyncio.get_running_loop())
    assert stalls is stalls_of(asyncio.get_running_loop())
    before = stalls.follow()
    stalls.follow()
    await asyncio.sleep(0)
    time.sleep(0.6)
    lost = stalls.seconds - before
    assert lost > 0.3
    await asyncio.sleep(0.01)
    assert stalls.seconds - before >= lost
    stalls.leave()
    stalls.leave()
    lost = stalls.seconds
    time.sleep(0.6)
    assert stalls.seconds == lost
    assert not [one for one in asyncio.get_running_loop()._scheduled if not one.cancelled()]
