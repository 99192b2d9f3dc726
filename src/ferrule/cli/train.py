"""`ferrule train`: train the embedded model from scratch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferrule.cli.options import Changes, ConfigFile

if TYPE_CHECKING:
    from ferrule.training.embedded.recipe import Recipe


train = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Train a model.")


@train.command("embedded")
def train_embedded(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder for checkpoints and the model.")],
    config: ConfigFile = None,
    changes: Changes = None,
    steps: Annotated[int | None, typer.Option(min=1, help="How many steps; the same as --set steps=N.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the folder's checkpoint.")] = False,
    shipped: Annotated[
        bool,
        typer.Option("--shipped", help="Begin with the recipe of the weights in the package, not with the defaults."),
    ] = False,
    show_settings: Annotated[bool, typer.Option("--show-settings", help="Print the settings and exit.")] = False,
) -> None:
    """Train the embedded model by its recipe. Needs the extra ferrule[train]."""
    from ferrule.cli.settings import read_settings
    from ferrule.training.embedded.recipe import Recipe, read_shipped_recipe

    defaults = read_shipped_recipe().model_dump() if shipped else None
    recipe = read_settings(Recipe, config, changes or (), {"steps": steps}, defaults)
    if show_settings:
        typer.echo(recipe.model_dump_json(indent=2))
        return
    typer.echo(f"the model is in {_train(recipe, out, resume)}")


def _train(recipe: Recipe, folder: Path, resume: bool) -> Path:
    """Train, showing a progress bar or, without a terminal, a line per checkpoint; returns the model's folder.

    Raises `SettingsError` if torch is missing, or the folder can't be used.
    """
    from ferrule.cli.errors import require_extra
    from ferrule.cli.progress import open_progress_bar

    with require_extra("train"):
        from ferrule.training.embedded.train import Progress
        from ferrule.training.embedded.train import train as train_model

    with open_progress_bar("steps", recipe.steps) as show:

        def report(progress: Progress) -> None:
            note = f"loss {progress.loss:.3f}  {progress.tokens_per_second:,.0f} tokens/s"
            show(progress.step, note, progress.steps)
            is_milestone = progress.step % recipe.checkpoint_every == 0 or progress.step == progress.steps
            if is_milestone and not sys.stderr.isatty():
                print(f"step {progress.step:,} of {progress.steps:,}  {note}", file=sys.stderr, flush=True)

        return train_model(recipe, folder, report, resume=resume)
