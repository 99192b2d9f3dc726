"""Reads shell command lines: which programs they run, and what those would do, as effects that a policy judges.

    line = parse_command_line("cd src && npm test > out.txt", "/workspace")
    line.effects    # (read /workspace/src, run npm test, write /workspace, write /workspace/src/out.txt)

`reader.py` reads the syntax, `judge.py` the effects; what programs do is in tables (`reading_programs.py` and its
neighbours). Whatever isn't certain is a `problem`, or an effect `run` that no rule for commands covers. This advises;
it is the sandbox that contains a command.
"""

from ferrule.sandbox.shell.command_line.command_line import CommandLine, Part
from ferrule.sandbox.shell.command_line.judge import parse_command_line

__all__ = ["CommandLine", "Part", "parse_command_line"]
