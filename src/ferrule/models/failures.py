"""What a provider's errors mean, by HTTP status and JSON: whether to retry, and what to report. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ferrule.models.gateway.retries import RequestFailure

# The names of errors without a status: in the middle of an answer, after a 200.
_STATUS_OF = {
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "insufficient_quota": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_LONGEST = 500
# Error codes and phrases for a prompt that exceeds the model's context: only OpenAI, and some that speak its format,
# have a code for it. A request with only a too large `max_tokens` doesn't count, since a shorter prompt doesn't help.
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size_error"  # OpenAI, Groq; llama.cpp
    r"|prompt is too long|exceed context limit"  # Anthropic
    r"|input token count.*exceeds the maximum"  # Google
    r"|maximum (context|prompt) length|longer than the model's context length"  # vLLM, DeepSeek, xAI; SGLang
    r"|exceeds the (available )?context"  # OpenAI's Responses; llama.cpp
    r"|ContextWindowExceededError",  # LiteLLM
    re.IGNORECASE,
)
# What servers answer where they take no tools for a model, or weren't started to take any.
_NO_TOOLS = re.compile(
    # Ollama, Bedrock, DeepSeek
    r"do(es)? ?n[o']t (currently |yet )?support (tools|tool use|tool calling|function calling)"
    r"|requires (--enable-auto-tool-choice and )?--tool-call-parser"  # vLLM
    r"|tools param requires --jinja|unsupported param: tools"  # llama.cpp, with the status 500
    r"|extra_forbidden\W+loc\W+body\W+tools\b"  # servers that refuse unknown fields
    r"|no endpoints found that support tool use"  # OpenRouter, with 404
    r"|(tool|function) calling\W{0,2} is not (supported|enabled)"  # Groq, DeepInfra, Google, Mistral
    # OpenAI, Azure
    r"|'tools' is not supported|tools\W{0,2} is not supported in this model|functions are not supported",
    re.IGNORECASE,
)
# llama.cpp reports media that its model can't read with the status 500, which would be sent again.
_NO_MEDIA = re.compile(r"(image|audio|video) input is not supported|unsupported content part type", re.IGNORECASE)
_TOO_MANY_ASKED = re.compile(r"max_(completion_)?tokens\W.{0,40}too large", re.IGNORECASE)


def explain_status(status: int, headers: Mapping[str, str], body: Any, sender: str, key_hint: str) -> RequestFailure:
    """The failure for an error response.

    `body` is its decoded JSON or its text; `sender` begins the message ("openai:gpt-5: OpenAI"), and `key_hint` says
    where a refused key comes from.
    """
    message = f"{sender} answered {status}: {find_message(body) or _get_phrase(status)}"
    if 300 <= status < 400:
        target = headers.get("location", "another address")
        return RequestFailure("bad", f"{message.rstrip('.')}; it redirects to {target}: is the address right?", status)
    error = _get_error(body)
    return _make_failure(_correct_status(status, error), message, key_hint, error, headers)


def explain_error_event(error: Any, sender: str, key_hint: str) -> RequestFailure:
    """The failure for an error in the middle of an answer; one without details is the server's fault."""
    fields = error if isinstance(error, Mapping) else {}
    names = [str(fields.get(name) or "") for name in ("code", "type", "status")]
    status = next((int(name) for name in names if name.isdecimal()), None)
    status = status or next((_STATUS_OF[name] for name in names if name in _STATUS_OF), 500)
    name = next((name for name in names if name and not name.isdecimal()), "")
    message = f"{sender} broke off: {find_message(error) or 'no reason given'}{f' ({name})' if name else ''}"
    return _make_failure(_correct_status(status, fields), message, key_hint, fields, {})


def find_message(body: Any) -> str:
    """The provider's own message, wherever it is in an error; empty if there is none."""
    while isinstance(body, Mapping):
        inner = body.get("message") or body.get("error") or body.get("detail")
        if inner is None:
            return json.dumps(dict(body), ensure_ascii=False)[:_LONGEST] if body else ""
        body = inner
    return str(body or "")[:_LONGEST]


def _get_error(body: Any) -> Mapping[str, Any]:
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def _correct_status(status: int, error: Mapping[str, Any]) -> int:
    """The status that the server should have sent."""
    if status == 429 and "insufficient_quota" in (error.get("code"), error.get("type")):
        return 402  # waiting doesn't help with an empty account
    if status == 500 and _NO_MEDIA.search(str(error.get("message"))):
        return 400
    if status == 400 and "API_KEY_INVALID" in str(error.get("details")):
        return 401  # Google reports a wrong key as a bad request
    return status


def _make_failure(
    status: int, message: str, key_hint: str, error: Mapping[str, Any], headers: Mapping[str, str]
) -> RequestFailure:
    retry_after = _get_retry_after(headers, error)
    if status in (401, 403):
        return RequestFailure("refused", f"{message.rstrip('.')}; {key_hint}", status)
    if status not in (429, 503, 529) and _NO_TOOLS.search(message):
        return RequestFailure("bad", message, status, refuses_tools=True)
    if status in (429, 503, 529):
        return RequestFailure("overloaded", message, status, retry_after)
    # 408, 409 and 425 are temporary: the official packages retry them as well.
    if status >= 500 or status in (408, 409, 425):
        return RequestFailure("failed", message, status, retry_after)
    names = f"{error.get('code')} {error.get('type')} {message}"
    is_too_long = _TOO_LONG.search(names) is not None and _TOO_MANY_ASKED.search(message) is None
    return RequestFailure("bad", message, status, is_too_long=is_too_long)


def _get_retry_after(headers: Mapping[str, str], error: Mapping[str, Any]) -> str | None:
    """How long the server asks to wait: seconds, or its `Retry-After` header verbatim."""
    try:
        return str(float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        return headers.get("retry-after") or _get_google_delay(error)


def _get_google_delay(error: Mapping[str, Any]) -> str | None:
    """The seconds of the `RetryInfo` in an error's details, which Google sends instead of a header."""
    details = error.get("details")
    for entry in details if isinstance(details, list) else ():
        if isinstance(entry, dict) and isinstance(delay := entry.get("retryDelay"), str):
            return delay.removesuffix("s")
    return None


def _get_phrase(status: int) -> str:
    from http import HTTPStatus  # rarely needed, and slow to import

    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no reason given"
