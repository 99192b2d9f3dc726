"""Reads shell command lines: which programs they run, and what those would do, as effects that a policy judges.

    line = parse_command_line("cd src && npm test > out.txt", "/workspace")
    line.effects    # (read /workspace/src, run npm test, write /workspace, write /workspace/src/out.txt)

`reader.py` reads the syntax, `judge.py` the effects; what programs do is in tables (`reading_programs.py` and its
neighbours, `sandbox/git/commands.py`). Whatever isn't certain is a `problem`, or an effect `run` that no rule for
commands covers. This advises; it is the sandbox that contains a command.

Names are loaded on first use, since `sandbox/git/commands.py` needs the words and options of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule._util.lazy_exports import make_getattr

if TYPE_CHECKING:
    from ferrule.sandbox.shell.command_line.command_line import CommandLine, Part
    from ferrule.sandbox.shell.command_line.judge import parse_command_line

_HOMES = {"CommandLine": "command_line", "Part": "command_line", "parse_command_line": "judge"}

__all__ = ["CommandLine", "Part", "parse_command_line"]


if not TYPE_CHECKING:  # otherwise, a type checker would accept any name as exported
    __getattr__ = make_getattr(__name__, _HOMES)
