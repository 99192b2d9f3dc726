"""A model of an analysis whose answers are recorded, or taken from a recording, by the stage that asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from ferrule.analysis.stages import current_stage
from ferrule.conversation import Conversation
from ferrule.errors import FerruleError
from ferrule.events import Event, MessageFinished
from ferrule.models.protocol import Model, ModelSettings
from ferrule.models.recording.exchange import NO_FACTS
from ferrule.models.recording.request import make_request
from ferrule.models.recording.rows import Failure
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.analysis.recording.recording import Recording
    from ferrule.capabilities import Capabilities


class StageModel:
    """See `Recording.wrap_model`. `inner` is the model that is asked; None if only recorded answers are given."""

    def __init__(self, recording: Recording, name: str, capabilities: Capabilities, inner: Model | None = None) -> None:
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
        request = make_request(conversation, tools, settings, NO_FACTS)
        place = self._recording.count_request(key)
        if self._inner is None:
            recorded = self._recording.find_answer(place, request)
            if recorded.row.failure is not None:
                self._recording.add_answer(place, self.name, request, recorded.row.failure)
            *_, finished = recorded.replay(conversation)
            assert isinstance(finished, MessageFinished)
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
            self._recording.add_answer(place, self.name, request, Failure.describe(error))
            raise
        except (asyncio.CancelledError, GeneratorExit):
            if not is_finished:
                stopped = TimeoutError(f"{self.name} took too long for {key.stage}, or was stopped")
                self._recording.add_answer(place, self.name, request, Failure.describe(stopped))
            raise

    async def aclose(self) -> None:
        """Close the model that is asked."""
        if self._inner is not None:
            await self._inner.aclose()
