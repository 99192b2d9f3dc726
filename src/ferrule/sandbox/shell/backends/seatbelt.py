"""The seatbelt tier: `sandbox-exec` runs each command's shell under a profile of its own."""

# Paths are strings here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH120

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.doctor import ShellCanary, run_shell_canaries
from ferrule.sandbox.hidden_paths import list_home_folders
from ferrule.sandbox.macos.process_group import ProcessGroup, make_limit_arguments
from ferrule.sandbox.macos.profiles import make_shell_profile
from ferrule.sandbox.shell.access_plan import REPLACED, Access, AccessPlan, Mode
from ferrule.sandbox.shell.command import CommandRequest, CommandResult, ContainedProcess, RunningCommand
from ferrule.sandbox.shell.host_rules import HostRules
from ferrule.sandbox.shell.proxy import FilteringProxy, make_proxy_variables
from ferrule.sandbox.shell.settings import ShellSettings
from ferrule.sandbox.shell.streams import OutputCapture, OutputPipe, Streams
from ferrule.sandbox.tiers import Tier

__all__ = ["SeatbeltBackend", "reserve_port"]

# Runs first under the profile and signals on descriptor 3 that it is in force.
_SIGN = 'printf x >&3 && exec 3>&- && exec "$0" "$@"'
_SIGN_PLACE = 3
_PORTS_TRIED = 20


class SeatbeltBackend:
    """Starts commands under `tool`, a `sandbox-exec`; before the first one it runs canaries."""

    tier: Tier = Tier.SEATBELT
    needs: Sequence[str] = ()  # the proxy is outside
    has_mounts: bool = False

    def __init__(self, tool: Path, settings: ShellSettings, network: bool | HostRules) -> None:
        self._tool, self._settings, self._network = tool, settings, network
        self._trying = asyncio.Lock()
        self._is_tried = False

    async def start(
        self, plan: AccessPlan, request: CommandRequest, streams: Streams
    ) -> tuple[ContainedProcess, FilteringProxy | None]:
        """See `Backend`. Also raises `SandboxUnavailable` if a canary succeeds before the first command."""
        async with self._trying:
            if not self._is_tried:
                await self._try_out(plan, request, streams[0])
                self._is_tried = True
        return self.begin(plan, request, streams)

    def begin(
        self, plan: AccessPlan, request: CommandRequest, streams: Streams, *, shell: str | None = None
    ) -> tuple[ContainedProcess, FilteringProxy | None]:
        """`start` without canaries. `shell` (None: of the settings) runs the command."""
        argv = [shell or self._settings.shell, "-c", request.command]
        network = self._network if request.hosts is None else request.hosts
        if isinstance(network, bool):
            return self._contain(plan, argv, request.environment, streams, network), None
        with ExitStack() as failing:
            listening, held = reserve_port()
            for each in (listening, *held):
                failing.callback(each.close)
            port = listening.getsockname()[1]
            environment = request.environment | make_proxy_variables(port)
            contained = self._contain(plan, argv, environment, streams, port, held)
            proxy = FilteringProxy(network)
            proxy.serve(listening)
            failing.pop_all()
        return contained, proxy

    async def aclose(self) -> None:
        """See `Backend`: there is nothing to end."""

    def _contain(
        self,
        plan: AccessPlan,
        argv: list[str],
        environment: dict[str, str],
        streams: Streams,
        network: bool | int,
        held: Sequence[socket.socket] = (),
    ) -> ContainedProcess:
        """Start a command; `network` as in `make_shell_profile`, `held` closes with it. Raises `SandboxUnavailable`."""
        settings = self._settings
        profile = make_shell_profile(
            rules=build_seatbelt_rules(plan), scratch=plan.scratch, absent=plan.absent, network=network
        )
        limits = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": settings.file_size, "RLIMIT_NPROC": settings.processes}
        sign, signing = os.pipe()
        try:
            command = profile.build_command(self._tool, ["/bin/sh", "-c", _SIGN, *argv])
            group = ProcessGroup(
                make_limit_arguments(command, limits, {signing: _SIGN_PLACE}),
                environment=environment,
                folder=plan.folder,
                streams=streams,
                passed=(signing,),
            )
        except OSError as error:
            os.close(sign)
            raise SandboxUnavailable(f"a command can't be started under {self._tool}: {error}") from error
        finally:
            os.close(signing)
        return ContainedProcess(partial(_wait, group, sign), group.signal, partial(_close, sign, held))

    async def _try_out(self, plan: AccessPlan, request: CommandRequest, stdin: int) -> None:
        state = os.path.dirname(plan.scratch)

        async def run(script: str, seconds: float) -> CommandResult:
            output = OutputPipe(OutputCapture(64 * 1024, Path(state, "spilled", "selftest.txt"), 64 * 1024))
            try:
                # No input, and all output goes to one pipe.
                tried = replace(request, command=script, hosts=None)
                contained, proxy = self.begin(plan, tried, (stdin, output.writing, output.writing), shell="/bin/sh")
            except BaseException:
                output.close()
                raise
            command = RunningCommand(contained, output, None, seconds, 0.0)
            output.begin(lambda: command.stop("output", at_once=True))
            try:
                return await command.wait()
            finally:
                if proxy is not None:
                    await proxy.aclose()

        reached = await run_shell_canaries(run, list_canaries(state, network=self._network is True))
        if reached:
            raise SandboxUnavailable(
                f"the seatbelt tier doesn't hold on this machine: {', '.join(reached)} worked from inside of the "
                "sandbox. Nothing was run"
            )


