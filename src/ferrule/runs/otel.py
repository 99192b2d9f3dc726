"""Runs as OpenTelemetry's spans and metrics, in the words of its semantic conventions for generative AI.

Needs `opentelemetry-api` (the extra `otel`); who exports what is recorded here is the program's own SDK's business.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ferrule.conversation import Conversation, ToolResult
from ferrule.errors import SettingsError
from ferrule.events import MessageFinished
from ferrule.execution import Journal
from ferrule.execution.journal import NullJournal
from ferrule.models.protocol import ModelSettings
from ferrule.runs.otel_content import input_messages, output_messages, tool_definitions, written
from ferrule.runs.run import Run
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, MeterProvider
    from opentelemetry.trace import Span, Tracer, TracerProvider

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable that has what is said recorded too; `true` or `1`."""
_PROVIDERS = {"google": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai", "openai-responses": "openai"}
_REASONS = {"turn": "stop", "calls": "tool_calls", "context": "length"}
_REQUEST = ("temperature", "top_p", "top_k", "max_tokens", "seed")


class Instruments:
    """What spans and metrics are recorded with. Raises `SettingsError` where opentelemetry-api isn't installed."""

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
            "gen_ai.client.operation.duration", "s", "How long a model took to write a message."
        )
        self.tokens: Histogram = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens that a model read and wrote."
        )


def traced(
    content: bool | None = None,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> Callable[[Run], OtelListener]:
    """What makes a listener for each run. Without `content` the environment says whether what is said is recorded,
    without providers the process's own record it."""
    if content is None:
        content = os.environ.get(CONTENT, "").lower() in ("1", "true")
    instruments = Instruments(content, tracer_provider, meter_provider)
    return lambda run: OtelListener(run, instruments)


class OtelListener:
    """The span of one run, and of its requests and calls."""

    def __init__(self, run: Run, instruments: Instruments) -> None:
        self._run = run
        self._with = instruments
        # Where another model is asked, the first one's name stands for all.
        name = run.model.partition(", else ")[0]
        provider, _, model = name.partition(":")
        self._common = {
            "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
            "gen_ai.request.model": model or provider,
        }
        self._whole = _Open(instruments.tracer, "invoke_agent", self._attributes("invoke_agent"))
        self._chat: _Open | None = None
        self._began = 0.0

    def _attributes(self, operation: str) -> dict[str, Any]:
        return {"gen_ai.operation.name": operation, **self._common}

    def asks(self, conversation: Conversation, offered: Sequence[ToolSpec], settings: ModelSettings) -> None:
        """Begin the span of a request."""
        attributes = self._attributes("chat")
        for name in _REQUEST:
            value = getattr(settings, name) if name in settings.model_fields_set else None
            if value is not None:
                attributes[f"gen_ai.request.{name}"] = value
        if settings.stop:
            attributes["gen_ai.request.stop_sequences"] = list(settings.stop)
        if self._with.content:
            attributes["gen_ai.input.messages"] = input_messages(conversation)
            attributes["gen_ai.tool.definitions"] = tool_definitions(offered)
        self._chat = _Open(
            self._with.tracer, f"chat {self._common['gen_ai.request.model']}", attributes, is_client=True
        )
        self._began = time.perf_counter()

    def wrote(self, message: MessageFinished | None) -> None:
        """End it with what the message cost, and why the model stopped."""
        stop = "error" if message is None else message.stop
        found: dict[str, Any] = {"gen_ai.response.finish_reasons": [_REASONS.get(stop, stop)]}
        if message is not None:
            usage = message.usage
            found["gen_ai.usage.input_tokens"] = usage.prompt_tokens
            found["gen_ai.usage.output_tokens"] = usage.sampled_tokens
            found["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
            for kind, count in (("input", usage.prompt_tokens), ("output", usage.sampled_tokens)):
                self._with.tokens.record(count, {**self._attributes("chat"), "gen_ai.token.type": kind})
            if self._with.content:
                found["gen_ai.output.messages"] = output_messages(message.message, _REASONS.get(stop, stop))
        self._end_chat(found, "incomplete" if stop == "error" else "")

    def failed(self, error: BaseException) -> None:
        """End it with what was raised."""
        self._end_chat({}, type(error).__qualname__)

    def _end_chat(self, found: Mapping[str, Any], error: str) -> None:
        if self._chat is None:
            return
        attributes = self._attributes("chat")
        if error:
            attributes["error.type"] = error
        self._with.duration.record(time.perf_counter() - self._began, attributes)
        self._chat.end(found, error)
        self._chat = None

    def journal(self, journal: Journal | None) -> Journal | None:
        """One in which each call that runs is a span too."""
        return _CallSpans(journal or NullJournal(), self._with)

    def answered(self, result: ToolResult) -> None:
        """The span of a call ends with its line in the journal."""

    def ends(self, error: BaseException | None) -> None:
        """End the run's span."""
        usage = self._run.usage
        found = {
            "gen_ai.usage.input_tokens": usage.prompt_tokens,
            "gen_ai.usage.output_tokens": usage.sampled_tokens,
            "ferrule.stopped": self._run.stopped,
        }
        self._whole.end(found, "" if error is None else type(error).__qualname__)


class _Open:
    """A span that has begun; until it ends, others begin inside of it."""

    def __init__(self, tracer: Tracer, name: str, attributes: Mapping[str, Any], is_client: bool = False) -> None:
        from opentelemetry import context, trace

        kind = trace.SpanKind.CLIENT if is_client else trace.SpanKind.INTERNAL
        self._span: Span = tracer.start_span(name, kind=kind, attributes=attributes)
        self._token = context.attach(trace.set_span_in_context(self._span))

    def end(self, found: Mapping[str, Any], error: str) -> None:
        """End it with what was found out meanwhile; `error` is what kind of error it ended in."""
        from opentelemetry import context
        from opentelemetry.trace import Status, StatusCode

        self._span.set_attributes(dict(found))
        if error:
            self._span.set_attribute("error.type", error)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()
        context.detach(self._token)


class _CallSpans:
    """A journal that passes everything on, and has a span for each call between its two lines.

    Both lines of a call are written by the task that runs it, so what the tool records is inside of the call's span.
    """

    def __init__(self, journal: Journal, instruments: Instruments) -> None:
        self._journal = journal
        self._with = instruments
        self._open: dict[str, _Open] = {}
        self._lock = threading.Lock()
        self._number = 0

    def new_key(self) -> str:
        """The journal's own; a number where it has none."""
        with self._lock:
            self._number += 1
            return self._journal.new_key() or f"span-{self._number}"

    def record(self, event: Any, key: str, fields: Mapping[str, Any], /) -> None:
        """Begin or end a span, and pass it on."""
        if event == "started":
            self._journal.record(event, key, fields)  # where that fails the call doesn't run
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
        if self._with.content:
            attributes["gen_ai.tool.call.arguments"] = written(fields["arguments"])
        self._open[key] = _Open(self._with.tracer, f"execute_tool {fields['tool']}", attributes)
