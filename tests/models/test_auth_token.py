"""Anthropic's format with a token in `Authorization: Bearer`, as gateways and servers of other models ask for it."""

from __future__ import annotations

from typing import Any

import anthropic_server as claude
import pytest
from scripted_http import Request, ScriptedServer

from ferrule import model
from ferrule.errors import ModelError, ProviderError
from ferrule.models.anthropic.model import AnthropicModel
from ferrule.models.naming import make_hosted_model

HEADERS = ("authorization", "x-api-key")
KEY, TOKEN = (None, "key"), ("Bearer token", None)


@pytest.mark.parametrize(
    ("environment", "options", "sent"),
    [
        ({"ANTHROPIC_API_KEY": "key"}, {}, KEY),
        ({"ANTHROPIC_AUTH_TOKEN": "token"}, {}, TOKEN),
        ({"ANTHROPIC_API_KEY": " ", "ANTHROPIC_AUTH_TOKEN": "token"}, {}, TOKEN),
        ({"ANTHROPIC_API_KEY": "key", "ANTHROPIC_AUTH_TOKEN": "token"}, {}, KEY),
        ({"ANTHROPIC_AUTH_TOKEN": "other"}, {"api_key": "key"}, KEY),
        ({"ANTHROPIC_API_KEY": "other"}, {"auth_token": "token"}, TOKEN),
        ({}, {"auth_token": lambda: "token"}, TOKEN),
    ],
)
async def test_a_token_is_sent_as_one(
    environment: dict[str, str], options: dict[str, Any], sent: tuple[str | None, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    async with ScriptedServer(lambda _: None, claude.answer(claude.text("Yes."))) as server:
        made = make_hosted_model("anthropic", "m", base_url=server.url, **options)
        async with model(made) as asked:
            assert (await asked.chat("?").run()).text == "Yes."
    assert tuple(server.requests[0].headers.get(name) for name in HEADERS) == sent


async def test_a_refused_token_is_named_and_not_shown() -> None:
    def refuse(_: Request) -> Any:
        return claude.error(401, "authentication_error", "Unauthorized: secret-token.")

    async with (
        ScriptedServer(refuse) as server,
        model(AnthropicModel("m", auth_token="secret-token", base_url=server.url)) as asked,
    ):
        with pytest.raises(ProviderError, match=r"check ANTHROPIC_AUTH_TOKEN, or give .*auth_token=…") as raised:
            await asked.chat("?").run()
    assert "secret-token" not in str(raised.value)


def test_a_key_and_a_token_are_not_both_taken() -> None:
    with pytest.raises(ModelError, match="anthropic:m takes api_key or auth_token, not both"):
        AnthropicModel("m", api_key="key", auth_token="token")
