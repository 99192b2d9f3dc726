"""The alert rules in the documents, evaluated on what the SDK exports: each fires when it should, and only then."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, MetricsData

from ferrule import Policy, ScriptedModel, ToolCall, model, tool
from ferrule.agent import opentelemetry
from ferrule.conversation import Conversation
from ferrule.errors import ModelError, ToolFailed
from ferrule.events import Event, MessageFinished
from ferrule.models.protocol import ModelSettings
from ferrule.toolspec import ToolSpec

PAGE = Path(__file__).parents[2] / "docs" / "observability.md"
UNITS = {"s": "_seconds"}
RULE = re.compile(r"- alert: (\w+)\n +expr: (?:\|\n)?(.*?)(?=\n +for:|\n +- alert|\n```)", re.DOTALL)
RULES = {name: " ".join(text.split()) for name, text in RULE.findall(PAGE.read_text(encoding="utf-8"))}


@dataclass(frozen=True)
class Series:
    """One time series as Prometheus has it, with what it grew by in the time that a rule looks at."""

    name: str
    labels: dict[str, str]
    increase: float


def list_series(data: MetricsData | None) -> Iterator[Series]:
    """The series that the Prometheus exporters make of the metrics: the names, units and suffixes are theirs."""
    assert data is not None
    metrics = (one for found in data.resource_metrics for scope in found.scope_metrics for one in scope.metrics)
    for metric in metrics:
        name = metric.name.replace(".", "_") + UNITS.get(metric.unit or "", "")
        for point in metric.data.data_points:
            labels = {key.replace(".", "_"): str(value) for key, value in (point.attributes or {}).items()}
            if not isinstance(point, HistogramDataPoint):
                yield Series(f"{name}_total", labels, point.value)
                continue
            yield Series(f"{name}_count", labels, point.count)
            yield Series(f"{name}_sum", labels, point.sum)
            total = 0
            for bound, count in zip((*point.explicit_bounds, math.inf), point.bucket_counts, strict=True):
                total += count
                yield Series(f"{name}_bucket", labels | {"le": str(bound)}, total)


def evaluate(rule: str, series: Sequence[Series]) -> bool:
    """Whether an alert fires, for the part of Prometheus' language that the rules use; another one fails the test."""
    expression, _, threshold = rule.rpartition(" > ")
    if found := re.fullmatch(r"histogram_quantile\(([\d.]+), (.*)\)", expression):
        grouped = sum_by(found[2], series)
        groups = {labels - {one for one in labels if one[0] == "le"} for labels in grouped}
        values = [find_quantile(float(found[1]), group, grouped) for group in groups]
    elif " / " in expression:
        above, below = (sum_by(part, series) for part in expression.split(" / "))
        values = [above[labels] / below[labels] for labels in above if below.get(labels)]
    else:
        values = list(sum_by(expression, series).values())
    return any(value > float(threshold) for value in values)


def sum_by(expression: str, series: Sequence[Series]) -> dict[frozenset[tuple[str, str]], float]:
    found = re.fullmatch(r"sum by \(([\w, ]+)\) \((?:rate|increase)\((\w+)(?:\{(.*)\})?\[\d+[mh]\]\)\)", expression)
    assert found is not None, expression
    kept, name = found[1].split(", "), found[2]
    selected = [re.fullmatch(r'(\w+)(=|!=|=~)"(.*)"', one) for one in (found[3] or "").split(",") if one]
    assert name in {one.name for one in series}, f"{name} is not exported"
    known = {label for one in series if one.name == name for label in one.labels}
    sums: dict[frozenset[tuple[str, str]], float] = {}
    for one in series:
        if one.name == name and all(matches(one.labels, *part.groups()) for part in selected if part is not None):
            group = frozenset((label, one.labels.get(label, "")) for label in kept)
            sums[group] = sums.get(group, 0) + one.increase
    assert {*kept, *(part[1] for part in selected if part is not None)} <= known | {"error_type"}
    return sums


def matches(labels: dict[str, str], name: str, operator: str, value: str) -> bool:
    given = labels.get(name, "")
    return (
        (given == value)
        if operator == "="
        else given != value
        if operator == "!="
        else bool(re.fullmatch(value, given))
    )


def find_quantile(
    share: float, group: frozenset[tuple[str, str]], sums: dict[frozenset[tuple[str, str]], float]
) -> float:
    """`histogram_quantile`: linear within a bucket; of the last one, the upper bound of the one before."""
    buckets = sorted((float(dict(labels)["le"]), count) for labels, count in sums.items() if group <= labels)
    rank, before, passed = share * buckets[-1][1], 0.0, 0.0
    for bound, count in buckets:
        if count >= rank and count > passed:
            return before if bound == math.inf else before + (bound - before) * (rank - passed) / (count - passed)
        before, passed = bound, count
    return math.nan


