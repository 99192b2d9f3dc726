"""A training run, watched."""

from __future__ import annotations

import sys
from pathlib import Path

from ferrule.cli.extras import needs_extra
from ferrule.cli.progress import bar
from ferrule.training.embedded.settings import Recipe


def train(recipe: Recipe, folder: Path, resume: bool) -> Path:
    """Train with a progress bar, or where nobody watches a line for each checkpoint; returns the model's folder.

    Raises `SettingsError` where torch is missing, or the folder doesn't fit.
    """
    with needs_extra("train"):
        from ferrule.training.embedded.train import Progress
        from ferrule.training.embedded.train import train as run

    with bar("steps", recipe.steps) as show:

        def report(progress: Progress) -> None:
            note = f"loss {progress.loss:.3f}  {progress.tokens_per_second:,.0f} tokens/s"
            show(progress.step, note)
            is_milestone = progress.step % recipe.checkpoint_every == 0 or progress.step == recipe.steps
            if is_milestone and not sys.stderr.isatty():
                print(f"step {progress.step:,} of {recipe.steps:,}  {note}", file=sys.stderr, flush=True)

        return run(recipe, folder, report, resume=resume)
