"""The full tier: a launcher among mounts of its own, command for all commands that are to see the same.

Making the mounts takes longer than any command that does nothing; a copy of them, in which a command has its own
processes, takes a tenth of that. What appears in the workspace meanwhile is covered in the copy.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys

# Paths are text here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH110, PTH112, PTH118, PTH120
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.linux.command_root import Mount
from ferrule.sandbox.linux.shell_filter import make_shell_filter
from ferrule.sandbox.scheduling import run_in_thread
from ferrule.sandbox.shell.access_plan import REPLACED, Access, AccessPlan, Mode, list_ancestors
from ferrule.sandbox.shell.host_rules import HostRules
from ferrule.sandbox.shell.launcher_client import INTERPRETER, Launcher, StaleLauncher, SupervisedCommand
from ferrule.sandbox.shell.process import CommandStart, ContainedProcess, ShellExit, describe_start
from ferrule.sandbox.shell.proxy import FilteringProxy, make_proxy_variables
from ferrule.sandbox.tiers import Tier
from ferrule.sandbox.visible_paths import is_within

# What a program wants to know of the processor, and no more of the machine.
_PROCESSORS = "/sys/devices/system/cpu"
_RESOLVER = "/etc/resolv.conf"


def resolve_replaced_folders(plan: AccessPlan) -> AccessPlan:
    """The plan with a rule for what `REPLACED` comes to on this machine, where some may be links, or not there."""
    rules = dict(plan.rules)
    for path in REPLACED:
        if path in rules and os.path.realpath(path) != path:
            rules.setdefault(os.path.realpath(path), rules.pop(path))
        elif path in rules and not os.path.isdir(path):
            del rules[path]
    return replace(plan, rules=tuple(sorted(rules.items())))


def plan_mounts(plan: AccessPlan, *, shares_network: bool) -> list[Mount]:
    """The mounts for a plan, each after what it lies on."""
    mounts = [mount for path, access in plan.rules for mount in _plan_rule_mounts(path, access, plan)]
    resolver = os.path.realpath(_RESOLVER)
    # It is often a link into /run, which is replaced.
    if (
        shares_network
        and os.path.exists(resolver)
        and any(is_within(resolver, each) for each in _find_empty_folders(mounts))
    ):
        mounts.append(("read", resolver, resolver))
    return mounts


def _find_empty_folders(mounts: Iterable[Mount]) -> list[str]:
    return [path for kind, path, _ in mounts if kind == "empty"]


def _plan_rule_mounts(path: str, access: Access, plan: AccessPlan) -> Iterator[Mount]:
    """Those for one rule."""
    if access is not Access.HIDDEN:
        yield access.value, path, path
    elif path in {"/proc", "/dev"}:
        yield path[1:], path, ""
    elif path in map(os.path.realpath, ("/tmp", "/var/tmp")) and plan.mode is not Mode.FULL:
        yield "write", path, plan.scratch
    elif path == "/sys":
        yield "empty", path, "0755"
        if os.path.isdir(_PROCESSORS):
            yield "read", _PROCESSORS, _PROCESSORS
    elif os.path.isdir(path):
        # It can be passed through, since the workspace may lie below, and not be listed.
        yield "empty", path, "0111"
    elif is_within(path, plan.workspace):
        # A device on a mount without devices: opening it is refused, which tells more than an empty file.
        yield "read", path, "/dev/null"
    else:
        # Programs expect to read their own settings: an empty file passes where a refusal stops npm or pip.
        yield "read", path, os.path.join(os.path.dirname(plan.scratch), "empty")


__all__ = ["NamespaceBackend"]

# With rules for hosts a command's network namespace is its alone, so that any port is free.
_PORT = 3128
_MAX_LAUNCHERS = 4
_MAX_COVERS = 100
_TRIES = 3


@cache
def _make_filter() -> str:
    # Without routes, sockets reach the loopback of the sandbox and nothing else.
    return make_shell_filter(network=True).hex()


@dataclass(slots=True, eq=False)
class _MountedLauncher:
    """A launcher, and the rules of the mounts that it sees."""

    launcher: Launcher
    rules: Mapping[str, Access]
    running: int = 0
    is_stale: bool = False

    def find_missing_covers(self, plan: AccessPlan) -> list[tuple[str, str]] | None:
        """What of a plan isn't mounted here yet, None where it takes other mounts.

        A rule here whose path is gone, and its mount with it, is none any more.
        """
        wanted = dict(plan.rules)
        for path, access in self.rules.items():
            if wanted.get(path, access) is not access or (path not in wanted and os.path.lexists(path)):
                return None
        new = {path: access for path, access in wanted.items() if path not in self.rules}
        if len(new) - len(plan.placeholders) > _MAX_COVERS:
            return None  # which would take longer than to mount all of it once
        for path, access in new.items():
            around = next(wanted[each] for each in list_ancestors(path) if each in wanted)
            is_held = access is Access.WRITE and around is access
            # A mount shuts off those that are within it already.
            within = self.rules if is_held else wanted
            if (access is Access.WRITE and not is_held) or not is_within(path, plan.workspace):
                return None
            if any(each != path and is_within(each, path) for each in within):
                return None
        return [(path, access.value) for path, access in new.items()]


class _NamespaceCommand:
    """A command on a mounted, which is command at least as long."""

    def __init__(self, command: SupervisedCommand, mounted: _MountedLauncher) -> None:
        self._command, self._mounted = command, mounted

    async def wait_until_ended(self) -> ShellExit:
        """See `ContainedProcess`."""
        return await self._command.wait_until_ended()

    def terminate(self) -> None:
        """See `ContainedProcess`."""
        self._command.terminate()

    def kill(self) -> None:
        """See `ContainedProcess`."""
        self._command.kill()

    def close(self) -> None:
        """See `ContainedProcess`."""
        self._command.close()
        self._mounted.running -= 1


class NamespaceBackend:
    """Mounts and namespaces of the sandbox, below them a command's own, and our filter in those."""

    tier: Tier = Tier.FULL
    # Environments of the workspace may have been made from it, wherever it lies.
    needs: Sequence[str] = (sys.base_prefix, INTERPRETER)
    has_mounts: bool = True

    def __init__(self, network: bool | HostRules) -> None:
        self._network = network
        self._launchers: list[_MountedLauncher] = []
        self._starting = asyncio.Lock()

    async def start(self, plan: AccessPlan, start: CommandStart) -> tuple[ContainedProcess, FilteringProxy | None]:
        """See `Backend`."""
        plan = resolve_replaced_folders(plan)
        proxy = None if isinstance(self._network, bool) else FilteringProxy(self._network)
        started = (
            start if proxy is None else replace(start, environment=start.environment | make_proxy_variables(_PORT))
        )
        for _ in range(_TRIES):
            mounted, missing_covers = await self._choose_launcher(plan)
            try:
                command, descriptors = await mounted.launcher.begin(
                    self._make_request(plan, started, mounted, missing_covers), started
                )
            except StaleLauncher:
                mounted.is_stale, mounted.running = True, mounted.running - 1
                continue
            except BaseException:
                mounted.running -= 1
                raise
            if proxy is not None and descriptors:
                proxy.serve(socket.socket(fileno=descriptors[0]))
            return _NamespaceCommand(command, mounted), proxy
        raise SandboxUnavailable("what is hidden or protected was replaced again and again while a command was started")

    def _make_request(
        self,
        plan: AccessPlan,
        start: CommandStart,
        mounted: _MountedLauncher,
        missing_covers: Sequence[tuple[str, str]],
    ) -> dict[str, Any]:
        wanted = dict(plan.rules)
        return describe_start(start) | {
            "folder": plan.folder,
            "filter": _make_filter(),
            "namespaces": {
                "port": None if isinstance(self._network, bool) else _PORT,
                "mounted": [path for path in mounted.rules if path in wanted and path != "/proc"],
                "covers": missing_covers,
            },
        }

    async def _choose_launcher(self, plan: AccessPlan) -> tuple[_MountedLauncher, list[tuple[str, str]]]:
        """The mounted for a plan and one command more, and what that one has to cover. The last one used comes last."""
        async with self._starting:
            await self._end_unused()
            for mounted in reversed(self._launchers):
                missing_covers = mounted.find_missing_covers(plan) if not mounted.is_stale else None
                if missing_covers is not None:
                    self._launchers.remove(mounted)
                    break
            else:
                mounted = await self._start_launcher(plan)
                missing_covers = mounted.find_missing_covers(plan)
            self._launchers.append(mounted)
            if missing_covers is None:
                raise SandboxUnavailable(f"protected places within one another can't be covered: {plan.placeholders}")
            mounted.running += 1
            return mounted, missing_covers

    async def _start_launcher(self, plan: AccessPlan) -> _MountedLauncher:
        # A placeholder goes with the commands that it is made for, and its mount with it.
        lasting = tuple(rule for rule in plan.rules if rule[0] not in plan.placeholders)
        mounts = plan_mounts(replace(plan, rules=lasting), shares_network=self._network is True)
        kind = "namespaces" if isinstance(self._network, bool) else "own-network"
        settings = {"mounts": mounts, "network": self._network is not True}
        return _MountedLauncher(await Launcher.start(kind, settings), dict(lasting))

    async def _end_unused(self) -> None:
        """End stages that nothing runs on and that are stale, or too many."""
        idle = [mounted for mounted in self._launchers if not mounted.running]
        over = [mounted for mounted in idle if mounted.is_stale] or idle[
            : max(0, len(self._launchers) - _MAX_LAUNCHERS + 1)
        ]
        for mounted in over:
            self._launchers.remove(mounted)
            await run_in_thread(mounted.launcher.end)

    async def aclose(self) -> None:
        """See `Backend`."""
        while self._launchers:
            with suppress(OSError):
                await run_in_thread(self._launchers.pop().launcher.end)
