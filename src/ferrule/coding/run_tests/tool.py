"""The tool `run_tests`: runs the project's own tests, contained, and answers with counts and the first failure."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from ferrule._util.pluralize import pluralize
from ferrule.builtin_tools.shell_runs import describe_end, render_output
from ferrule.coding.run_tests.reports import MAX_REPORT_BYTES, TestReport, read_junit_xml, read_runner_output
from ferrule.coding.run_tests.runners import RunnerName, TestRunner, find_runners, make_named_runner
from ferrule.coding.workspace import Workspace
from ferrule.conversation import ToolOutput
from ferrule.errors import FerruleError, ToolFailed
from ferrule.sandbox.shell import CommandResult
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.intent import Effect, Intent
from ferrule.tools.scope import CallScope, limit_seconds
from ferrule.toolspec import Annotations

__all__ = ["make_run_tests"]

TIMEOUT: Final = 60.0
LONGEST: Final = 3600.0
_MOST_NAMES: Final = 50
_FAILURE_CHARACTERS: Final = 4_000
_STDERR_CHARACTERS: Final = 4_000
_OUTPUT_CHARACTERS: Final = 10_000
_REPORT: Final = "$TMPDIR/ferrule-test-report.xml"
_UNKNOWN_PROGRAM: Final = 127
_NO_TESTS: Final = {"pytest": 5, "unittest": 5}
"""The exit statuses that say that no test was found."""
_WATCHED_SECONDS: Final = 1
_NOT_WATCHED: Final = (".git", "node_modules", "__pycache__", "target", ".venv", "venv", ".*_cache")

Pattern = Annotated[str, "Which tests, as the project's runner takes it: a name or a part of one; all if it is empty"]
Watch = Annotated[bool, "Whether to go on in the background and run them again after each change; see job_output"]


def make_run_tests(workspace: Workspace, command: Sequence[str] | None = None) -> Tool:
    """Make `run_tests` for a workspace; `command` runs the tests instead of what the project's files speak for."""

    async def run_tests(
        scope: CallScope,
        pattern: Pattern = "",
        watch: Watch = False,
        runner: Annotated[RunnerName | None, "Which runner, if the project has several"] = None,
        timeout: Annotated[float, "Seconds that they may take"] = TIMEOUT,
    ) -> ToolOutput | str:
        """Run the project's tests. Answers with how many passed, failed and were skipped, the names of those that
        failed, and the text of the first failure.
        """
        chosen, others = await asyncio.to_thread(_choose, workspace, command, runner)
        written = _write_command(chosen, pattern)
        await workspace.before_command()
        try:
            if watch:
                job = await workspace.jobs.start(workspace.sandbox, _write_loop(written))
                return f"started as {job}, which runs {chosen.name} after each change; job_output reads what it writes"
            seconds = limit_seconds(min(timeout, LONGEST), scope)
            done = await workspace.sandbox.run(
                written,
                timeout=seconds,
                separate=True,
                watch=scope.report_progress,
                on_stopped=lambda stopped: scope.keep_output(_cut(render_output(stopped), _OUTPUT_CHARACTERS)),
            )
            report = await _read_report(workspace, chosen, done)
        except FerruleError as error:
            raise ToolFailed(f"not run: {error}") from error
        return _answer(chosen, others, done, report)

    def intent(arguments: Mapping[str, Any]) -> Intent:
        chosen, _ = _choose(workspace, command, arguments.get("runner"))
        pattern, folder = str(arguments.get("pattern") or ""), str(workspace.folder)
        words, shown = tuple(chosen.make_arguments(pattern, _REPORT)), _join_arguments(chosen, pattern)
        notes = [f"in {folder}", f"{chosen.name}, because {chosen.reason}"]
        notes += ["again after each change, in the background"] if arguments.get("watch") else []
        effects = (Effect("run", shown, words), Effect("write", folder, words))
        return Intent(effects, f"$ {shown}\n[{'; '.join(notes)}]")

    return tool(annotations=Annotations(read_only=False, open_world=False), intent=intent)(run_tests)


def _choose(
    workspace: Workspace, command: Sequence[str] | None, name: str | None
) -> tuple[TestRunner, list[TestRunner]]:
    """The runner, and others that were found. Raises `ToolFailed` if there is none."""
    try:
        found, problems = find_runners(workspace.access)
    except FerruleError as error:
        raise ToolFailed(str(error)) from error
    if command and name is None:
        return make_named_runner(command, "the settings name it (test_command)"), found
    chosen = [runner for runner in found if name in (None, runner.name)]
    if not chosen:
        known = f"; these are there: {', '.join(runner.name for runner in found)}" if found else ""
        known += "".join(f"; {problem}" for problem in problems)
        raise ToolFailed(
            f"no {'test runner' if name is None else f'tests for {name}'} found in {workspace.folder}{known}. Looked "
            "for settings and tests of pytest and unittest, Cargo.toml, go.mod, a script `test` in package.json, and a "
            "target `test` in a Makefile; the user can name a command as test_command in ferrule.toml"
        )
    return chosen[0], [runner for runner in found if runner is not chosen[0]]


