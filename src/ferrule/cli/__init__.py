"""Floor 10: the command line. A command is a few lines that call a front, imported when the command runs."""

from __future__ import annotations


def main() -> None:
    """Run `ferrule` with this process's arguments and exit: 0, 1 (it failed), 2 (bad input), 130 (Ctrl-C)."""
    try:
        from ferrule.cli.app import run_requested_command
        from ferrule.cli.errors import run_command

        status = run_command(run_requested_command)
    except KeyboardInterrupt:  # during those imports, or while an error is reported
        status = 130
    raise SystemExit(status)
