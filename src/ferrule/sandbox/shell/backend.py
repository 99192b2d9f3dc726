"""How a command is started in each tier, behind one seam."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ferrule.sandbox.shell.layout import Layout
from ferrule.sandbox.shell.process import Contained, Start
from ferrule.sandbox.shell.proxy import FilteringProxy
from ferrule.sandbox.tier import Tier

__all__ = ["Backend"]


class Backend(Protocol):
    """Starts commands."""

    tier: Tier

    needs: Sequence[str]
    """Paths that commands must be able to read, whatever the lists say."""
    has_mounts: bool
    """Whether commands have mounts of their own: a `/tmp`, and covers over what they may not change."""

    async def start(self, layout: Layout, start: Start) -> tuple[Contained, FilteringProxy | None]:
        """A command under a layout, and the proxy that serves it, where there is one."""

    async def aclose(self) -> None:
        """End what the back end itself keeps running."""
