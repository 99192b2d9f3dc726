"""`ShellSandbox`: runs model-written shell commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from ferrule._util.background import run_on_background_loop, run_synchronously
from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.doctor import detect_layers
from ferrule.sandbox.shell.access_plan import Mode
from ferrule.sandbox.shell.backends.landlock import LandlockBackend
from ferrule.sandbox.shell.backends.namespaces import NamespaceBackend
from ferrule.sandbox.shell.backends.seatbelt import SeatbeltBackend
from ferrule.sandbox.shell.command import BackgroundCommand, CommandRequest, CommandResult
from ferrule.sandbox.shell.command_runner import Backend, CommandRunner
from ferrule.sandbox.shell.host_rules import HostRules
from ferrule.sandbox.shell.settings import (
    ShellSettings,
    validate_command,
    validate_hosts,
    validate_mode,
    validate_seconds,
)
from ferrule.sandbox.tiers import Tier

__all__ = ["ShellSandbox"]


@dataclass(slots=True, eq=False)
class ShellSandbox(ShellSettings):
    """Runs shell commands, contained by the operating system as far as its tier says.

    Whatever a command starts ends with it, even background processes; use `start` for what should keep running.
    Commands may run concurrently. `/tmp` is the sandbox's own and kept between commands.

    What it does not promise: files that commands write in the workspace are the model's, and running, building or
    opening them outside of the sandbox trusts the model. Repositories that a command creates are checked when it has
    ended, not while it runs, and not in folders that aren't searched (`node_modules`). `full` mode allows writing the
    user's start-up files. Memory is limited only by the timeout; for root, so is the number of processes.

    Creating one starts nothing. Can be used from any event loop, or from none.
    """

    _running: CommandRunner | None = field(default=None, init=False, repr=False)
    _opening: asyncio.Lock | None = field(default=None, init=False, repr=False)

    async def run(  # noqa: PLR0913 - options by their names, so that mypy finds a wrong one
        self,
        command: str,
        *,
        timeout: float | None = 120.0,
        folder: str | None = None,
        input: str | bytes | None = None,  # noqa: A002 - as in `subprocess.run`
        writable: Sequence[str] = (),
        separate: bool = False,
        mode: Mode | str | None = None,
        hosts: Sequence[str] = (),
        on_stopped: Callable[[CommandResult], None] | None = None,
        watch: Callable[[str], None] | None = None,
    ) -> CommandResult:
        """Run `sh -c command` in the workspace (or in its `folder`) and wait for its end.

        `timeout` is in seconds, None for no limit. `writable` names protected paths that this command may change: with
        `.git` it may commit. Git's hooks and settings stay read-only unless `.git/hooks` or `.git/config` is named too,
        and what else would make git run programs is undone afterwards (`CommandResult.repositories`). `separate` keeps
        errors apart from output. `mode` makes this command's mode one that allows less than the sandbox's. `hosts` are
        rules for hosts that this command may reach in addition to those of `network`; it then has a loopback of its
        own. `watch` is called with the last lines of the output while a command runs for more than a second, in
        another thread.

        Cancelling ends the command at once; `on_stopped` is then called, in any thread, with the result so far. Raises
        `SandboxInputError` for invalid arguments and `SandboxUnavailable` if the command can't be contained; nothing
        has run then.
        """
        request = self._make_request(command, folder, writable, timeout, mode, hosts)
        return await run_on_background_loop(
            self._run(replace(request, input=input, separate=separate, on_stopped=on_stopped, watch=watch))
        )

    def run_sync(self, command: str, *, timeout: float | None = 120.0, writable: Sequence[str] = ()) -> CommandResult:
        """`run`, for programs without an event loop."""
        return run_synchronously(self.run(command, timeout=timeout, writable=writable))

    async def start(
        self,
        command: str,
        *,
        timeout: float | None = None,
        folder: str | None = None,
        writable: Sequence[str] = (),
        mode: Mode | str | None = None,
        hosts: Sequence[str] = (),
    ) -> BackgroundCommand:
        """Start a command in the background and return a handle on it. Raises like `run`.

        `writable` can't name a repository (`.git`): you use git meanwhile, on what the command may be changing.
        """
        if any(str(name).rstrip("/").rpartition("/")[2] == ".git" for name in writable):
            raise SandboxInputError(
                "a background command can't write .git, since git is used there while it runs: run the command in the "
                "foreground"
            )
        request = self._make_request(command, folder, writable, timeout, mode, hosts)
        return await run_on_background_loop(self._start(request))

    async def open(self) -> None:
        """Choose and test the back end, which the first command does otherwise.

        Raises `SandboxUnavailable` if a layer is missing or ineffective.
        """
        await run_on_background_loop(self._open())

    async def aclose(self) -> None:
        """End all running commands and delete the temporary folder with spilled output. Can be called again."""
        await run_on_background_loop(self._close())

    def close(self) -> None:
        """`aclose`, for programs without an event loop."""
        run_synchronously(self.aclose())

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _make_request(
        self,
        command: str,
        folder: str | None,
        writable: Sequence[str],
        timeout: float | None,
        mode: Mode | str | None,
        hosts: Sequence[str],
    ) -> CommandRequest:
        return CommandRequest(
            validate_command(command),
            folder=folder,
            writable=tuple(writable),
            timeout=validate_seconds("timeout", timeout),
            mode=validate_mode(mode),
            hosts=validate_hosts(hosts, self.network),
        )

    async def _run(self, request: CommandRequest) -> CommandResult:
        running = await self._open()
        return await running.run(request)

    async def _start(self, request: CommandRequest) -> BackgroundCommand:
        running = await self._open()
        return BackgroundCommand(request.command, await running.start(request))

    async def _open(self) -> CommandRunner:
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._running is None:
                self._running = await CommandRunner.open(self, await _choose_backend(self))
            return self._running

    async def _close(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.aclose()


async def _choose_backend(settings: ShellSettings) -> Backend:
    """Choose the back end of the requested tier, or of the best available one.

    Raises `SandboxUnavailable` if the tier isn't available or can't enforce the network's rules.
    """
    network = settings.network if isinstance(settings.network, bool) else HostRules(settings.network)
    if settings.tier is Tier.NONE:
        return LandlockBackend(settings, Tier.NONE, network=True)
    found = await asyncio.to_thread(detect_layers)
    if settings.tier is Tier.SEATBELT or (settings.tier is None and found.tier is Tier.SEATBELT):
        if found.seatbelt is None:
            raise SandboxUnavailable(f"the seatbelt tier needs macOS: {_describe_missing(found.missing)}")
        return SeatbeltBackend(found.seatbelt, settings, network)
    if settings.tier in {None, Tier.FULL} and found.shell_tier is Tier.FULL:
        return NamespaceBackend(settings, network)
    if settings.tier is Tier.FULL:
        raise SandboxUnavailable(f"the full tier isn't available here: {_describe_missing(found.missing)}")
    if not (found.landlock and found.seccomp):
        raise SandboxUnavailable(f"this machine can't contain a command: {_describe_missing(found.missing)}")
    if isinstance(network, HostRules) and not network.allow_nothing:
        raise SandboxUnavailable(
            "the container tier can't enforce rules for hosts, since Landlock knows only ports: choose "
            "network=False, or a machine with the full tier"
        )
    return LandlockBackend(settings, Tier.CONTAINER, network=network is True)


def _describe_missing(missing: tuple[str, ...]) -> str:
    return "; ".join(missing) or "`ferrule sandbox doctor` says what is missing"
