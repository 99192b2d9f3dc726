"""FERRULE_DEBUG=1: what goes to a model and what comes of it, in full, as JSON lines on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from ferrule.conversation import Conversation, ToolCall, ToolResult
from ferrule.events import MessageFinished
from ferrule.execution import Journal
from ferrule.execution.scrubbing import scrubbed
from ferrule.models.protocol import ModelSettings
from ferrule.runs.run import Run
from ferrule.toolspec import ToolSpec


class DebugListener:
    """Writes down one run. Secrets that a name gives away are scrubbed, as they are in a journal; nothing is cut."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._offered: Sequence[ToolSpec] | None = None

    def asks(self, conversation: Conversation, offered: Sequence[ToolSpec], settings: ModelSettings) -> None:
        """Tell of the offers where they are other ones than before."""
        given = settings.model_dump(mode="json", exclude_unset=True)
        _tell("asked", model=self._run.model, mode=self._run.mode, messages=len(conversation), settings=given)
        if self._offered != offered:
            for spec in offered:
                _tell("offered", tool=spec.name, description=spec.description, parameters=dict(spec.parameters))
        self._offered = offered

    def wrote(self, message: MessageFinished | None) -> None:
        """Tell of the message and its calls."""
        if message is None:
            return
        _tell("wrote", text=message.message.text, stop=message.stop)
        for call in message.message.calls:
            if isinstance(call, ToolCall):
                _tell("called", call=call.id, tool=call.name, arguments=_decoded(call))
            else:
                _tell("called", call=call.id, malformed=call.kind, raw=call.raw)

    def failed(self, error: BaseException) -> None:
        """Tell what was raised."""
        _tell("failed", error=type(error).__name__, reason=str(error))

    def answered(self, result: ToolResult) -> None:
        """Tell of a result."""
        _tell("result", call=result.call_id, tool=result.name, status=result.status, text=result.text)

    def ends(self, error: BaseException | None) -> None:
        """Tell how the run ended."""
        _tell("ended", stopped=self._run.stopped, error=None if error is None else type(error).__name__)

    def journal(self, journal: Journal | None) -> Journal | None:
        """The run's own."""
        return journal


def _decoded(call: ToolCall) -> Any:
    """The arguments as values, in which secrets are found by their names, where they can be read."""
    try:
        return call.decoded()
    except (ValueError, RecursionError):
        return call.arguments


def _tell(event: str, **fields: Any) -> None:
    line = json.dumps({"debug": event, **scrubbed(fields, longest=None)}, ensure_ascii=False, default=str)
    print(line.encode(errors="backslashreplace").decode(), file=sys.stderr)
