"""Reports what a run does to listeners: traces, and a debug log. Without listeners it costs nothing.

`FERRULE_OTEL=1`, or `ferrule.agent.opentelemetry.enable()`: spans and metrics by OpenTelemetry. `FERRULE_DEBUG=1`:
every offer, call and result on stderr.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ferrule.agent.hooks import ModelRequest, RunListener, listener_factories
from ferrule.agent.run import Run
from ferrule.conversation import Message, ToolCall, ToolResult
from ferrule.events import MessageFinished
from ferrule.execution import Journal
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.models.protocol import Model

OTEL, DEBUG = "FERRULE_OTEL", "FERRULE_DEBUG"


def read_environment() -> None:
    """Add the listeners that the environment asks for.

    It is read when this module is imported: reading it at each run would cost more than everything else here.
    """
    if os.environ.get(OTEL, "") not in ("", "0"):
        listener_factories.setdefault("otel", _make_otel_listener)
    if os.environ.get(DEBUG, "") not in ("", "0"):
        listener_factories.setdefault("debug", DebugListener)


def _make_otel_listener(run: Run) -> RunListener:
    from ferrule.agent.opentelemetry import make_listener_factory

    make = listener_factories["otel"] = make_listener_factory()
    return make(run)


class ListenedRun:
    """A run with at least one listener."""

    def __init__(self, run: Run) -> None:
        made = [make(run) for make in tuple(listener_factories.values())]
        self._listener = made[0] if len(made) == 1 else _ListenerGroup(made)

    def __enter__(self) -> RunListener:
        return self._listener

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.on_end(error)


class _ListenerGroup:
    """Several listeners as one."""

    def __init__(self, listeners: Sequence[RunListener]) -> None:
        self._listeners = listeners

    def on_request(self, model: Model, request: ModelRequest) -> None:
        for one in self._listeners:
            one.on_request(model, request)

    def on_message(self, message: MessageFinished | None) -> None:
        for one in self._listeners:
            one.on_message(message)

    def on_failure(self, error: BaseException) -> None:
        for one in self._listeners:
            one.on_failure(error)

    def wrap_journal(self, journal: Journal | None) -> Journal | None:
        for one in self._listeners:
            journal = one.wrap_journal(journal)
        return journal

    def on_result(self, result: ToolResult) -> None:
        for one in self._listeners:
            one.on_result(result)

    def on_end(self, error: BaseException | None) -> None:
        for one in self._listeners:
            one.on_end(error)


class DebugListener:
    """Writes one run to stderr, in full, as JSON lines; secrets found by their names are scrubbed, as in a journal."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._offered: Sequence[ToolSpec] | None = None
        self._sent: tuple[Message, ...] = ()

    def on_request(self, model: Model, request: ModelRequest) -> None:
        """Write the request; the offers only where they differ from those of the request before."""
        given, count = request.settings.model_dump(mode="json", exclude_unset=True), len(request.conversation)
        _write_line("asked", model=self._run.model, mode=self._run.mode, messages=count, settings=given)
        if self._offered != request.offered:
            for spec in request.offered:
                _write_line("offered", tool=spec.name, description=spec.description, parameters=dict(spec.parameters))
        self._offered = request.offered
        self._write_prompt(model, request)

    def _write_prompt(self, model: Model, request: ModelRequest) -> None:
        """Write the prompt of text mode as it is sent; of a longer one, only the messages that are new."""
        from ferrule.errors import DialectError
        from ferrule.models.text_mode import TextModeModel

        if not isinstance(model, TextModeModel):
            return
        try:
            messages = model.lower(request.conversation, request.offered)[0].messages
        except DialectError:
            return  # the request fails with it
        known = len(self._sent) if messages[: len(self._sent)] == self._sent else 0
        for message in messages[known:]:
            _write_line("sent", role=message.role, text=message.text)
        self._sent = messages

    def on_message(self, message: MessageFinished | None) -> None:
        """Write the message and its calls."""
        if message is None:
            return
        _write_line("wrote", text=message.message.text, stop=message.stop)
        for call in message.message.calls:
            if isinstance(call, ToolCall):
                _write_line("called", call=call.id, tool=call.name, arguments=_decode_arguments(call))
            else:
                _write_line("called", call=call.id, malformed=call.kind, raw=call.raw)

    def on_failure(self, error: BaseException) -> None:
        """Write what was raised."""
        _write_line("failed", error=type(error).__name__, reason=str(error))

    def wrap_journal(self, journal: Journal | None) -> Journal | None:
        """Return the run's own."""
        return journal

    def on_result(self, result: ToolResult) -> None:
        """Write a result."""
        _write_line("result", call=result.call_id, tool=result.name, status=result.status, text=result.text)

    def on_end(self, error: BaseException | None) -> None:
        """Write how the run ended."""
        _write_line("ended", stopped=self._run.stopped, error=None if error is None else type(error).__name__)


def _decode_arguments(call: ToolCall) -> Any:
    """Decode the arguments where possible, so that secrets in them are found by name."""
    try:
        return call.decode()
    except (ValueError, RecursionError):
        return call.arguments


def _write_line(event: str, **fields: Any) -> None:
    # Imported here: only a run under FERRULE_DEBUG needs them.
    from ferrule._util.terminal_text import escape_json
    from ferrule.execution.secrets import scrub_secrets

    print(escape_json({"debug": event, **scrub_secrets(fields, longest=None)}), file=sys.stderr)


read_environment()
