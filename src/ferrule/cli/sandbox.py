"""`ferrule sandbox`: run Python contained, check code without running it, and test this machine's containment."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ferrule.cli.options import AsJson

if TYPE_CHECKING:
    from ferrule.sandbox.checks import CheckProfile

sandbox = typer.Typer(
    rich_markup_mode=None, no_args_is_help=True, help="Run Python contained, and test the containment."
)

Checks: TypeAlias = Annotated[
    str,
    typer.Option(metavar="PROFILE", help="advise warns of what can't work, strict refuses listed names, or off."),
]


@sandbox.command("run")
def _run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The code; - for standard input.")] = "-",
    *,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="The longest that it may run.")] = 10.0,
    memory: Annotated[int, typer.Option(metavar="MB", help="Megabytes in addition to the interpreter's own.")] = 512,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=FILE", help="Put a file into its working folder. May be repeated."),
    ] = None,
    session: Annotated[bool, typer.Option("--session", help="Read and run cells that share their variables.")] = False,
    checks: Checks = "advise",
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write its files and images here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run Python contained, and show its output, value and images.

    The exit status is 1 if the code fails, 2 for bad input and for code that the checks refuse.
    """
    from ferrule.cli.sandbox_run import CodeRunOptions, run_file, run_session

    options = CodeRunOptions(timeout, memory, tuple(inputs or ()), parse_profile(checks), out, as_json)
    status = run_session(file, options) if session else run_file(file, options)
    raise typer.Exit(status)


@sandbox.command("check")
def _check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The code; - for standard input.")],
    checks: Checks = "advise",
    as_json: AsJson = False,
) -> None:
    """Check Python code without running it.

    The exit status is 1 for a syntax error and for what the profile refuses.
    """
    raise typer.Exit(check_file(file, checks, as_json))


@sandbox.command("doctor")
def _doctor(as_json: AsJson = False) -> None:
    """List this machine's layers of containment, and whether they hold.

    What each stops is listed too. The exit status is 1 if nothing can be contained here, or a layer doesn't hold.
    """
    from ferrule.cli.sandbox_doctor import print_report

    raise typer.Exit(print_report(as_json))


def check_file(file: str, checks: str, as_json: bool) -> int:
    """Print the findings; returns the exit status. Raises `SettingsError` for an unknown profile, and `OSError`."""
    from ferrule._util.terminal_text import escape_text
    from ferrule.cli.standard_input import read_code
    from ferrule.sandbox.checks import check, explain_findings
    from ferrule.session.terminal.output import print_json

    findings = check(read_code(file), profile=parse_profile(checks))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    elif findings:
        print(escape_text(explain_findings(findings)))
    return int(any(finding.refuses or finding.rule == "syntax" for finding in findings))


def parse_profile(name: str) -> CheckProfile:
    """Parse the name of a profile of checks. Raises `SettingsError` for an unknown one."""
    from ferrule.errors import SettingsError
    from ferrule.sandbox.checks import resolve_profile

    try:
        return resolve_profile(name)
    except ValueError as error:
        raise SettingsError(f"--{error}") from None
