"""`ShellSandbox`: runs model-written shell commands."""

from __future__ import annotations

import asyncio
import math
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
from ferrule.sandbox.shell.settings import ShellSettings
from ferrule.sandbox.tiers import Tier

__all__ = ["ShellSandbox"]

# The kernel's limit on one argument.
_MAX_COMMAND_BYTES = 128 * 1024 - 1


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
            _validate_command(command),
            folder=folder,
            writable=tuple(writable),
            timeout=_validate_seconds("timeout", timeout),
            mode=_validate_mode(mode),
            hosts=_validate_hosts(hosts, self.network),
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


def _validate_command(command: str) -> str:
    """Return the command. Raises `SandboxInputError` if a shell can't run it."""
    if not isinstance(command, str):
        raise SandboxInputError(f"a command is text, not {type(command).__name__}")
    if not command.strip():
        raise SandboxInputError("the command is empty")
    if "\0" in command:
        raise SandboxInputError("the command has a null byte, which a shell can't be given")
    try:
        length = len(command.encode())
    except UnicodeEncodeError as error:
        raise SandboxInputError(f"the command can't be written as UTF-8: {error}") from error
    if length > _MAX_COMMAND_BYTES:
        raise SandboxInputError(
            f"the command has {length} bytes and the limit is {_MAX_COMMAND_BYTES}: write it to a file and run that"
        )
    return command


def _validate_seconds(name: str, seconds: float | None) -> float | None:
    """Return the seconds as a float; None means no limit. Raises `SandboxInputError` if not positive."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise SandboxInputError(f"`{name}` is {seconds!r}, and should be seconds above zero, or None")
    return float(seconds)


def _validate_mode(mode: Mode | str | None) -> Mode | None:
    """Return the mode of one command. Raises `SandboxInputError` if it isn't one."""
    try:
        return None if mode is None else Mode(mode)
    except ValueError as error:
        raise SandboxInputError(str(error)) from error


def _validate_hosts(hosts: Sequence[str], network: bool | Sequence[str]) -> HostRules | None:
    """Return the rules of a command with `hosts` in a sandbox with `network`, None if `hosts` add nothing to it.

    Raises `SandboxInputError` for an invalid rule.
    """
    if isinstance(hosts, str):
        raise SandboxInputError("`hosts` is a list of hosts, as in ['packages.example']")
    if not hosts:
        return None
    rules = HostRules([*(() if isinstance(network, bool) else network), *hosts])
    return rules if network is not True else None


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
