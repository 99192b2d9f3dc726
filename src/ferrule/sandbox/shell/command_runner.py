"""An open shell sandbox: its folder on the host, its back end and its running commands."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Protocol

from ferrule._util.background import run_in_thread
from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.doctor import list_shell_canaries, run_shell_canaries
from ferrule.sandbox.git.after_command import RepositoryState, check_repositories, record_repositories
from ferrule.sandbox.git.tracked_files import TrackedFiles
from ferrule.sandbox.own_files import describe_own_file
from ferrule.sandbox.shell import placeholders
from ferrule.sandbox.shell.access_plan import AccessPlan, Mode
from ferrule.sandbox.shell.command import (
    CommandRequest,
    CommandResult,
    ContainedProcess,
    RunningCommand,
)
from ferrule.sandbox.shell.hidden_hints import describe_hidden_files, find_named_files
from ferrule.sandbox.shell.launcher_client import PathVanished
from ferrule.sandbox.shell.protected_paths import ProtectedPaths
from ferrule.sandbox.shell.proxy import FilteringProxy, RefusedHosts
from ferrule.sandbox.shell.settings import (
    ShellSettings,
    clean_environment,
    make_planner,
    make_protected_paths,
    validate_environment,
)
from ferrule.sandbox.shell.streams import OutputCapture, OutputPipe, Streams, open_standard_input
from ferrule.sandbox.shell.unsearched_folders import describe_unfinished, is_shut, reopen_folder
from ferrule.sandbox.shell.workspace_scan import ScanResult
from ferrule.sandbox.temporary_folders import TemporaryFolder
from ferrule.sandbox.tiers import Tier

__all__ = ["Backend", "CommandRunner"]

_MAX_RETRIES = 20


class Backend(Protocol):
    """Starts commands in one tier."""

    tier: Tier

    needs: Sequence[str]
    """Paths that commands must be able to read, even if they are on a list."""
    has_mounts: bool
    """Whether commands have mounts of their own: a `/tmp`, and covers over what they may not change."""

    async def start(
        self, plan: AccessPlan, request: CommandRequest, streams: Streams
    ) -> tuple[ContainedProcess, FilteringProxy | None]:
        """Start a command under a plan; returns its processes and its proxy, if it has one."""

    async def aclose(self) -> None:
        """End the processes that the back end itself keeps running."""


class CommandRunner:
    """Starts commands and follows them, all on one event loop."""

    def __init__(
        self, settings: ShellSettings, backend: Backend, protected_paths: Sequence[ProtectedPaths], own: TemporaryFolder
    ) -> None:
        self._settings, self._backend, self._state = settings, backend, own.path
        readable = [os.path.realpath(path) for path in settings.readable] + [
            os.path.realpath(path) for path in backend.needs
        ]
        self._protected_paths = protected_paths[0]
        self._planner = make_planner(settings, protected_paths, readable, can_cover=backend.has_mounts)
        self._tracked = TrackedFiles(f"{self._state}/tracked", str(settings.workspace))
        self._copied: tuple[AccessPlan, AccessPlan] | None = None
        """The last plan, and the same with the copies of tracked files."""
        self._explained: set[str] = set()
        """The hidden files that a result has named."""
        self._scanning = asyncio.Lock()
        self._started: set[RunningCommand] = set()
        self._names = count(1)
        self._lingering: asyncio.TimerHandle | None = None
        # For a program that exits without closing; running commands end with it too.
        self._removing = weakref.finalize(self, _remove, own)

    @classmethod
    async def open(cls, settings: ShellSettings, backend: Backend) -> CommandRunner:
        """Create the folder and try the back end. Raises `SandboxUnavailable` if it doesn't contain."""
        protected_paths = await run_in_thread(make_protected_paths, settings, backend.tier)
        await run_in_thread(placeholders.remove_abandoned)
        # Only this user can enter it, since it holds what commands wrote.
        own = TemporaryFolder("ferrule-shell-")
        with ExitStack() as failing:
            failing.callback(own.remove)
            state = Path(own.path)
            (state / "tmp").mkdir()
            (state / "spilled").mkdir()
            (state / "tracked").mkdir()
            (state / "empty").touch(0o444)
            (state / "canary").write_text("reached\n", encoding="utf-8")
            running = cls(settings, backend, protected_paths, own)
            failing.pop_all()
        try:
            await running.try_out(backend.tier)
        except BaseException:
            await running.aclose()
            raise
        return running

    async def try_out(self, tier: Tier) -> None:
        """Raise `SandboxUnavailable` if a canary succeeds that the tier promises to stop."""

        async def run(script: str, seconds: float) -> CommandResult:
            return await self.run(CommandRequest(script, timeout=seconds))

        worked = await run_shell_canaries(run, list_shell_canaries(tier, Path(self._state)))
        if worked:
            raise SandboxUnavailable(
                f"the {tier} tier doesn't hold on this machine: {', '.join(worked)} worked from inside of the sandbox. "
                "`ferrule sandbox doctor` says which layer is missing"
            )

    async def run(self, request: CommandRequest) -> CommandResult:
        """Run a command to its end; cancelling this ends it at once."""
        command = await self.start(request)
        reporting = None if request.watch is None else asyncio.create_task(command.report_output(request.watch))
        try:
            return await asyncio.shield(command.task)
        except asyncio.CancelledError:
            command.stop("killed", at_once=True)
            await asyncio.wait([command.task])
            if request.on_stopped is not None and not command.task.cancelled() and not command.task.exception():
                request.on_stopped(command.task.result())
            raise
        finally:
            if reporting is not None:
                reporting.cancel()

    async def start(self, request: CommandRequest) -> RunningCommand:
        """Scan the workspace, start a command and follow it; retry if a path found by the scan has vanished since."""
        request = replace(request, environment=validate_environment(self._make_environment()))
        retries = 0
        while True:
            try:
                return await self._start(request, await self._plan_access(request))
            except PathVanished:
                retries += 1
                if retries > _MAX_RETRIES:
                    raise

    async def _start(self, request: CommandRequest, plan: AccessPlan) -> RunningCommand:
        async with AsyncExitStack() as leaving:
            repositories = await self._record_repositories(plan)
            # Entered first, so that protection is removed only after the last process is gone.
            await self._create_placeholders(plan.placeholders)
            leaving.callback(self._release_placeholders, plan)
            command, proxy = await self._begin(request, plan)
            command.task = asyncio.create_task(self._follow(command, plan, proxy, repositories, leaving.pop_all()))
        self._started.add(command)
        command.task.add_done_callback(lambda _: self._started.discard(command))
        return command

    async def aclose(self) -> None:
        """End all running commands, then delete the folder."""
        commands = tuple(self._started)
        for command in commands:
            command.stop("killed", at_once=True)
        await asyncio.gather(*(command.task for command in commands), return_exceptions=True)
        await self._backend.aclose()
        if self._lingering is not None:
            self._lingering.cancel()
        await run_in_thread(self._removing)

    async def _create_placeholders(self, paths: Sequence[str]) -> None:
        if not placeholders.keep(paths):
            await run_in_thread(placeholders.create, paths)

    def _release_placeholders(self, plan: AccessPlan) -> None:
        placeholders.release(plan.placeholders)
        placeholders.disown(plan.granted)
        if self._lingering is not None:
            self._lingering.cancel()
        self._lingering = asyncio.get_running_loop().call_later(placeholders.LINGER_SECONDS, placeholders.remove_unused)

    async def _plan_access(self, request: CommandRequest) -> AccessPlan:
        arguments = (self._state, request.folder, request.writable, request.mode)
        async with self._scanning:
            if self._planner.is_large:
                plan = await asyncio.to_thread(self._planner.plan, *arguments)
            else:
                plan = self._planner.plan(*arguments)
            if not plan.hidden or not self._backend.has_mounts:
                return plan
            copies = await asyncio.to_thread(self._tracked.find_copies, plan.hidden)
            if self._copied is None or self._copied[0] is not plan or self._copied[1].copies != copies:
                self._copied = plan, replace(plan, copies=copies)
            return self._copied[1]

    async def _record_repositories(self, plan: AccessPlan) -> RepositoryState | None:
        """The repositories before a command; None if it can't change them, or if they aren't protected at all."""
        is_checked = ".git" in self._protected_paths.names and self._backend.tier is not Tier.NONE
        if plan.mode is Mode.READ_ONLY or not is_checked:
            return None
        # Reading a few files takes less time than starting a thread.
        return record_repositories(plan.repositories, plan.granted, plan.roots, plan.control_files)

    async def _inspect(self, plan: AccessPlan, before: RepositoryState | None) -> tuple[list[str], tuple[str, ...]]:
        """What was disarmed after a command, and the protected paths that it created."""

        def inspect() -> tuple[list[str], tuple[str, ...]]:
            if before is None:
                return [], tuple(filter(os.path.lexists, plan.absent))
            scanned, notes = self._search_again(plan)
            repositories = [path for one in scanned for path in one.repositories]
            notes += check_repositories(before, repositories, plan.roots)
            return notes, self._planner.find_appeared(plan, scanned)

        async with self._scanning:
            return await asyncio.to_thread(inspect) if self._planner.is_large else inspect()

    def _search_again(self, plan: AccessPlan) -> tuple[tuple[ScanResult, ...], list[str]]:
        """What there is after a command, and a sentence on each folder that it made hard or impossible to search."""
        notes: dict[str, str] = {}
        while True:
            scanned = self._planner.scan_all()
            unsearched = {path for one in scanned for path in one.unsearched}.difference(plan.unsearched, notes)
            shut = sorted(path for path in unsearched if is_shut(path))
            notes |= {path: reopen_folder(path, plan.roots) for path in shut}
            if not shut:
                unfinished = (describe_unfinished(each, plan.roots) for each in sorted(unsearched))
                return scanned, [*notes.values(), *unfinished]

    async def _begin(self, request: CommandRequest, plan: AccessPlan) -> tuple[RunningCommand, FilteringProxy | None]:
        with open_standard_input(request.input) as stdin, ExitStack() as failing:
            output = self._open_stream(failing)
            errors = self._open_stream(failing) if request.separate else None
            streams = stdin, output.writing, (errors or output).writing
            contained, proxy = await self._backend.start(plan, request, streams)
            failing.pop_all()
        command = RunningCommand(contained, output, errors, request.timeout, self._settings.grace)
        for stream in (output, errors):
            if stream is not None:
                stream.begin(lambda: command.stop("output", at_once=True))
        return command, proxy

    async def _follow(
        self,
        command: RunningCommand,
        plan: AccessPlan,
        proxy: FilteringProxy | None,
        repositories: RepositoryState | None,
        leaving: AsyncExitStack,
    ) -> CommandResult:
        async with leaving:
            if proxy is not None:
                leaving.push_async_callback(proxy.aclose)
            done = await command.wait()
        refused = proxy.refused if proxy is not None else RefusedHosts()
        disarmed, appeared = await self._inspect(plan, repositories)
        return replace(
            done,
            refused=tuple(refused.hosts),
            refused_left_out=refused.left_out,
            appeared=appeared,
            unsearched=plan.unsearched,
            repositories=tuple(disarmed),
            hint=self._make_hint(done, plan),
        )

    def _make_hint(self, done: CommandResult, plan: AccessPlan) -> str:
        """Why the command failed, or saw a change of files that are hidden from it; each file is named once."""
        output = f"{done.output}{done.errors or ''}"
        hints = [self._protected_paths.make_hint(output, plan.targets)] if done.exit_code else []
        hidden = [path for path in plan.hidden if path not in self._explained and not describe_own_file(path)]
        named = find_named_files(hidden, output, failed=done.exit_code != 0) if hidden else []
        self._explained.update(named)
        hints += [describe_hidden_files(named, plan)] if named else []
        return "; ".join(each for each in hints if each)

    def _open_stream(self, failing: ExitStack) -> OutputPipe:
        spill = Path(self._state, "spilled", f"{next(self._names)}.txt")
        stream = OutputPipe(OutputCapture(self._settings.max_output, spill, self._settings.max_spill))
        failing.callback(stream.close)
        return stream

    def _make_environment(self) -> dict[str, str]:
        settings = self._settings
        own = {"TMPDIR": "/tmp" if self._backend.has_mounts else f"{self._state}/tmp"}
        if self._backend.tier is Tier.FULL and os.geteuid() == 0:
            own["TAR_OPTIONS"] = "--no-same-owner"  # root's commands can't change owners, which tar tries as root
        return clean_environment(os.environ, passed=settings.passed, given=own | dict(settings.environment))


def _remove(own: TemporaryFolder) -> None:
    placeholders.remove_unused()
    own.remove()
