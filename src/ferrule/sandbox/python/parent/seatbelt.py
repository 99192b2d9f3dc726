"""The seatbelt tier's way to a child: no zygote, but a fresh interpreter for each run, under a profile of its own.

To its pool it is what a `ZygoteProcess` is. Everything here runs on the background loop.
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

from ferrule.sandbox.canaries import require_all_stopped
from ferrule.sandbox.containment import RunLimits
from ferrule.sandbox.macos.process_group import ProcessExit, ProcessGroup
from ferrule.sandbox.macos.python_runs import (
    InterpreterPaths,
    build_run_command,
    find_interpreter_paths,
    make_macos_limits,
    make_serve_program,
)
from ferrule.sandbox.macos.selftest import try_canaries
from ferrule.sandbox.mounted_files import MountedFile, link_files
from ferrule.sandbox.python.parent.channel import ChildChannel
from ferrule.sandbox.python.parent.child_process import ChildExit, ChildProcess, ZygoteLost, open_ends
from ferrule.sandbox.python.parent.output import ChildOutput
from ferrule.sandbox.python.parent.zygote_process import ZygoteReport, make_zygote_environment
from ferrule.sandbox.scheduling import run_in_thread
from ferrule.sandbox.temporary_folders import remove_tree
from ferrule.sandbox.tiers import Tier

NO_SESSIONS: Final = (
    "the seatbelt tier has no sessions: what a session rests on (a process that is held between its runs, forked and "
    "rolled back) is Linux's, and a run's profile lets it make no process; use `run`, and pass values on as inputs"
)
_LOOK_SECONDS: Final = 0.25
_PS: Final = "/bin/ps"


class SeatbeltStarter:
    """Starts fresh children under `tool`, a `sandbox-exec`."""

    def __init__(self, tool: Path) -> None:
        """Made without starting anything."""
        self._loop = asyncio.get_running_loop()
        self._tool = tool
        self._ground: InterpreterPaths | None = None
        self._told: tuple[Sequence[str], Sequence[str]] = ((), ())
        self._folder = Path()
        self._files: Sequence[MountedFile] = ()
        self._children: set[SeatbeltChild] = set()
        self._count = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_lost = False

    async def prepare(self, settings: dict[str, Any]) -> ZygoteReport:
        """Try the canaries. Raises `ZygoteLost` if nothing can be run, `SandboxUnavailable` if one got through."""
        packages = list(settings["packages"])
        try:
            files = [MountedFile(*file) for file in settings["files"]]
            shown = find_interpreter_paths(map(Path, [*settings["readable"], *(file.path for file in files)]))
        except ValueError as error:
            raise ZygoteLost(str(error)) from None
        results = await run_in_thread(try_canaries, self._tool, shown, make_zygote_environment())
        require_all_stopped(results, Tier.SEATBELT)
        self.configure(shown, Path(settings["folder"]), settings["path"], packages)
        self._files = files
        return ZygoteReport(tuple(filter(_is_installed, packages)), {result.name: "stopped" for result in results})

    def configure(self, shown: InterpreterPaths, folder: Path, path: Sequence[str], packages: Sequence[str]) -> None:
        """What children may read, where their folders are made, and what each loads from where before it waits."""
        self._ground, self._folder = shown, Path(os.path.realpath(folder))
        self._told = (path, packages)

    def spawn(self, limits: dict[str, int], output_limit: int) -> ChildProcess:
        """Start a child, which loads the packages and waits for code. Raises `OSError`, `ZygoteLost` when closed."""
        if self.is_lost or self._ground is None:
            raise ZygoteLost("the sandbox is closed")
        self._count += 1
        folder = self._folder / f"run-{self._count}"
        folder.mkdir(mode=0o700)
        wanted = RunLimits(**limits)
        with ExitStack() as ours, ExitStack() as theirs:
            ours.callback(remove_tree, folder)
            for file in self._files:
                # A profile knows paths and no files, so this one is asked before each run.
                file.check()
            link_files(self._files, folder)
            channel, output, (descriptor, stdout, stderr) = open_ends(ours, theirs, output_limit)
            program = make_serve_program(descriptor, *self._told)
            stdin = os.open(os.devnull, os.O_RDONLY)
            theirs.callback(os.close, stdin)
            group = ProcessGroup(
                build_run_command(self._tool, self._ground.profile(str(folder)), make_macos_limits(wanted), program),
                environment=make_zygote_environment(),
                folder=str(folder),
                streams=(stdin, stdout, stderr),
                passed=(descriptor,),
            )
            ours.pop_all()
        child = SeatbeltChild(channel, output, group, wanted.memory)
        output.overflow = child.kill
        self._children.add(child)
        group.ended.add_done_callback(lambda _: self._run_aside(self._clean_up(child, folder)))
        return child

    async def _clean_up(self, child: SeatbeltChild, folder: Path) -> None:
        """Remove what a run left; what can't be removed goes with the sandbox's own folder."""
        self._children.discard(child)
        with suppress(OSError):
            await run_in_thread(remove_tree, folder)

    def close(self) -> None:
        """End every child. Can be called again."""
        self.is_lost = True
        for child in self._children:
            child.kill()

    async def wait_until_gone(self) -> None:
        """Wait until every child is reaped and its folder removed, after `close`."""
        await asyncio.gather(*(child.group.ended for child in self._children))
        # From Python 3.12 on, gathering what has ended waits for no turn of the loop, and there the cleaning up begins.
        await asyncio.sleep(0)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _run_aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class SeatbeltChild(ChildProcess):
    """A child that this process started itself."""

    def __init__(self, channel: ChildChannel, output: ChildOutput, group: ProcessGroup, memory: int) -> None:
        """`memory` is in bytes, beyond what the process has when its run begins."""
        super().__init__(channel, output)
        self.group = group
        self._memory = memory
        self._most = 0
        self._watching: asyncio.Task[None] | None = None
        self.started.set_result(None)
        group.ended.add_done_callback(lambda ended: self._on_group_ended(ended.result()))

    async def wait_until_confined(self) -> int:
        """See `ChildProcess`; the pid is that of the process that was started, whoever sent the greeting."""
        await super().wait_until_confined()
        self.pid = self.group.pid
        # Before its code begins, which may be fast to take more.
        self._most = await run_in_thread(read_resident_memory, self.pid) + self._memory
        return self.pid

    def begin(self) -> None:
        """Watch its memory from now on."""
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    def kill(self) -> None:
        """See `ChildProcess`."""
        self.group.signal(signal.SIGKILL)

    async def _watch(self) -> None:
        while not self.ended.done():
            await asyncio.sleep(_LOOK_SECONDS)
            if await run_in_thread(read_resident_memory, self.pid) > self._most:
                self.kill()

    def _on_group_ended(self, how: ProcessExit) -> None:
        if self._watching is not None:
            self._watching.cancel()
        self.on_ended(ChildExit(how.status, how.cpu, how.peak_memory))


def read_resident_memory(pid: int) -> int:
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
