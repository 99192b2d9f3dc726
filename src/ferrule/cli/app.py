"""The application: all commands by name. A command's module is imported when it runs, or is listed by `--help`."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import Annotated

import typer
from typer.main import get_command

from ferrule import __version__
from ferrule.cli.completion import VARIABLE, find_completed_command
from ferrule.cli.option_sources import read_defaults
from ferrule.cli.options import PASSED_ON

COMMANDS = {
    "ask": "ask:ask",
    "chat": "chat:chat",
    "code": "code:code",
    "analyze": "analyze:analyze",
    "models": "models:models",
    "tools": "tools:tools",
    "call": "call:call",
    "plugins": "plugins:plugins",
    "render": "render:render",
    "dialects": "dialects:dialects",
    "parse": "parse:parse",
    "synth": "synth:synth",
    "completion": "completion:completion",
    "keys": "models:keys",
    "history": "history:history",
    "mcp": "mcp:mcp",
    "policy": "policy:policy",
    "sandbox": "sandbox:sandbox",
    "functions": "functions:functions",
    "train": "train:train",
    "eval": "evaluate:evaluate",
}
"""The module in this folder, and the name in it, of each command or group of commands."""

# Imports allocate much and free little: at Python's default threshold, 700, collection took 6% of a short command.
_GC_THRESHOLD = 50_000


def make_app(only: str | None = None) -> typer.Typer:
    """Make the application, with all commands, or with just the one named `only`."""
    # Help is plain text: rich takes about as long to import as everything else that `--help` needs.
    app = typer.Typer(
        name="ferrule",
        rich_markup_mode=None,
        no_args_is_help=True,
        # Its options are of no use to a single command, and take a while to make.
        add_completion=only is None or VARIABLE in os.environ,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_handle_global_options)
    for name in COMMANDS if only is None else (only,):
        module, _, attribute = COMMANDS[name].partition(":")
        found = getattr(import_module(f"ferrule.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name, context_settings=PASSED_ON if name == "call" else None)(found)
    return app


def run_requested_command() -> None:
    """Run the command named by this process's arguments. Raises what the command raises, and `SystemExit`."""
    gc.set_threshold(_GC_THRESHOLD)
    named = sys.argv[1] if len(sys.argv) > 1 else find_completed_command()
    command = get_command(make_app(named if named in COMMANDS else None))
    # Standalone, it would print a wrong option itself, in four lines.
    raise SystemExit(command(prog_name="ferrule", standalone_mode=False, default_map=read_defaults(named)))


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"ferrule {__version__}")
        raise typer.Exit


def _handle_global_options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Tools for language models: calls are checked, permitted, run and recorded."""
