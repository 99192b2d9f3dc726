"""Records runs as OpenTelemetry spans and metrics, by the semantic conventions for generative AI.

On after `enable()`, or with `FERRULE_OTEL=1` in the environment. Needs `opentelemetry-api` (the extra `otel`), which is
imported when recording begins; the program's own SDK exports what is recorded.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ferrule.agent.hooks import listener_factories
from ferrule.agent.run import Run
from ferrule.conversation import (
    Audio,
    Conversation,
    File,
    Image,
    MalformedCall,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ferrule.errors import SettingsError
from ferrule.events import MessageFinished
from ferrule.execution import Journal
from ferrule.execution.journal import NullJournal
from ferrule.execution.secrets import scrub_secrets
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram, MeterProvider
    from opentelemetry.trace import Span, Tracer, TracerProvider

    from ferrule.agent.hooks import ModelRequest
    from ferrule.models.protocol import Model

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable that turns on the recording of message content; `true` or `1`."""
_DURATION_BUCKETS = (
    0.01,
    0.02,
    0.04,
    0.08,
    0.16,
    0.32,
    0.64,
    1.28,
    2.56,
    5.12,
    10.24,
    20.48,
    40.96,
    60,
    81.92,
    120,
    300,
    600,
)
_TOKEN_BUCKETS = (
    *(1, 4, 16, 64, 256, 1024, 4096, 8192, 16_384, 32_768, 65_536, 100_000, 131_072, 200_000, 262_144, 524_288),
    *(1_048_576, 4_194_304, 16_777_216, 67_108_864),
)
"""The upper bounds of histograms, in seconds and in tokens: those of the semantic conventions, and more where the SDK's
own would end too soon for long prompts, or where `docs/observability.md` has the threshold of an alert."""
_NOT_OFFERED = "(not offered)"
_PROVIDERS = {"google": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai", "openai-responses": "openai"}
_REASONS = {"turn": "stop", "calls": "tool_calls", "context": "length", "refusal": "content_filter"}
_REQUEST = ("temperature", "top_p", "top_k", "max_tokens", "seed")


def enable(
    *,
    content: bool = False,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> None:
    """Record runs from now on; with `content` also the messages, which may be private.

    The default providers are those of the process. Raises `SettingsError` if `opentelemetry-api` isn't installed.
    """
    listener_factories["otel"] = make_listener_factory(content, tracer_provider, meter_provider)


def disable() -> None:
    """Record no more runs."""
    listener_factories.pop("otel", None)


class Instruments:
    """The tracer and metrics that record runs. Raises `SettingsError` if opentelemetry-api isn't installed."""

    def __init__(
        self,
        content: bool,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        try:
            from opentelemetry import metrics, trace
        except ImportError as error:
            raise SettingsError("tracing needs the opentelemetry-api package: pip install 'ferrule[otel]'") from error
        self.content = content
        self.tracer: Tracer = trace.get_tracer("ferrule", tracer_provider=tracer_provider)
        meter = metrics.get_meter("ferrule", meter_provider=meter_provider)
        self.duration: Histogram = meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "How long a model took to write a message.",
            explicit_bucket_boundaries_advisory=_DURATION_BUCKETS,
        )
        self.tokens: Histogram = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Tokens that a model read and wrote.",
            explicit_bucket_boundaries_advisory=_TOKEN_BUCKETS,
        )
        self.calls: Counter = meter.create_counter(
            "ferrule.tool.calls", "{call}", "Calls of tools by the status of their results: ok, error, denied, …"
        )


def make_listener_factory(
    content: bool | None = None,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> Callable[[Run], OtelListener]:
    """Return a function that makes a listener for a run.

    If `content` is None, the environment decides whether messages are recorded. The default providers are those of the
    process.
    """
    if content is None:
        content = os.environ.get(CONTENT, "").lower() in ("1", "true")
    instruments = Instruments(content, tracer_provider, meter_provider)
    return lambda run: OtelListener(run, instruments)


class OtelListener:
    """The span of one run, and of its requests and calls."""

    def __init__(self, run: Run, instruments: Instruments) -> None:
        self._run = run
        self._instruments = instruments
        # The name of a model with a fallback has both names; spans have the first.
        name = run.model.partition(", else ")[0]
        provider, _, model = name.partition(":")
        self._common = {
            "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
            "gen_ai.request.model": model or provider,
        }
        self._run_span = _OpenSpan(instruments.tracer, "invoke_agent", self._make_attributes("invoke_agent"))
        self._request_span: _OpenSpan | None = None
        self._began = 0.0
        self._offered: frozenset[str] = frozenset()

    def _make_attributes(self, operation: str) -> dict[str, Any]:
        return {"gen_ai.operation.name": operation, **self._common}

    def on_request(self, model: Model, request: ModelRequest) -> None:  # noqa: ARG002 - a listener's interface
        """Begin the span of a request."""
        self._offered = frozenset(one.name for one in request.offered)
        settings = request.settings
        attributes = self._make_attributes("chat")
        for name in _REQUEST:
            value = getattr(settings, name) if name in settings.model_fields_set else None
            if value is not None:
                attributes[f"gen_ai.request.{name}"] = value
        if settings.stop:
            attributes["gen_ai.request.stop_sequences"] = list(settings.stop)
        if self._instruments.content:
            attributes["gen_ai.input.messages"] = dump_input_messages(request.conversation)
            attributes["gen_ai.tool.definitions"] = dump_tool_definitions(request.offered)
        self._request_span = _OpenSpan(
            self._instruments.tracer, f"chat {self._common['gen_ai.request.model']}", attributes, is_client=True
        )
        self._began = time.perf_counter()

    def on_message(self, message: MessageFinished | None) -> None:
        """End the request's span, with its tokens and why the model stopped."""
        stop = "error" if message is None else message.stop
        found: dict[str, Any] = {"gen_ai.response.finish_reasons": [_REASONS.get(stop, stop)]}
        if message is not None:
            usage = message.usage
            found["gen_ai.usage.input_tokens"] = usage.prompt_tokens
            found["gen_ai.usage.output_tokens"] = usage.sampled_tokens
            found["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
            for kind, count in (("input", usage.prompt_tokens), ("output", usage.sampled_tokens)):
                self._instruments.tokens.record(count, {**self._make_attributes("chat"), "gen_ai.token.type": kind})
            if self._instruments.content:
                found["gen_ai.output.messages"] = dump_output_messages(message.message, _REASONS.get(stop, stop))
        self._end_request(found, "incomplete" if stop == "error" else "")

    def on_failure(self, error: BaseException) -> None:
        """End the request's span with what was raised."""
        self._end_request({}, type(error).__qualname__)

    def _end_request(self, found: Mapping[str, Any], error: str) -> None:
        if self._request_span is None:
            return
        attributes = self._make_attributes("chat")
        if error:
            attributes["error.type"] = error
        self._instruments.duration.record(time.perf_counter() - self._began, attributes)
        self._request_span.end(found, error)
        self._request_span = None

    def wrap_journal(self, journal: Journal | None) -> Journal | None:
        """Return a journal that also records a span for each call that runs."""
        return _SpanJournal(journal or NullJournal(), self._instruments)

    def on_result(self, result: ToolResult) -> None:
        """Count the result; the span of a call that ran ends with its line in the journal."""
        # A name that a model made up would be a time series of its own.
        name = result.name if result.name in self._offered else _NOT_OFFERED
        attributes = {"gen_ai.tool.name": name, "ferrule.status": result.status}
        self._instruments.calls.add(1, {**self._common, **attributes})

    def on_end(self, error: BaseException | None) -> None:
        """End the run's span."""
        usage = self._run.usage
        found = {
            "gen_ai.usage.input_tokens": usage.prompt_tokens,
            "gen_ai.usage.output_tokens": usage.sampled_tokens,
            "ferrule.stopped": self._run.stopped,
        }
        self._run_span.end(found, "" if error is None else type(error).__qualname__)


class _OpenSpan:
    """An open span; until it ends, new spans are its children."""

    def __init__(self, tracer: Tracer, name: str, attributes: Mapping[str, Any], is_client: bool = False) -> None:
        from opentelemetry import context, trace

        kind = trace.SpanKind.CLIENT if is_client else trace.SpanKind.INTERNAL
        self._span: Span = tracer.start_span(name, kind=kind, attributes=attributes)
        self._token = context.attach(trace.set_span_in_context(self._span))

    def end(self, found: Mapping[str, Any], error: str) -> None:
        """End the span with further attributes; `error` is the type of the error that ended it, or empty."""
        from opentelemetry import context
        from opentelemetry.trace import Status, StatusCode

        self._span.set_attributes(dict(found))
        if error:
            self._span.set_attribute("error.type", error)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()
        context.detach(self._token)


class _SpanJournal:
    """A journal that forwards everything, and records a span for each call, from its first line to its second.

    Both lines of a call are written by the task that runs it, so spans of the tool are children of the call's span.
    """

    def __init__(self, journal: Journal, instruments: Instruments) -> None:
        self._journal = journal
        self._instruments = instruments
        self._open: dict[str, _OpenSpan] = {}
        self._lock = threading.Lock()
        self._number = 0

    def make_key(self) -> str:
        """Return the key of the wrapped journal, or a number if it has none."""
        with self._lock:
            self._number += 1
            return self._journal.make_key() or f"span-{self._number}"

    def record(self, event: Any, key: str, fields: Mapping[str, Any], /) -> None:
        """Begin or end a span, and forward the line."""
        if event == "started":
            self._journal.record(event, key, fields)  # if this fails, the call doesn't run
            self._begin(key, fields)
            return
        span = self._open.pop(key, None) if event == "finished" else None
        if span is not None:
            status = str(fields["status"])
            span.end({}, "" if status == "ok" else status)
        self._journal.record(event, key, fields)

    def _begin(self, key: str, fields: Mapping[str, Any]) -> None:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": fields["tool"],
            "gen_ai.tool.call.id": fields["call"],
            "gen_ai.tool.type": "function",
        }
        if self._instruments.content:
            attributes["gen_ai.tool.call.arguments"] = dump_scrubbed(fields["arguments"])
        self._open[key] = _OpenSpan(self._instruments.tracer, f"execute_tool {fields['tool']}", attributes)


def dump_input_messages(conversation: Conversation) -> str:
    """Dump a conversation for `gen_ai.input.messages`."""
    return dump_scrubbed([_dump_message(message) for message in conversation.messages])


def dump_output_messages(message: Message, reason: str) -> str:
    """Dump a model's message for `gen_ai.output.messages`."""
    return dump_scrubbed([{**_dump_message(message), "finish_reason": reason}])


def dump_tool_definitions(offered: Sequence[ToolSpec]) -> str:
    """Dump offers for `gen_ai.tool.definitions`."""
    return dump_scrubbed(
        [
            {"type": "function", "name": one.name, "description": one.description, "parameters": dict(one.parameters)}
            for one in offered
        ]
    )


def dump_scrubbed(value: Any) -> str:
    """Dump a value as JSON, without secrets."""
    return json.dumps(scrub_secrets(value), ensure_ascii=False, default=str)


def _dump_message(message: Message) -> dict[str, Any]:
    return {"role": message.role, "parts": list(_dump_parts(message))}


def _dump_parts(message: Message) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        yield {"type": "tool_call_response", "id": message.result.call_id, "response": message.result.text}
        return
    for part in message.parts:
        if isinstance(part, Text):
            yield {"type": "text", "content": part.text}
        elif isinstance(part, Reasoning):
            yield {"type": "reasoning", "content": part.text}
        elif isinstance(part, ToolCall):
            yield {"type": "tool_call", "id": part.id, "name": part.name, "arguments": _decode_arguments(part)}
        elif isinstance(part, MalformedCall):
            yield {"type": "text", "content": part.raw}
        elif isinstance(part, Image | Audio | File):
            yield {"type": type(part).__name__.lower(), "mime_type": part.media_type, "hash": part.hash}


def _decode_arguments(call: ToolCall) -> Any:
    try:
        return call.decode()
    except (ValueError, RecursionError):
        return call.arguments
