"""Cases: questions with what a right answer has, asked of a whole pipeline, to notice what gets worse.

    cases = read_cases("cases.jsonl")
    report = run_cases_sync(model("openai:gpt-5").using(search), cases)
    assert report.share >= 0.9 and not report.find_regressions(baseline)

`ferrule eval cases` does so from the command line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from ferrule.conversation import ToolCall
from ferrule.errors import SettingsError
from ferrule.tools.settings_errors import describe_invalid_settings

if TYPE_CHECKING:
    from ferrule.agent.pipeline import Pipeline
    from ferrule.agent.run import Run

_MOST_SHOWN = 200


def _check_texts(value: Any) -> Any:
    texts = value if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(text, str) for text in texts):
        raise PydanticCustomError("texts", "should be a text, or a list of texts")
    return value


class Case(BaseModel):
    """A question, and what a right answer to it has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: Annotated[str, Field(min_length=1)]
    """What is asked, in a conversation of its own; it also identifies the case."""
    contains: Annotated[str | tuple[str, ...], BeforeValidator(_check_texts)] = ()
    """Texts that the answer contains."""
    calls: tuple[str, ...] = ()
    """Tools that are called without an error, in this order; others may be called in between."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How one case went; `problem` says why it is wrong, and is empty if it is right."""

    question: str
    answer: str
    problem: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the answer has all that it should have."""
        return not self.problem


@dataclass(frozen=True, slots=True)
class CaseReport:
    """The results of cases, in their order."""

    model: str
    results: tuple[CaseResult, ...]

    @property
    def right(self) -> int:
        """How many are right."""
        return sum(one.is_right for one in self.results)

    @property
    def share(self) -> float:
        """The share that is right, between 0 and 1."""
        return self.right / len(self.results) if self.results else 0.0

    def find_regressions(self, baseline: CaseReport) -> list[str]:
        """Find the cases that are right in an earlier report and aren't here, a line each."""
        now = {one.question: one for one in self.results}
        lines: list[str] = []
        for before in baseline.results:
            after = now.get(before.question)
            if before.is_right and after is None:
                lines.append(f"{before.question!r}: it was right, and isn't asked any more")
            elif before.is_right and after is not None and not after.is_right:
                lines.append(f"{before.question!r}: it was right, and now {after.problem}")
        return lines

    def check_shared(self, cases: Sequence[Case], name: str) -> None:
        """Raise `SettingsError`, which names the file, for a baseline that has none of these questions."""
        if not {one.question for one in self.results} & {case.question for case in cases}:
            raise SettingsError(f"{name}: has none of these questions, so nothing can be compared; name their report")

    def as_json(self) -> dict[str, Any]:
        """As JSON values, which `read_report` reads."""
        results = [asdict(one) for one in self.results]
        return {"model": self.model, "right": self.right, "share": round(self.share, 5), "results": results}


def read_cases(path: str | Path) -> list[Case]:
    """Read cases, one JSON object a line. Raises `SettingsError` with the line of one that can't be used, `OSError`."""
    cases: list[Case] = []
    for number, line in enumerate(Path(path).read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            case = Case.model_validate_json(line)
        except ValidationError as error:
            raise SettingsError(
                f"{path}:{number}: {describe_invalid_settings(error, Case.model_fields, 'field')}"
            ) from error
        if not case.contains and not case.calls:
            raise SettingsError(
                f'{path}:{number}: nothing is checked; say what a right answer has, by "contains" or "calls"'
            )
        if any(case.question == other.question for other in cases):
            raise SettingsError(
                f"{path}:{number}: the question {case.question!r} was asked before; word it differently"
            )
        cases.append(case)
    if not cases:
        raise SettingsError(f'{path}: there are no cases; write one a line: {{"question": "…", "contains": "…"}}')
    return cases


def read_report(path: str | Path) -> CaseReport:
    """Read what `CaseReport.as_json` wrote. Raises `SettingsError` for another file, and `OSError`."""
    try:
        data = json.loads(Path(path).read_bytes())
        report = CaseReport(data["model"], tuple(CaseResult(**one) for one in data["results"]))
        if not all(isinstance(value, str) for one in report.results for value in asdict(one).values()):
            raise TypeError("a result has texts")
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise SettingsError(
            f"{path}: not a report; write one by: ferrule eval cases … --json > baseline.json"
        ) from error
    return report


async def run_cases(pipeline: Pipeline[Any], cases: Sequence[Case], concurrency: int = 8) -> CaseReport:
    """Ask each question of the pipeline, at most `concurrency` at a time. An error makes a case wrong."""
    runs = await pipeline.run_batch([case.question for case in cases], concurrency=concurrency, errors="keep")
    results = (check_case(case, run) for case, run in zip(cases, runs, strict=True))
    return CaseReport(pipeline.model.name, tuple(results))


def run_cases_sync(pipeline: Pipeline[Any], cases: Sequence[Case], concurrency: int = 8) -> CaseReport:
    """`run_cases`, for programs without an event loop."""
    from ferrule._util.background import run_synchronously

    return run_synchronously(run_cases(pipeline, cases, concurrency))


def check_case(case: Case, run: Run[Any]) -> CaseResult:
    """Check the run that answered a case."""
    return CaseResult(case.question, run.text, _find_problem(case, run))


def _find_problem(case: Case, run: Run[Any]) -> str:
    if run.error is not None:
        return f"fails: {type(run.error).__name__}: {run.error}"
    if run.stopped != "done":
        return f"stops before it is done: {run.stopped}"
    made = _list_successful_calls(run)
    left = iter(made)
    missing = next((name for name in case.calls if name not in left), None)
    if missing is not None:
        failed = _find_error(run, missing)
        return f"lacks a successful call of {missing} (there are: {', '.join(made) or 'none'}){failed}"
    wanted = (case.contains,) if isinstance(case.contains, str) else case.contains
    absent = next((text for text in wanted if text not in run.text), None)
    if absent is None:
        return ""
    return f"lacks {absent!r}: {_cut(run.text)!r}"


def _list_successful_calls(run: Run[Any]) -> list[str]:
    messages = run.conversation.messages
    results: Mapping[str, bool] = {m.result.call_id: m.result.is_error for m in messages if m.role == "tool"}
    calls = (call for message in messages for call in message.calls if isinstance(call, ToolCall))
    return [call.name for call in calls if results.get(call.id) is False]


def _find_error(run: Run[Any], name: str) -> str:
    """What the first failed call of a tool was answered, after a colon; empty if none failed."""
    results = (m.result for m in run.conversation.messages if m.role == "tool")
    text = next((result.text for result in results if result.name == name and result.is_error), "")
    return f": {_cut(text)}" if text else ""


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
