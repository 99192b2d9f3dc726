"""`ferrule eval`: measure how often the embedded model is right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferrule.cli.options import AsJson, Changes, ConfigFile

if TYPE_CHECKING:
    from ferrule.training.embedded.report import Report


evaluate = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Measure a model.")


@evaluate.command("embedded")
def evaluate_embedded(
    model: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A model's folder; else the package's.")] = None,
    count: Annotated[int | None, typer.Option(min=0, help="How many held-out problems to draw.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Which problems are drawn.")] = None,
    phrasings: Annotated[str | None, typer.Option(help="An additional list of questions: steering or final.")] = None,
    config: ConfigFile = None,
    changes: Changes = None,
    as_json: AsJson = False,
) -> None:
    """Measure the embedded model, or one like it, on freshly drawn held-out problems, by kind."""
    from ferrule.cli.progress import open_progress_bar
    from ferrule.cli.settings import read_settings
    from ferrule.training.embedded.evaluation import EvaluationSettings, run_evaluation

    options = {"model": model, "count": count, "seed": seed, "phrasings": phrasings}
    settings = read_settings(EvaluationSettings, config, changes or (), options)
    with open_progress_bar("questions", settings.count) as show:
        report = run_evaluation(settings, lambda done, total: show(done, total=total))
    print_report(report, as_json)


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
