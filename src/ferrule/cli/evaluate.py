"""`ferrule eval`: measure how often the embedded model is right, or any model with its tools on cases of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ferrule.cli.options import APPROVAL_HINT, AsJson, Changes, ConfigFile, ProfileName, check_profile
from ferrule.cli.session_options import (
    SessionOptions,
    add_session_options,
    collect_session_tools,
    make_pipeline,
    make_servers,
)

if TYPE_CHECKING:
    from ferrule.agent.cases import Case, CaseReport
    from ferrule.execution.profiles import Profile
    from ferrule.training.embedded.report import ScoreReport

_WITHOUT = ("attachments", "schema", "store", "keep", "resume", "continue_last", "cost")
"""What is for one conversation."""

Threshold: TypeAlias = Annotated[
    float | None, typer.Option(min=0, max=1, metavar="SHARE", help="The least share that must be right, such as 0.9.")
]

evaluate = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Measure a model.")


@evaluate.command("embedded")
def evaluate_embedded(  # noqa: PLR0913, PLR0917 - one parameter an option
    model: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A model's folder; else the package's.")] = None,
    count: Annotated[int | None, typer.Option(min=0, help="How many held-out problems to draw.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Which problems are drawn.")] = None,
    phrasings: Annotated[
        str | None, typer.Option(help="Also ask lists by hand: steering, final, open or held-out.")
    ] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Write the model's threshold for withholding, by the open lists.")
    ] = False,
    config: ConfigFile = None,
    changes: Changes = None,
    threshold: Threshold = None,
    as_json: AsJson = False,
) -> None:
    """Measure the embedded model, or one like it, on new problems.

    They are drawn afresh, and held out of its training; the shares are given by kind. With --threshold, the exit status
    is 1 if fewer calls and answers are right, of any set of questions.
    """
    from ferrule.cli.progress import open_progress_bar
    from ferrule.cli.settings import read_settings
    from ferrule.training.embedded.evaluation import EvaluationSettings, run_evaluation

    options = {"model": model, "count": count, "seed": seed, "phrasings": phrasings}
    if calibrate:
        options["calibrate"] = True
    settings = read_settings(EvaluationSettings, config, changes or (), options)
    with open_progress_bar("questions", settings.count) as show:
        report = run_evaluation(settings, lambda done, total: show(done, total=total))
    print_report(report, as_json)
    for table in report.tables:
        _require_share(table.total.both.share, threshold, table.name)


def run_evaluate_cases(
    cases: Annotated[
        Path, typer.Argument(metavar="FILE", help='Cases, one a line: {"question": …, "contains": …, "calls": [NAME]}.')
    ],
    *,
    threshold: Threshold = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An earlier report (--json): a case that was right must be right still."),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="How many cases are asked at a time.")] = 8,
    profile: ProfileName = None,
    options: SessionOptions,
) -> None:
    """Ask a model questions of your own, and check the answers.

    It has its tools. The exit status is 1 if a case is wrong, or with --threshold, if fewer are right; with --against,
    if one that was right is wrong now. Calls that the policy asks about are denied.
    """
    import asyncio

    from ferrule.agent.cases import read_cases, read_report

    asked = read_cases(cases)
    baseline = None if against is None else read_report(against)
    if baseline is not None:
        baseline.check_shared(asked, str(against))
    report = asyncio.run(_ask_cases(options, check_profile(profile), asked, concurrency))
    regressions = [] if baseline is None else report.find_regressions(baseline)
    print_cases(report, regressions, options.as_json)
    _require_share(report.share, threshold, str(cases))
    if regressions or (threshold is None and baseline is None and report.share < 1):
        raise typer.Exit(1)


evaluate.command("cases")(add_session_options(run_evaluate_cases, without=_WITHOUT))


async def _ask_cases(
    options: SessionOptions, profile: Profile | None, cases: Sequence[Case], concurrency: int
) -> CaseReport:
    from ferrule.agent.cases import run_cases
    from ferrule.execution.tool_output import route_tool_output
    from ferrule.session.approvals import open_permissions
    from ferrule.session.terminal.output import print_warnings

    pipeline = make_pipeline(options)
    servers = make_servers(options)
    # Many are asked at once, so nobody can be asked about a call of one.
    with (
        route_tool_output(),
        print_warnings("ferrule.mcp"),
        open_permissions(options.yes, options.policy, options.journal, APPROVAL_HINT, can_ask=False) as permissions,
    ):
        granted = permissions.trust(*(one.origin for one in servers)) if options.trust else permissions
        policy = granted.policy if profile is None else replace(granted.policy, profile=profile)
        registry = collect_session_tools(options)
        prepared = pipeline.using(
            registry, *servers, policy=policy, approver=granted.approver, journal=granted.journal, workspace=Path.cwd()
        )
        try:
            async with AsyncExitStack() as opened:
                for server in servers:  # started once, and not for each case
                    await opened.enter_async_context(server)
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
    from ferrule.session.terminal.output import print_notice

    print_notice(text)


def print_report(report: ScoreReport, as_json: bool) -> None:
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
