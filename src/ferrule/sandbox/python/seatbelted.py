"""The seatbelt tier's way to a child: no zygote, but a fresh interpreter for each run, under a profile of its own.

To its pool it is what a `Zygote` is. Everything here runs on the background loop.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ferrule.sandbox.canaries import verdict
from ferrule.sandbox.contain import Limits
from ferrule.sandbox.linux.trees import remove_tree
from ferrule.sandbox.loops import beside
from ferrule.sandbox.macos.processes import Gone, Group
from ferrule.sandbox.macos.runs import Ground, arguments, ground, limits_of, serving
from ferrule.sandbox.macos.selftest import canary_results
from ferrule.sandbox.python.channel import Channel
from ferrule.sandbox.python.ends import opened_ends
from ferrule.sandbox.python.launcher import Ready, zygote_environment
from ferrule.sandbox.python.output import Output
from ferrule.sandbox.python.process import Child, Ended, Lost
from ferrule.sandbox.tier import Tier

NO_SESSIONS: Final = (
    "the seatbelt tier has no sessions: what a session rests on (a process that is held between its runs, forked and "
    "rolled back) is Linux's, and a run's profile lets it make no process; use `run`, and pass values on as inputs"
)
_LOOK_SECONDS: Final = 0.25
_PS: Final = "/bin/ps"


class Seatbelt:
    """Starts fresh children under `tool`, a `sandbox-exec`."""

    def __init__(self, tool: Path) -> None:
        """Made without starting anything."""
        self._loop = asyncio.get_running_loop()
        self._tool = tool
        self._ground: Ground | None = None
        self._told: tuple[Sequence[str], Sequence[str]] = ((), ())
        self._folder = Path()
        self._children: set[FreshChild] = set()
        self._count = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_lost = False

    async def prepare(self, settings: dict[str, Any]) -> Ready:
        """Try the canaries. Raises `Lost` where nothing can be run, `SandboxUnavailable` where one got through."""
        packages = list(settings["packages"])
        try:
            shown = ground(map(Path, settings["readable"]))
        except ValueError as error:
            raise Lost(str(error)) from None
        results = await beside(canary_results, self._tool, shown, zygote_environment())
        verdict(results, Tier.SEATBELT)
        self.lay_ground(shown, Path(settings["folder"]), settings["path"], packages)
        return Ready(tuple(filter(_is_installed, packages)), {result.name: "stopped" for result in results})

    def lay_ground(self, shown: Ground, folder: Path, path: Sequence[str], packages: Sequence[str]) -> None:
        """What children may read, where their folders are made, and what each loads from where before it waits."""
        self._ground, self._folder = shown, Path(os.path.realpath(folder))
        self._told = (path, packages)

    def spawn(self, limits: dict[str, int], output_limit: int) -> Child:
        """Start a child, which loads the packages and then waits for code. Raises `OSError`, and `Lost` when closed."""
        if self.is_lost or self._ground is None:
            raise Lost("the sandbox is closed")
        self._count += 1
        folder = self._folder / f"run-{self._count}"
        folder.mkdir(mode=0o700)
        wanted = Limits(**limits)
        with ExitStack() as ours, ExitStack() as theirs:
            ours.callback(remove_tree, folder)
            channel, output, (descriptor, stdout, stderr) = opened_ends(ours, theirs, output_limit)
            program = serving(descriptor, *self._told)
            stdin = os.open(os.devnull, os.O_RDONLY)
            theirs.callback(os.close, stdin)
            group = Group(
                arguments(self._tool, self._ground.profile(str(folder)), limits_of(wanted), program),
                environment=zygote_environment(),
                folder=str(folder),
                streams=(stdin, stdout, stderr),
                passed=(descriptor,),
            )
            ours.pop_all()
        child = FreshChild(channel, output, group, wanted.memory)
        output.overflow = child.kill
        self._children.add(child)
        group.ended.add_done_callback(lambda _: self._aside(self._after(child, folder)))
        return child

    async def _after(self, child: FreshChild, folder: Path) -> None:
        """Remove what a run left; what can't be removed goes with the sandbox's own folder."""
        self._children.discard(child)
        with suppress(OSError):
            await beside(remove_tree, folder)

    def close(self) -> None:
        """End every child. Can be called again."""
        self.is_lost = True
        for child in self._children:
            child.kill()

    async def gone(self) -> None:
        """Wait until every child is reaped and its folder removed, after `close`."""
        await asyncio.gather(*(child.group.ended for child in self._children))
        # From Python 3.12 on, gathering what has ended waits for no turn of the loop, and there the cleaning up begins.
        await asyncio.sleep(0)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class FreshChild(Child):
    """A child that this process started itself."""

    def __init__(self, channel: Channel, output: Output, group: Group, memory: int) -> None:
        """`memory` is in bytes, beyond what the process has when its run begins."""
        super().__init__(channel, output)
        self.group = group
        self._memory = memory
        self._watching: asyncio.Task[None] | None = None
        self.started.set_result(None)
        group.ended.add_done_callback(lambda ended: self._is_gone(ended.result()))

    async def confined(self) -> int:
        """See `Child`; the pid is that of the process that was started, whoever sent the greeting."""
        await super().confined()
        self.pid = self.group.pid
        return self.pid

    def begin(self) -> None:
        """Watch its memory from now on."""
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    def kill(self) -> None:
        """See `Child`."""
        self.group.signal(signal.SIGKILL)

    async def _watch(self) -> None:
        most = await beside(resident_memory, self.pid) + self._memory
        while not self.ended.done():
            await asyncio.sleep(_LOOK_SECONDS)
            if await beside(resident_memory, self.pid) > most:
                self.kill()

    def _is_gone(self, how: Gone) -> None:
        if self._watching is not None:
            self._watching.cancel()
        self.is_over(Ended(how.status, how.cpu, how.peak_memory))


def resident_memory(pid: int) -> int:
    """Bytes of memory that a process has; 0 where it can't be asked."""
    try:
        done = subprocess.run([_PS, "-o", "rss=", "-p", str(pid)], capture_output=True, timeout=10, check=False)
        return int(done.stdout or 0) * 1024
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False
