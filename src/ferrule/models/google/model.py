"""Gemini, by Google's Gemini API: `GoogleModel("gemini-3-pro")`, and the reader of the chunks of its answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote

from ferrule.capabilities import Capabilities, Loss
from ferrule.conversation import Conversation, MalformedCall, Message, Reasoning, StopReason, Text
from ferrule.events import CallFinished, CallMalformed, Event, MessageFinished, Usage
from ferrule.formats.google import add_piece, build_extra, dump
from ferrule.formats.signatures import PartPositions, SignedPiece
from ferrule.formats.tool_offers import ToolNames, make_parameters_schema
from ferrule.models.gateway import RequestFailure
from ferrule.models.hosted import AttemptError, EventKind, HostedModel, ProviderRequest, find_version, get_fields
from ferrule.models.keys import KeyFunction
from ferrule.models.message_builder import MessageBuilder, read_count
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


# A call that Google's own parser could not read, or that names no tool: its text is in the finish message.
_MALFORMED = {"MALFORMED_FUNCTION_CALL": "invalid_call", "UNEXPECTED_TOOL_CALL": "unexpected_call"}
_STOPS: dict[str, StopReason] = {"STOP": "turn", "MAX_TOKENS": "length", "CONTINUATION": "length"}


class GoogleReader:
    """Reads the chunks of one answer: an `AnswerReader`. Calls arrive whole: Google doesn't stream them."""

    def __init__(self, conversation: Conversation, names: ToolNames) -> None:
        self.losses: list[Loss] = []
        self.end_reason = ""
        self._builder = MessageBuilder(conversation)
        self._conversation = conversation
        self._names = names
        self._places = PartPositions()
        self._signatures: dict[str, str] = {}
        self._pieces: list[SignedPiece] = []
        self._finish_message = ""
        self._malformed: MalformedCall | None = None
        self._usage = Usage()
        self._calls = 0

    @property
    def is_empty(self) -> bool:
        """See `AnswerReader`."""
        return self._builder.is_empty

    def feed(self, event: Mapping[str, Any]) -> list[Event]:
        """The events for one chunk."""
        if used := get_fields(event.get("usageMetadata")):
            self._usage = _read_usage(used)
        events: list[Event] = []
        for candidate in map(get_fields, (event.get("candidates") or ())[:1]):
            for part in map(get_fields, get_fields(candidate.get("content")).get("parts") or ()):
                events += self._read_part(part)
            self.end_reason = str(candidate.get("finishReason") or self.end_reason)
            self._finish_message = str(candidate.get("finishMessage") or self._finish_message)
        return events

    def _read_part(self, part: Mapping[str, Any]) -> list[Event]:
        signature = part.get("thoughtSignature") or None
        if (call := part.get("functionCall")) is not None:
            return self._read_call(get_fields(call), signature)
        text, is_thought = part.get("text"), bool(part.get("thought"))
        if text is None and signature is None:
            self.losses += [Loss("text", f"a part with {kind} can't be part of a message") for kind in sorted(part)]
            return []
        text = text or ""
        kind = Reasoning if is_thought else Text
        add_piece(self._pieces, self._places.find_index(kind, text), text, is_thought, signature)
        return self._builder.add_reasoning(text) if is_thought else self._builder.add_text(text)

    def _read_call(self, call: Mapping[str, Any], signature: str | None) -> list[Event]:
        self._places.call()
        self._calls += 1
        arguments = json.dumps(call.get("args") or {}, ensure_ascii=False)
        events = self._builder.begin_call(self._calls, self._names.decode(call.get("name") or ""), call.get("id"))
        events += self._builder.add_arguments(self._calls, arguments)
        ended = self._builder.end_call(self._calls)
        for event in ended:
            if isinstance(event, CallFinished) and signature:
                self._signatures[event.call.id] = signature
        return [*events, *ended]

    def close(self, is_broken: bool) -> list[Event]:  # noqa: ARG002 - calls arrive whole
        """See `AnswerReader`."""
        if self.end_reason not in _MALFORMED:
            return []
        kind, raw = _MALFORMED[self.end_reason], self._finish_message
        used = {call.id for message in self._conversation.messages for call in message.calls} | set(self._signatures)
        number = self._conversation.next_call_number + self._calls
        while f"call_{number}" in used:
            number += 1
        self._malformed = MalformedCall(f"call_{number}", raw, kind)
        return [CallMalformed(self._calls, kind, raw)]

    def finish(self, is_broken: bool) -> MessageFinished:
        """See `AnswerReader`."""
        parts = self._builder.build_message().parts
        if self._malformed is not None:
            parts = (*parts, self._malformed)
        message = Message("assistant", parts, extra=build_extra(self._signatures, self._pieces))
        stop: StopReason = "error" if is_broken else _STOPS.get(self.end_reason, "error")
        return MessageFinished(message, self._usage, "calls" if message.calls else stop)


def _read_usage(used: Mapping[str, Any]) -> Usage:
    def count(name: str) -> int:
        return read_count(used.get(name))

    by_kind = map(get_fields, used.get("promptTokensDetails") or ())
    return Usage(
        count("promptTokenCount") + count("toolUsePromptTokenCount"),
        count("cachedContentTokenCount"),
        count("candidatesTokenCount") + count("thoughtsTokenCount"),
        audio_tokens=sum(read_count(one.get("tokenCount")) for one in by_kind if one.get("modality") == "AUDIO"),
    )
