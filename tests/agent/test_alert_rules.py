"""The alert rules in the documents name metrics and labels that exist, as Prometheus has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from ferrule import calculator, model
from ferrule.agent import opentelemetry
from ferrule.errors import ModelError
from ferrule.models.scripted import ScriptedModel

PAGE = Path(__file__).parents[2] / "docs" / "observability.md"
SUFFIXES = ("_bucket", "_count", "_sum")
UNITS = {"s": "_seconds"}


@pytest.fixture
def reader() -> Iterator[InMemoryMetricReader]:
    opened = InMemoryMetricReader()
    opentelemetry.enable(meter_provider=MeterProvider([opened]))
    yield opened
    opentelemetry.disable()


def find_named(pattern: str) -> set[str]:
    rules = re.search(r"```yaml\n(groups:.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert rules is not None
    return set(re.findall(pattern, rules[1]))


async def test_the_rules_name_what_is_measured(reader: InMemoryMetricReader) -> None:
    await model("echo").chat("Hi").run()
    await model("embedded").using(calculator).chat("What is 2 + 2?").run()
    with pytest.raises(ModelError):
        await model(ScriptedModel()).chat("Hi").run()
    data = reader.get_metrics_data()
    assert data is not None
    measured = [
        metric for resource in data.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics
    ]
    names = {
        f"{one.name.replace('.', '_')}{UNITS.get(one.unit, '')}{suffix}" for one in measured for suffix in SUFFIXES
    }
    labels = {name.replace(".", "_") for one in measured for point in one.data.data_points for name in point.attributes}
    assert find_named(r"\bgen_ai_client_\w+") <= names
    used = find_named(r"\b(gen_ai_(?!client)\w+|error_type)\b")
    assert used
    assert used <= labels
