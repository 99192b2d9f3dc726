"""What the model answers in each stage of a Python task; the fields are those of the fourth seed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

CheckKind = Literal["units", "range", "second_method", "other"]
"""What a result check compares: units and magnitudes, ranges that hold by nature, or another way to compute it."""


class StageOutput(BaseModel):
    """What all stages share: frozen, and each field described to the model by its docstring."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class Methodology(StageOutput):
    """How a task is to be computed."""

    primary_approach: str
    """The main computational strategy, in one or two sentences."""
    methods: list[str] = []
    """The specific methods to use, such as "Welch's t-test"."""
    formulas: list[str] = []
    """The mathematical formulas that are needed."""
    step_by_step_process: list[str] = []
    """The procedure, one step an entry."""
    required_libraries: list[str] = []
    """The Python packages to import."""
    data_transformation: str = ""
    """How the data is prepared: which tables, columns and rows, and what is done with missing values."""
    recommended_function_paths: list[str] = []
    """The functions to use, by their full paths, such as "scipy.stats.ttest_ind"."""


class ExtractedData(StageOutput):
    """The values that the code needs and that stand in the task and its context, not in a table."""

    extracted_values: dict[str, Any] = {}
    """Values by name, as JSON. Only what the task or its context says; nothing of a table, nothing computed."""
    data_format: str = ""
    """How the values are structured and in which units."""
    transformations_applied: list[str] = []
    """What was done to the values: units converted, text parsed."""


class ToolQuery(StageOutput):
    """The exact instruction that the code is written from."""

    query: str
    """What the code computes, from which tables, columns and values, and what its result holds."""
    result_format: str = ""
    """The type and keys of the result, with units."""


class CheckCode(StageOutput):
    """A statement about the result that would be false if the result were wrong."""

    states: str
    """The statement in words, such as "a probability lies between 0 and 1"."""
    kind: CheckKind = "other"
    """`units`, `range`, `second_method` or `other`."""
    code: str
    """Python whose last line is an expression that is true if the statement holds. It may use `result`, `tables`,
    `results`, `extracted_values` and every name of the code."""


class GeneratedCode(StageOutput):
    """Python code, and what would make its result wrong."""

    code: str
    """Python code that assigns its result to the variable `result`."""
    result_checks: Annotated[list[CheckCode], Field(max_length=10)] = []
    """Two to four checks of the result: units, ranges, a second method."""


class CorrectedCode(GeneratedCode):
    """Code in the place of code that failed."""

    cause: str = ""
    """Why the previous code failed, in one sentence."""
