"""`ferrule synth`: write conversations to train the embedded model on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def synth(
    out: Annotated[Path, typer.Argument(help="The JSONL file to write; - is standard output.")],
    count: Annotated[int, typer.Option(min=1, help="How many conversations.")] = 1_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed draws the same conversations.")] = 0,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Draw words and numbers that training never has.")
    ] = False,
) -> None:
    """Write conversations to train a model on."""
    from ferrule._util.output_files import is_standard_output
    from ferrule._util.pluralize import pluralize
    from ferrule.cli.progress import open_progress_bar
    from ferrule.training.synth import write_jsonl

    with open_progress_bar("conversations", count) as show:
        done = 0

        def advance(more: int) -> None:
            nonlocal done
            done += more
            show(done)

        write_jsonl(out, seed, count, advance, held_out=held_out)
    # Next to the conversations themselves, the count would be one of them.
    typer.echo(f"{pluralize(count, 'conversation')} in {out}", err=is_standard_output(out))
