"""A machine that doesn't take connections is given up long before a provider that is slow to answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from asking import HOSTED

from ferrule.conversation import Conversation, user
from ferrule.errors import ProviderError
from ferrule.models import anthropic, google_http, openai_connection
from ferrule.models.gateway import GatewaySettings, configure
from ferrule.models.protocol import Model, ModelSettings


@pytest.mark.parametrize("make", HOSTED.values(), ids=HOSTED)
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
