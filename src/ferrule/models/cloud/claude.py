"""Claude as Amazon Bedrock and Vertex AI serve it, by the clients of the package `anthropic`.

model("bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0"), model("vertex:claude-sonnet-4-5@20250929")
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ferrule.capabilities import Loss
from ferrule.conversation import Conversation
from ferrule.errors import ModelError
from ferrule.formats.tool_offers import ToolNames
from ferrule.models.anthropic.model import AnthropicModel
from ferrule.models.cloud.sdk_client import SDKClient, require_packages
from ferrule.models.hosted import ProviderRequest
from ferrule.models.keys import KeyFunction
from ferrule.models.protocol import ModelSettings
from ferrule.models.providers import Provider
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from anthropic import AsyncAnthropicBedrock, AsyncAnthropicVertex


class CloudClaude(AnthropicModel):
    """Claude through a client of the package `anthropic`."""

    sampling_version: str
    """The version in the body of a request with a temperature, top_p or top_k, which the newest version refuses."""
    takes_key_function = False
    _given: Any

    def render_request(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings, names: ToolNames
    ) -> tuple[ProviderRequest, list[Loss]]:
        """See `HostedModel`. In clouds the version is part of the body."""
        request, losses = super().render_request(conversation, tools, settings, names)
        if request.headers:
            body = {**request.body, "anthropic_version": self.sampling_version}
            request = replace(request, body=body, headers={})
        return request, losses

    @abstractmethod
    def make_sdk_client(self, key: str) -> Any:
        """A client for one event loop."""

    def make_client(self, key: str) -> SDKClient:
        """See `HostedModel`. Raises `ModelError` where the package's client refuses its options."""
        try:
            found = self._given or self.make_sdk_client(key)
        except Exception as error:
            raise ModelError(f"{self.name}: {error}") from error
        self.address = str(found.base_url).rstrip("/")
        return SDKClient(self.name, lambda: self.make_sdk_client(key), self._given, _get_stream_class)


def _get_stream_class() -> Any:
    from anthropic import AsyncStream

    return AsyncStream[object]


class BedrockModel(CloudClaude):
    """Claude on Amazon Bedrock, with the credentials that boto3 finds, or a Bedrock API key.

    `region` is that of AWS_REGION if left out, `profile` one of the AWS configuration; `client` is a client of your
    own, used as it is. Raises `ModelError` for a model that isn't Anthropic's, and for missing packages.
    """

    sampling_version = "bedrock-2023-05-31"

    def __init__(  # noqa: PLR0913 - options by their names, as `model` takes them
        self,
        name: str,
        provider: str | Provider = "bedrock",
        *,
        client: AsyncAnthropicBedrock | None = None,
        api_key: str | KeyFunction | None = None,
        base_url: str | None = None,
        region: str | None = None,
        profile: str | None = None,
        max_tokens: int = 32_000,
        cache: bool = True,
    ) -> None:
        self._given, self._region, self._profile = client, region, profile
        super().__init__(name, provider, api_key=api_key, base_url=base_url, max_tokens=max_tokens, cache=cache)

    def _check_installation(self) -> None:
        if "anthropic." not in self.model and not self.model.startswith("arn:"):
            raise ModelError(
                f"{self.name}: only Anthropic's models of Bedrock can be used; "
                "their names are like anthropic.claude-sonnet-4-5-20250929-v1:0"
            )
        require_packages(self.name, self.provider)

    def make_sdk_client(self, key: str) -> AsyncAnthropicBedrock:
        """See `CloudClaude`."""
        from anthropic import AsyncAnthropicBedrock

        return AsyncAnthropicBedrock(
            api_key=key or None,
            base_url=self.address or None,
            aws_region=self._region,
            aws_profile=self._profile,
            max_retries=0,
        )


class VertexClaude(CloudClaude):
    """Claude on Vertex AI, with Google's default credentials, or an access token.

    `region` is that of CLOUD_ML_REGION or GOOGLE_CLOUD_LOCATION if left out, or `global`; `project` that of the
    credentials; `client` is a client of your own, used as it is. Raises `ModelError` for missing packages.
    """

    sampling_version = "vertex-2023-10-16"

    def __init__(  # noqa: PLR0913 - options by their names, as `model` takes them
        self,
        name: str,
        provider: str | Provider = "vertex",
        *,
        client: AsyncAnthropicVertex | None = None,
        base_url: str | None = None,
        region: str | None = None,
        project: str | None = None,
        access_token: str | None = None,
        credentials: Any = None,
        max_tokens: int = 32_000,
        cache: bool = True,
    ) -> None:
        self._given, self._region, self._project = client, region or find_region(), project
        self._token, self._credentials = access_token, credentials
        super().__init__(name, provider, base_url=base_url, max_tokens=max_tokens, cache=cache)

    def _check_installation(self) -> None:
        require_packages(self.name, self.provider)

    def make_sdk_client(self, key: str) -> AsyncAnthropicVertex:  # noqa: ARG002 - Vertex has no keys
        """See `CloudClaude`."""
        from anthropic import AsyncAnthropicVertex

        given: dict[str, Any] = {"project_id": self._project} if self._project else {}
        return AsyncAnthropicVertex(
            region=self._region,
            access_token=self._token,
            credentials=self._credentials,
            base_url=self.address or None,
            max_retries=0,
            **given,
        )


def find_region() -> str:
    """The region that the environment names, or `global`."""
    return os.environ.get("CLOUD_ML_REGION") or os.environ.get("GOOGLE_CLOUD_LOCATION") or "global"
