"""OpenAI's models through its Responses API, which gives back what they thought, encrypted, for the next request.

model("openai-responses:gpt-5")
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from typing import Any

from ferrule.capabilities import Capabilities, Loss, adapt
from ferrule.conversation import Conversation
from ferrule.events import Event
from ferrule.formats.names import ToolNames
from ferrule.formats.openai_responses import offered, written
from ferrule.models.assembly import Assembly
from ferrule.models.compatible import Provider
from ferrule.models.hosted import told
from ferrule.models.openai_chat import SAMPLING, answer_schema
from ferrule.models.openai_connection import OpenAIModel, Raw
from ferrule.models.openai_responses_answer import ResponsesAnswer, ResponsesListener
from ferrule.models.protocol import ModelSettings, refuse_unknown_settings, refuse_unoffered_choice
from ferrule.toolspec import ToolSpec


class OpenAIResponses(OpenAIModel):
    """A model behind `/responses`. Nothing is stored at the provider: each request holds the whole conversation."""

    def __init__(
        self,
        name: str,
        provider: str | Provider = "openai-responses",
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        user_images: bool = True,
    ) -> None:
        super().__init__(name, provider, api_key, base_url)
        self.capabilities = Capabilities(
            reasoning=True,
            ids=True,
            user_images=user_images,
            image_results=user_images,
            malformed_calls=False,
            settings=self.provider.settings,
        )

    async def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        """See `Model.stream`. Raises `ProviderError` where OpenAI refuses or fails."""
        refuse_unknown_settings(settings, self.provider.settings, self.name)
        refuse_unoffered_choice(settings, tools, self.name)
        names = ToolNames(tools)
        body, losses = self._body(conversation, tools, settings, names)
        for lost in told(self.name, losses):
            yield lost
        sdk = (await self._connection.client()).responses.with_raw_response

        def create() -> Awaitable[Raw]:
            # Not as its own arguments, for the reason that `OpenAIChat` gives.
            return sdk.create(model=self._model, input="", stream=True, extra_body=body)

        answer = ResponsesAnswer(Assembly(conversation), names)
        events = self._connection.events(create, ResponsesListener, answer)
        async with aclosing(events):
            async for event in events:
                yield event

    def _body(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings, names: ToolNames
    ) -> tuple[dict[str, Any], list[Loss]]:
        """What is sent, as JSON values, and what could not be."""
        fitted, losses = adapt(conversation, self.capabilities)
        items, more = written(fitted, names)
        body: dict[str, Any] = {"model": self._model, "input": items, "stream": True, "store": False}
        if tools:
            body.update(self._offer(tools, settings, names))
        body.update(settings.given(*SAMPLING))
        if settings.max_tokens is not None:
            body["max_output_tokens"] = settings.max_tokens
        if settings.effort is not None:
            body["reasoning"] = {"effort": settings.effort}
        if settings.output_schema is not None:
            body["text"] = {"format": {"type": "json_schema", **answer_schema(settings.output_schema)}}
        return {**body, **settings.extra}, [*losses, *more]

    def _offer(self, tools: Sequence[ToolSpec], settings: ModelSettings, names: ToolNames) -> dict[str, Any]:
        offer: dict[str, Any] = {"tools": offered(tools, names)}
        if settings.parallel_calls is not None:
            offer["parallel_tool_calls"] = settings.parallel_calls
        choice = settings.choice
        if choice in ("auto", "none", "required"):
            offer["tool_choice"] = choice
        elif choice is not None:
            offer["tool_choice"] = {"type": "function", "name": names.wire(choice)}
        return offer
