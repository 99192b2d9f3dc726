"""Commands of the seatbelt tier below its canaries, for tests under a stand-in that contains nothing."""

from __future__ import annotations

from pathlib import Path

from ferrule.sandbox.hidden_paths import HIDDEN, PROTECTED
from ferrule.sandbox.installation import Installation
from ferrule.sandbox.shell.access_plan import AccessPlan, AccessPlanner, Mode
from ferrule.sandbox.shell.backends.seatbelt import SeatbeltBackend
from ferrule.sandbox.shell.command import CommandRequest, CommandResult, RunningCommand
from ferrule.sandbox.shell.host_rules import HostRules
from ferrule.sandbox.shell.protected_paths import ProtectedPaths
from ferrule.sandbox.shell.settings import ShellSettings
from ferrule.sandbox.shell.streams import OutputCapture, OutputPipe, open_standard_input


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

    def make_backend(self, network: bool | HostRules = False) -> SeatbeltBackend:
        settings = ShellSettings(self.workspace, processes=1024, file_size=2**30)
        return SeatbeltBackend(self.tool, settings, network)

    def make_request(self, command: str) -> CommandRequest:
        return CommandRequest(command, environment={"PATH": "/usr/bin:/bin"})

    async def run(
        self, command: str, *, given: str | None = None, timeout: float = 20.0, grace: float = 1.0
    ) -> CommandResult:
        output = OutputPipe(OutputCapture(10_000, self.state / "spilled/1.txt", 100_000))
        with open_standard_input(given) as stdin:
            streams = stdin, output.writing, output.writing
            contained, _ = self.make_backend().begin(self.layout(), self.make_request(command), streams)
        running = RunningCommand(contained, output, None, timeout, grace)
        output.begin(lambda: running.stop("output", at_once=True))
        return await running.wait()
