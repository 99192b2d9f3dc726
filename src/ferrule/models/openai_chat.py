"""Models behind OpenAI's chat completions: OpenAI's own, and those of all who speak its format.

    model("openai:gpt-5")   model("groq:openai/gpt-oss-120b")   OpenAIChat("my-model", "vllm", base_url="http://gpu:8000/v1")

The official SDK sends and receives; what is sent goes through the address's gateway.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from typing import Any

from ferrule.capabilities import Capabilities, Loss, adapt
from ferrule.conversation import Conversation
from ferrule.errors import ModelError
from ferrule.events import Event
from ferrule.formats.names import ToolNames
from ferrule.formats.openai import offered, written
from ferrule.formats.schemas import strict_schema
from ferrule.models.assembly import Assembly
from ferrule.models.compatible import Provider
from ferrule.models.hosted import told
from ferrule.models.openai_chat_answer import ChatAnswer, ChatListener
from ferrule.models.openai_connection import OpenAIModel, Raw
from ferrule.models.protocol import ModelSettings, refuse_unknown_settings, refuse_unoffered_choice
from ferrule.toolspec import ToolSpec

SAMPLING = ("temperature", "top_p")
"""Sent where they were given only: models that reason refuse them."""


class OpenAIChat(OpenAIModel):
    """A model of a provider that speaks chat completions.

    `user_images` and `native_tools` say whether this model reads images and takes tools, where that isn't what its
    provider's models do. Raises `ModelError` for a key, an address or a package that is missing.
    """

    def __init__(
        self,
        name: str,
        provider: str | Provider = "openai",
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        user_images: bool | None = None,
        native_tools: bool = True,
    ) -> None:
        super().__init__(name, provider, api_key, base_url)
        self.capabilities = Capabilities(
            reasoning=self.provider.style.reasoning is not None,
            ids=True,
            user_images=self.provider.user_images if user_images is None else user_images,
            malformed_calls=False,
            native_tools=native_tools,
            settings=self.provider.settings,
        )

    async def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        """See `Model.stream`. Raises `ProviderError` where the provider refuses or fails."""
        refuse_unknown_settings(settings, self.provider.settings, self.name)
        refuse_unoffered_choice(settings, tools, self.name)
        names = ToolNames(tools)
        body, losses = self._body(conversation, tools, settings, names)
        for lost in told(self.name, losses):
            yield lost
        sdk = (await self._connection.client()).chat.completions.with_raw_response

        def create() -> Awaitable[Raw]:
            # As its own arguments, the SDK would first walk through all of it by its types, which took a quarter of the
            # time of a request.
            return sdk.create(model=self._model, messages=(), stream=True, extra_body=body)

        answer = ChatAnswer(Assembly(conversation), names)
        events = self._connection.events(create, ChatListener, answer)
        async with aclosing(events):
            async for event in events:
                yield event

    def _body(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings, names: ToolNames
    ) -> tuple[dict[str, Any], list[Loss]]:
        """What is sent, as JSON values, and what could not be."""
        if tools and not self.capabilities.native_tools:
            raise ModelError(f"{self.name} takes no tools beside the text; offer them in the text: using(…, mode=…)")
        fitted, losses = adapt(conversation, self.capabilities)
        messages, more = written(fitted, self.provider.style, names)
        body: dict[str, Any] = {"model": self._model, "messages": messages, "stream": True}
        if self.provider.usage_option:
            body["stream_options"] = {"include_usage": True}
        if tools:
            body.update(self._offer(tools, settings, names))
        return {**body, **self._sampling(settings), **settings.extra}, [*losses, *more]

    def _offer(self, tools: Sequence[ToolSpec], settings: ModelSettings, names: ToolNames) -> dict[str, Any]:
        offer: dict[str, Any] = {"tools": offered(tools, names)}
        if settings.parallel_calls is not None:
            offer["parallel_tool_calls"] = settings.parallel_calls
        choice = settings.choice
        if choice in (None, "auto", "none", "required"):
            return {**offer, "tool_choice": choice} if choice else offer
        if self.provider.named_choice:
            return {**offer, "tool_choice": {"type": "function", "function": {"name": names.wire(choice)}}}
        alone = [tool for tool in tools if tool.name == choice]
        return {**offer, "tools": offered(alone, names), "tool_choice": "required"}

    def _sampling(self, settings: ModelSettings) -> dict[str, Any]:
        """The settings that were given, by the provider's names."""
        provider = self.provider
        body: dict[str, Any] = settings.given(*SAMPLING)
        if settings.max_tokens is not None:
            body[provider.max_tokens] = settings.max_tokens
        if settings.stop:
            body["stop"] = list(settings.stop)
        if settings.output_schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": self._answer_schema(settings)}
        if settings.seed is not None and provider.seed:
            body[provider.seed] = settings.seed
        if settings.top_k is not None:
            body["top_k"] = settings.top_k
        if settings.effort is not None and provider.effort:
            nested = provider.effort == "reasoning"
            body[provider.effort] = {"effort": settings.effort} if nested else settings.effort
        return body

    def _answer_schema(self, settings: ModelSettings) -> dict[str, Any]:
        schema = settings.output_schema or {}
        if self.provider.output_schema == "plain":
            return {"name": "answer", "schema": schema, "strict": True}
        return answer_schema(schema)


def answer_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema for OpenAI: strict where it can be said so, else one that the model is merely shown."""
    strict = strict_schema(schema)
    return {"name": "answer", "schema": schema if strict is None else strict, "strict": strict is not None}
