"""OpenAI's models through its Responses API, which returns the reasoning, encrypted, for the next request.

model("openai-responses:gpt-5")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ferrule.capabilities import Capabilities, Loss
from ferrule.conversation import Conversation
from ferrule.formats.openai_responses import MEDIA, write_items, write_offers
from ferrule.formats.tool_offers import ToolNames
from ferrule.models.hosted import EventKind, ProviderRequest
from ferrule.models.keys import KeyFunction
from ferrule.models.openai.base import SAMPLING, OpenAIModel, make_answer_schema
from ferrule.models.openai.responses_stream import ResponsesReader, classify_response_event, find_error, split_response
from ferrule.models.protocol import ModelSettings
from ferrule.models.providers import OpenAIProvider
from ferrule.toolspec import ToolSpec


class OpenAIResponses(OpenAIModel):
    """A model behind `/responses`. Nothing is stored at the provider: each request contains the whole conversation.

    `stream=False` asks for answers in one piece, for a server that can't stream.
    """

    def __init__(
        self,
        name: str,
        provider: str | OpenAIProvider = "openai-responses",
        *,
        api_key: str | KeyFunction | None = None,
        base_url: str | None = None,
        user_images: bool = True,
        stream: bool = True,
    ) -> None:
        super().__init__(name, provider, api_key, base_url)
        self.is_streamed = stream
        self.capabilities = Capabilities(
            reasoning=True,
            ids=True,
            user_images=user_images,
            image_results=user_images,
            malformed_calls=False,
            user_media=MEDIA,
            settings=self.provider.settings,
        )

    def render_request(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings, names: ToolNames
    ) -> tuple[ProviderRequest, list[Loss]]:
        """See `HostedModel`."""
        items, losses = write_items(conversation, names)
        body: dict[str, Any] = {"model": self.model, "input": items, "stream": self.is_streamed, "store": False}
        if tools:
            body.update(self._write_offer(tools, settings, names))
        body.update(settings.select_given(*SAMPLING))
        if settings.max_tokens is not None:
            body["max_output_tokens"] = settings.max_tokens
        if settings.effort is not None:
            body["reasoning"] = {"effort": settings.effort}
        if settings.output_schema is not None:
            body["text"] = {"format": {"type": "json_schema", **make_answer_schema(settings.output_schema)}}
        return ProviderRequest("/responses", {**body, **settings.extra}), losses

    def classify_event(self, event: Mapping[str, Any]) -> EventKind:
        """See `HostedModel`."""
        if (error := find_error(event)) is not None:
            raise self.fail(error)
        return classify_response_event(event)

    def split_answer(self, body: Any) -> list[dict[str, Any]] | None:
        """See `HostedModel`."""
        return split_response(body)

    def make_reader(self, conversation: Conversation, names: ToolNames) -> ResponsesReader:
        """See `HostedModel`."""
        return ResponsesReader(conversation, names)

    def _write_offer(self, tools: Sequence[ToolSpec], settings: ModelSettings, names: ToolNames) -> dict[str, Any]:
        offer: dict[str, Any] = {"tools": write_offers(tools, names)}
        if settings.parallel_calls is not None and "parallel_tool_calls" not in self._refused:
            offer["parallel_tool_calls"] = settings.parallel_calls
        choice = settings.choice
        if choice in ("auto", "none", "required"):
            offer["tool_choice"] = choice
        elif choice is not None:
            offer["tool_choice"] = {"type": "function", "name": names.encode(choice)}
        return offer
