"""The tools of one analysis: the analyst's own, and those that were added, open for as long as it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ferrule.analysis.asking import Asker
from ferrule.analysis.recording import Recording
from ferrule.analysis.recording.calls import (
    describe_missing_tools,
    describe_uncalled_tools,
    keep_offers,
    list_recorded_tools,
    restore_tools,
)
from ferrule.analysis.recording.session import RecordedFunctions, RecordedSession
from ferrule.analysis.settings import NEWS, AnalysisSettings
from ferrule.analysis.tools.knowledge import make_knowledge_tool
from ferrule.analysis.tools.news_search import find_news_key, make_news_tool
from ferrule.analysis.tools.python import make_python_tool
from ferrule.analysis.tools.reasoning import make_reasoning_tool
from ferrule.errors import SettingsError
from ferrule.tools.decorator import Tool
from ferrule.tools.registry import BoundRegistry, ToolLike, ToolRegistry

if TYPE_CHECKING:
    from ferrule.analysis.data.table import Table
    from ferrule.analysis.python_executor.executor import PythonExecutor

_MOST_DESCRIBED = 300
"""Characters of an added tool's description that the planner is shown."""


class Toolbox:
    """Opens the tools; leaving it closes the sandbox and the servers of added tools."""

    def __init__(
        self,
        asker: Asker,
        settings: AnalysisSettings,
        tables: Sequence[Table],
        added: Iterable[ToolLike],
        recording: Recording | None = None,
    ) -> None:
        self._asker = asker
        self._settings = settings
        self._tables = tables
        self.recording = recording or Recording()
        self._added = ToolRegistry(added)
        self._exits = AsyncExitStack()
        self._opening: asyncio.Task[PythonExecutor] | None = None
        self.own = BoundRegistry(())
        """The tools that the executor runs."""
        self.added = BoundRegistry(())
        """The tools that a model calls in the loop."""

    async def __aenter__(self) -> Self:
        """Open the tools. Raises `SettingsError` for an added tool with the name of an own one, and `RegistryError`."""
        async with AsyncExitStack() as opened:
            await self._open_tools(opened)
            self._exits = opened.pop_all()
        if self._tables:  # code will run on them: the sandbox starts while the model plans
            self._opening = asyncio.create_task(self._open_python())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop_opening()
        await self._exits.aclose()

    def describe(self) -> dict[str, str]:
        """The descriptions of all tools by name, for the planner."""
        own = {tool.name: tool.description for tool in self.own}
        return own | {tool.name: " ".join(tool.description.split())[:_MOST_DESCRIBED] for tool in self.added}

    def list_notices(self) -> list[str]:
        """A sentence for each recorded tool that can't be used, or isn't."""
        names = [*self.own.names, *self.added.names]
        return [*describe_missing_tools(self.recording, names), *describe_uncalled_tools(self.recording)]

    async def _open_tools(self, opened: AsyncExitStack) -> None:
        tools: list[Tool[..., Any]] = [
            make_reasoning_tool(self._asker, self._settings),
            make_knowledge_tool(self._asker, self._settings),
            make_python_tool(self._get_python),
        ]
        source = self.recording.source
        # A search that is recorded needs no key, and one that isn't was not on offer.
        key = find_news_key() if source is None else ""
        has_news = NEWS in list_recorded_tools(source)[0] if source is not None else bool(key)
        if has_news:
            tools.append(make_news_tool(key, self._settings.news_results))
        self.own = BoundRegistry(tools)
        given = await opened.enter_async_context(self._added.open())
        self.added = given if source is None else restore_tools(source, given)
        taken = sorted(set(self.own.names) & set(self.added.names))
        if taken:
            raise SettingsError(f"the tool {taken[0]} has the name of one of the analyst's own: rename it")
        keep_offers(self.recording, (NEWS,) if has_news else (), self.added)

    async def _get_python(self) -> PythonExecutor:
        """The executor of Python tasks, once it is open; an opening that failed is tried again."""
        if self._opening is None or (self._opening.done() and self._opening.exception() is not None):
            self._opening = asyncio.create_task(self._open_python())
        # One task that is stopped doesn't stop the opening for the others.
        return await asyncio.shield(self._opening)

    async def _open_python(self) -> PythonExecutor:
        from ferrule.analysis.data.session import DataSession
        from ferrule.analysis.functions import FunctionRepository
        from ferrule.analysis.python_executor.executor import PythonExecutor

        recording = self.recording
        if recording.is_replay:
            # Nothing is started: what code left, and which functions were found, is recorded.
            recorded = RecordedSession(recording, None, self._tables), RecordedFunctions(recording, None)
            return PythonExecutor(self._asker, self._settings, *recorded)
        async with AsyncExitStack() as opened:
            functions = await opened.enter_async_context(await FunctionRepository.open())
            memory = self._settings.python_memory << 20
            session = await opened.enter_async_context(await DataSession.open(self._tables, memory=memory))
            self._exits.push_async_exit(opened.pop_all())
        if not recording.is_used:
            return PythonExecutor(self._asker, self._settings, session, functions)
        recorded = RecordedSession(recording, session, self._tables), RecordedFunctions(recording, functions)
        return PythonExecutor(self._asker, self._settings, *recorded)

    async def _stop_opening(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
