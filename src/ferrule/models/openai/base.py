"""What both of OpenAI's APIs share: the provider, its key, and how settings are written."""

from __future__ import annotations

import os
from typing import Any

from ferrule.errors import ModelError
from ferrule.formats.tool_offers import make_strict_schema
from ferrule.models.hosted import HostedModel
from ferrule.models.keys import KeyFunction
from ferrule.models.providers import OpenAIProvider, find_provider

SAMPLING = ("temperature", "top_p")
"""Sent where they were given only: models that reason refuse them."""


class OpenAIModel(HostedModel):
    """A model of a provider that speaks one of OpenAI's formats.

    Raises `ModelError` for a provider that doesn't, and for a key, an address or a package that is missing.
    """

    provider: OpenAIProvider
    address_has_version = True

    def __init__(
        self, name: str, provider: str | OpenAIProvider, api_key: str | KeyFunction | None, base_url: str | None
    ) -> None:
        found = find_provider(provider)
        if not isinstance(found, OpenAIProvider):
            raise ModelError(f"{found.label} does not speak OpenAI's formats: its models are {found.name}:<model>")
        super().__init__(name, found, api_key, base_url)

    def make_auth_headers(self, key: str) -> dict[str, str]:
        """See `HostedModel`. OpenAI itself is also sent the account that the environment names."""
        headers = {"authorization": f"Bearer {key}"} if key else {}
        if self.provider.url is not None:
            account = {"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"}
            headers |= {header: value for header, name in account.items() if (value := os.environ.get(name))}
        return headers


def make_answer_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema for OpenAI: strict where it can be said so, else one that the model is merely shown."""
    strict = make_strict_schema(schema)
    return {"name": "answer", "schema": schema if strict is None else strict, "strict": strict is not None}
