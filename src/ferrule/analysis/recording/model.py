"""A model of an analysis whose answers are recorded, or taken from a recording, by the stage that asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

from ferrule import errors
from ferrule.analysis.recording.rows import AnswerRow, Place, RecordedFailure
from ferrule.analysis.stages import current_stage
from ferrule.conversation import Conversation, assistant
from ferrule.errors import FerruleError, ProviderError, SettingsError
from ferrule.events import Event, MessageFinished, Usage
from ferrule.models.protocol import Model, ModelSettings
from ferrule.models.recording.facts import Facts
from ferrule.models.recording.file import Exchange
from ferrule.models.recording.request import Request, Row, make_request
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.analysis.stages import StageKey
    from ferrule.capabilities import Capabilities

_NO_FACTS = Facts({})
_NO_REQUEST = Request((), (), {})


class RecordedAnswers(Protocol):
    """Where answers are kept."""

    def begin_request(self, key: StageKey) -> Place:
        """Count a request of a stage; returns its place."""
        ...

    def find_answer(self, place: Place, request: Request) -> AnswerRow:
        """The recorded answer. Raises `LimitReached` if there is none."""
        ...

    def add_answer(self, place: Place, model: str, request: Request, answer: MessageFinished | RecordedFailure) -> None:
        """Record a message of a model, or why there is none."""
        ...


class RecordedModel:
    """See `Recording.wrap_model`. `inner` is the model that is asked; None if only recorded answers are given."""

    def __init__(
        self, recording: RecordedAnswers, name: str, capabilities: Capabilities, inner: Model | None = None
    ) -> None:
        self.name = name
        self.capabilities = capabilities
        self._recording = recording
        self._inner = inner

    async def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        """See `Model.stream`. Raises `LimitReached` where a recording has no more answers."""
        key = current_stage.get()
        if key is None:
            raise RuntimeError("a recorded model is asked by an Asker, which says for which stage")
        request = make_request(conversation, tools, settings, _NO_FACTS)
        place = self._recording.begin_request(key)
        if self._inner is None:
            row = self._recording.find_answer(place, request)
            if row.failure is not None:
                self._recording.add_answer(place, self.name, request, row.failure)
            finished = replay_answer(row)
            self._recording.add_answer(place, self.name, request, finished)
            yield finished
            return
        is_finished = False
        try:
            async with aclosing(self._inner.stream(conversation, tools, settings)) as answer:
                async for event in answer:
                    if isinstance(event, MessageFinished):
                        is_finished = True
                        self._recording.add_answer(place, self.name, request, event)
                    yield event
        except FerruleError as error:
            self._recording.add_answer(place, self.name, request, describe_failure(error))
            raise
        except (asyncio.CancelledError, GeneratorExit):
            if not is_finished:
                message = f"{self.name} took too long for {key.stage}, or was stopped"
                self._recording.add_answer(place, self.name, request, describe_failure(TimeoutError(message)))
            raise

    async def aclose(self) -> None:
        """Close the model that is asked."""
        if self._inner is not None:
            await self._inner.aclose()


def replay_answer(row: AnswerRow) -> MessageFinished:
    """The message that a row holds. Raises the error that the model ended with."""
    if row.failure is not None:
        raise restore_failure(row.failure)
    if row.text is not None:
        return MessageFinished(assistant(row.text), Usage(), "turn")
    data: Row = {"answer": row.answer, "usage": row.usage, "stop": row.stop, "events": []}
    try:
        (finished,) = Exchange(row.model, 0, _NO_REQUEST, data).replay(Conversation(), _NO_FACTS)
    except SettingsError as error:
        raise SettingsError(f"the recorded answer of {row.place} can't be read: {error}") from error
    assert isinstance(finished, MessageFinished)
    return finished


def describe_failure(error: BaseException) -> RecordedFailure:
    """An error as it is recorded."""
    return RecordedFailure(
        kind=type(error).__name__, message=str(error), status=error.status if isinstance(error, ProviderError) else None
    )


def restore_failure(failure: RecordedFailure) -> Exception:
    """The error that was recorded, of the same class as far as ferrule has it."""
    if failure.kind == TimeoutError.__name__:
        return TimeoutError(failure.message)
    kind = getattr(errors, failure.kind, None)
    if not isinstance(kind, type) or not issubclass(kind, FerruleError):
        return FerruleError(failure.message)
    if issubclass(kind, ProviderError):
        return kind(failure.message, failure.status)
    return kind(failure.message)
