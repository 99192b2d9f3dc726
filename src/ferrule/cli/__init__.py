"""Floor 10: the command line. A command is a few lines that call a front, imported when the command runs."""

from __future__ import annotations


def main() -> None:
    """Run `ferrule` with this process's arguments and exit: 0, 1 (it failed), 2 (bad input), 130 (Ctrl-C)."""
    from ferrule.cli.errors import run_command

    raise SystemExit(run_command(_run))


def _run() -> None:
    from ferrule.cli.app import run_requested_command

    run_requested_command()
