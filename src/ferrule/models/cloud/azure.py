"""OpenAI's models that Azure serves, by `openai.AsyncAzureOpenAI`: `model("azure:my-deployment")`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from ferrule.errors import ModelError
from ferrule.models.cloud.sdk_client import SDKClient, require_packages
from ferrule.models.keys import KeyFunction
from ferrule.models.openai.chat import OpenAIChat
from ferrule.models.providers import OpenAIProvider

if TYPE_CHECKING:
    from openai import AsyncAzureOpenAI

_VERSION = "2024-10-21"


class AzureModel(OpenAIChat):
    """A deployment of Azure OpenAI, by the name of the deployment.

    `base_url` is the resource (`https://NAME.openai.azure.com`, or AZURE_OPENAI_ENDPOINT); `token_provider` returns a
    token of Entra ID, in place of a key; `client` is a client of your own, used as it is. Raises `ModelError` if the
    package, the address or the credentials are missing.
    """

    def __init__(  # noqa: PLR0913 - options by their names, as `model` takes them
        self,
        name: str,
        provider: str | OpenAIProvider = "azure",
        *,
        client: AsyncAzureOpenAI | None = None,
        api_key: str | KeyFunction | None = None,
        base_url: str | None = None,
        api_version: str | None = None,
        token_provider: Callable[[], str | Awaitable[str]] | None = None,
        user_images: bool | None = None,
        native_tools: bool = True,
        user_media: Sequence[str] | None = None,
    ) -> None:
        self._given = client
        self._api_version = api_version or os.environ.get("OPENAI_API_VERSION") or _VERSION
        self._token_provider = token_provider
        super().__init__(
            name, provider, api_key=api_key, base_url=base_url, user_images=user_images, native_tools=native_tools,
            user_media=user_media,
        )  # fmt: skip

    takes_key_function = False
    _own_rotation = "give token_provider="

    def _check_installation(self) -> None:
        require_packages(self.name, self.provider)
        if self._given is not None:
            self.address = str(self._given.base_url)
        if not self.address:
            raise ModelError(
                f"no address for {self.name}: set AZURE_OPENAI_ENDPOINT, "
                f'or give model("{self.name}", base_url="https://NAME.openai.azure.com")'
            )
        super()._check_installation()

    def make_client(self, key: str) -> SDKClient:
        """See `HostedModel`."""
        if not (self._given or key or self._token_provider or os.environ.get("AZURE_OPENAI_AD_TOKEN")):
            raise ModelError(
                f'no key for {self.provider.label}: set AZURE_OPENAI_API_KEY, or give model("{self.name}", api_key=…) '
                "or token_provider=…"
            )

        def make() -> AsyncAzureOpenAI:
            from openai import AsyncAzureOpenAI

            credentials: dict[str, Any] = {"azure_ad_token_provider": self._token_provider}
            if self._token_provider is None:
                credentials = {"api_key": key} if key else {}
            endpoint, version = self.address, self._api_version
            return AsyncAzureOpenAI(azure_endpoint=endpoint, api_version=version, max_retries=0, **credentials)

        return SDKClient(self.name, make, self._given, _get_stream_class)


def _get_stream_class() -> Any:
    from openai import AsyncStream

    return AsyncStream[object]