def _write_command(runner: TestRunner, pattern: str) -> str:
    """The command line, with what comes before it: an old report is removed, and go gets a folder for its cache."""
    before = 'GOCACHE="$TMPDIR/go-build" ' if runner.name == "go" else ""
    return f'rm -f "{_REPORT}"; {before}{_join_arguments(runner, pattern)}'


def _join_arguments(runner: TestRunner, pattern: str) -> str:
    """The command line, each argument quoted: of `sh` only its variable for the folder of temporary files is used."""
    # NUL, which no pattern holds, stands for the report's path.
    arguments = [shlex.quote(each) for each in runner.make_arguments(pattern, "\0")]
    return " ".join(arguments).replace("'--junit-xml=\0'", f'"--junit-xml={_REPORT}"')


def _write_loop(written: str) -> str:
    """A command line that runs another one again after each change of a file."""
    ignored = " -o ".join(f"-name {shlex.quote(name)}" for name in _NOT_WATCHED)
    changed = f'find . \\( {ignored} \\) -prune -o -type f -newer "$TMPDIR/tests-ran" -print'
    return (
        f'while :; do {written}; echo "[exit status $?; waiting for a change]"; touch "$TMPDIR/tests-ran"; '
        f'while [ -z "$({changed} | head -n 1)" ]; do sleep {_WATCHED_SECONDS}; done; done'
    )


async def _read_report(workspace: Workspace, runner: TestRunner, done: CommandResult) -> TestReport | None:
    """Read the report that the runner wrote, else its output."""
    report = None
    if runner.name == "pytest":
        written = await workspace.sandbox.run(f'cat "{_REPORT}"', mode="read-only", separate=True)
        text = written.output
        if written.spilled is not None and written.spilled.stat().st_size <= MAX_REPORT_BYTES:
            text = await asyncio.to_thread(written.spilled.read_text, "utf-8", "replace")
        report = await asyncio.to_thread(read_junit_xml, text) if written.exit_code == 0 else None
    if report is None:
        report = await asyncio.to_thread(read_runner_output, runner.name, done.output, done.errors or "")
    return report


def _answer(
    runner: TestRunner, others: Sequence[TestRunner], done: CommandResult, report: TestReport | None
) -> ToolOutput:
    """The result of a run. Raises `ToolFailed` if the tests didn't run to their end, or it can't be said how."""
    notes = [f"[{runner.name}, because {runner.reason}]"]
    if others:
        notes.append(f"[also found: {', '.join(each.name for each in others)}; `runner` chooses]")
    if done.ended != "exit" or report is None or report.total == 0:
        raise ToolFailed(
            "\n".join([_explain_unread(runner, done, report), *notes, _cut(render_output(done), _OUTPUT_CHARACTERS)])
        )
    passed = done.exit_code == 0 and not report.failed
    lines = [f"{'passed' if passed else 'FAILED'}: {_describe_counts(report)}"]
    if not passed and not report.failed:
        lines.append(f"[no test failed, but the exit status is {done.exit_code}]")
    if report.failures:
        left_out = len(report.failures) - _MOST_NAMES
        lines += ["Failing:", *(f"- {_one_line(name)}" for name in report.failures[:_MOST_NAMES])]
        lines += [f"[{left_out:,} more]"] if left_out > 0 else []
        lines += [
            f"First failure, {_one_line(report.failures[0])}:",
            _cut(report.first_failure, _FAILURE_CHARACTERS) or "(no text)",
        ]
    if (done.errors or "").strip() and runner.name != "unittest":  # which writes its whole report there
        lines += ["Warnings:", _cut((done.errors or "").strip("\n"), _STDERR_CHARACTERS)]
    data = {
        "runner": runner.name,
        "passed": report.passed,
        "failed": report.failed,
        "skipped": report.skipped,
        "failing": report.failures,
        "first_failure": report.first_failure,
        "exit_code": done.exit_code,
    }
    return ToolOutput("\n".join([*lines, *notes]), data)


def _explain_unread(runner: TestRunner, done: CommandResult, report: TestReport | None) -> str:
    if done.ended != "exit":
        return f"the run {describe_end(done)}"
    if done.exit_code == _UNKNOWN_PROGRAM:
        return f"the tests were not run: {runner.command[0]} isn't installed here"
    if re.search(rf"No module named '?{re.escape(runner.name)}", done.errors or ""):
        return f"the tests were not run: {runner.name} isn't installed for {runner.command[0]}"
    if done.exit_code == _NO_TESTS.get(runner.name) or (report is not None and done.exit_code == 0):
        return "no test was run: there is none, or none matches the pattern"
    if report is not None:
        return f"no test was run; {describe_end(done)}"
    return f"{describe_end(done)}; the numbers of tests can't be read from the output"


def _describe_counts(report: TestReport) -> str:
    counts = [f"{pluralize(report.passed, 'test')} passed", f"{report.failed:,} failed", f"{report.skipped:,} skipped"]
    return ", ".join(counts)


def _cut(text: str, most: int) -> str:
    """A text without its middle, if it is longer than `most` characters."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def _one_line(name: str) -> str:
    return _cut(" ".join(name.split()), 300)
