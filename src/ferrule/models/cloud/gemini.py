"""Gemini as Vertex AI serves it, signed in by the package `google-auth`: `model("vertex:gemini-2.5-pro")`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ferrule.capabilities import Loss
from ferrule.conversation import Conversation
from ferrule.errors import ModelError
from ferrule.formats.tool_offers import ToolNames
from ferrule.models.cloud.claude import find_region
from ferrule.models.cloud.sdk_client import require_packages
from ferrule.models.google.model import GoogleModel
from ferrule.models.hosted import ProviderRequest
from ferrule.models.http import EventStreamClient
from ferrule.models.protocol import ModelSettings
from ferrule.models.providers import Provider
from ferrule.toolspec import ToolSpec

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


class VertexGemini(GoogleModel):
    """Gemini on Vertex AI, with Google's default credentials, or an access token.

    `region` is that of GOOGLE_CLOUD_LOCATION if left out, or `global`; `project` that of GOOGLE_CLOUD_PROJECT, or of
    the credentials. Raises `ModelError` if the package, the credentials or the project are missing.
    """

    def __init__(
        self,
        name: str,
        provider: str | Provider = "vertex",
        *,
        base_url: str | None = None,
        region: str | None = None,
        project: str | None = None,
        access_token: str | None = None,
        credentials: Any = None,
    ) -> None:
        self._region = region or find_region()
        self._project = project or os.environ.get("GOOGLE_CLOUD_PROJECT") or ""
        self._token, self._credentials = access_token, credentials
        host = "aiplatform" if self._region == "global" else f"{self._region}-aiplatform"
        super().__init__(name, provider, base_url=base_url or f"https://{host}.googleapis.com")

    def _check_installation(self) -> None:
        require_packages(self.name, self.provider)
        super()._check_installation()
        if self._token is None and self._credentials is None:
            import google.auth
            from google.auth.exceptions import GoogleAuthError

            try:
                self._credentials, found = google.auth.default(scopes=list(_SCOPES))
            except GoogleAuthError as error:
                raise ModelError(
                    f"no credentials for {self.name}: run gcloud auth application-default login, "
                    "or give access_token=… or credentials=…"
                ) from error
            self._project = self._project or found or ""
        if not self._project:
            raise ModelError(
                f'no project for {self.name}: set GOOGLE_CLOUD_PROJECT, or give model("{self.name}", project=…)'
            )

    def make_client(self, key: str) -> EventStreamClient:  # noqa: ARG002 - Vertex has no keys
        """See `HostedModel`."""
        return _TokenClient(self.address, self._token, self._credentials, self.split_answer)

    def render_request(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings, names: ToolNames
    ) -> tuple[ProviderRequest, list[Loss]]:
        """See `HostedModel`."""
        request, losses = super().render_request(conversation, tools, settings, names)
        place = f"projects/{self._project}/locations/{self._region}/publishers/google/models/{quote(self.model)}"
        return ProviderRequest(f"/v1/{place}:streamGenerateContent?alt=sse", request.body, request.headers), losses


class _TokenClient(EventStreamClient):
    """Sends an access token with each request, which it renews."""

    def __init__(self, address: str, token: str | None, credentials: Any, split_answer: Callable[[Any], Any]) -> None:
        super().__init__(address, {}, split_answer=split_answer)
        self._token = token
        self._credentials = credentials

    async def post(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """See `EventStreamClient`. Raises `ModelError` if the token can't be renewed."""
        token = self._token or await asyncio.to_thread(self._renew)
        return await super().post(path, body, {**headers, "authorization": f"Bearer {token}"})

    def _renew(self) -> str:
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request

        try:
            if not self._credentials.valid:
                self._credentials.refresh(Request())
        except GoogleAuthError as error:
            raise ModelError(f"Google's access token can't be renewed: {error}") from error
        return str(self._credentials.token)
