"""One run of a Python task: asks for each stage, tries the code, and decides what is tried next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from ferrule._util.pluralize import pluralize
from ferrule.analysis.events import TaskProgress, TaskRetried
from ferrule.analysis.limits import LimitReached
from ferrule.analysis.python_executor import stages
from ferrule.analysis.python_executor.code_attempt import CodeTrial, TriedCode
from ferrule.analysis.python_executor.error_context import describe_invalid_answer
from ferrule.analysis.python_executor.function_lookup import FoundFunctions, FunctionSource, look_up_functions
from ferrule.analysis.python_executor.outcome import PythonOutcome, render_result
from ferrule.analysis.python_executor.retries import FailureHistory, RetryBudget
from ferrule.analysis.python_executor.runs import CodeRun
from ferrule.analysis.python_executor.stages import (
    CorrectedCode,
    ExtractedData,
    GeneratedCode,
    Methodology,
    ToolQuery,
    find_unknown_numbers,
)
from ferrule.analysis.result import Attempt
from ferrule.analysis.stages import StageKey
from ferrule.builtin_tools.python_values import to_plain_json
from ferrule.errors import ModelError, OutputInvalid

if TYPE_CHECKING:
    from ferrule.analysis.asking import Asker
    from ferrule.analysis.data.task_value import TaskValue
    from ferrule.analysis.python_executor.runs import CodeSession
    from ferrule.analysis.settings import AnalysisSettings

Output = TypeVar("Output")
_NOTHING: Final = "no code could be written and run"
_OFFERED: Final = 8
"""Functions that a methodology is chosen with."""


@dataclass(frozen=True, slots=True)
class PythonTask:
    """What is to be computed, and with what."""

    id: str
    query: str
    context: str
    results: Mapping[str, TaskValue]


@dataclass(frozen=True, slots=True)
class TaskServices:
    """What the Python tasks of an analysis share: who is asked, the settings, where code runs, what it may call."""

    asker: Asker
    settings: AnalysisSettings
    data: CodeSession
    functions: FunctionSource
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Questions by task and stage, so that each has a key of its own."""

    async def ask(
        self, task: str, stage: str, instructions: str, question: str, output: type[Output], budget: RetryBudget
    ) -> Output:
        """Ask the model for a stage, with the temperature and the time of the present attempt."""
        key = StageKey(task, stage, self.asked[task, stage])
        self.asked[task, stage] += 1
        temperature, timeout = budget.temperature, budget.ask_timeout
        return await self.asker.ask(key, instructions, question, output, temperature=temperature, timeout=timeout)


