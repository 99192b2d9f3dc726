"""A machine that doesn't take connections is given up long before a provider that is slow to answer."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from ferrule.conversation import Conversation, user
from ferrule.errors import ProviderError
from ferrule.models import anthropic, google_http, openai_connection
from ferrule.models.anthropic import AnthropicModel
from ferrule.models.gateway import GatewaySettings, configure
from ferrule.models.google import GoogleModel
from ferrule.models.openai_chat import OpenAIChat
from ferrule.models.protocol import Model, ModelSettings

MAKERS: list[Callable[[str], Model]] = [
    lambda address: OpenAIChat("m", "compatible", base_url=address),
    lambda address: AnthropicModel("m", api_key="k", base_url=address),
    lambda address: GoogleModel("m", api_key="k", base_url=address),
]


@pytest.fixture
def deaf() -> Iterator[str]:
    """An address that answers no further connection: as many as may wait there do."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listening.getsockname())
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        for one in waiting:
            one.close()


@pytest.mark.parametrize("make", MAKERS, ids=["openai", "anthropic", "google"])
async def test_a_connection_that_is_not_made(
    make: Callable[[str], Model], deaf: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (anthropic, google_http, openai_connection):
        monkeypatch.setattr(module, "CONNECT_SECONDS", 0.2)
    configure(deaf, GatewaySettings(attempts=1))
    model = make(deaf)
    with pytest.raises(ProviderError, match="no connection to"):
        async for _ in model.stream(Conversation((user("Hi"),)), (), ModelSettings()):
            pass
    await model.aclose()
