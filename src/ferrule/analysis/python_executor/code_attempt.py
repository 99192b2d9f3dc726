"""Tries code once: its indentation, its syntax, its safety, a run in the sandbox, and the checks of its result."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ferrule.analysis.python_executor.error_context import ErrorContext, describe_failed_checks, describe_finding
from ferrule.analysis.python_executor.indentation import repair_indentation
from ferrule.analysis.python_executor.refusals import explain_refusal
from ferrule.analysis.python_executor.retries import CodeFailure
from ferrule.analysis.python_executor.runs import CodeRun, run_code
from ferrule.analysis.result import ResultCheck

if TYPE_CHECKING:
    from ferrule.analysis.data.task_value import TaskValue
    from ferrule.analysis.python_executor.runs import CodeSession
    from ferrule.analysis.python_executor.stages import CheckCode, GeneratedCode
    from ferrule.sandbox.checks import CheckProfile, Finding

_FENCE: Final = re.compile(r"\s*```[\w+-]*[ \t]*\n(?P<code>.*?)\n?```\s*", re.DOTALL)
_SYNTAX_ERRORS: Final = frozenset({"SyntaxError", "IndentationError", "TabError"})
_EXPLAINING_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class TriedCode:
    """Code as it was run, with what was repaired in it. Without a `failure` the `run` has a result."""

    code: str
    repairs: tuple[str, ...] = ()
    failure: CodeFailure | None = None
    error: ErrorContext | None = None
    run: CodeRun | None = None


@dataclass(frozen=True, slots=True)
class CodeTrial:
    """Where the code of one task is tried: the session, the profile of checks, and what is bound."""

    session: CodeSession
    profile: CheckProfile
    tables: Sequence[str]
    results: Mapping[str, TaskValue]
    extracted: Mapping[str, Any]

    async def try_code(self, written: GeneratedCode, timeout: float) -> TriedCode:
        """Check code and run it. Raises only what the session raises if nothing can be run."""
        tried = await asyncio.to_thread(repair_code, written.code)
        findings = await asyncio.to_thread(self._check, tried.code)
        syntax = [finding for finding in findings if finding.rule == "syntax"]
        if syntax:
            return replace(tried, failure="syntax", error=await self._explain_syntax(tried.code, syntax[0]))
        refused = [finding for finding in findings if finding.refuses]
        if refused:
            error = explain_refusal(refused, tried.code, self.tables, list(self.results))
            return replace(tried, failure="safety", error=error)
        return _judge(tried, await self._run(tried.code, written.result_checks, timeout), findings)

    async def _run(self, code: str, checks: Sequence[CheckCode], timeout: float) -> CodeRun:
        """Run the code with those of its checks that may run; the others are listed with the reason."""
        reasons = [await asyncio.to_thread(self._find_check_problem, check) for check in checks]
        runnable = [check for check, reason in zip(checks, reasons, strict=True) if not reason]
        run = await run_code(
            self.session, code, runnable, extracted=self.extracted, results=self.results, timeout=timeout
        )
        ran = iter(run.checks)
        merged = tuple(
            ResultCheck(check.states, None, reason, check.kind, check.code) if reason else next(ran)
            for check, reason in zip(checks, reasons if run.error is None else [], strict=False)
        )
        return replace(run, checks=merged)

    def _find_check_problem(self, check: CheckCode) -> str:
        """Why a check may not run; empty if it may."""
        findings = [found for found in self._check(check.code) if found.refuses or found.rule == "syntax"]
        return findings[0].message if findings else ""

    def _check(self, code: str) -> tuple[Finding, ...]:
        from ferrule.sandbox.checks import check

        # Without a profile, the syntax is checked all the same.
        return check(code, profile="advise" if self.profile == "off" else self.profile)

    async def _explain_syntax(self, code: str, finding: Finding) -> ErrorContext:
        """What the parser found, with what friendly-traceback says of it in the sandbox, where compiling is bounded."""
        run = await run_code(self.session, code, (), extracted={}, results={}, timeout=_EXPLAINING_SECONDS)
        own = describe_finding(finding, code)
        if run.error is None or run.error.error_type not in _SYNTAX_ERRORS:
            return own
        fixes = (*own.suggested_fixes, *run.error.suggested_fixes)
        return replace(own, suggested_fixes=fixes)


def repair_code(code: str) -> TriedCode:
    """Code without the lines of a Markdown fence around it, and with its indentation repaired."""
    repairs = []
    fenced = _FENCE.fullmatch(code)
    if fenced:
        code = fenced["code"]
        repairs.append("the ``` lines around the code were removed")
    repair = repair_indentation(code)
    if repair is not None:
        code = repair.code
        repairs.append(str(repair))
    return TriedCode(code, tuple(repairs))


def _judge(tried: TriedCode, run: CodeRun, findings: Sequence[Finding]) -> TriedCode:
    """Tell the class of what went wrong in a run; advice about the code goes with it."""
    if run.error is not None:
        advice = tuple(f"line {finding.line}: {finding.message}; {finding.instead}" for finding in findings[:3])
        error = replace(run.error, suggested_fixes=(*advice, *run.error.suggested_fixes))
        return replace(tried, failure="runtime", error=error, run=run)
    if run.failed_checks:
        error = describe_failed_checks([(check.description, check.detail) for check in run.failed_checks])
        return replace(tried, failure="check", error=error, run=run)
    return replace(tried, run=run)
