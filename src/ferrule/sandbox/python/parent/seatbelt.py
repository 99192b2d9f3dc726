"""Starts children in the seatbelt tier: not from a zygote, but as a fresh interpreter per run, each with a profile.

To the pool it has the interface of `ZygoteProcess`. Everything here runs on the background loop.
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

from ferrule._util.background import run_in_thread
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
from ferrule.sandbox.temporary_folders import remove_tree
from ferrule.sandbox.tiers import Tier

NO_SESSIONS: Final = (
    "the seatbelt tier has no sessions: they need features of Linux (a process that is stopped between runs, forked "
    "and rolled back), and a run's profile forbids creating processes; use `run`, and pass values as inputs"
)
_WATCH_INTERVAL: Final = 0.25
_PS: Final = "/bin/ps"


class SeatbeltStarter:
    """Starts fresh children with `tool`, a `sandbox-exec`."""

    def __init__(self, tool: Path) -> None:
        """Starts nothing."""
        self._loop = asyncio.get_running_loop()
        self._tool = tool
        self._interpreter: InterpreterPaths | None = None
        self._load_arguments: tuple[Sequence[str], Sequence[str]] = ((), ())
        self._folder = Path()
        self._files: Sequence[MountedFile] = ()
        self._children: set[SeatbeltChild] = set()
        self._count = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_lost = False

    async def prepare(self, settings: dict[str, Any]) -> ZygoteReport:
        """Run the canaries. Raises `ZygoteLost` if nothing can be run, `SandboxUnavailable` if one got through."""
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
        """Set what children may read, where their folders are created, and which packages they load from which path."""
        self._interpreter, self._folder = shown, Path(os.path.realpath(folder))
        self._load_arguments = (path, packages)

    def spawn(self, limits: dict[str, int], output_limit: int) -> ChildProcess:
        """Start a child, which loads the packages and waits for code. Raises `OSError`, `ZygoteLost` if closed."""
        if self.is_lost or self._interpreter is None:
            raise ZygoteLost("the sandbox is closed")
        self._count += 1
        folder = self._folder / f"run-{self._count}"
        folder.mkdir(mode=0o700)
        wanted = RunLimits(**limits)
        with ExitStack() as ours, ExitStack() as theirs:
            ours.callback(remove_tree, folder)
            for file in self._files:
                # A profile refers to paths, not to files, so the file is checked before each run.
                file.check()
            link_files(self._files, folder)
            channel, output, (descriptor, stdout, stderr) = open_ends(ours, theirs, output_limit)
            program = make_serve_program(descriptor, *self._load_arguments)
            stdin = os.open(os.devnull, os.O_RDONLY)
            theirs.callback(os.close, stdin)
            group = ProcessGroup(
                build_run_command(
                    self._tool, self._interpreter.make_profile(str(folder)), make_macos_limits(wanted), program
                ),
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
        """Remove a run's folder; what can't be removed is left to the removal of the sandbox's folder."""
        self._children.discard(child)
        with suppress(OSError):
            await run_in_thread(remove_tree, folder)

    def close(self) -> None:
        """Kill every child. Can be called again."""
        self.is_lost = True
        for child in self._children:
            child.kill()

    async def wait_until_gone(self) -> None:
        """Wait until every child is reaped and its folder removed, after `close`."""
        await asyncio.gather(*(child.group.ended for child in self._children))
        # From Python 3.12 on, gathering finished futures doesn't yield to the loop, where the clean-up tasks start.
        await asyncio.sleep(0)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _run_aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class SeatbeltChild(ChildProcess):
    """A child that this process started itself."""

    def __init__(self, channel: ChildChannel, output: ChildOutput, group: ProcessGroup, memory: int) -> None:
        """`memory` is in bytes, beyond what the process uses when its run begins."""
        super().__init__(channel, output)
        self.group = group
        self._memory = memory
        self._memory_limit = 0
        self._watching: asyncio.Task[None] | None = None
        self.started.set_result(None)
        group.ended.add_done_callback(lambda ended: self._on_group_ended(ended.result()))

    async def wait_until_confined(self) -> int:
        """See `ChildProcess`; the pid is that of the started process, whichever process sent the greeting."""
        await super().wait_until_confined()
        self.pid = self.group.pid
        # Measured before its code starts, which could allocate quickly.
        self._memory_limit = await run_in_thread(read_resident_memory, self.pid) + self._memory
        return self.pid

    def begin(self) -> None:
        """Start watching its memory."""
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    def kill(self) -> None:
        """See `ChildProcess`."""
        self.group.signal(signal.SIGKILL)

    async def _watch(self) -> None:
        while not self.ended.done():
            await asyncio.sleep(_WATCH_INTERVAL)
            if await run_in_thread(read_resident_memory, self.pid) > self._memory_limit:
                self.kill()

    def _on_group_ended(self, how: ProcessExit) -> None:
        if self._watching is not None:
            self._watching.cancel()
        self.on_ended(ChildExit(how.status, how.cpu, how.peak_memory))


def read_resident_memory(pid: int) -> int:
    """Return the resident memory of a process in bytes; 0 if unavailable."""
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
