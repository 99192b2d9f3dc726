"""How hard a question is, which decides how many tasks its plan may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from ferrule.analysis.asking import WHOLE, Asker, StageKey
from ferrule.analysis.planning.briefing import Briefing
from ferrule.analysis.settings import AnalysisSettings

Level: TypeAlias = Literal["straightforward", "moderate", "complex", "highly complex"]

TASKS: Mapping[Level, tuple[int, int]] = {
    "straightforward": (2, 3),
    "moderate": (3, 4),
    "complex": (4, 5),
    "highly complex": (5, 6),
}
"""The tasks that a plan has at each level, from and to."""

INSTRUCTIONS = """\
You assess how complex a question is, before its analysis is planned.
- straightforward: one computation or look-up, and perhaps a check of it.
- moderate: a few steps that build on each other.
- complex: several lines of inquiry that have to be brought together.
- highly complex: several lines of inquiry, with competing explanations or methods to compare.
Judge the question as it is asked, with the data and tools that there are. Don't answer it."""


class Complexity(BaseModel):
    """How hard a question is."""

    model_config = ConfigDict(frozen=True)

    level: Level
    reason: str = ""


async def assess_complexity(asker: Asker, briefing: Briefing, settings: AnalysisSettings) -> Complexity:
    """Ask how hard the question is. Raises what `Asker.ask` raises."""
    return await asker.ask(
        StageKey(WHOLE, "complexity"),
        INSTRUCTIONS,
        briefing.write(),
        Complexity,
        temperature=settings.temperature_for(settings.planning_temperature),
        timeout=settings.tool_timeout,
    )


def count_tasks(complexity: Complexity, settings: AnalysisSettings) -> tuple[int, int]:
    """How many tasks a plan should have at least, and may have at most."""
    least, most = TASKS[complexity.level]
    if settings.max_tasks is None:
        return least, most
    return min(least, settings.max_tasks), settings.max_tasks
