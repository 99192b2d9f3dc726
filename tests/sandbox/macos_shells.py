"""Commands of the seatbelt tier below its canaries, for tests under a stand-in that contains nothing."""

from __future__ import annotations

from pathlib import Path

from ferrule.sandbox.shell.command import Command, Done, Stream
from ferrule.sandbox.shell.inputs import standard_input
from ferrule.sandbox.shell.layout import Layout, Mode, Surveyor
from ferrule.sandbox.shell.output import Capture
from ferrule.sandbox.shell.places import HIDDEN, PROTECTED
from ferrule.sandbox.shell.process import Start
from ferrule.sandbox.shell.seatbelted import Seatbelted


class Shells:
    """A workspace and a state folder, as an opened sandbox has them."""

    def __init__(self, tool: Path, folder: Path) -> None:
        self.tool, self.workspace, self.state = tool, folder / "workspace", folder / "state"
        for each in (self.workspace, self.state / "tmp", self.state / "spilled"):
            each.mkdir(parents=True)
        (self.state / "canary").write_text("reached\n", encoding="utf-8")

    def layout(self) -> Layout:
        surveyor = Surveyor(Mode.WORKSPACE_WRITE, str(self.workspace), HIDDEN, PROTECTED, [], can_cover=False)
        return surveyor.survey(surveyor.scan(100), str(self.state), None, ())

    def start(self, command: str, streams: tuple[int, int, int]) -> Start:
        return Start(["/bin/sh", "-c", command], {"PATH": "/usr/bin:/bin"}, streams, 1024, 2**30)

    async def run(self, command: str, *, given: str | None = None, timeout: float = 20.0, grace: float = 1.0) -> Done:
        output = Stream(Capture(10_000, self.state / "spilled/1.txt", 100_000))
        with standard_input(given) as stdin:
            start = self.start(command, (stdin, output.writing, output.writing))
            contained = Seatbelted.start(self.tool, self.layout(), start, False)
        running = Command(contained, output, None, timeout, grace)
        output.begin(lambda: running.stop("output", at_once=True))
        return await running.followed()
