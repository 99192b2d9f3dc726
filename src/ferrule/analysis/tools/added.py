"""Tasks for tools that a program or an MCP server adds: the one loop runs, with that tool offered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from ferrule.analysis.asking import Asker, StageKey
from ferrule.analysis.recording.calls import CallRecorder
from ferrule.analysis.settings import AnalysisSettings
from ferrule.analysis.tools.attempts import TaskAttempt
from ferrule.errors import FerruleError
from ferrule.tools.decorator import Tool

if TYPE_CHECKING:
    from ferrule.analysis.recording import Recording

INSTRUCTIONS = """\
You do one task with the tool that you are offered. Call it as often as needed, then give in `answer` what it returned
that the task asks for, with every number as the tool gave it, and in `values` the most important values by name. Say in
`answer` if the tool couldn't do it; never make up what it might have returned."""


class AddedToolResult(BaseModel):
    """What a task with an added tool found."""

    answer: str = Field(min_length=1)
    values: dict[str, str | float | bool | None] = Field(default_factory=dict)


async def run_added_tool(
    asker: Asker,
    settings: AnalysisSettings,
    tool: Tool[..., Any],
    query: str,
    attempt: TaskAttempt,
    timeout: float,
    recording: Recording,
) -> AddedToolResult:
    """Have a model do a task with a tool. Raises what `Asker.ask` raises."""
    key = StageKey(attempt.task, tool.name, attempt.number)
    calls = CallRecorder(recording, key)
    try:
        return await asker.for_tool(tool.name).ask(
            key,
            INSTRUCTIONS,
            attempt.write_question(query),
            AddedToolResult,
            temperature=settings.temperature_for(settings.reasoning_temperature, attempt.number),
            timeout=timeout,
            tools=(tool,),
            hooks=(calls,),
        )
    except (FerruleError, TimeoutError) as error:
        calls.end(error)
        raise
