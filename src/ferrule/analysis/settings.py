"""The settings of an analysis, in one table; names without a limit or mode of ours are those of the fourth seed.

`docs/analysis.md` lists them; a test holds its table equal to `list_settings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ferrule.errors import SettingsError

Mode: TypeAlias = Literal["quick", "balanced", "thorough", "research"]
Share: TypeAlias = Literal["schema", "profile", "samples"]
Temperature: TypeAlias = Annotated[float, Field(ge=0, le=2)]
Seconds: TypeAlias = Annotated[int, Field(ge=1)]
Retries: TypeAlias = Annotated[int, Field(ge=0, le=20)]

REASONING, KNOWLEDGE, PYTHON, NEWS = "logic_kernel", "knowledge_retriever", "py_executor", "news_search"
"""The names of the analyst's own tools."""
HIGHEST_TEMPERATURE = 2.0


@dataclass(frozen=True, slots=True)
class ModeLimits:
    """What a mode allows unless a setting says otherwise."""

    iterations: int
    """Rounds of plans, the first one included."""
    candidates: int
    """Candidate plans that are compared."""
    calls: int
    """Requests to models."""


MODES: Mapping[Mode, ModeLimits] = {
    "quick": ModeLimits(iterations=1, candidates=1, calls=60),
    "balanced": ModeLimits(iterations=2, candidates=2, calls=150),
    "thorough": ModeLimits(iterations=3, candidates=3, calls=300),
    "research": ModeLimits(iterations=5, candidates=3, calls=600),
}


class AnalysisSettings(BaseModel):
    """How an analysis is planned, asked, run and limited."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, arbitrary_types_allowed=True)

    mode: Mode = "balanced"
    """How much is planned: `quick`, `balanced`, `thorough` or `research`; it sets the limits that are not given."""
    reasoning_temperature: Temperature = 0.4
    """The temperature of `logic_kernel`."""
    deep_knowledge_temperature: Temperature = 0.3
    """The temperature of `knowledge_retriever`."""
    python_temperature: Temperature = 0.2
    """The temperature of every stage of `py_executor`."""
    planning_temperature: Temperature = 0.3
    """The temperature of complexity, plans, evaluation and iteration decisions."""
    synthesis_temperature: Temperature = 0.3
    """The temperature of the synthesis and the focused answer."""
    temperature_offset: Annotated[float, Field(ge=-2, le=2)] = 0.0
    """Added to every temperature; the sum is kept between 0 and 2."""
    retry_temperature_increase: Annotated[float, Field(ge=0, le=2)] = 0.1
    """Added for each retry: `attempt * retry_temperature_increase`."""
    tool_timeout: Seconds = 120
    """Seconds for a tool, and for one stage that asks a model; a retry has `(tool_timeout * (5 + attempt)) // 5`."""
    python_tool_timeout: Seconds = 600
    """Seconds for `py_executor` with all of its stages and retries, increased in the same way."""
    python_run_timeout: Seconds = 60
    """Seconds for one run of its code in the sandbox, increased in the same way."""
    tool_retries: Retries = 2
    """How often a failed tool is run again; `py_executor`, which has retries of its own, is run again once."""
    python_max_ast_retries: Retries = 2
    """How often code is written again after a syntax error."""
    python_max_safety_retries: Retries = 2
    """How often code is written again after a refusal by the checks."""
    python_max_runtime_retries: Retries = 3
    """How often code is written again after an error while it ran."""
    python_max_tool_query_retries: Retries = 1
    """How often `py_executor` starts again from its tool query when all other retries are used up."""
    plan_retries: Retries = 2
    """How often the model is told what is wrong with its plans before the analysis ends without one."""
    max_iterations: Annotated[int, Field(ge=1, le=50)] | None = None
    """The most rounds of plans; None: 1, 2, 3 or 5, by the mode."""
    candidate_plans: Annotated[int, Field(ge=1, le=5)] | None = None
    """How many plans are compared; None: 1, 2, 3 or 3, by the mode."""
    max_tasks: Annotated[int, Field(ge=1, le=50)] | None = None
    """The most tasks of one plan, at most 50; None: 3 to 6, by the complexity."""
    max_calls: Annotated[int, Field(ge=1)] | None = None
    """The most requests to models; None: 60, 150, 300 or 600, by the mode."""
    max_cost: Annotated[float, Field(gt=0)] | None = None
    """The most US dollars; the prices of all models must be known. None: no limit."""
    max_seconds: Annotated[float, Field(gt=0)] | None = None
    """The most seconds of an analysis. None: no limit."""
    concurrency: Annotated[int, Field(ge=1, le=64)] = 8
    """The most tasks that run at the same time."""
    models: dict[str, Any] = Field(default_factory=dict)
    """Other models by tool or stage, as `model` is given: `{"py_executor": "openai:gpt-5"}`."""
    share: Share = "profile"
    """What models are shown of the data: names and types (`schema`), statistics too, or sample rows too."""
    checks: Literal["strict", "advise", "off"] = "strict"
    """Which checks model-written code must pass before it runs, by the profiles of `ferrule sandbox check`."""
    python_memory: Annotated[int, Field(ge=64)] = 2048
    """Megabytes of memory for code, and for reading data."""
    news_results: Annotated[int, Field(ge=1, le=20)] = 5
    """How many articles `news_search` asks for."""

    # Type checkers know the fields as parameters.
    if not TYPE_CHECKING:

        def __init__(self, **given: Any) -> None:
            """Raise `SettingsError`, naming each wrong setting, instead of pydantic's error."""
            try:
                super().__init__(**given)
            except ValidationError as error:
                from ferrule.tools.settings_errors import describe_invalid_settings

                raise SettingsError(describe_invalid_settings(error, type(self).model_fields)) from error

    @property
    def mode_limits(self) -> ModeLimits:
        """The limits that hold: those given, and those of the mode for the others."""
        mode = MODES[self.mode]
        return ModeLimits(
            iterations=self.max_iterations or mode.iterations,
            candidates=self.candidate_plans or mode.candidates,
            calls=self.max_calls or mode.calls,
        )

    def temperature_for(self, base: float, attempt: int = 0) -> float:
        """The temperature of an attempt: `base`, the offset, and the increase for each retry, between 0 and 2."""
        raised = base + self.temperature_offset + attempt * self.retry_temperature_increase
        return round(min(max(raised, 0.0), HIGHEST_TEMPERATURE), 6)

    def retries_for(self, tool: str) -> int:
        """How often a failed tool is run again."""
        return 1 if tool == PYTHON else self.tool_retries

    def timeout_for(self, tool: str, attempt: int = 0) -> int:
        """The seconds of an attempt of a tool."""
        return extend_timeout(self.python_tool_timeout if tool == PYTHON else self.tool_timeout, attempt)


def extend_timeout(base: int, attempt: int) -> int:
    """The seconds of an attempt, by the seed's formula: a fifth more for each retry."""
    return (base * (5 + attempt)) // 5


def list_settings() -> list[tuple[str, str, str]]:
    """Name, default and description of every setting."""
    listed = []
    for name, field in AnalysisSettings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        listed.append((name, repr(default) if isinstance(default, str) else str(default), field.description or ""))
    return listed
