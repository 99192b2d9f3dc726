"""Who hears what a run does, for traces and for finding faults. Nobody does unless it was asked for.

`FERRULE_OTEL=1`, or `ferrule.tracing.enable()`: spans and metrics by OpenTelemetry. `FERRULE_DEBUG=1`: every offer,
call and result on stderr.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ferrule.conversation import Conversation, ToolResult
from ferrule.events import MessageFinished
from ferrule.execution import Journal
from ferrule.runs.run import Run
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.models.protocol import ModelSettings

OTEL, DEBUG = "FERRULE_OTEL", "FERRULE_DEBUG"


class Listener(Protocol):
    """Hears one run. It must not raise, and it is in nobody's way: what it does is done before the run goes on."""

    def ends(self, error: BaseException | None) -> None:
        """The run is over; `error` is what it raises."""

    def asks(self, conversation: Conversation, offered: Sequence[ToolSpec], settings: ModelSettings) -> None:
        """The model is asked for a message."""

    def wrote(self, message: MessageFinished | None) -> None:
        """It wrote one; None where its events ended without."""

    def failed(self, error: BaseException) -> None:
        """It raised this in its place."""

    def journal(self, journal: Journal | None) -> Journal | None:
        """The journal that the run's calls are recorded in: `journal`, or one that passes on to it."""

    def answered(self, result: ToolResult) -> None:
        """A call has its result."""


Maker: TypeAlias = Callable[[Run], Listener]
makers: dict[str, Maker] = {}
"""What makes a listener for each run, by its name; `tracing.enable()` adds one."""


def heard(run: Run) -> AbstractContextManager[Listener | None]:
    """Around a run: its listener, None where nobody listens."""
    return _Heard(run) if makers else _NOBODY


def from_environment() -> None:
    """Listen as the environment says now. It is read when this module is loaded: at each run that would cost more than
    all else here."""
    if os.environ.get(OTEL, "") not in ("", "0"):
        makers.setdefault("otel", _traced)
    if os.environ.get(DEBUG, "") not in ("", "0"):
        makers.setdefault("debug", _told)


def _traced(run: Run) -> Listener:
    from ferrule.runs.otel import traced

    make = makers["otel"] = traced()
    return make(run)


def _told(run: Run) -> Listener:
    from ferrule.runs.debugging import DebugListener

    return DebugListener(run)


_NOBODY: AbstractContextManager[None] = nullcontext()


class _Heard:
    """A run that somebody hears."""

    def __init__(self, run: Run) -> None:
        made = [make(run) for make in tuple(makers.values())]
        self._listener = made[0] if len(made) == 1 else _Several(made)

    def __enter__(self) -> Listener:
        return self._listener

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.ends(error)


class _Several:
    """Listeners, one after another."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = listeners

    def ends(self, error: BaseException | None) -> None:
        for one in self._listeners:
            one.ends(error)

    def asks(self, conversation: Conversation, offered: Sequence[ToolSpec], settings: ModelSettings) -> None:
        for one in self._listeners:
            one.asks(conversation, offered, settings)

    def wrote(self, message: MessageFinished | None) -> None:
        for one in self._listeners:
            one.wrote(message)

    def failed(self, error: BaseException) -> None:
        for one in self._listeners:
            one.failed(error)

    def journal(self, journal: Journal | None) -> Journal | None:
        for one in self._listeners:
            journal = one.journal(journal)
        return journal

    def answered(self, result: ToolResult) -> None:
        for one in self._listeners:
            one.answered(result)


from_environment()
