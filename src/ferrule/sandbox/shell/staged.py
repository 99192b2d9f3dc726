"""The full tier: a launcher among the mounts that bubblewrap makes, kept for all commands that are to see the same.

Making the mounts takes longer than any command that does nothing; a copy of them, in which a command has its own
processes, takes a tenth of that. What appears in the workspace meanwhile is covered in the copy.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.linux.shell_filter import shell_filter
from ferrule.sandbox.loops import beside
from ferrule.sandbox.shell.bubblewrap import LAUNCHER, arguments
from ferrule.sandbox.shell.hosts import HostRules
from ferrule.sandbox.shell.launching import INTERPRETER, PACKAGE, Kept, Launcher, Stale
from ferrule.sandbox.shell.layout import Access, Layout, ancestors
from ferrule.sandbox.shell.places import is_within
from ferrule.sandbox.shell.process import Contained, Ending, Start, described
from ferrule.sandbox.shell.proxy import FilteringProxy, proxy_variables
from ferrule.sandbox.tier import Tier

__all__ = ["BubblewrapBackend"]

# With rules for hosts a command's network namespace is its alone, so that any port is free.
_PORT = 3128
_MOST_STAGES = 4
_TRIES = 3


@cache
def _filter() -> str:
    # Without routes, sockets reach the loopback of the sandbox and nothing else.
    return shell_filter(network=True).hex()


@dataclass(slots=True, eq=False)
class _Stage:
    """A launcher, and the rules of the mounts that it sees."""

    launcher: Launcher
    rules: Mapping[str, Access]
    running: int = 0
    is_stale: bool = False

    def covers(self, layout: Layout) -> list[tuple[str, str]] | None:
        """What of a layout isn't mounted here yet, None where it takes other mounts.

        A rule here whose path is gone, and its mount with it, is none any more.
        """
        wanted = dict(layout.rules)
        for path, access in self.rules.items():
            if wanted.get(path, access) is not access or (path not in wanted and os.path.lexists(path)):
                return None
        new = {path: access for path, access in wanted.items() if path not in self.rules}
        for path, access in new.items():
            around = next(wanted[each] for each in ancestors(path) if each in wanted)
            is_held = access is Access.WRITE and around is access
            # A mount shuts off those that are within it already.
            within = self.rules if is_held else wanted
            if (access is Access.WRITE and not is_held) or not is_within(path, layout.workspace):
                return None
            if any(each != path and is_within(each, path) for each in within):
                return None
        return [(path, access.value) for path, access in new.items()]


class _Staged:
    """A command on a stage, which is kept at least as long."""

    def __init__(self, kept: Kept, stage: _Stage) -> None:
        self._kept, self._stage = kept, stage

    async def ended(self) -> Ending:
        """See `Contained`."""
        return await self._kept.ended()

    def terminate(self) -> None:
        """See `Contained`."""
        self._kept.terminate()

    def kill(self) -> None:
        """See `Contained`."""
        self._kept.kill()

    def close(self) -> None:
        """See `Contained`."""
        self._kept.close()
        self._stage.running -= 1


class BubblewrapBackend:
    """Mounts and namespaces made by bubblewrap, below them a command's own, and our filter in those."""

    tier: Tier = Tier.FULL
    needs: Sequence[str] = (sys.base_prefix, INTERPRETER)  # the launcher's
    has_mounts: bool = True

    def __init__(self, bubblewrap: str, network: bool | HostRules) -> None:
        self._bubblewrap, self._network = bubblewrap, network
        self._stages: list[_Stage] = []
        self._starting = asyncio.Lock()

    async def start(self, layout: Layout, start: Start) -> tuple[Contained, FilteringProxy | None]:
        """See `Backend`."""
        proxy = None if isinstance(self._network, bool) else FilteringProxy(self._network)
        started = start if proxy is None else replace(start, environment=start.environment | proxy_variables(_PORT))
        for _ in range(_TRIES):
            stage, covers = await self._stage(layout)
            try:
                kept, descriptors = await stage.launcher.begin(self._request(layout, started, stage, covers), started)
            except Stale:
                stage.is_stale, stage.running = True, stage.running - 1
                continue
            except BaseException:
                stage.running -= 1
                raise
            if proxy is not None and descriptors:
                proxy.serve(socket.socket(fileno=descriptors[0]))
            return _Staged(kept, stage), proxy
        raise SandboxUnavailable("what is hidden or protected was replaced again and again while a command was started")

    def _request(
        self, layout: Layout, start: Start, stage: _Stage, covers: Sequence[tuple[str, str]]
    ) -> dict[str, Any]:
        wanted = dict(layout.rules)
        return described(start) | {
            "folder": layout.folder,
            "filter": _filter(),
            "space": {
                "port": None if isinstance(self._network, bool) else _PORT,
                "mounted": [path for path in stage.rules if path in wanted and path != "/proc"],
                "covers": covers,
            },
        }

    async def _stage(self, layout: Layout) -> tuple[_Stage, list[tuple[str, str]]]:
        """The stage for a layout and one command more, and what that one has to cover. The last one used comes last."""
        async with self._starting:
            await self._clear()
            for stage in reversed(self._stages):
                covers = stage.covers(layout) if not stage.is_stale else None
                if covers is not None:
                    self._stages.remove(stage)
                    break
            else:
                stage = await self._started(layout)
                covers = stage.covers(layout)
            self._stages.append(stage)
            if covers is None:
                raise SandboxUnavailable(f"protected places within one another can't be covered: {layout.placeholders}")
            stage.running += 1
            return stage, covers

    async def _started(self, layout: Layout) -> _Stage:
        # A placeholder goes with the commands that it is made for, and its mount with it.
        lasting = tuple(rule for rule in layout.rules if rule[0] not in layout.placeholders)
        told = arguments(replace(layout, rules=lasting), shares_network=self._network is True, package=PACKAGE)
        # In a file: as its arguments they would be too long to look through in a list of processes.
        listed = os.memfd_create("arguments", os.MFD_CLOEXEC)
        try:
            os.write(listed, os.fsencode("\0".join([*told, ""])))
            os.lseek(listed, 0, os.SEEK_SET)
            kind = "spaced" if isinstance(self._network, bool) else "alone"
            wrapper = (self._bubblewrap, "--args", str(listed), "--")
            return _Stage(await Launcher.start(kind, wrapper, package=LAUNCHER, passed=[listed]), dict(lasting))
        finally:
            os.close(listed)

    async def _clear(self) -> None:
        """End stages that nothing runs on and that are stale, or too many."""
        idle = [stage for stage in self._stages if not stage.running]
        over = [stage for stage in idle if stage.is_stale] or idle[: max(0, len(self._stages) - _MOST_STAGES + 1)]
        for stage in over:
            self._stages.remove(stage)
            await beside(stage.launcher.end)

    async def aclose(self) -> None:
        """See `Backend`."""
        while self._stages:
            with suppress(OSError):
                await beside(self._stages.pop().launcher.end)
