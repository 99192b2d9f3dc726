"""A machine that doesn't take connections is given up long before a provider that is slow to answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from asking import HOSTED, events_of

from ferrule.errors import ProviderError
from ferrule.models import http
from ferrule.models.gateway import Gateway, GatewayReport, GatewaySettings, configure


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "CONNECT_SECONDS", 0.2)


def report_of(model: Any) -> GatewayReport:
    gateway: Gateway = model._gateway
    return gateway.report()


@pytest.mark.parametrize("make", HOSTED.values(), ids=HOSTED)
async def test_a_connection_that_is_not_made(make: Callable[[str], Any], deaf: str) -> None:
    configure(deaf, GatewaySettings(attempts=1))
    made = make(deaf)
    with pytest.raises(ProviderError, match="no connection to"):
        await events_of(made)
    await made.aclose()


@pytest.mark.parametrize("make", HOSTED.values(), ids=HOSTED)
async def test_a_connection_that_a_provider_does_not_take_opens_the_breaker(
    make: Callable[[str], Any], deaf: str
) -> None:
    configure(deaf, GatewaySettings(attempts=1, breaker_failures=1))
    made = make(deaf)
    with pytest.raises(ProviderError, match="no connection to"):
        await events_of(made)
    with pytest.raises(ProviderError, match="the circuit breaker is open"):
        await events_of(made)
    await made.aclose()
    assert (report_of(made).failures, report_of(made).breaker) == ({"failed": 1}, "open")
