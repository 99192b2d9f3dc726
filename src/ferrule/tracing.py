"""Runs as OpenTelemetry's spans and metrics: off until `enable()`, or where the environment has `FERRULE_OTEL=1`."""

from __future__ import annotations

from ferrule.runs.listening import makers


def enable(*, content: bool = False) -> None:
    """Record the runs that begin from now on; with `content` also what is said, which may be private.

    Raises `SettingsError` where `opentelemetry-api` isn't installed.
    """
    from ferrule.runs.otel import traced

    makers["otel"] = traced(content)


def disable() -> None:
    """Record no more runs."""
    makers.pop("otel", None)
