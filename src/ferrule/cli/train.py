"""`ferrule train`: the weights of the embedded model, from nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferrule.cli.options import Changes, ConfigFile


def train_embedded(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where checkpoints and the model go.")],
    config: ConfigFile = None,
    changes: Changes = None,
    steps: Annotated[int | None, typer.Option(min=1, help="How many steps; the same as --set steps=N.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the folder's checkpoint.")] = False,
    show_settings: Annotated[bool, typer.Option("--show-settings", help="Print the settings and stop.")] = False,
) -> None:
    """Train the embedded model by its recipe. Needs the extra ferrule[train]."""
    from ferrule.cli.settings import settings_from
    from ferrule.training.embedded.settings import Recipe

    recipe = settings_from(Recipe, config, changes or (), {"steps": steps})
    if show_settings:
        typer.echo(recipe.model_dump_json(indent=2))
        return
    from ferrule.cli.training import train

    typer.echo(f"the model is in {train(recipe, out, resume)}")
