"""Gemini, by Google's Gemini API: `GoogleModel("gemini-3-pro")`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote

from ferrule.capabilities import Capabilities, Loss
from ferrule.conversation import Conversation
from ferrule.formats.google import dump
from ferrule.formats.tool_offers import ToolNames, make_parameters_schema
from ferrule.models.gateway import RequestFailure
from ferrule.models.google.stream import GoogleReader
from ferrule.models.hosted import AttemptError, EventKind, HostedModel, ProviderRequest, find_version, get_fields
from ferrule.models.key_source import KeyFunction
from ferrule.models.protocol import ModelSettings
from ferrule.models.providers import Provider
from ferrule.toolspec import ToolSpec

_BUDGETS = {"none": 0, "minimal": 512, "low": 2048, "medium": 8192, "high": 24_576}
_SAMPLING = {"temperature": "temperature", "top_k": "topK", "top_p": "topP", "seed": "seed"}
_MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
_HONOURED = frozenset(
    {"temperature", "top_k", "top_p", "seed", "max_tokens", "stop", "choice", "effort", "output_schema", "extra"}
)

Body: TypeAlias = dict[str, Any]


class GoogleModel(HostedModel):
    """A model of the Gemini API.

    From Gemini 3 on, images are part of the results and calls are sent back with their signatures; before, an image
    follows its result as a user message. `effort` becomes a thinking level there (`none` becomes the lowest,
    `minimal`), and a budget of tokens before. An answer that Google withholds (`SAFETY`, `RECITATION`, …) ends with the
    stop reason `refusal`; a call that Google itself could not read is a `MalformedCall`. Parallel calls can't be turned
    off. Google automatically caches requests with the same beginning. `stream=False` asks for answers in one piece.

    Raises `ModelError` if the package or the key is missing.
    """

    def __init__(
        self,
        name: str,
        provider: str | Provider = "google",
        *,
        api_key: str | KeyFunction | None = None,
        base_url: str | None = None,
        stream: bool = True,
    ) -> None:
        super().__init__(name, provider, api_key, base_url)
        self.is_streamed = stream
        self._is_third_generation = find_version(name) >= (3, 0)
        self.capabilities = Capabilities(
            reasoning=True,
            ids=True,
            user_images=True,
            image_results=self._is_third_generation,
            malformed_calls=False,
            user_media=("audio/*", "video/*", "application/pdf"),
            settings=_HONOURED,
        )

    def can_send_schema(self, with_tools: bool) -> bool:
        """See `HostedModel`. Before Gemini 3, a schema is refused while tools are on offer."""
        return super().can_send_schema(with_tools) and (self._is_third_generation or not with_tools)

    def make_auth_headers(self, key: str) -> dict[str, str]:
        """See `HostedModel`."""
        return {"x-goog-api-key": key}

    def render_request(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings, names: ToolNames
    ) -> tuple[ProviderRequest, list[Loss]]:
        """See `HostedModel`."""
        body, losses = dump(conversation, names.encode, must_sign=self._is_third_generation)
        if tools:
            body["tools"] = [{"functionDeclarations": [_write_offer(spec, names) for spec in tools]}]
        if choice := _write_choice(settings, tools, names):
            body["toolConfig"] = {"functionCallingConfig": choice}
        if config := self._write_generation_config(settings):
            body["generationConfig"] = config
        model = self.model if "/" in self.model else f"models/{self.model}"
        path = f"/v1beta/{quote(model)}:{'streamGenerateContent?alt=sse' if self.is_streamed else 'generateContent'}"
        return ProviderRequest(path, _merge(body, settings.extra)), losses

    def _write_generation_config(self, settings: ModelSettings) -> Body:
        config: Body = {_SAMPLING[name]: value for name, value in settings.select_given(*_SAMPLING).items()}
        if settings.max_tokens is not None:
            config["maxOutputTokens"] = settings.max_tokens
        if settings.stop:
            config["stopSequences"] = list(settings.stop)
        if settings.effort is not None:
            config["thinkingConfig"] = self._write_thinking(settings.effort)
        if settings.output_schema is not None:
            config["responseMimeType"] = "application/json"
            config["responseJsonSchema"] = settings.output_schema
        return config

    def _write_thinking(self, effort: str) -> Body:
        """From Gemini 3 on, thinking can't be turned off: the lowest level is `minimal`."""
        if self._is_third_generation:
            level = "minimal" if effort == "none" else effort
            return {"thinkingLevel": level.upper(), "includeThoughts": effort != "none"}
        return {"thinkingBudget": _BUDGETS[effort], "includeThoughts": effort != "none"}

    def classify_event(self, event: Mapping[str, Any]) -> EventKind:
        """See `HostedModel`."""
        feedback = get_fields(event.get("promptFeedback"))
        if reason := feedback.get("blockReason"):
            said = feedback.get("blockReasonMessage") or reason
            raise AttemptError(RequestFailure("bad", f"{self.name}: Google blocked the prompt: {said}"))
        candidates = [get_fields(one) for one in event.get("candidates") or ()]
        if any(one.get("finishReason") for one in candidates):
            return "end"
        parts = (part for one in candidates for part in get_fields(one.get("content")).get("parts") or ())
        is_empty = not any(value for part in parts for name, value in get_fields(part).items() if name != "thought")
        return "opening" if is_empty else "content"

    def split_answer(self, body: Any) -> list[dict[str, Any]] | None:
        """See `HostedModel`. Chunks that aren't sent as events are one list."""
        chunks = body if isinstance(body, list) else [body]
        known = ("candidates", "promptFeedback")
        return chunks if chunks and all(any(key in get_fields(one) for key in known) for one in chunks) else None

    def make_reader(self, conversation: Conversation, names: ToolNames) -> GoogleReader:
        """See `HostedModel`."""
        return GoogleReader(conversation, names)


def _write_offer(spec: ToolSpec, names: ToolNames) -> Body:
    # The other field, `parameters`, supports only a small subset of JSON Schema.
    return {
        "name": names.encode(spec.name),
        "description": spec.description,
        "parametersJsonSchema": make_parameters_schema(spec.parameters),
    }


def _write_choice(settings: ModelSettings, tools: Sequence[ToolSpec], names: ToolNames) -> Body | None:
    choice = settings.choice
    if choice is None or not tools:
        return None
    if choice in _MODES:
        return {"mode": _MODES[choice]}
    return {"mode": "ANY", "allowedFunctionNames": [names.encode(choice)]}


def _merge(body: Mapping[str, Any], extra: Mapping[str, Any]) -> Body:
    """The body merged with `extra`, recursively."""
    merged = dict(body)
    for key, value in extra.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return merged
