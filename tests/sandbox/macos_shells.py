"""Commands of the seatbelt tier below its canaries, for tests under a stand-in that contains nothing."""

from __future__ import annotations

from pathlib import Path

from ferrule.sandbox.hidden_paths import HIDDEN, PROTECTED
from ferrule.sandbox.installation import Installation
from ferrule.sandbox.shell.access_plan import AccessPlan, AccessPlanner, Mode
from ferrule.sandbox.shell.backends.seatbelt import SeatbeltCommand
from ferrule.sandbox.shell.command import Command, CommandResult, OutputPipe
from ferrule.sandbox.shell.output import OutputCapture
from ferrule.sandbox.shell.process import CommandStart
from ferrule.sandbox.shell.protected_paths import ProtectedPaths
from ferrule.sandbox.shell.validation import open_standard_input


class Shells:
    """A workspace and a state folder, as an opened sandbox has them."""

    def __init__(self, tool: Path, folder: Path) -> None:
        self.tool, self.workspace, self.state = tool, folder / "workspace", folder / "state"
        for each in (self.workspace, self.state / "tmp", self.state / "spilled"):
            each.mkdir(parents=True)
        (self.state / "canary").write_text("reached\n", encoding="utf-8")

    def layout(self, *installed: str) -> AccessPlan:
        installation = Installation(tuple(f"{self.workspace}/{name}" for name in installed), ())
        guards = ProtectedPaths(str(self.workspace), PROTECTED, installation, ())
        surveyor = AccessPlanner(Mode.WORKSPACE_WRITE, HIDDEN, guards, [], can_cover=False, scan_limit=100)
        return surveyor.plan(str(self.state), None, ())

    def start(self, command: str, streams: tuple[int, int, int]) -> CommandStart:
        return CommandStart(["/bin/sh", "-c", command], {"PATH": "/usr/bin:/bin"}, streams, 1024, 2**30)

    async def run(
        self, command: str, *, given: str | None = None, timeout: float = 20.0, grace: float = 1.0
    ) -> CommandResult:
        output = OutputPipe(OutputCapture(10_000, self.state / "spilled/1.txt", 100_000))
        with open_standard_input(given) as stdin:
            start = self.start(command, (stdin, output.writing, output.writing))
            contained = SeatbeltCommand.start(self.tool, self.layout(), start, False)
        running = Command(contained, output, None, timeout, grace)
        output.begin(lambda: running.stop("output", at_once=True))
        return await running.wait()
