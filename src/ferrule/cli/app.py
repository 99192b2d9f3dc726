"""The commands, put together: only typer and their own signatures are imported here, so that `--help` is quick."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.main import get_command

from ferrule import __version__
from ferrule.cli.ask import ask
from ferrule.cli.call import call
from ferrule.cli.chat import chat
from ferrule.cli.dialects import dialects
from ferrule.cli.evaluate import evaluate_embedded
from ferrule.cli.history import history
from ferrule.cli.list_tools import tools
from ferrule.cli.mcp import mcp
from ferrule.cli.models import models
from ferrule.cli.parse import parse
from ferrule.cli.plugins import plugins
from ferrule.cli.render import render
from ferrule.cli.sandbox import sandbox
from ferrule.cli.synth import synth
from ferrule.cli.train import train_embedded

# Without rich_markup_mode help is plain: rich costs about as much to import as everything else that `--help` needs.
app = typer.Typer(name="ferrule", rich_markup_mode=None, no_args_is_help=True, add_completion=False)
_train = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Train a model.")
_eval = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Measure a model.")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ferrule {__version__}")
        raise typer.Exit


@app.callback()
def _ferrule(
    _version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Tools for language models: offered, checked, permitted, run, and answered."""


app.command()(ask)
app.command()(chat)
app.command()(models)
app.command()(tools)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(call)
app.command()(plugins)
app.command()(render)
app.command()(dialects)
app.command()(parse)
app.command()(synth)
_train.command("embedded")(train_embedded)
_eval.command("embedded")(evaluate_embedded)
app.add_typer(history, name="history")
app.add_typer(mcp, name="mcp")
app.add_typer(sandbox, name="sandbox")
app.add_typer(_train, name="train")
app.add_typer(_eval, name="eval")


def command() -> None:
    """Run the command that this process's arguments name. Raises what the command raises, and `SystemExit`."""
    get_command(app)(prog_name="ferrule")
