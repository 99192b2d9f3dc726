"""What a recorded analysis asks: its models, the session that runs its code, and the source of its functions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from ferrule.analysis.recording.outcomes import decode_outcome, encode_outcome
from ferrule.analysis.stages import current_stage, current_task
from ferrule.blobs import hash_blob
from ferrule.conversation import Conversation
from ferrule.errors import FerruleError
from ferrule.events import Event, MessageFinished
from ferrule.models.protocol import Model, ModelSettings
from ferrule.models.recording.exchange import NO_FACTS
from ferrule.models.recording.request import make_request
from ferrule.models.recording.rows import Failure
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.analysis.data.table import Table
    from ferrule.analysis.data.task_value import TaskValue
    from ferrule.analysis.functions.document import FunctionDoc
    from ferrule.analysis.python_executor.function_lookup import FunctionSource
    from ferrule.analysis.python_executor.runs import CodeSession
    from ferrule.analysis.recording.recording import Recording
    from ferrule.capabilities import Capabilities
    from ferrule.sandbox.python.result import PythonResult


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


class RecordedSession:
    """Runs code in a session and records what it left; without one, gives what the recorded runs left."""

    def __init__(self, recording: Recording, session: CodeSession | None, tables: Sequence[Table]) -> None:
        self.tables = tables
        self._recording = recording
        self._session = session

    async def run(self, code: str, results: Mapping[str, TaskValue], *, timeout: float) -> PythonResult:
        """See `CodeSession.run`. Raises `LimitReached` where a recording has no more runs."""
        session = self._session
        return await self._recording.run(
            current_task.get(),
            hash_blob(code.encode()),
            {name: value.digest[:16] for name, value in results.items()},
            compute=None if session is None else partial(session.run, code, results, timeout=timeout),
            encode=partial(encode_outcome, put=self._recording.put_blob),
            decode=partial(decode_outcome, get=self._recording.get_blob),
        )


class RecordedFunctions:
    """Finds functions and records what was found; without a source of its own, it finds what was recorded."""

    def __init__(self, recording: Recording, functions: FunctionSource | None) -> None:
        self._recording = recording
        self._functions = functions

    def search(self, query: str, limit: int = 5) -> list[FunctionDoc]:
        """See `FunctionSource.search`."""
        name = f"search {limit}: {query}"
        if self._functions is None:
            return self._recall(name)
        found = self._functions.search(query, limit)
        self._recording.keep_shared(name, [one.to_json() for one in found])
        return found

    async def look_up(self, path: str) -> FunctionDoc | None:
        """See `FunctionSource.look_up`."""
        name = f"function {path}"
        if self._functions is None:
            return next(iter(self._recall(name)), None)
        found = await self._functions.look_up(path)
        self._recording.keep_shared(name, [] if found is None else [found.to_json()])
        return found

    def _recall(self, name: str) -> list[FunctionDoc]:
        from ferrule.analysis.functions.document import FunctionDoc

        source = self._recording.source
        assert source is not None
        with source.reading(name) as values:
            found = [FunctionDoc.from_json(one) for one in values or ()]
            self._recording.keep_shared(name, values or [])
        return found