async def _wait(group: ProcessGroup, sign: int) -> int:
    """See `ContainedProcess.wait`. Processes that left the group aren't ended, but stay under the profile."""
    gone = await asyncio.shield(group.ended)
    group.sweep()
    if os.read(sign, 1) != b"x":
        raise SandboxUnavailable("sandbox-exec could not contain the command")
    return gone.status


def _close(sign: int, held: Sequence[socket.socket]) -> None:
    os.close(sign)
    for each in held:
        each.close()


def reserve_port() -> tuple[socket.socket, list[socket.socket]]:
    """A listening socket, and one reserving the same port on IPv6: a profile's `localhost` allows both.

    Raises `SandboxUnavailable` if no port is free on both.
    """
    for _ in range(_PORTS_TRIED):
        listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        held = socket.socket(socket.AF_INET6)
        try:
            held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            held.bind(("::1", listening.getsockname()[1]))
        except OSError as error:
            held.close()
            if error.errno != errno.EADDRINUSE:
                return listening, []  # no IPv6 here, so nothing can listen on it
            listening.close()
            continue
        return listening, [held]
    raise SandboxUnavailable("no port of this machine is free for the proxy that enforces the host rules")


# macOS paths hidden from every command, besides those in `hidden_paths`. The last one holds the user's other programs'
# temporary files.
_LIBRARY_NAMES = (
    *("Accounts", "Calendars", "Containers", "Cookies", "Group Containers", "HTTPStorages", "IdentityServices"),
    *("Keychains", "Mail", "Messages", "Metadata", "Mobile Documents", "Reminders", "Safari", "Suggestions", "WebKit"),
    *(f"Application Support/{name}" for name in ("AddressBook", "BraveSoftware", "Firefox", "Google", "MobileSync")),
    *(f"Application Support/{name}" for name in ("Claude", "Code", "Cursor", "Microsoft Edge", "com.apple.TCC")),
)
_SYSTEM_PATHS = ("/private/etc/master.passwd", "/private/var/db/dslocal", "/private/var/root")
_TEMPORARY = "/private/var/folders"


def build_seatbelt_rules(plan: AccessPlan) -> list[tuple[str, str]]:
    """The plan's rules by real paths, and macOS's own hidden paths; the plan takes precedence."""
    own = {
        os.path.realpath(f"{home}/Library/{name}"): Access.HIDDEN
        for home in list_home_folders()
        for name in _LIBRARY_NAMES
    }
    own |= dict.fromkeys(_SYSTEM_PATHS, Access.HIDDEN)
    if plan.mode is not Mode.FULL:
        own[_TEMPORARY] = Access.HIDDEN
    # Only these of the plan's paths may be links, such as `/tmp`.
    own |= {os.path.realpath(path): access for path, access in plan.rules if path in REPLACED}
    own |= {path: access for path, access in plan.rules if path not in REPLACED}
    return [(path, access.value) for path, access in own.items()]


def list_canaries(state: str, *, network: bool) -> tuple[ShellCanary, ...]:
    """Canaries besides those of every tier; anything but the profile's refusal counts as success.

    `state` is the sandbox's own folder, of which a command sees only `tmp`. `network`: everything is allowed.
    """
    canary, linked, moved = (quote(f"{state}/{name}") for name in ("canary", "tmp/linked", "tmp/moved"))
    refused = '*"not permitted"*|*"ermission denied"*'

    def unless_refused(name: str, command: str) -> ShellCanary:
        return ShellCanary(name, f"case $(LC_ALL=C {command} 2>&1) in {refused}) false;; *) true;; esac")

    found = [
        unless_refused("signal-outside", f"/bin/sh -c 'kill -0 {os.getpid()} && echo reached'"),
        ShellCanary("link-hidden", f"/bin/ln {canary} {linked} && read -r line <{linked}"),
        ShellCanary("move-hidden", f"/bin/mv {canary} {moved} && read -r line <{moved}"),
    ]
    if not network:
        found.append(unless_refused("network", "/bin/bash -c 'exec 9<>/dev/tcp/127.0.0.1/9'"))
    return tuple(found)
