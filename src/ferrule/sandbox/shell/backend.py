"""How a command is started in each tier, behind one seam."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Protocol

from ferrule.sandbox.linux.shell_filter import shell_filter
from ferrule.sandbox.shell.bubblewrap import arguments
from ferrule.sandbox.shell.bubblewrapped import Bubblewrapped
from ferrule.sandbox.shell.hosts import HostRules
from ferrule.sandbox.shell.layout import Layout
from ferrule.sandbox.shell.process import Contained, Start, readable
from ferrule.sandbox.shell.proxy import FilteringProxy
from ferrule.sandbox.tier import Tier

__all__ = ["Backend", "BubblewrapBackend"]

# The namespace is the command's alone, so that any port is free.
_PORT = 3128


class Backend(Protocol):
    """Starts commands."""

    tier: Tier

    @property
    def needs(self) -> Sequence[str]:
        """Paths that commands must be able to read, whatever the lists say."""

    @property
    def has_mounts(self) -> bool:
        """Whether commands have mounts of their own: a `/tmp`, and covers over what they may not change."""

    async def start(self, layout: Layout, start: Start) -> tuple[Contained, FilteringProxy | None]:
        """A command under a layout, and the proxy that serves it, where there is one."""

    async def aclose(self) -> None:
        """End what the back end itself keeps running."""


@cache
def _filter() -> bytes:
    # Without routes, sockets reach the command's own loopback and nothing else.
    return shell_filter(network=True)


@dataclass(slots=True)
class BubblewrapBackend:
    """Namespaces made by bubblewrap for each command, and our filter in them."""

    bubblewrap: str
    network: bool | HostRules
    tier: Tier = Tier.FULL

    @property
    def needs(self) -> Sequence[str]:
        """See `Backend`: the interpreter that hands out the socket of the proxy."""
        return () if isinstance(self.network, bool) else (sys.base_prefix, os.path.realpath(sys.executable))

    @property
    def has_mounts(self) -> bool:
        """See `Backend`."""
        return True

    async def start(self, layout: Layout, start: Start) -> tuple[Contained, FilteringProxy | None]:
        """See `Backend`."""
        told = arguments(layout, shares_network=self.network is True)
        program = _filter()
        if isinstance(self.network, bool):
            return await Bubblewrapped.start(self.bubblewrap, told, start, program), None
        return await self._with_proxy(told, start, program, FilteringProxy(self.network))

    async def _with_proxy(
        self, told: Sequence[str], start: Start, program: bytes, proxy: FilteringProxy
    ) -> tuple[Contained, FilteringProxy]:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            source = Path(__file__).with_name("listener.py").read_text(encoding="utf-8")
            python = [os.path.realpath(sys.executable), "-I", "-S", "-c", source, str(theirs.fileno()), str(_PORT)]
            address = f"http://127.0.0.1:{_PORT}"
            proxies = {
                name: address for each in ("http_proxy", "https_proxy", "all_proxy") for name in (each, each.upper())
            }
            local = dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1")
            environment = start.environment | proxies | local
            wrapped = replace(start, argv=[*python, *start.argv], environment=environment)
            contained = await Bubblewrapped.start(self.bubblewrap, told, wrapped, program, (theirs.fileno(),))
            theirs.close()
            try:
                await readable(ours.fileno())
                _, descriptors, _, _ = socket.recv_fds(ours, 16, 1)
            except BaseException:
                await contained.give_up()
                raise
        # None came where Python could not be started inside; it has ended then, and its end says so.
        if descriptors:
            proxy.serve(socket.socket(fileno=descriptors[0]))
        return contained, proxy

    async def aclose(self) -> None:
        """See `Backend`: nothing is kept."""
