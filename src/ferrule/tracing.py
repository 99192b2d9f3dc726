"""Runs as OpenTelemetry's spans and metrics: off until `enable()`, or where the environment has `FERRULE_OTEL=1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule.runs.listening import makers

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider


def enable(
    *,
    content: bool = False,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> None:
    """Record the runs that begin from now on; with `content` also what is said, which may be private.

    Without providers, those of the process record them. Raises `SettingsError` where `opentelemetry-api` isn't
    installed.
    """
    from ferrule.runs.otel import traced

    makers["otel"] = traced(content, tracer_provider, meter_provider)


def disable() -> None:
    """Record no more runs."""
    makers.pop("otel", None)