class TaskRun:
    """The state of one run of a task."""

    def __init__(self, services: TaskServices, task: PythonTask, first_restart: int) -> None:
        self._services = services
        self._settings = services.settings
        self._task = task
        self._budget = RetryBudget(self._settings, first_restart)
        self._methodology: Methodology | None = None
        self._found = FoundFunctions()
        self._extracted: ExtractedData | None = None
        self._notes: list[str] = []
        self._attempts: list[Attempt] = []
        self._history = FailureHistory()
        self._last_run: CodeRun | None = None
        self._best: TriedCode | None = None
        """The result with the fewest failed checks."""

    async def run(self) -> PythonOutcome:
        """Go through the stages. Raises what `PythonExecutor.run` does."""
        try:
            await self._prepare()
            first = self._budget.restart
            for restart in range(first, first + self._settings.python_max_tool_query_retries + 1):
                self._budget = RetryBudget(self._settings, restart)
                self._report_retry()
                tool_query = await self._write_tool_query(is_restart=restart > first)
                if await self._write_code(tool_query) or self._history.is_stuck:
                    break
        except (OutputInvalid, TimeoutError) as error:
            return self._finish(str(error))
        except (ModelError, LimitReached) as error:
            if self._best is None:
                raise
            return self._finish(str(error))
        return self._finish(self._history.reason)

    async def _prepare(self) -> None:
        """The methodology, the functions that it names, the values that it needs."""
        query = self._task.query
        offered = self._services.functions.search(query, _OFFERED)
        sections = {"Functions that are installed": stages.render_functions(offered, short=True)}
        self._methodology = await self._ask("methodology", stages.METHODOLOGY, sections, Methodology)
        self._report("functions", ", ".join(self._methodology.recommended_function_paths))
        self._found = await look_up_functions(self._services.functions, self._methodology)
        if self._found.note:
            self._notes.append(f"recommended functions {self._found.note}")
        sections = {"Methodology": stages.render_methodology(self._methodology)}
        self._extracted = await self._ask("extraction", stages.EXTRACTION, sections, ExtractedData)
        unknown = find_unknown_numbers(self._extracted.extracted_values, f"{query}\n{self._task.context}")
        if unknown:
            self._notes.append(f"extracted values that neither the task nor its context holds: {', '.join(unknown)}")

    async def _write_tool_query(self, *, is_restart: bool) -> ToolQuery:
        sections = self._describe_preparation()
        if is_restart:
            sections["What was tried before, and failed"] = stages.render_attempts(self._attempts)
        return await self._ask("tool_query", stages.TOOL_QUERY, sections, ToolQuery)

    async def _write_code(self, tool_query: ToolQuery) -> bool:
        """Write and try code until there is a result, or nothing is left to try. Returns whether to end the task."""
        before = len(self._attempts)
        while True:
            tried = await self._try_once(tool_query, self._attempts[before:])
            self._last_run = tried.run
            if tried.run is not None and tried.run.error is None:
                self._keep_better(tried)
            self._history.add(tried)
            if tried.failure is None:
                return True
            if self._history.reason or not self._budget.take(tried.failure):
                # A result whose checks fail isn't computed again from nothing: the checks may be what is wrong.
                return self._best is not None
            self._report_retry()

    async def _try_once(self, tool_query: ToolQuery, failed: list[Attempt]) -> TriedCode:
        timeout = self._budget.run_timeout
        try:
            written = await self._ask_for_code(tool_query, failed)
        except OutputInvalid as error:
            tried = TriedCode("", failure="syntax", error=describe_invalid_answer(str(error)))
        else:
            self._report("run", f"{timeout} s")
            tried = await self._trial.try_code(written, timeout)
        self._record(tried, timeout)
        return tried

    async def _ask_for_code(self, tool_query: ToolQuery, failed: list[Attempt]) -> GeneratedCode:
        """Ask for code, or for code in the place of what failed in this pass."""
        sections = self._describe_preparation()
        sections["Functions"] = stages.render_functions(self._found.functions)
        sections["Not available"] = self._found.note
        sections["Instruction"] = stages.render_tool_query(tool_query)
        if not failed:
            return await self._ask("code", stages.CODE, sections, GeneratedCode)
        sections["What was tried before"] = stages.render_attempts(failed)
        sections["The code that failed last"] = stages.render_failed_code(failed[-1])
        return await self._ask("code", stages.CORRECTION, sections, CorrectedCode)

    @property
    def _trial(self) -> CodeTrial:
        data = self._services.data
        extracted = self._extracted.extracted_values if self._extracted else {}
        names = [table.name for table in data.tables]
        return CodeTrial(data, self._settings.checks, names, self._task.results, extracted)

    async def _ask(self, stage: str, instructions: str, sections: Mapping[str, str], output: type[Output]) -> Output:
        self._report(stage)
        question = stages.write_sections({"Task": self._task.query, "Context": self._task.context, **sections})
        return await self._services.ask(self._task.id, stage, instructions, question, output, self._budget)

    def _describe_preparation(self) -> dict[str, str]:
        return {
            "Methodology": stages.render_methodology(self._methodology) if self._methodology else "",
            "Extracted values (extracted_values)": stages.render_extracted(self._extracted) if self._extracted else "",
        }

    # What is kept and reported.

    def _record(self, tried: TriedCode, timeout: int) -> None:
        self._attempts.append(
            Attempt(
                failure=tried.failure,
                message=tried.error.summary if tried.error else "",
                temperature=self._budget.temperature,
                timeout=timeout,
                code=tried.code or None,
                error_context=tried.error,
                restart=self._budget.restart,
            )
        )

    def _keep_better(self, tried: TriedCode) -> None:
        if self._best is None or _count_failed(tried) <= _count_failed(self._best):
            self._best = tried

    def _report(self, stage: str, detail: str = "") -> None:
        self._services.asker.emit(TaskProgress(self._task.id, stage, detail))

    def _report_retry(self) -> None:
        """Report that another attempt begins, unless it is the first."""
        last = self._attempts[-1] if self._attempts else None
        if last is not None and last.failure is not None:
            temperature, timeout = self._budget.temperature, self._budget.run_timeout
            number = len(self._attempts)
            self._services.asker.emit(
                TaskRetried(self._task.id, number, last.failure, last.message, temperature, timeout)
            )

    def _finish(self, problem: str) -> PythonOutcome:
        """The outcome: of the best result, or of the failure. `problem` is what ended the task early."""
        outcome = PythonOutcome(
            methodology=self._methodology,
            extracted=self._extracted,
            functions=self._found.functions,
            attempts=tuple(self._attempts),
            notes=tuple(self._notes),
        )
        if self._best is None or self._best.run is None:
            return self._finish_without_result(outcome, problem)
        run = self._best.run
        failed = [f"a check of this result failed: {check.description}" for check in run.failed_checks]
        ended = [f"no further attempt was made: {problem}"] if problem else []
        notes = (*self._best.repairs, *run.notes, *failed, *self._notes, *ended)
        return replace(
            outcome,
            result=render_result(run, notes),
            value=to_plain_json(run.value),
            pickled=run.pickled,
            code=self._best.code,
            output=run.output,
            figures=run.figures,
            checks=run.checks,
            notes=notes,
        )

    def _finish_without_result(self, outcome: PythonOutcome, problem: str) -> PythonOutcome:
        last = self._attempts[-1] if self._attempts else None
        tries = pluralize(len(self._attempts), "attempt")
        reason = f"after {tries} there is no result; the last failure ({last.failure}): {last.message}" if last else ""
        error = "; ".join(filter(None, (problem, reason))) or _NOTHING
        run = self._last_run
        return replace(
            outcome,
            result=error,
            error=error,
            is_final=bool(problem) and problem == self._history.reason,
            code=last.code if last else None,
            output=run.output if run else "",
            figures=run.figures if run else (),
        )


def _count_failed(tried: TriedCode) -> int:
    return len(tried.run.failed_checks) if tried.run else 0
