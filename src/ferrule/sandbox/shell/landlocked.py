"""The container tier: Landlock and seccomp, put on each command by a launcher."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Any

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.layers import layers
from ferrule.sandbox.linux.shell_filter import shell_filter
from ferrule.sandbox.loops import beside
from ferrule.sandbox.shell.grants import grants
from ferrule.sandbox.shell.launching import Launcher, Stale
from ferrule.sandbox.shell.layout import Layout
from ferrule.sandbox.shell.process import Contained, Start, described
from ferrule.sandbox.shell.proxy import FilteringProxy
from ferrule.sandbox.tier import Tier

__all__ = ["LandlockBackend"]


@cache
def _filter(network: bool) -> str:
    return shell_filter(network, namespaced=False).hex()


class LandlockBackend:
    """Asks one launcher, which is started with the first command and again should it have ended.

    In tier `NONE` the same launcher starts commands without restricting them.
    """

    needs: Sequence[str] = ()  # the launcher is not restricted
    has_mounts: bool = False

    def __init__(self, tier: Tier, network: bool) -> None:
        self.tier, self._network = tier, network
        self._launcher: Launcher | None = None
        self._starting = asyncio.Lock()

    async def start(self, layout: Layout, start: Start) -> tuple[Contained, FilteringProxy | None]:
        """See `Backend`."""
        request = await asyncio.to_thread(self._request, layout, start)
        for _ in range(2):
            launcher = await self._started()
            try:
                kept, _ = await launcher.begin(request, start)
            except Stale:
                await self._end(launcher)
            else:
                return kept, None
        raise SandboxUnavailable("the launcher of shell commands ended as soon as it was started")

    def _request(self, layout: Layout, start: Start) -> dict[str, Any]:
        is_contained = self.tier is not Tier.NONE
        return described(start) | {
            "folder": layout.folder,
            "space": None,
            "filter": _filter(self._network) if is_contained else None,
            "network": self._network,
            "landlock": layers().landlock if is_contained else 0,
            "grants": grants(layout, network=self._network) if is_contained else [],
        }

    async def _started(self) -> Launcher:
        async with self._starting:
            if self._launcher is None:
                self._launcher = await Launcher.start("restricted")
            return self._launcher

    async def _end(self, launcher: Launcher) -> None:
        """Of several commands that found it gone, the first ends it."""
        if launcher is self._launcher:
            self._launcher = None
            await beside(launcher.end)

    async def aclose(self) -> None:
        """See `Backend`: the launcher ends when its socket does."""
        if self._launcher is not None:
            await self._end(self._launcher)
