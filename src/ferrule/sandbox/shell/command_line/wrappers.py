"""Programs that run the program named in their arguments, and how those arguments are separated: data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.sandbox.shell.command_line.options import OptionTable, parse_table

__all__ = ["SHELLS", "SHELL_OPTIONS", "STDIN_PROGRAMS", "WRAPPERS", "XARGS", "Wrapper", "runs_its_input"]


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The options of a wrapper, and the form of the operand that comes before the program, if there is one."""

    table: OptionTable
    operand: str = ""


def _wrapper(options: str, operand: str = "") -> Wrapper:
    return Wrapper(parse_table(options, stops_at_operand=True), operand)


WRAPPERS: dict[str, Wrapper] = {
    "timeout": _wrapper(
        "-vfp -k,--kill-after= -s,--signal= --foreground --preserve-status --verbose", r"[\d.]+[smhd]?"
    ),
    "nohup": _wrapper(""),
    "nice": _wrapper("-0123456789 -n,--adjustment="),
    "stdbuf": _wrapper("-i,--input= -o,--output= -e,--error="),
    "setsid": _wrapper("-cfw --ctty --fork --wait"),
    "time": _wrapper("-p"),
    "ionice": _wrapper("-t -c,--class= -n,--classdata= --ignore"),
    "taskset": _wrapper("-ac --all-tasks --cpu-list", r"(?:0x)?[\da-f,:-]+"),
    "chrt": _wrapper("-abfiorRv --batch --fifo --idle --other --rr --reset-on-fork --verbose --all-tasks", r"\d+"),
    "env": _wrapper("-i --ignore-environment"),
    "command": _wrapper("-p"),
    "exec": _wrapper(""),
}

XARGS = parse_table(
    "-rtxo -0,--null -d,--delimiter= -I= -n,--max-args= -P,--max-procs= -L= -l=? -s,--max-chars= --max-lines=? "
    "--no-run-if-empty --verbose --exit --show-limits --open-tty",
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
