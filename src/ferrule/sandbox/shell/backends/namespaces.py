"""The full tier: a launcher in its own mount namespace, reused for all commands that should see the same mounts.

Making the mounts takes longer than running a trivial command; copying them for a command, which gets its own processes,
takes a tenth of that. Files that appear in the workspace meanwhile are covered in the copy.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys

# Paths are strings here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH110, PTH112, PTH118, PTH120
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ferrule._util.background import run_in_thread
from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.linux.command_root import Mount
from ferrule.sandbox.paths import is_within, is_within_any, list_ancestors
from ferrule.sandbox.shell.access_plan import REPLACED, Access, AccessPlan, Mode
from ferrule.sandbox.shell.command import CommandRequest, ContainedProcess
from ferrule.sandbox.shell.host_rules import HostRules
from ferrule.sandbox.shell.launcher_client import INTERPRETER, Launcher, StaleLauncher, describe_command
from ferrule.sandbox.shell.proxy import FilteringProxy, make_proxy_variables
from ferrule.sandbox.shell.settings import ShellSettings
from ferrule.sandbox.shell.streams import Streams
from ferrule.sandbox.tiers import Tier

# Processor information that programs need; nothing else about the machine is shown.
_PROCESSORS = "/sys/devices/system/cpu"
_RESOLVER = "/etc/resolv.conf"


def resolve_replaced_folders(plan: AccessPlan) -> AccessPlan:
    """Resolve the plan's rules for `REPLACED`, which on this machine may be links or missing."""
    rules = dict(plan.rules)
    for path in REPLACED:
        if path in rules and os.path.realpath(path) != path:
            rules.setdefault(os.path.realpath(path), rules.pop(path))
        elif path in rules and not os.path.isdir(path):
            del rules[path]
    return replace(plan, rules=tuple(sorted(rules.items())))


def plan_mounts(plan: AccessPlan, *, shares_network: bool) -> list[Mount]:
    """The mounts for a plan, each after its parent."""
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
    """The mounts for one rule."""
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
    elif os.path.isdir(path) and is_within_any(path, plan.roots) and not _has_deeper(plan, path):
        # Git takes a tracked file in it for inaccessible. If the folder could be entered, it would take it for deleted.
        yield "empty", path, "0000"
    elif os.path.isdir(path):
        # It can be traversed, since the workspace may be below it, but not listed.
        yield "empty", path, "0111"
    elif path in plan.copies:
        yield "read", path, plan.copies[path]
    elif is_within_any(path, plan.roots):
        # A device on a nodev mount: opening it fails, which is clearer than an empty file.
        yield "read", path, "/dev/null"
    else:
        # Programs expect to read their own settings: npm and pip accept an empty file, but stop on a refusal.
        yield "read", path, os.path.join(os.path.dirname(plan.scratch), "empty")


def _has_deeper(plan: AccessPlan, path: str) -> bool:
    return any(is_within(each, path) for each, _ in plan.rules if each != path)


__all__ = ["NamespaceBackend"]

# A command that may reach hosts has its own network namespace, so any port is free and no other command can use its
# proxy. A proxy that allows nothing may be seen by others, so it is in the network that all commands share.
_OWN_NETWORK, _SHARED_NETWORK = "own-network", "namespaces"
_PORT = 3128
_ANY_PORT = 0
_MAX_LAUNCHERS = 4
_MAX_COVERS = 100
_TRIES = 3


@dataclass(frozen=True, slots=True)
class _Covers:
    """The paths of a plan that a launcher has mounts for, and what to mount over those that it hasn't."""

    mounted: Sequence[str]
    missing: Sequence[tuple[str, str]]


@dataclass(slots=True, eq=False)
class _MountedLauncher:
    """A launcher, and the rules that its mounts enforce."""

    launcher: Launcher
    rules: Mapping[str, Access]
    kind: str
    """Whether each command gets a network of its own, as `launcher.py` describes it."""
    copies: Mapping[str, str]
    running: int = 0
    """How many commands need it; it ends after the last one is closed."""
    is_stale: bool = False
    _last: tuple[AccessPlan | None, _Covers | None] = (None, None)

    def close(self, process: ContainedProcess) -> None:
        """Close one of its commands."""
        process.close()
        self.running -= 1

    def find_covers(self, plan: AccessPlan) -> _Covers | None:
        """What to mount for a plan, which is the same for the same plan; None if it needs other mounts."""
        if self._last[0] is not plan:
            missing = self._find_missing_covers(plan)
            mounted = [path for path, _ in plan.rules if path in self.rules and path != "/proc"]
            self._last = plan, None if missing is None else _Covers(mounted, missing)
        return self._last[1]

    def _find_missing_covers(self, plan: AccessPlan) -> list[tuple[str, str]] | None:
        """The plan's rules that aren't mounted here yet; None if the plan needs other mounts.

        A rule whose path was deleted lost its mount too, and is ignored.
        """
        wanted = dict(plan.rules)
        if self.copies != plan.copies:
            return None
        for path, access in self.rules.items():
            if wanted.get(path, access) is not access or (path not in wanted and os.path.lexists(path)):
                return None
        new = {path: access for path, access in wanted.items() if path not in self.rules}
        if len(new) - len(plan.placeholders) > _MAX_COVERS:
            return None  # slower than mounting everything anew
        for path, access in new.items():
            enclosing = next(wanted[each] for each in list_ancestors(path) if each in wanted)
            is_held = access is Access.WRITE and enclosing is access
            # A new mount hides those already within it.
            within = self.rules if is_held else wanted
            if (access is Access.WRITE and not is_held) or not is_within_any(path, (*plan.roots, *plan.granted)):
                return None
            if any(each != path and is_within(each, path) for each in within):
                return None
        return [(path, access.value) for path, access in new.items()]


