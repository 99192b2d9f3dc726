"""An evaluation, watched, and its report."""

from __future__ import annotations

import json

from ferrule.cli.progress import bar
from ferrule.training.embedded.evaluation import EvaluationSettings, run_evaluation
from ferrule.training.embedded.figures import Report, failure_lines, rich_tables


def evaluate(settings: EvaluationSettings) -> Report:
    """Measure with a progress bar. Raises `ModelError` and `SettingsError`."""
    with bar("questions", settings.count) as show:
        return run_evaluation(settings, lambda done, total: show(done, total=total))


def show(report: Report, as_json: bool) -> None:
    """Print a report."""
    if as_json:
        print(json.dumps(report.as_json(), ensure_ascii=False))
        return
    from rich.console import Console

    console = Console(highlight=False)
    for table in rich_tables(report):
        console.print(table)
    for line in failure_lines(report.failures):
        print(line)
