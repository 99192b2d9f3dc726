"""Models behind OpenAI's chat completions: OpenAI's own, and those of all who speak its format.

    model("openai:gpt-5")   model("groq:openai/gpt-oss-120b")   OpenAIChat("my-model", "vllm", base_url="http://gpu:8000/v1")

Many servers speak this format, each with quirks of its own: what they are sent is in the table of `providers.py`, what
they send is read by `chat_stream.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ferrule.capabilities import Capabilities, Loss
from ferrule.conversation import Conversation
from ferrule.errors import ModelError, choose_advice
from ferrule.formats.openai import write_messages, write_offers
from ferrule.formats.tool_offers import ToolNames
from ferrule.models.hosted import EventKind, ProviderRequest
from ferrule.models.keys import KeyFunction
from ferrule.models.openai.base import SAMPLING, OpenAIModel, make_answer_schema
from ferrule.models.openai.chat_stream import ChatReader, classify_chunk, split_completion
from ferrule.models.protocol import ModelSettings
from ferrule.models.providers import OpenAIProvider
from ferrule.toolspec import ToolSpec


class OpenAIChat(OpenAIModel):
    """A model of a provider that speaks chat completions.

    `user_images`, `native_tools` and `user_media` say whether this model reads images, takes tools, and which audio and
    files (media types, at most those of `ferrule.formats.openai.MEDIA`), where that isn't what its provider's models
    do. `stream=False` asks for answers in one piece, for a server that can't stream. Raises `ModelError` for a key, an
    address or a package that is missing.
    """

    def __init__(
        self,
        name: str,
        provider: str | OpenAIProvider = "openai",
        *,
        api_key: str | KeyFunction | None = None,
        base_url: str | None = None,
        user_images: bool | None = None,
        native_tools: bool = True,
        user_media: Sequence[str] | None = None,
        stream: bool = True,
    ) -> None:
        super().__init__(name, provider, api_key, base_url)
        self.is_streamed = stream
        self.capabilities = Capabilities(
            reasoning=self.provider.style.reasoning is not None,
            ids=True,
            user_images=self.provider.user_images if user_images is None else user_images,
            malformed_calls=False,
            user_media=self.provider.user_media if user_media is None else tuple(user_media),
            native_tools=native_tools,
            settings=self.provider.settings,
        )

    def render_request(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings, names: ToolNames
    ) -> tuple[ProviderRequest, list[Loss]]:
        """See `HostedModel`. Raises `ModelError` where tools are offered to a model that takes none."""
        if tools and not self.capabilities.native_tools:
            mode = choose_advice('using(…, mode="hermes")', "--mode hermes")
            raise ModelError(f"{self.name} has no native tools; offer them in the text: {mode}")
        messages, losses = write_messages(conversation, self.provider.style, names)
        body: dict[str, Any] = {"model": self.model, "messages": messages, "stream": self.is_streamed}
        if self.provider.usage_option and self.is_streamed and "stream_options" not in self._refused:
            body["stream_options"] = {"include_usage": True}
        if tools:
            body.update(self._write_offer(tools, settings, names))
        body.update(self._write_sampling(settings))
        return ProviderRequest("/chat/completions", {**body, **settings.extra}), losses

    def classify_event(self, event: Mapping[str, Any]) -> EventKind:
        """See `HostedModel`."""
        return classify_chunk(event)

    def split_answer(self, body: Any) -> list[dict[str, Any]] | None:
        """See `HostedModel`."""
        return split_completion(body)

    def make_reader(self, conversation: Conversation, names: ToolNames) -> ChatReader:
        """See `HostedModel`."""
        return ChatReader(conversation, names)

    def _write_offer(self, tools: Sequence[ToolSpec], settings: ModelSettings, names: ToolNames) -> dict[str, Any]:
        strict = self.provider.strict_tools
        offer: dict[str, Any] = {"tools": write_offers(tools, names, strict=strict)}
        if settings.parallel_calls is not None and "parallel_tool_calls" not in self._refused:
            offer["parallel_tool_calls"] = settings.parallel_calls
        choice = settings.choice
        if choice in (None, "auto", "none", "required"):
            return {**offer, "tool_choice": choice} if choice else offer
        if self.provider.named_choice:
            return {**offer, "tool_choice": {"type": "function", "function": {"name": names.encode(choice)}}}
        alone = [tool for tool in tools if tool.name == choice]
        return {**offer, "tools": write_offers(alone, names, strict=strict), "tool_choice": "required"}

    def _write_sampling(self, settings: ModelSettings) -> dict[str, Any]:
        """The settings that were given, by the provider's names."""
        provider = self.provider
        body: dict[str, Any] = settings.select_given(*SAMPLING)
        if settings.max_tokens is not None:
            body[provider.max_tokens] = settings.max_tokens
        if settings.stop:
            body["stop"] = list(settings.stop)
        if settings.output_schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": self._write_answer_schema(settings)}
        if settings.seed is not None and provider.seed:
            body[provider.seed] = settings.seed
        if settings.top_k is not None:
            body["top_k"] = settings.top_k
        if settings.effort is not None and provider.effort:
            nested = provider.effort == "reasoning"
            body[provider.effort] = {"effort": settings.effort} if nested else settings.effort
        return body

    def _write_answer_schema(self, settings: ModelSettings) -> dict[str, Any]:
        schema = settings.output_schema or {}
        if self.provider.output_schema == "plain":
            return {"name": "answer", "schema": schema, "strict": True}
        return make_answer_schema(schema)
