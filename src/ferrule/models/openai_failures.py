"""What the exceptions of OpenAI's SDK mean, and what is told of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ferrule.models.compatible import Provider
from ferrule.models.gateway import Failure
from ferrule.models.hosted import RequestFailed, failure_for_status, no_connection
from ferrule.models.openai_answer import AnswerFailed

# What an error inside of a stream is called, where it has no HTTP status.
_STATUS_OF = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "overloaded_error": 503,
    "server_error": 500,
    "insufficient_quota": 402,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
}
_NO_CREDIT = "insufficient_quota"


class Failures:
    """Tells the failures of one model at one address."""

    def __init__(self, name: str, provider: Provider, address: str) -> None:
        self._name = name
        self._provider = provider
        self._address = address

    def __call__(self, error: Exception) -> Failure | None:
        """What an exception means. None: it is neither the SDK's nor about what the server sent."""
        import httpx2
        import openai

        if isinstance(error, RequestFailed):
            return error.failure
        if isinstance(error, AnswerFailed):
            return self._broke_off(_STATUS_OF.get(error.code, 500), str(error))
        if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
            return Failure("failed", f"{self._name}: an event of the answer is no JSON: {error}")
        if isinstance(error, openai.APIStatusError):
            return self._answered(error)
        # The SDK's first versions let a break in the middle of an answer through as the transport tells it.
        if isinstance(error, openai.APIConnectionError | httpx2.TransportError):
            return no_connection(self._name, self._address, error.__cause__ or error)
        if isinstance(error, openai.APIError):
            return self._broke_off(_status_in(error), _said_by(error))
        return None

    def _answered(self, error: Any) -> Failure:
        status, said = error.status_code, _said_by(error)
        message = f"{self._name}: {self._provider.label} answered {status}: {said}"
        if status == 429 and _NO_CREDIT in (error.code, error.type):
            return Failure("bad", message, status)  # waiting brings no money
        return failure_for_status(status, message, self._key_hint, _retry_after(error.response.headers))

    def _broke_off(self, status: int, said: str) -> Failure:
        message = f"{self._name}: {self._provider.label} broke off: {said}"
        return failure_for_status(status, message, self._key_hint)

    @property
    def _key_hint(self) -> str:
        return f'check {self._provider.key}, or give model("{self._name}", api_key=…)'


def _said_by(error: Any) -> str:
    """The provider's own words, wherever in its answer they are."""
    said = error.body
    while isinstance(said, Mapping):
        inner = said.get("message") or said.get("error") or said.get("detail")
        if inner is None:
            return json.dumps(dict(said), ensure_ascii=False)[:500]
        said = inner
    return str(said or error.message)[:500]


def _status_in(error: Any) -> int:
    """The status of an error that came inside of a stream; one that says nothing is the server's fault."""
    code = str(error.code or "")
    if code.isdecimal():
        return int(code)
    return _STATUS_OF.get(code) or _STATUS_OF.get(str(error.type or "")) or 500


def _retry_after(headers: Mapping[str, str]) -> str | None:
    """What the server asks to be waited for: seconds, or the `Retry-After` header as it came."""
    try:
        return str(float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        return headers.get("retry-after")
