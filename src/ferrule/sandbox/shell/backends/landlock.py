"""The container tier: a launcher restricts each command with Landlock and seccomp."""

from __future__ import annotations

import asyncio

# Paths are strings here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH110
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ferrule._util.background import run_in_thread
from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.doctor import detect_layers
from ferrule.sandbox.file_versions import Version, read_version
from ferrule.sandbox.paths import is_within_any, list_ancestors
from ferrule.sandbox.shell.access_plan import Access, AccessPlan
from ferrule.sandbox.shell.command import CommandRequest, ContainedProcess
from ferrule.sandbox.shell.launcher_client import Launcher, StaleLauncher, describe_command
from ferrule.sandbox.shell.proxy import FilteringProxy
from ferrule.sandbox.shell.settings import ShellSettings
from ferrule.sandbox.shell.streams import Streams
from ferrule.sandbox.tiers import Tier

__all__ = ["LandlockBackend"]


class LandlockBackend:
    """Uses one launcher, started with the first command and restarted if it has ended.

    In tier `NONE` the same launcher starts commands without restricting them.
    """

    needs: Sequence[str] = ()  # the launcher is not restricted
    has_mounts: bool = False

    def __init__(self, settings: ShellSettings, tier: Tier, *, network: bool) -> None:
        self._settings, self.tier, self._network = settings, tier, network
        self._launcher: Launcher | None = None
        self._starting = asyncio.Lock()
        self._planned: PlannedGrants | None = None

    async def start(
        self, plan: AccessPlan, request: CommandRequest, streams: Streams
    ) -> tuple[ContainedProcess, FilteringProxy | None]:
        """See `Backend`. Raises `SandboxUnavailable` for a request with hosts in the container tier."""
        if request.hosts is not None and self.tier is not Tier.NONE:
            raise SandboxUnavailable("the container tier can't allow single hosts, since Landlock knows only ports")
        is_contained = self.tier is not Tier.NONE
        if is_contained and (self._planned is None or not self._planned.is_for(plan)):
            self._planned = await asyncio.to_thread(PlannedGrants.make, plan, network=self._network)
        grants = self._planned.grants if is_contained and self._planned is not None else []
        message = self._make_message(plan, request, grants)
        for _ in range(2):
            launcher = await self._get_launcher()
            try:
                process, _ = await launcher.begin(message, streams)
            except StaleLauncher:
                await self._end(launcher)
            else:
                return process, None
        raise SandboxUnavailable("the launcher of shell commands ended right after its start")

    def _make_message(self, plan: AccessPlan, request: CommandRequest, grants: Sequence[Grant]) -> dict[str, Any]:
        is_contained = self.tier is not Tier.NONE
        return describe_command(self._settings, request) | {
            "folder": plan.folder,
            "namespaces": None,
            "network": self._network,
            "landlock": detect_layers().landlock if is_contained else 0,
            "grants": grants,
        }

    async def _get_launcher(self) -> Launcher:
        async with self._starting:
            if self._launcher is None:
                sockets = None if self.tier is Tier.NONE else self._network
                self._launcher = await Launcher.start("landlock", {"sockets": sockets})
            return self._launcher

    async def _end(self, launcher: Launcher) -> None:
        """End a launcher once, even if several commands found it gone."""
        if launcher is self._launcher:
            self._launcher = None
            await run_in_thread(launcher.end)

    async def aclose(self) -> None:
        """See `Backend`: the launcher ends when its socket does."""
        if self._launcher is not None:
            await self._end(self._launcher)


Grant = tuple[str, str]
"""A path, and `read`, `write` or `list`."""

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
# About the machine, not processes: /proc/PID would show how others were started.
_PROC_FILES = ("cpuinfo", "meminfo", "stat", "uptime", "loadavg", "version", "filesystems", "sys/kernel/osrelease")
_ORDER = {Access.HIDDEN: 0, Access.READ: 1, Access.WRITE: 2}


@dataclass(frozen=True, slots=True)
class PlannedGrants:
    """The grants for a plan, as long as no folder has changed that they were found in."""

    plan: AccessPlan
    grants: Sequence[Grant]
    folders: Mapping[str, Version | None]
    """The folders in which single entries are granted, with their versions."""

    @classmethod
    def make(cls, plan: AccessPlan, *, network: bool) -> PlannedGrants:
        """Make the grants for Landlock, for paths that exist now."""
        grants = [(f"/dev/{name}", "write") for name in _DEVICES]
        grants += [(f"/proc/{name}", "read") for name in _PROC_FILES] + [("/sys/devices/system/cpu", "read")]
        grants += [(os.path.realpath("/etc/resolv.conf"), "read")] if network else []
        there = [grant for grant in grants if os.path.exists(grant[0])]
        walk = _GrantWalk(plan)
        found = [*walk.list_grants("/", Access.HIDDEN), (plan.scratch, "write"), *there]
        return cls(plan, found, walk.folders)

    def is_for(self, plan: AccessPlan) -> bool:
        """Whether they can be used for a plan."""
        is_same = self.plan is plan and None not in self.folders.values()
        return is_same and all(read_version(path) == version for path, version in self.folders.items())


class _GrantWalk:
    """Descends into folders as far as there are deeper rules."""

    def __init__(self, plan: AccessPlan) -> None:
        self._rules, self._roots = dict(plan.rules), plan.roots
        self.folders: dict[str, Version | None] = {}
        # For each folder above a rule, the accesses of the rules below it.
        self._deeper: dict[str, set[Access]] = {}
        for path, access in plan.rules:
            for folder in list_ancestors(path):
                self._deeper.setdefault(folder, set()).add(access)

    def list_grants(self, path: str, inherited: Access) -> Iterator[Grant]:
        """The grants for a path and everything below it; `inherited` applies to what has no rule."""
        access = self._rules.get(path, inherited)
        deeper = self._deeper.get(path, set())
        is_whole = access is not Access.HIDDEN and all(_ORDER[each] >= _ORDER[access] for each in deeper)
        if is_whole:
            yield path, access.value
        elif is_within_any(path, self._roots) and access is not Access.HIDDEN:
            yield path, "list"
        if deeper:
            self.folders[path] = read_version(path)
            for name in _list_entries(path):
                inner = f"{path.rstrip('/')}/{name}"
                if not is_whole or inner in self._rules or inner in self._deeper:
                    yield from self.list_grants(inner, access)


def _list_entries(path: str) -> list[str]:
    """The names in a folder, without links, since a grant would apply to a link's target."""
    try:
        return [entry.name for entry in os.scandir(path) if not entry.is_symlink()]
    except OSError:
        return []
