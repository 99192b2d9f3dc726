"""Programs that run the program named in their arguments, and how those arguments are separated: data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.sandbox.shell.command_line.options import OptionTable

__all__ = ["SHELLS", "SHELL_OPTIONS", "STDIN_PROGRAMS", "WRAPPERS", "XARGS", "Wrapper", "runs_its_input"]


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The options of a wrapper, and how many operands come before the program that it runs."""

    table: OptionTable
    operands: int = 0


def _wrapper(
    letters: str = "", with_value: str = "", names: str = "", names_with_value: str = "", operands: int = 0
) -> Wrapper:
    named, valued = frozenset(names.split()), frozenset(names_with_value.split())
    return Wrapper(OptionTable(letters, with_value, named, valued, stops_at_operand=True), operands)


WRAPPERS: dict[str, Wrapper] = {
    "timeout": _wrapper("v", "ks", "foreground preserve-status verbose", "kill-after signal", operands=1),
    "nohup": _wrapper(),
    "nice": _wrapper("0123456789", "n", "", "adjustment"),
    "stdbuf": _wrapper("", "ioe", "", "input output error"),
    "setsid": _wrapper("cfw", "", "ctty fork wait"),
    "time": _wrapper("p"),
    "ionice": _wrapper("t", "cn", "ignore", "class classdata"),
    "taskset": _wrapper("ac", "", "all-tasks cpu-list", operands=1),
    "chrt": _wrapper("abfiorRv", "", "batch fifo idle other rr reset-on-fork verbose all-tasks", operands=1),
    "env": _wrapper("i", "", "ignore-environment"),
    "command": _wrapper("p"),
    "exec": _wrapper(),
}

XARGS = OptionTable(
    "0rtx",
    "nPLdsI",
    frozenset({"null", "no-run-if-empty", "verbose", "exit"}),
    frozenset({"max-args", "max-procs", "max-lines", "delimiter", "max-chars"}),
    stops_at_operand=True,
)

SHELLS = frozenset({"sh", "bash", "dash"})
SHELL_OPTIONS = frozenset({"c", "l", "e", "u", "x"})
"""The letters that a shell may be given besides its text."""

STDIN_PROGRAMS = frozenset(
    {"sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "csh", "tcsh", "python", "python2", "python3", "pypy", "pypy3"}
    | {
        "perl",
        "ruby",
        "node",
        "nodejs",
        "deno",
        "bun",
        "php",
        "lua",
        "tclsh",
        "osascript",
        "pwsh",
        "R",
        "julia",
        "ghci",
    }
    | {"irb", "at", "batch", "psql", "mysql", "sqlite3", "bc", "dc", "ed", "ex", "gdb"}
)
"""Programs that run what they read from their standard input when no argument names a file: no rule covers that."""

_PLAIN_OPTIONS = frozenset({"-u", "-B", "-x"})
_CODE_OPTIONS = frozenset({"-m", "-c", "-e", "-p", "--eval", "--print", "--test"})


def runs_its_input(arguments: Sequence[str | None]) -> bool:
    """Whether one of `STDIN_PROGRAMS` may run what it reads, unless its first arguments name a file or code."""
    for index, argument in enumerate(arguments):
        if argument in _CODE_OPTIONS:
            return index + 1 == len(arguments)
        if argument not in _PLAIN_OPTIONS:
            return argument is None or argument.startswith("-") or argument == "/dev/stdin"
    return True