class NamespaceBackend:
    """Runs each command in its own namespaces, nested in the sandbox's, with a seccomp filter."""

    tier: Tier = Tier.FULL
    # Virtual environments in the workspace may be based on this interpreter, wherever it is.
    needs: Sequence[str] = (sys.base_prefix, INTERPRETER)
    has_mounts: bool = True

    def __init__(self, settings: ShellSettings, network: bool | HostRules) -> None:
        self._settings, self._network = settings, network
        self._launchers: list[_MountedLauncher] = []
        self._starting = asyncio.Lock()
        self._resolved: tuple[AccessPlan, AccessPlan] | None = None
        """The last plan, and the same with the folders that are replaced resolved."""

    async def start(
        self, plan: AccessPlan, request: CommandRequest, streams: Streams
    ) -> tuple[ContainedProcess, FilteringProxy | None]:
        """See `Backend`."""
        if self._resolved is None or self._resolved[0] is not plan:
            self._resolved = plan, resolve_replaced_folders(plan)
        plan = self._resolved[1]
        network = self._network if request.hosts is None else request.hosts
        proxy = None if isinstance(network, bool) else FilteringProxy(network)
        kind = _SHARED_NETWORK if isinstance(network, bool) or network.allow_nothing else _OWN_NETWORK
        for _ in range(_TRIES):
            entry, covers = await self._choose_launcher(plan, kind)
            try:
                message = self._make_message(plan, request, entry.kind, covers, has_proxy=proxy is not None)
                process, descriptors = await entry.launcher.begin(message, streams)
            except StaleLauncher:
                entry.is_stale, entry.running = True, entry.running - 1
                continue
            except BaseException:
                entry.running -= 1
                raise
            if proxy is not None and descriptors:
                proxy.serve(socket.socket(fileno=descriptors[0]))
            return replace(process, close=partial(entry.close, process)), proxy
        raise SandboxUnavailable("hidden or protected files were repeatedly replaced while a command was being started")

    def _make_message(
        self, plan: AccessPlan, request: CommandRequest, kind: str, covers: _Covers, *, has_proxy: bool
    ) -> dict[str, Any]:
        port = None
        if has_proxy:
            port = _PORT if kind == _OWN_NETWORK else _ANY_PORT
        return describe_command(self._settings, request) | {
            "folder": plan.folder,
            "namespaces": {
                "port": port,
                "proxy_variables": make_proxy_variables("{port}") if has_proxy else {},
                "mounted": covers.mounted,
                "covers": covers.missing,
            },
        }

    async def _choose_launcher(self, plan: AccessPlan, kind: str) -> tuple[_MountedLauncher, _Covers]:
        """Find or start a launcher for one more command; returns it and what to cover. The last used is listed last."""
        async with self._starting:
            await self._end_unused()
            for entry in reversed(self._launchers):
                is_fitting = entry.kind == kind and not entry.is_stale
                covers = entry.find_covers(plan) if is_fitting else None
                if covers is not None:
                    self._launchers.remove(entry)
                    break
            else:
                entry = await self._start_launcher(plan, kind)
                covers = entry.find_covers(plan)
            self._launchers.append(entry)
            if covers is None:
                raise SandboxUnavailable(f"nested protected paths can't be covered: {plan.placeholders}")
            entry.running += 1
            return entry, covers

    async def _start_launcher(self, plan: AccessPlan, kind: str) -> _MountedLauncher:
        # A placeholder, and so its mount, is removed after the commands that it was made for.
        lasting = tuple(rule for rule in plan.rules if rule[0] not in plan.placeholders)
        mounts = plan_mounts(replace(plan, rules=lasting), shares_network=self._network is True)
        # Without routes, sockets reach only the sandbox's loopback.
        settings = {"mounts": mounts, "network": self._network is not True, "sockets": True}
        return _MountedLauncher(await Launcher.start(kind, settings), dict(lasting), kind, plan.copies)

    async def _end_unused(self) -> None:
        """End idle launchers that are stale, or else too many."""
        idle = [entry for entry in self._launchers if not entry.running]
        over = [entry for entry in idle if entry.is_stale] or idle[: max(0, len(self._launchers) - _MAX_LAUNCHERS + 1)]
        for entry in over:
            self._launchers.remove(entry)
            await run_in_thread(entry.launcher.end)

    async def aclose(self) -> None:
        """See `Backend`."""
        while self._launchers:
            with suppress(OSError):
                await run_in_thread(self._launchers.pop().launcher.end)
