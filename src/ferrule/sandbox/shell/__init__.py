"""Where model-written shell commands run: in namespaces of bubblewrap, or under Landlock and seccomp alone."""

from ferrule.sandbox.shell.command import Done
from ferrule.sandbox.shell.job import Job
from ferrule.sandbox.shell.layout import Mode
from ferrule.sandbox.shell.places import HIDDEN, PROTECTED
from ferrule.sandbox.shell.sandbox import ShellSandbox

__all__ = ["HIDDEN", "PROTECTED", "Done", "Job", "Mode", "ShellSandbox"]
