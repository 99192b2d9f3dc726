"""Claude, by Anthropic's Messages API: `AnthropicModel("claude-sonnet-5")`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ferrule.capabilities import Capabilities, Loss
from ferrule.conversation import Conversation
from ferrule.errors import ModelError
from ferrule.formats.anthropic import FILE_TYPES, dump
from ferrule.formats.tool_offers import ToolNames, make_parameters_schema
from ferrule.models.anthropic.schema import fit_answer_schema
from ferrule.models.anthropic.stream import AnthropicReader
from ferrule.models.hosted import EventKind, HostedModel, ProviderRequest, find_version
from ferrule.models.key_source import KeyFunction
from ferrule.models.protocol import ModelSettings
from ferrule.models.providers import Provider
from ferrule.toolspec import ToolSpec

_VERSION = "2026-10-21"
# This version accepts no temperature, top_p or top_k; the one before does, for the models that still support them.
_SAMPLING_VERSION = "2023-06-01"
_SAMPLING = ("temperature", "top_k", "top_p")
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 24_576}
_LEAST_BUDGET = 1024
_CACHED = {"type": "ephemeral"}

Body: TypeAlias = dict[str, Any]


class AnthropicModel(HostedModel):
    """A model of Anthropic's Messages API.

    `max_tokens` is the default limit of a message, which this API requires; thinking counts towards it. With `cache`,
    the offers, the system message and the messages so far are marked for caching for five minutes, so that each step of
    a conversation pays in full only for what is new; writing the cache costs a quarter more than reading, so turn it
    off for conversations of a single request.

    `effort` becomes adaptive thinking from Claude 4.6 on (`minimal` as `low`), and a budget of tokens before. The
    temperature, top_k and top_p are sent only if they were set, with the API's version 2023-06-01: newer models refuse
    them. A model's refusal ends its message with the stop reason `error`.

    Raises `ModelError` if the package or the key is missing.
    """

    capabilities = Capabilities(
        reasoning=True,
        ids=True,
        user_images=True,
        image_results=True,
        malformed_calls=False,
        user_media=FILE_TYPES,
        largest_file=24_000_000,  # a request may have 32 MB, and base64 takes four bytes for three
        settings=frozenset(
            {"temperature", "top_k", "top_p", "max_tokens", "stop", "choice", "parallel_calls", "effort"}
            | {"output_schema", "extra"}
        ),
    )

    def __init__(
        self,
        name: str,
        provider: str | Provider = "anthropic",
        *,
        api_key: str | KeyFunction | None = None,
        base_url: str | None = None,
        max_tokens: int = 32_000,
        cache: bool = True,
    ) -> None:
        super().__init__(name, provider, api_key, base_url)
        self.max_tokens = max_tokens
        self.cache = cache

    def make_auth_headers(self, key: str) -> dict[str, str]:
        """See `HostedModel`."""
        return {"x-api-key": key, "anthropic-version": _VERSION}

    def render_request(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings, names: ToolNames
    ) -> tuple[ProviderRequest, list[Loss]]:
        """See `HostedModel`. Raises `ModelError` for a `max_tokens` that leaves no room to think."""
        written, losses = dump(conversation, names.encode)
        body: Body = {"model": self.model, "max_tokens": settings.max_tokens or self.max_tokens, **written}
        body["stream"] = True
        if tools:
            body["tools"] = [_write_offer(spec, names) for spec in tools]
        if choice := _write_choice(settings, tools, names):
            body["tool_choice"] = choice
        if settings.stop:
            body["stop_sequences"] = list(settings.stop)
        _set_thinking(body, settings)
        if settings.output_schema is not None:
            schema = fit_answer_schema(settings.output_schema)
            body.setdefault("output_config", {})["format"] = {"type": "json_schema", "schema": schema}
        if self.cache:
            _mark_for_cache(body)
        sampling = settings.select_given(*_SAMPLING)
        headers = {"anthropic-version": _SAMPLING_VERSION} if sampling else {}
        return ProviderRequest("/v1/messages", {**body, **sampling, **settings.extra}, headers), losses

    def classify_event(self, event: Mapping[str, Any]) -> EventKind:
        """See `HostedModel`."""
        kind = event.get("type")
        return "end" if kind == "message_stop" else "preamble" if kind in ("message_start", "ping") else "content"

    def make_reader(self, conversation: Conversation, names: ToolNames) -> AnthropicReader:
        """See `HostedModel`."""
        return AnthropicReader(conversation, names)


def _write_offer(spec: ToolSpec, names: ToolNames) -> Body:
    offer = {"name": names.encode(spec.name), "input_schema": make_parameters_schema(spec.parameters)}
    return {**offer, "description": spec.description} if spec.description else offer


def _write_choice(settings: ModelSettings, tools: Sequence[ToolSpec], names: ToolNames) -> Body | None:
    alone = {"disable_parallel_tool_use": True} if settings.parallel_calls is False else {}
    if not tools:
        return None
    if settings.choice is None:
        return {"type": "auto", **alone} if alone else None
    if settings.choice == "none":
        return {"type": "none"}
    if settings.choice in ("auto", "required"):
        return {"type": "auto" if settings.choice == "auto" else "any", **alone}
    return {"type": "tool", "name": names.encode(settings.choice), **alone}


def _set_thinking(body: Body, settings: ModelSettings) -> None:
    """Set how much to think: from Claude 4.6 on the model decides, given an effort; older models have a budget."""
    if settings.effort is None:
        return
    if settings.effort == "none":
        body["thinking"] = {"type": "disabled"}
    elif find_version(body["model"]) >= (4, 6):
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
        body["output_config"] = {"effort": "low" if settings.effort == "minimal" else settings.effort}
    else:
        budget = min(_BUDGETS[settings.effort], body["max_tokens"] - 1)
        if budget < _LEAST_BUDGET:
            raise ModelError(
                f"effort={settings.effort!r} takes {_LEAST_BUDGET} tokens at least and max_tokens, which counts them,"
                f" is {body['max_tokens']}; give more, or effort='none'"
            )
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}


def _mark_for_cache(body: Body) -> None:
    """Mark what to cache, so that a growing conversation is read from the cache except for its new end.

    There may be four marks: the last tool, the end of the system message, the end of the messages, and their end at the
    previous request. Without that one, an end with more than 20 new blocks would find no cache entry.
    """
    for key in ("tools", "system"):
        if body.get(key):
            body[key][-1]["cache_control"] = _CACHED
    *earlier, last = body["messages"] or [{"role": "user", "content": []}]
    asked = [message for message in earlier if message["role"] == "user"]
    for message in [*asked[-1:], last]:
        fitting = [block for block in message["content"] if block["type"] not in ("thinking", "redacted_thinking")]
        if fitting:
            fitting[-1]["cache_control"] = _CACHED
