"""An opened shell sandbox: its folder on the host, its back end, and the commands that run in it."""

from __future__ import annotations

import asyncio
import os
import weakref
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.folders import OwnFolder
from ferrule.sandbox.loops import beside
from ferrule.sandbox.shell import placeholders
from ferrule.sandbox.shell.backend import Backend
from ferrule.sandbox.shell.choice import backend_for
from ferrule.sandbox.shell.command import Command, Done, Stream
from ferrule.sandbox.shell.environment import clean_environment
from ferrule.sandbox.shell.inputs import checked_environment, standard_input
from ferrule.sandbox.shell.layout import Layout, Mode, Surveyor
from ferrule.sandbox.shell.output import Capture
from ferrule.sandbox.shell.process import Start
from ferrule.sandbox.shell.proxy import FilteringProxy
from ferrule.sandbox.shell.selftest import canaries, hits
from ferrule.sandbox.shell.settings import ShellSettings
from ferrule.sandbox.tier import Tier

__all__ = ["Asked", "Running"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a caller wants to be run; see `ShellSandbox.run`."""

    command: str
    folder: str | None = None
    input: str | bytes | None = None
    writable: tuple[str, ...] = ()
    separate: bool = False
    timeout: float | None = None


class Running:
    """Starts commands and follows them; all on one event loop."""

    def __init__(self, settings: ShellSettings, backend: Backend, own: OwnFolder) -> None:
        self._settings, self._backend, self._state = settings, backend, own.path
        readable = [os.path.realpath(path) for path in settings.readable] + [
            os.path.realpath(path) for path in backend.needs
        ]
        self._surveyor = Surveyor(
            Mode(settings.mode),
            str(settings.workspace),
            settings.hidden,
            settings.protected,
            readable,
            can_cover=backend.has_mounts,
        )
        self._scan = self._surveyor.scan(settings.scan_limit)
        self._scanning = asyncio.Lock()
        self._started: set[Command] = set()
        self._names = count(1)
        # For a program that ends without closing; what runs ends with it too.
        self._removing = weakref.finalize(self, own.remove)

    @classmethod
    async def open(cls, settings: ShellSettings) -> Running:
        """Make the folder, choose the back end and try it. Raises `SandboxUnavailable` where it does not contain."""
        backend = await backend_for(settings)
        # Nobody else may look into it: what commands wrote lies there.
        own = OwnFolder("ferrule-shell-")
        with ExitStack() as failing:
            failing.callback(own.remove)
            state = Path(own.path)
            (state / "tmp").mkdir()
            (state / "spilled").mkdir()
            (state / "empty").touch(0o444)
            (state / "canary").write_text("reached\n", encoding="utf-8")
            running = cls(settings, backend, own)
            failing.pop_all()
        try:
            await running.try_out(backend.tier)
        except BaseException:
            await running.aclose()
            raise
        return running

    async def try_out(self, tier: Tier) -> None:
        """Raise `SandboxUnavailable` where something works that the tier promises to stop."""

        async def run(script: str, seconds: float) -> Done:
            return await self.run(Asked(script, timeout=seconds))

        worked = await hits(run, canaries(tier, Path(self._state)))
        if worked:
            raise SandboxUnavailable(
                f"the {tier} tier doesn't hold on this machine: {', '.join(worked)} worked from inside of the sandbox. "
                "`ferrule sandbox doctor` says which layer is missing"
            )

    async def run(self, asked: Asked) -> Done:
        """A command from start to end; cancelled, it is ended at once."""
        command = await self.start(asked)
        try:
            return await asyncio.shield(command.task)
        except asyncio.CancelledError:
            command.stop("killed", at_once=True)
            await asyncio.wait([command.task])
            raise

    async def start(self, asked: Asked) -> Command:
        """Survey the workspace, start a command and follow it."""
        environment = checked_environment(self._environment())
        layout = await self._survey(asked)
        async with AsyncExitStack() as leaving:
            # What protects is taken away only after the last process is gone, so it is entered first.
            leaving.enter_context(placeholders.standing(layout.placeholders))
            command, proxy = await self._begin(asked, layout, environment)
            command.task = asyncio.create_task(self._followed(command, layout, proxy, leaving.pop_all()))
        self._started.add(command)
        command.task.add_done_callback(lambda _: self._started.discard(command))
        return command

    async def aclose(self) -> None:
        """End what runs, then delete the folder."""
        commands = tuple(self._started)
        for command in commands:
            command.stop("killed", at_once=True)
        await asyncio.gather(*(command.task for command in commands), return_exceptions=True)
        await self._backend.aclose()
        await beside(self._removing)

    async def _survey(self, asked: Asked) -> Layout:
        arguments = (self._scan, self._state, asked.folder, asked.writable)
        async with self._scanning:
            if self._scan.is_large:
                return await asyncio.to_thread(self._surveyor.survey, *arguments)
            return self._surveyor.survey(*arguments)

    async def _begin(
        self, asked: Asked, layout: Layout, environment: dict[str, str]
    ) -> tuple[Command, FilteringProxy | None]:
        with standard_input(asked.input) as given, ExitStack() as failing:
            output = self._stream(failing)
            errors = self._stream(failing) if asked.separate else None
            start = Start(
                argv=[self._settings.shell, "-c", asked.command],
                environment=environment,
                streams=(given, output.writing, (errors or output).writing),
                processes=self._settings.processes,
                file_size=self._settings.file_size,
            )
            contained, proxy = await self._backend.start(layout, start)
            failing.pop_all()
        command = Command(contained, output, errors, asked.timeout, self._settings.grace)
        for stream in (output, errors):
            if stream is not None:
                stream.begin(lambda: command.stop("output", at_once=True))
        return command, proxy

    async def _followed(
        self, command: Command, layout: Layout, proxy: FilteringProxy | None, leaving: AsyncExitStack
    ) -> Done:
        async with leaving:
            if proxy is not None:
                leaving.push_async_callback(proxy.aclose)
            done = await command.followed()
        refused = tuple(dict.fromkeys(proxy.refused)) if proxy is not None else ()
        appeared = tuple(path for path in layout.absent if os.path.lexists(path))
        return replace(done, refused=refused, appeared=appeared)

    def _stream(self, failing: ExitStack) -> Stream:
        spill = Path(self._state, "spilled", f"{next(self._names)}.txt")
        stream = Stream(Capture(self._settings.max_output, spill, self._settings.max_spill))
        failing.callback(stream.close)
        return stream

    def _environment(self) -> dict[str, str]:
        settings = self._settings
        own = {"TMPDIR": "/tmp" if self._backend.has_mounts else f"{self._state}/tmp"}
        return clean_environment(os.environ, passed=settings.passed, given=own | dict(settings.environment))
