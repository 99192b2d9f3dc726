"""`ferrule sandbox`: run Python contained, look at code before it runs, and see what this machine can contain."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ferrule.cli.options import AsJson

if TYPE_CHECKING:
    from ferrule.sandbox.checks import CheckProfile

sandbox = typer.Typer(
    rich_markup_mode=None, no_args_is_help=True, help="Run Python where it can't leave, and see what holds it."
)

Checks: TypeAlias = Annotated[
    str,
    typer.Option(metavar="PROFILE", help="advise tells what can't work, strict refuses what is listed, off is off."),
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
    from ferrule.cli.sandbox_run import RunOptions, run_file, run_session

    options = RunOptions(timeout, memory, tuple(inputs or ()), checks, out, as_json)
    status = run_session(file, options) if session else run_file(file, options)
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
    raise typer.Exit(check_file(file, checks, as_json))


@sandbox.command("doctor")
def _doctor(as_json: AsJson = False) -> None:
    """Tell which layers of containment this machine has, what each stops, and whether they hold.

    The exit status is 1 where nothing can be contained here, or a layer doesn't hold.
    """
    from ferrule.cli.sandbox_doctor import print_report

    raise typer.Exit(print_report(as_json))


def check_file(file: str, checks: str, as_json: bool) -> int:
    """Print the findings; the exit status. Raises `SettingsError` for an unknown profile, `OSError` for no file."""
    from ferrule.execution.terminal_text import escape_text
    from ferrule.sandbox.checks import check, explain_findings
    from ferrule.session.terminal_output import print_json

    findings = check(read_code(file), profile=check_profile(checks))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    elif findings:
        print(escape_text(explain_findings(findings)))
    return int(any(finding.refuses or finding.rule == "syntax" for finding in findings))


def read_code(file: str) -> str:
    """The code in a file, or on standard input for `-`. Raises `OSError` and `UnicodeDecodeError`."""
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return data.decode("utf-8")


def check_profile(name: str) -> CheckProfile:
    """A profile of the checks. Raises `SettingsError` for a name that is none."""
    from ferrule.errors import SettingsError
    from ferrule.sandbox.checks import resolve_profile

    try:
        return resolve_profile(name)
    except ValueError as error:
        raise SettingsError(f"--{error}") from None
