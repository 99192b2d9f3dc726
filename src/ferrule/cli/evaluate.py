"""`ferrule eval`: how often the embedded model is right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferrule.cli.options import AsJson, Changes, ConfigFile


def evaluate_embedded(
    model: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A model's folder; else the package's.")] = None,
    count: Annotated[int | None, typer.Option(min=0, help="How many held-out problems to draw.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Which problems are drawn.")] = None,
    phrasings: Annotated[str | None, typer.Option(help="A list to ask as well: steering or final.")] = None,
    config: ConfigFile = None,
    changes: Changes = None,
    as_json: AsJson = False,
) -> None:
    """Measure the embedded model, or one like it, on freshly drawn held-out problems, by kind."""
    from ferrule.cli.evaluating import evaluate, show
    from ferrule.cli.settings import settings_from
    from ferrule.training.embedded.evaluation import EvaluationSettings

    options = {"model": model, "count": count, "seed": seed, "phrasings": phrasings}
    show(evaluate(settings_from(EvaluationSettings, config, changes or (), options)), as_json)
