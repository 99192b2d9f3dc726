"""A client belongs to one event loop, and is closed with it where nobody closed the model."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable
from typing import Any

import anthropic_server
import google_server
import openai_server
import pytest
from anthropic_server import AnthropicServer
from asking import events_of
from google_server import GoogleServer

from ferrule.models.anthropic.model import AnthropicModel
from ferrule.models.google.model import GoogleModel
from ferrule.models.http import LoopClients
from ferrule.models.openai.chat import OpenAIChat

PROVIDERS: dict[str, tuple[Callable[[], Any], Callable[[str], Any]]] = {
    "openai": (
        lambda: openai_server.server(openai_server.says("It rains.")),
        lambda url: OpenAIChat("m", api_key=openai_server.KEY, base_url=f"{url}/v1"),
    ),
    "anthropic": (
        lambda: AnthropicServer(anthropic_server.answer(anthropic_server.text("It rains."))),
        lambda url: AnthropicModel("m", api_key=anthropic_server.KEY, base_url=url),
    ),
    "google": (
        lambda: GoogleServer(google_server.answer(google_server.text("It rains."))),
        lambda url: GoogleModel("m", api_key=google_server.KEY, base_url=url),
    ),
}


class Client:
    """It is open until it is closed."""

    def __init__(self) -> None:
        self.closed = 0

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.closed += 1


def test_a_loop_has_one_client_which_is_closed_once_and_with_it_at_the_latest() -> None:
    made: list[Client] = []

    def make() -> Client:
        made.append(Client())
        return made[-1]

    clients = LoopClients(make, lambda client: client.close())

    async def use(*, close: bool) -> None:
        assert await clients.get() is await clients.get() is made[-1]
        if close:
            await clients.aclose()
            await clients.aclose()
            assert made[-1].closed == 1

    for close in (False, True, False):
        asyncio.run(use(close=close))
    assert [client.closed for client in made] == [1, 1, 1]


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_loop_that_ends_closes_what_was_opened_in_it(name: str) -> None:
    serve, make = PROVIDERS[name]
    kept: list[Any] = []

    async def ask() -> str:
        async with serve() as provider:
            kept.append(make(provider.url))
            return (await events_of(kept[0]))[-1].message.text

    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        assert asyncio.run(ask()) == "It rains."
        kept.clear()
        gc.collect()
