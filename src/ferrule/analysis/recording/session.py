"""Where the code of a recorded analysis runs, and where its functions are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ferrule.analysis.recording.outcomes import decode_outcome, encode_outcome
from ferrule.analysis.stages import current_task
from ferrule.blobs import hash_blob

if TYPE_CHECKING:
    from ferrule.analysis.data.table import Table
    from ferrule.analysis.data.task_value import TaskValue
    from ferrule.analysis.functions.document import FunctionDoc
    from ferrule.analysis.python_executor.function_lookup import FunctionSource
    from ferrule.analysis.python_executor.runs import CodeSession
    from ferrule.analysis.recording.recording import Recording
    from ferrule.sandbox.python.result import PythonResult


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