@pytest.fixture
def reader() -> Iterator[InMemoryMetricReader]:
    opened = InMemoryMetricReader()
    opentelemetry.enable(meter_provider=MeterProvider([opened]))
    yield opened
    opentelemetry.disable()


class LongPrompts(ScriptedModel):
    """Says that each prompt had this many tokens."""

    tokens = 0

    async def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncIterator[Event]:
        async for event in super().stream(conversation, tools, settings):
            if isinstance(event, MessageFinished):
                yield replace(event, usage=replace(event.usage, prompt_tokens=self.tokens))
            else:
                yield event


@tool(read_only=True)
def look(place: str) -> str:
    """Look somewhere."""
    if place == "nowhere":
        raise ToolFailed("there is nothing")
    return place


@tool
def change(place: str) -> str:
    """Change something."""
    return place


async def call(name: str, place: str, times: int) -> None:
    calls = [ToolCall(f"call_{number}", name, f'{{"place": "{place}"}}') for number in range(times)]
    agent = model(ScriptedModel(*calls, "Done.")).using(look, change, policy=Policy(profile="plan"))
    await agent.within(rounds=times + 1).chat("Look.").run()


async def read_prompts(tokens: int, times: int = 20) -> None:
    for _ in range(times):
        prompted = LongPrompts("Yes.")
        prompted.tokens = tokens
        await model(prompted).chat("Is it?").run()


async def wait(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        now = 0.0

        def perf_counter(self) -> float:
            self.now += seconds
            return self.now

    monkeypatch.setattr(opentelemetry, "time", Clock())
    for _ in range(20):
        await model(ScriptedModel("Yes.")).chat("Is it?").run()


async def fail(failures: int, of: int) -> None:
    for number in range(of):
        scripted = ScriptedModel(*(() if number < failures else ("Yes.",)))
        if number < failures:
            with pytest.raises(ModelError):
                await model(scripted).chat("Is it?").run()
        else:
            await model(scripted).chat("Is it?").run()


Work = Callable[[pytest.MonkeyPatch], Awaitable[Any]]
FIRES: list[tuple[str, bool, Work]] = [
    ("ModelFails", True, lambda _: fail(1, of=10)),
    ("ModelFails", False, lambda _: fail(0, of=10)),
    ("ModelFails", False, lambda _: fail(1, of=30)),
    ("ModelIsSlow", True, lambda patch: wait(61, patch)),
    ("ModelIsSlow", True, lambda patch: wait(1000, patch)),
    ("ModelIsSlow", False, lambda patch: wait(59, patch)),
    ("TokensAreSpent", True, lambda _: read_prompts(260_000)),
    ("TokensAreSpent", False, lambda _: read_prompts(240_000)),
    ("PromptsGrow", True, lambda _: read_prompts(110_000)),
    ("PromptsGrow", True, lambda _: read_prompts(900_000)),
    ("PromptsGrow", False, lambda _: read_prompts(90_000)),
    ("PromptsGrow", False, lambda _: read_prompts(4_000)),
    ("ToolFails", True, lambda _: call("look", "nowhere", 3)),
    ("ToolFails", False, lambda _: call("look", "here", 3)),
    ("ToolFails", False, lambda _: call("change", "here", 3)),
    ("CallsAreDenied", True, lambda _: call("change", "here", 21)),
    ("CallsAreDenied", False, lambda _: call("change", "here", 20)),
    ("CallsAreDenied", False, lambda _: call("look", "nowhere", 30)),
]


@pytest.mark.parametrize(("alert", "fires", "work"), FIRES)
async def test_an_alert_fires_when_it_should(
    alert: str, fires: bool, work: Work, reader: InMemoryMetricReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    await call("look", "here", 1)  # a counter exists once it has counted
    await work(monkeypatch)
    assert evaluate(RULES[alert], list(list_series(reader.get_metrics_data()))) is fires


def test_each_alert_is_tried_both_ways() -> None:
    assert (
        {alert for alert, fires, _ in FIRES if fires} == set(RULES) == {alert for alert, fires, _ in FIRES if not fires}
    )


async def test_names_that_a_model_makes_up_are_no_series_of_their_own(reader: InMemoryMetricReader) -> None:
    writer = ScriptedModel(ToolCall("call_1", "made_up", "{}"), ToolCall("call_2", "look", "{}"), "Done.")
    await model(writer).using(look).chat("Look.").run()
    found = [one for one in list_series(reader.get_metrics_data()) if one.name == "ferrule_tool_calls_total"]
    counted = {(one.labels["gen_ai_tool_name"], one.labels["ferrule_status"]): one.increase for one in found}
    assert counted == {("(not offered)", "unknown_tool"): 1, ("look", "invalid"): 1}
