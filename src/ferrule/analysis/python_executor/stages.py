"""What the model is asked in each stage of a Python task, and how it answers, with the fields of the fourth seed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from ferrule.analysis.python_executor.error_context import render_error

if TYPE_CHECKING:
    from ferrule.analysis.functions.document import FunctionDoc
    from ferrule.analysis.result import Attempt

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


_LONGEST_CODE: Final = 12_000
"""Characters of failed code that the next attempt is shown."""

METHODOLOGY: Final = (
    "You choose how a computational task is to be solved in Python. Decide on the approach, the methods, the formulas, "
    "the steps, the libraries, the preparation of the data and the functions to call. Write no code. Recommend "
    "functions by their full paths, such as scipy.stats.ttest_ind; the functions that are listed are installed. State "
    "the assumptions of each method, and how they are tested."
)
EXTRACTION: Final = (
    "You extract the values that a Python program needs from a task and its context: numbers, names, dates, lists. "
    "Take only what is written there. Invent nothing, compute nothing, and take nothing from tables, which the program "
    "reads itself. If nothing is needed, return an empty object."
)
TOOL_QUERY: Final = (
    "You write the exact instruction that a Python program is written from: what is computed, from which tables, "
    "columns and values, how missing values are treated, and what the result holds, with units."
)
CODE: Final = (
    "You write Python that is checked, and then run in a sandbox.\n"
    '- Tables are bound before it runs: tables["name"] is a pandas DataFrame, or a lazy duckdb relation if the table '
    'is large (filter or aggregate it, then call .df()). Results of earlier tasks are results["t1"]. The extracted '
    "values are in the dict extracted_values.\n"
    "- No files, no network, no other processes: don't import os, sys, io, pathlib or the like, don't use open, eval, "
    "exec, getattr or input, and write no strings that look like paths or names of files.\n"
    "- Assign the answer to the variable `result`: a number, a text, a dict with named values, or a DataFrame. Give "
    "numbers unrounded, with their units in the keys. Print little.\n"
    "- For a chart, draw it with matplotlib and leave the figure open: no savefig, no show, no close.\n"
    "- Fix the seed of anything random.\n"
    "- Write statements at the top level, with an indentation of four spaces.\n"
    "In result_checks state what would be false if the result were wrong: units and magnitudes, ranges that must hold, "
    "and the same value computed by a second method. Each has Python code whose last line is an expression that is "
    "true if the statement holds; it may use `result`, the tables and all names of the code."
)
CORRECTION: Final = (
    f"{CODE}\nYour previous code failed. Say in `cause` why, and write the whole program again. Don't repeat what was "
    "tried before."
)


def write_sections(sections: Mapping[str, str]) -> str:
    """A question from titles and texts; those without text are left out."""
    return "\n\n".join(f"## {title}\n{text.strip()}" for title, text in sections.items() if text.strip())


def render_functions(functions: Iterable[FunctionDoc], *, short: bool = False) -> str:
    """The functions that the model may use; `short` gives a line for each."""
    if short:
        return "\n".join(f"- {each.path}{each.signature}: {each.purpose}" for each in functions)
    return "\n\n".join(each.render() for each in functions)


def render_methodology(methodology: Methodology) -> str:
    """The fields that say something, as lists."""
    lines = [methodology.primary_approach]
    lists = {
        "Methods": methodology.methods,
        "Formulas": methodology.formulas,
        "Steps": methodology.step_by_step_process,
        "Libraries": methodology.required_libraries,
        "Functions": methodology.recommended_function_paths,
    }
    for title, entries in lists.items():
        if entries:
            lines += [f"{title}:", *(f"- {entry}" for entry in entries)]
    if methodology.data_transformation:
        lines.append(f"Data: {methodology.data_transformation}")
    return "\n".join(lines)


def render_extracted(extracted: ExtractedData) -> str:
    """The values as JSON, with their format."""
    if not extracted.extracted_values:
        return ""
    lines = [json.dumps(extracted.extracted_values, ensure_ascii=False, indent=1)]
    if extracted.data_format:
        lines.append(f"Format: {extracted.data_format}")
    return "\n".join(lines)


def render_tool_query(tool_query: ToolQuery) -> str:
    """The instruction, and what the result is to be."""
    return tool_query.query + (f"\nResult: {tool_query.result_format}" if tool_query.result_format else "")


def render_attempts(attempts: Sequence[Attempt]) -> str:
    """What was tried before: a line for each attempt."""
    return "\n".join(
        f"{number}. failed ({attempt.failure}): {attempt.message}"
        for number, attempt in enumerate(attempts, 1)
        if attempt.failure
    )


def render_failed_code(attempt: Attempt) -> str:
    """The code that failed last, with what is known of the error."""
    code = attempt.code or ""
    shown = code if len(code) <= _LONGEST_CODE else f"{code[:_LONGEST_CODE]}\n# … cut"
    error: Any = attempt.error_context
    return f"```python\n{shown}\n```\n{render_error(error) if error else attempt.message}"


_NUMBER: Final = re.compile(r"(?<![\w.])[-+−]?\d[\d,_' ]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
_SEPARATORS: Final = ",_' "
_GROUPED: Final = re.compile(r"[-+−]?\d{1,3}(?:[,_' ]\d{3})+(?:\.\d+)?(?:[eE][-+]?\d+)?")
"""One number with separators of thousands; other separators stand between the numbers of a list."""
_SCALES: Final = (1.0, 0.01, 1e3, 1e6, 1e9)
"""`5%` may be extracted as 0.05, `2 k` as 2000, `3 million` as 3000000."""


def find_unknown_numbers(values: Mapping[str, Any], text: str) -> list[str]:
    """Names, with their values, of extracted numbers that the text doesn't hold, also not as %, k, M or G."""
    known = set()
    for found in _NUMBER.finditer(text):
        for number in _read_numbers(found.group().strip(_SEPARATORS)):
            known |= {round(number * scale, 9) for scale in _SCALES}
    return [f"{name} = {value}" for name, value in _list_numbers(values) if round(float(value), 9) not in known]


def _read_numbers(text: str) -> Iterator[float]:
    """The number that digits with separators are, and those of a list that they may be."""
    for entry in re.split(", +", text):
        parts = [] if _GROUPED.fullmatch(entry) else re.split(f"[{_SEPARATORS}]+", entry)
        for part in dict.fromkeys(("".join(re.split(f"[{_SEPARATORS}]", entry)), *parts)):
            with suppress(ValueError):
                yield float(part.replace("−", "-"))


def _list_numbers(value: Any, name: str = "") -> Iterator[tuple[str, int | float]]:
    """The numbers in JSON data with the names that lead to them, at most a thousand digits long."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _list_numbers(each, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _list_numbers(each, f"{name}[{index}]")
    elif isinstance(value, float) or (type(value) is int and abs(value) < 10**300):
        yield name, value
