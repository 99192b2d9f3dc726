"""Claude, by Anthropic's Messages API: `AnthropicModel("claude-sonnet-5")`."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ferrule.capabilities import Capabilities, Loss
from ferrule.conversation import Conversation
from ferrule.errors import ModelError, choose_advice
from ferrule.formats.anthropic import FILE_TYPES, dump
from ferrule.formats.tool_offers import ToolNames, make_parameters_schema
from ferrule.models.anthropic.schema import fit_answer_schema
from ferrule.models.anthropic.stream import AnthropicReader, classify_message_event, split_message
from ferrule.models.failures import find_message
from ferrule.models.hosted import EventKind, HostedModel, ProviderRequest, find_version
from ferrule.models.http import BadStatusError
from ferrule.models.keys import KeyFunction
from ferrule.models.protocol import ModelSettings
from ferrule.models.providers import Provider, find_provider
from ferrule.toolspec import ToolSpec

logger = logging.getLogger(__name__)
_VERSION = "2026-10-21"
# This version accepts no temperature, top_p or top_k; the one before does, for the models that still support them.
_SAMPLING_VERSION = "2023-06-01"
_SAMPLING = ("temperature", "top_k", "top_p")
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 24_576}
_LEAST_BUDGET = 1024
_LEAST_ROOM = 1024
"""With fewer tokens left for the answer, the prompt counts as too long."""
# How servers refuse a limit: the most that they allow, and what the prompt takes of it.
_TOO_MANY = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"context limit: (?P<used>\d+) \+ \d+ > (?P<most>\d+)",  # Anthropic
        r"\d > (?P<most>\d+)(?: - (?P<used>\d+))?",  # Anthropic's models with a small limit; vLLM until 2026
        r"cannot be greater than \D*(?P<most>\d+)",  # vLLM
        # SGLang, and those who speak as OpenAI did
        r"context length (?:is|of) (?P<most>\d+) tokens.*?(?P<used>\d+) (?:tokens from the input|in the messages)",
        r"\[1, ?(?P<most>\d+)\]",  # Alibaba's
    )
)
_CACHED = {"type": "ephemeral"}

Body: TypeAlias = dict[str, Any]


class AnthropicModel(HostedModel):
    """A model of Anthropic's Messages API.

    `auth_token` is sent as `Authorization: Bearer` in place of a key, for gateways and servers of other models.

    `max_tokens` is the default limit of a message, which this API requires; thinking counts towards it. With `cache`,
    the offers, the system message and the messages so far are marked for caching for five minutes, so that each step of
    a conversation pays in full only for what is new; writing the cache costs a quarter more than reading, so turn it
    off for conversations of a single request.

    `effort` becomes adaptive thinking from Claude 4.6 on (`minimal` as `low`), and a budget of tokens before. The
    temperature, top_k and top_p are sent only if they were set, with the API's version 2023-06-01: newer models refuse
    them. A model's refusal ends its message with the stop reason `refusal`. `stream=False` asks for answers in one
    piece, for a server that can't stream.

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
        auth_token: str | KeyFunction | None = None,
        base_url: str | None = None,
        max_tokens: int = 32_000,
        cache: bool = True,
        stream: bool = True,
    ) -> None:
        if api_key is not None and auth_token is not None:
            raise ModelError(f"anthropic:{name} takes api_key or auth_token, not both")
        found = find_provider(provider)
        self._is_token = auth_token is not None or (api_key is None and _has_token_only(found))
        super().__init__(name, found, api_key if auth_token is None else auth_token, base_url)
        self.is_streamed = stream
        self.max_tokens = max_tokens
        self.cache = cache
        self._most_tokens: int | None = None
        """What the server allows, once it has refused the default."""

    def make_auth_headers(self, key: str) -> dict[str, str]:
        """See `HostedModel`."""
        secret = {"authorization": f"Bearer {key}"} if self._is_token else {"x-api-key": key}
        return {**secret, "anthropic-version": _VERSION}

    @property
    def _key_hint(self) -> str:
        if not self._is_token:
            return super()._key_hint
        source = choose_advice(f'model("{self.name}", auth_token=…)', "ANTHROPIC_API_KEY instead")
        return f"check {self.provider.other_key or 'auth_token'}, or give {source}"

    def render_request(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings, names: ToolNames
    ) -> tuple[ProviderRequest, list[Loss]]:
        """See `HostedModel`. Raises `ModelError` for a `max_tokens` that leaves no room to think."""
        written, losses = dump(conversation, names.encode)
        limit = settings.max_tokens or min(self.max_tokens, self._most_tokens or self.max_tokens)
        body: Body = {"model": self.model, "max_tokens": limit, **written}
        body["stream"] = self.is_streamed
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
        body = {**body, **sampling, **settings.extra}
        is_default = settings.max_tokens is None and "max_tokens" not in settings.extra
        return ProviderRequest("/v1/messages", body, headers, has_default_limit=is_default), losses

    async def _send(self, request: ProviderRequest) -> AsyncGenerator[Mapping[str, Any], None]:
        try:
            return await super()._send(request)
        except BadStatusError as error:
            lowered = self._lower_limit(request, find_message(error.body)) if request.has_default_limit else None
            if lowered is None:
                raise
            return await super()._send(lowered)

    def _lower_limit(self, request: ProviderRequest, refusal: str) -> ProviderRequest | None:
        """The request with as many tokens as the server allows; None if something else was refused.

        Nobody asked for the default, so it must fail no request. What doesn't depend on the prompt is remembered.
        """
        asked = request.body["max_tokens"]
        most, used = find_allowed_tokens(refusal, asked)
        allowed = most - used
        thinking = request.body.get("thinking") or {}
        has_budget = "budget_tokens" in thinking
        least = _LEAST_BUDGET + 1 if has_budget else max(1, min(_LEAST_ROOM, most // 4))
        if not least <= allowed < asked:
            return None
        self._most_tokens = most // 2 if used else most
        logger.info("%s: the server allows %d tokens for this answer, not %d", self.name, allowed, asked)
        body = {**request.body, "max_tokens": allowed}
        if has_budget:
            body["thinking"] = {**thinking, "budget_tokens": min(thinking["budget_tokens"], allowed - 1)}
        return replace(request, body=body)

    def classify_event(self, event: Mapping[str, Any]) -> EventKind:
        """See `HostedModel`."""
        return classify_message_event(event)

    def split_answer(self, body: Any) -> list[dict[str, Any]] | None:
        """See `HostedModel`."""
        return split_message(body)

    def make_reader(self, conversation: Conversation, names: ToolNames) -> AnthropicReader:
        """See `HostedModel`."""
        return AnthropicReader(conversation, names)


def find_allowed_tokens(refusal: str, asked: int) -> tuple[int, int]:
    """The most tokens of an answer by a server's refusal of `asked`, and how many of them the prompt takes.

    (0, 0) for a refusal of something else.
    """
    for pattern in _TOO_MANY if str(asked) in refusal or "max_tokens" in refusal else ():
        if found := pattern.search(refusal):
            return int(found["most"]), int(found.groupdict().get("used") or 0)
    return 0, 0


def _has_token_only(provider: Provider) -> bool:
    """Whether the environment has a token for the provider, and no key, which would be sent instead."""
    key, token = (os.environ.get(name or "", "").strip() for name in (provider.key, provider.other_key))
    return bool(token) and not key


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
