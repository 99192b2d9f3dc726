"""What the model is asked in each stage of a Python task."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ferrule.analysis.python_executor.error_context import render_error

if TYPE_CHECKING:
    from ferrule.analysis.functions.document import FunctionDoc
    from ferrule.analysis.python_executor.stages import ExtractedData, Methodology, ToolQuery
    from ferrule.analysis.result import Attempt

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
