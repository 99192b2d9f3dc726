"""`ferrule sandbox`: run Python contained, look at code before it runs, and see what this machine can contain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ferrule.cli.options import AsJson

sandbox = typer.Typer(
    rich_markup_mode=None, no_args_is_help=True, help="Run Python where it can't leave, and see what holds it."
)

Checks: TypeAlias = Annotated[
    str, typer.Option(metavar="PROFILE", help="advise tells what can't work, seed refuses what is listed, off is off.")
]


@sandbox.command("run")
def _run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The code; - for standard input.")] = "-",
    *,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="The longest that it may take.")] = 10.0,
    memory: Annotated[int, typer.Option(metavar="MB", help="Megabytes that it may use beside the interpreter.")] = 512,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=FILE", help="Put a file into its folder. May be repeated."),
    ] = None,
    session: Annotated[
        bool, typer.Option("--session", help="Read cells, one after another, that share their variables.")
    ] = False,
    checks: Checks = "advise",
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write its files and images here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run Python contained, and show what it prints, its value and its images.

    The exit status is 1 where the code failed, 2 for bad input and for code that the checks refuse.
    """
    from ferrule.cli.sandbox_running import Terms, run_file, run_session

    terms = Terms(timeout, memory, tuple(inputs or ()), checks, out, as_json)
    status = run_session(file, terms) if session else run_file(file, terms)
    raise typer.Exit(status)


@sandbox.command("check")
def _check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The code; - for standard input.")],
    checks: Checks = "advise",
    as_json: AsJson = False,
) -> None:
    """Look at Python without running it.

    The exit status is 1 for a syntax error and for what the profile refuses.
    """
    from ferrule.cli.sandbox_checking import check_file

    raise typer.Exit(check_file(file, checks, as_json))


@sandbox.command("doctor")
def _doctor(as_json: AsJson = False) -> None:
    """Tell which layers of containment this machine has, what each stops, and whether they hold.

    The exit status is 1 where nothing can be contained here, or a layer doesn't hold.
    """
    from ferrule.cli.sandbox_doctor import doctor

    raise typer.Exit(doctor(as_json))
