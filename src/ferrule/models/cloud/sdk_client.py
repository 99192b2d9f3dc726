"""Sends requests through an official package's asynchronous client, in place of `http.EventStreamClient`.

`AsyncOpenAI` and `AsyncAnthropic`, and their variants for clouds, share one interface: `post(…, stream_cls=…)`, which
signs the request, and a stream of decoded events. Retries and time limits stay with the gateway.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from ferrule.errors import ModelError
from ferrule.models.http import BadStatusError, LoopClients
from ferrule.models.providers import Provider


class SDKClient:
    """Posts JSON by a client that `make` creates for each event loop; its own, if it was given one, is never closed."""

    def __init__(self, name: str, make: Callable[[], Any], given: Any, stream_class: Callable[[], Any]) -> None:
        self._name = name
        self._given = given
        self._get_stream_class = stream_class
        self._clients: LoopClients[Any] = LoopClients(make, lambda client: client.close())

    async def open(self) -> None:
        """Create the client of this event loop."""
        await self._get_client()

    async def _get_client(self) -> Any:
        return await self._clients.get() if self._given is None else self._given

    async def post(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Send a request; returns the JSON objects of its answer. Raises what `EventStreamClient.post` does, and
        `ModelError` where no credentials are found."""
        client = await self._get_client()
        options = {"headers": dict(headers), "max_retries": 0, "timeout": None}
        try:
            stream = await client.post(
                path, cast_to=object, body=dict(body), options=options, stream=True, stream_cls=self._get_stream_class()
            )
        except Exception as error:
            raise self._explain(error) from error
        return self._iterate(stream)

    async def _iterate(self, stream: Any) -> AsyncGenerator[dict[str, Any], None]:
        try:
            async for event in stream:
                yield event
        except Exception as error:
            body = getattr(error, "body", None)
            if not isinstance(body, dict):
                raise self._explain(error) from error
            yield {"error": body.get("error", body)}
        finally:
            await stream.response.aclose()

    def _explain(self, error: Exception) -> Exception:
        """What `HostedModel` can explain: a status, an error of the connection, or a mistake of the setup."""
        import httpx2

        response = getattr(error, "response", None)
        if isinstance(response, httpx2.Response) and not response.is_success:
            return BadStatusError(response.status_code, response.headers, _decode(response.text))
        for one in (error, error.__cause__, error.__context__):
            if isinstance(one, httpx2.RequestError | httpx2.InvalidURL):
                return one
        return ModelError(f"{self._name}: {type(error).__name__}: {error}")

    async def aclose(self) -> None:
        """Close the client of this event loop."""
        await self._clients.aclose()


def _decode(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def require_packages(name: str, provider: Provider) -> None:
    """Raise `ModelError` unless the packages of a provider's models are installed."""
    if package := provider.find_missing_package():
        raise ModelError(f'model("{name}") needs the module {package}: pip install "ferrule[{provider.extra}]"')
