"""Runs model-written shell commands, in namespaces of their own, or under Landlock and seccomp alone."""

from ferrule.sandbox.hidden_paths import HIDDEN, PROTECTED
from ferrule.sandbox.shell.access_plan import Mode
from ferrule.sandbox.shell.command import BackgroundCommand, CommandResult
from ferrule.sandbox.shell.sandbox import ShellSandbox

__all__ = ["HIDDEN", "PROTECTED", "BackgroundCommand", "CommandResult", "Mode", "ShellSandbox"]
