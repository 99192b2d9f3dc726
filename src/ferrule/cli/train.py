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
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the folder's checkpoint, with the run's own settings.")
    ] = False,
    shipped: Annotated[
        bool,
        typer.Option(
            "--shipped",
            help="Make the weights of the package again, which are several runs; settings then change the last one.",
        ),
    ] = False,
    show_settings: Annotated[bool, typer.Option("--show-settings", help="Print the settings and exit.")] = False,
) -> None:
    """Train a model like the embedded one, in one run from nothing. Needs the extra ferrule[train]."""
    from ferrule.cli.settings import read_settings
    from ferrule.training.embedded.recipe import Recipe, read_recipe, read_shipped_recipe

    begun = read_recipe(out) if resume else None
    base = begun or (read_shipped_recipe() if shipped else None)
    recipe = read_settings(Recipe, config, changes or (), {"steps": steps}, None if base is None else base.model_dump())
    if begun is not None:
        _tell_changes(begun, recipe)
    if show_settings:
        typer.echo(recipe.model_dump_json(indent=2))
        return
    typer.echo(f"the model is in {_train(recipe, out, resume)}")


def _tell_changes(begun: Recipe, recipe: Recipe) -> None:
    """Say which settings of a resumed run are no longer those that it began with."""
    before, now = begun.model_dump(), recipe.model_dump()
    changed = [f"{name} {before[name]} → {now[name]}" for name in now if now[name] != before[name]]
    if changed:
        typer.echo(f"other settings from the checkpoint on: {', '.join(changed)}", err=True)


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
            if progress.runs > 1:
                note = f"run {progress.run} of {progress.runs}  {note}"
            show(progress.step, note, progress.steps)
            is_milestone = progress.step % recipe.checkpoint_every == 0 or progress.step == progress.steps
            if is_milestone and not sys.stderr.isatty():
                print(f"step {progress.step:,} of {progress.steps:,}  {note}", file=sys.stderr, flush=True)

        return train_model(recipe, folder, report, resume=resume)
