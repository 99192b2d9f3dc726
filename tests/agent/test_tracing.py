"""Runs as spans and metrics, recorded by OpenTelemetry's own SDK."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.trace import SpanKind, StatusCode

from ferrule import ToolCall, calculator, model, tool
from ferrule.agent import instrumentation, opentelemetry
from ferrule.agent.hooks import listener_factories
from ferrule.agent.opentelemetry import CONTENT, Instruments, make_listener_factory
from ferrule.errors import ModelError
from ferrule.models.scripted import ScriptedModel

EXPORTER = InMemorySpanExporter()
READER = InMemoryMetricReader()


class Claude(ScriptedModel):
    name = "anthropic:claude-sonnet-5"


SPANS = TracerProvider()
SPANS.add_span_processor(SimpleSpanProcessor(EXPORTER))
METERS = MeterProvider([READER])


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    EXPORTER.clear()
    opentelemetry.enable(tracer_provider=SPANS, meter_provider=METERS)
    yield EXPORTER
    opentelemetry.disable()


def named(exporter: InMemorySpanExporter) -> dict[str, list[ReadableSpan]]:
    found: dict[str, list[ReadableSpan]] = {}
    for span in exporter.get_finished_spans():
        found.setdefault(span.name, []).append(span)
    return found


@tool(read_only=True)
async def look(place: str) -> str:
    """Look somewhere."""
    with SPANS.get_tracer("a program").start_as_current_span("looking"):
        await asyncio.sleep(0)
    return f"nothing in {place}"


@tool
def burn(what: str) -> str:
    """Burn something."""
    raise RuntimeError(what)


async def test_a_run_its_requests_and_its_calls(spans: InMemorySpanExporter) -> None:
    calls = [ToolCall("a", "look", '{"place": "the box"}'), ToolCall("b", "burn", '{"what": "it"}')]
    run = (
        await model(Claude(calls, "Nothing."))
        .with_(temperature=0.5, stop=("END",))
        .chat("Look.")
        .using(look, burn)
        .run()
    )
    found = named(spans)
    (whole,) = found["invoke_agent"]
    first, second = found["chat claude-sonnet-5"]
    (looked,), (burned,), (looking,) = found["execute_tool look"], found["execute_tool burn"], found["looking"]
    for inner in (first, second, looked, burned):
        assert inner.parent is not None
        assert inner.parent.span_id == whole.context.span_id
    assert looking.parent.span_id == looked.context.span_id
    assert (first.kind, whole.kind, looked.kind) == (SpanKind.CLIENT, SpanKind.INTERNAL, SpanKind.INTERNAL)
    assert dict(first.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-5",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 0,
        "gen_ai.usage.output_tokens": 0,
        "gen_ai.usage.cache_read.input_tokens": 0,
    }
    assert second.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert dict(looked.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "a",
        "gen_ai.tool.type": "function",
    }
    assert (burned.attributes["error.type"], burned.status.status_code) == ("error", StatusCode.ERROR)
    assert whole.attributes["ferrule.stopped"] == run.stopped == "done"
    assert not trace.get_current_span().is_recording()


async def test_what_fails_is_told(spans: InMemorySpanExporter) -> None:
    with pytest.raises(ModelError):
        await model(Claude()).chat("Hi").run()
    found = named(spans)
    for name in ("invoke_agent", "chat claude-sonnet-5"):
        assert found[name][0].attributes["error.type"] == "ModelError"
        assert found[name][0].status.status_code == StatusCode.ERROR
    assert not trace.get_current_span().is_recording()


async def test_a_run_that_is_left_ends_its_spans(spans: InMemorySpanExporter) -> None:
    begun = asyncio.Event()

    @tool(read_only=True)
    async def wait() -> str:
        """Wait."""
        begun.set()
        await asyncio.Event().wait()
        return "never"

    async with model(Claude(ToolCall("a", "wait", "{}"))).chat("Wait.").using(wait).stream():
        await begun.wait()
    found = named(spans)
    assert found["execute_tool wait"][0].attributes["error.type"] == "cancelled"
    assert found["invoke_agent"][0].attributes["error.type"] == "CancelledError"


async def test_metrics(spans: InMemorySpanExporter) -> None:
    run = await model("embedded").chat("What is 2 * 3?").using(calculator).run()
    assert run.text == "2 × 3 is 6."
    data = READER.get_metrics_data()
    found = {
        metric.name: [
            point for point in metric.data.data_points if point.attributes["gen_ai.request.model"] == "embedded"
        ]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert [point.count for point in found["gen_ai.client.operation.duration"]] == [2]
    tokens = {point.attributes["gen_ai.token.type"]: point.sum for point in found["gen_ai.client.token.usage"]}
    assert tokens == {"input": run.usage.prompt_tokens, "output": run.usage.sampled_tokens}


async def test_what_is_said_is_recorded_only_where_that_is_asked_for(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pipeline():
        return model(Claude(ToolCall("a", "look", '{"place": "x", "api_key": "k-123"}'), "No.")).chat("Hm?").using(look)

    await pipeline().run()
    said = [name for span in spans.get_finished_spans() for name in span.attributes]
    assert not [name for name in said if "messages" in name or name.endswith(("arguments", "definitions"))]
    spans.clear()
    opentelemetry.enable(content=True, tracer_provider=SPANS, meter_provider=METERS)
    await pipeline().run()
    first, second = named(spans)["chat claude-sonnet-5"]
    assert json.loads(first.attributes["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "Hm?"}]}
    ]
    (call,) = json.loads(first.attributes["gen_ai.output.messages"])[0]["parts"]
    assert call["arguments"] == {"place": "x", "api_key": "[scrubbed]"}
    assert json.loads(first.attributes["gen_ai.tool.definitions"])[0]["name"] == "look"
    assert json.loads(second.attributes["gen_ai.input.messages"])[2]["parts"][0]["type"] == "tool_call_response"
    monkeypatch.setenv(CONTENT, "true")
    listener_factories["otel"] = make_listener_factory(None, SPANS, METERS)
    spans.clear()
    await pipeline().run()
    assert "gen_ai.input.messages" in named(spans)["chat claude-sonnet-5"][0].attributes


async def test_runs_beside_each_other_keep_their_spans_apart(spans: InMemorySpanExporter) -> None:
    script = (ToolCall("a", "look", '{"place": "x"}'), "No.") * 3
    pipelines = [model(Claude(*script[:2])).chat("Hm?").using(look) for _ in range(3)]
    await asyncio.gather(*(pipeline.run() for pipeline in pipelines))
    found = named(spans)
    assert len({span.context.trace_id for span in found["invoke_agent"]}) == 3
    for name in ("execute_tool look", "looking"):
        assert len({span.context.trace_id for span in found[name]}) == 3


def test_the_names_are_those_of_the_conventions(spans: InMemorySpanExporter) -> None:
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    used = {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.request.temperature"}
    used |= {f"gen_ai.request.{name}" for name in ("top_p", "top_k", "max_tokens", "seed", "stop_sequences")}
    used |= {"gen_ai.response.finish_reasons", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"}
    used |= {"gen_ai.usage.cache_read.input_tokens", "gen_ai.input.messages", "gen_ai.output.messages"}
    used |= {f"gen_ai.tool.{name}" for name in ("name", "type", "call.id", "call.arguments", "definitions")}
    assert used | {"gen_ai.token.type"} <= known
    instruments = Instruments(False, SPANS, METERS)
    assert instruments.duration.name == gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION
    assert instruments.tokens.name == gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE


def test_nothing_of_it_is_imported_unless_it_is_on() -> None:
    code = "import sys; from ferrule import model; model('echo').chat('Hi').run_sync()\n"
    code += "assert bool([name for name in sys.modules if name.startswith('opentelemetry')]) is %s"
    for value, is_on in (("", False), ("0", False), ("1", True)):
        subprocess.run([sys.executable, "-c", code % is_on], env={**os.environ, "FERRULE_OTEL": value}, check=True)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("FERRULE_DEBUG", "1")
    instrumentation.read_environment()
    yield lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    del listener_factories["debug"]


async def test_debugging_shows_offers_calls_and_results_in_full(lines) -> None:
    long = "x" * 20_000
    arguments = json.dumps({"place": long, "password": "hunter2"})
    await model(Claude(ToolCall("a", "look", arguments), "No.")).chat("Hm?").using(look).run()
    told = lines()
    assert [one["debug"] for one in told] == [
        "asked",
        "offered",
        "wrote",
        "called",
        "result",
        "asked",
        "wrote",
        "ended",
    ]
    assert told[1]["parameters"]["properties"]["place"]["type"] == "string"
    assert told[3]["arguments"] == {"place": long, "password": "[scrubbed]"}
    assert told[4]["status"] == "invalid"
    assert "hunter2" not in json.dumps(told)
    assert told[-1] == {"debug": "ended", "stopped": "done", "error": None}


async def test_debugging_shows_the_prompt_of_text_mode_as_it_is_sent(lines) -> None:
    call = '<tool_call>\n{"name": "look", "arguments": {"place": "Ulm"}}\n</tool_call>'
    scripted = ScriptedModel(call, "Done.")
    await model(scripted).chat("Hm?").using(look, mode="hermes").run()
    sent = [(one["role"], one["text"]) for one in lines() if one["debug"] == "sent"]
    asked = scripted.seen[-1]
    assert sent == [(message.role, message.text) for message in asked.messages]
    assert "<tools>" in sent[0][1]
    assert "<tool_response>" in sent[-1][1]


async def test_debugging_and_tracing_at_once(spans: InMemorySpanExporter, lines) -> None:
    with pytest.raises(ModelError):
        await model(Claude(ToolCall("a", "look", '{"place": "x"}'))).chat("Hm?").using(look).run()
    assert [one["debug"] for one in lines()][-2:] == ["failed", "ended"]
    assert len(named(spans)["execute_tool look"]) == 1
