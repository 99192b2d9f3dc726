"""`ferrule eval`: measure how often the embedded model is right, or any model with its tools on cases of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ferrule.cli.options import APPROVAL_HINT, AsJson, Changes, ConfigFile, PolicyFile, ToolFolders, Yes
from ferrule.cli.session_options import SessionOptions, make_pipeline

if TYPE_CHECKING:
    from ferrule.agent.cases import Case, CaseReport
    from ferrule.training.embedded.report import Report


Threshold: TypeAlias = Annotated[
    float | None, typer.Option(min=0, max=1, metavar="SHARE", help="The least share that must be right, such as 0.9.")
]

evaluate = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Measure a model.")


@evaluate.command("embedded")
def evaluate_embedded(
    model: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A model's folder; else the package's.")] = None,
    count: Annotated[int | None, typer.Option(min=0, help="How many held-out problems to draw.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Which problems are drawn.")] = None,
    phrasings: Annotated[str | None, typer.Option(help="An additional list of questions: steering or final.")] = None,
    config: ConfigFile = None,
    changes: Changes = None,
    threshold: Threshold = None,
    as_json: AsJson = False,
) -> None:
    """Measure the embedded model, or one like it, on freshly drawn held-out problems, by kind.

    With --threshold, the exit status is 1 if fewer calls and answers are right, of any set of questions.
    """
    from ferrule.cli.progress import open_progress_bar
    from ferrule.cli.settings import read_settings
    from ferrule.training.embedded.evaluation import EvaluationSettings, run_evaluation

    options = {"model": model, "count": count, "seed": seed, "phrasings": phrasings}
    settings = read_settings(EvaluationSettings, config, changes or (), options)
    with open_progress_bar("questions", settings.count) as show:
        report = run_evaluation(settings, lambda done, total: show(done, total=total))
    print_report(report, as_json)
    for table in report.tables:
        _require_share(table.total.both.share, threshold, table.name)


@evaluate.command("cases")
def evaluate_cases(  # noqa: PLR0913 - a command's options are its parameters
    cases: Annotated[
        Path, typer.Argument(metavar="FILE", help='Cases, one a line: {"question": …, "contains": …, "calls": [NAME]}.')
    ],
    *,
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="MODEL", envvar="FERRULE_MODEL", help="The model, as for `ask`.")
    ] = "embedded",
    system: Annotated[str | None, typer.Option("--system", "-s", metavar="TEXT", help="The system text.")] = None,
    tools: ToolFolders = None,
    threshold: Threshold = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An earlier report (--json): a case that was right must be right still."),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="How many cases are asked at a time.")] = 8,
    as_json: AsJson = False,
    yes: Yes = False,
    policy: PolicyFile = None,
) -> None:
    """Ask a model with its tools questions of your own, and check the answers.

    The exit status is 1 if a case is wrong, or with --threshold, if fewer are right; with --against, if one that was
    right is wrong now. Calls that the policy asks about are denied.
    """
    import asyncio

    from ferrule.agent.cases import read_cases, read_report

    asked = read_cases(cases)
    baseline = None if against is None else read_report(against)
    options = SessionOptions(model=model, system=system, tools=tools, yes=yes, policy=policy)
    report = asyncio.run(_ask_cases(options, asked, concurrency))
    regressions = [] if baseline is None else report.find_regressions(baseline)
    print_cases(report, regressions, as_json)
    _require_share(report.share, threshold, str(cases))
    if regressions or (threshold is None and baseline is None and report.share < 1):
        raise typer.Exit(1)


async def _ask_cases(options: SessionOptions, cases: Sequence[Case], concurrency: int) -> CaseReport:
    from ferrule.agent.cases import run_cases
    from ferrule.cli.tools import collect_tools
    from ferrule.execution.tool_output import route_tool_output
    from ferrule.session.approvals import open_permissions

    pipeline = make_pipeline(options)
    # Many are asked at once, so nobody can be asked about a call of one.
    with (
        route_tool_output(),
        open_permissions(options.yes, options.policy, None, APPROVAL_HINT, can_ask=False) as permissions,
    ):
        prepared = pipeline.using(
            collect_tools(options.tools or []),
            policy=permissions.policy,
            approver=permissions.approver,
            workspace=Path.cwd(),
        )
        try:
            return await run_cases(prepared, cases, concurrency)
        finally:
            await pipeline.model.aclose()


def print_cases(report: CaseReport, regressions: Sequence[str], as_json: bool) -> None:
    """Print the wrong cases, the regressions among them, and how many are right; or all results as JSON."""
    import json

    from ferrule._util.terminal_text import escape_line

    if as_json:
        print(json.dumps(report.as_json(), ensure_ascii=False))
    else:
        for one in report.results:
            if one.problem:
                print(escape_line(f"wrong: {one.question!r} {one.problem}"))
        print(f"{report.right} of {len(report.results)} right ({report.share:.1%}), {report.model}")
    for line in regressions:
        _notify(f"worse: {line}")


def _require_share(share: float, threshold: float | None, name: str) -> None:
    if threshold is not None and share < threshold:
        _notify(f"{name}: {share:.1%} right, below the threshold of {threshold:.1%}")
        raise typer.Exit(1)


def _notify(text: str) -> None:
    from ferrule.session.terminal_output import print_notice

    print_notice(text)


def print_report(report: Report, as_json: bool) -> None:
    """Print the tables of a report and its failures, or its figures as JSON."""
    import json

    if as_json:
        print(json.dumps(report.as_json(), ensure_ascii=False))
        return
    from rich.console import Console

    from ferrule.training.embedded.report import format_wrong_answers, make_rich_tables

    console = Console(highlight=False)
    for table in make_rich_tables(report):
        console.print(table)
    for line in format_wrong_answers(report.failures):
        print(line)
