"""The container tier: Landlock and seccomp, put on by a launcher that is a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.layers import layers
from ferrule.sandbox.linux.shell_filter import shell_filter
from ferrule.sandbox.loops import beside
from ferrule.sandbox.shell.grants import grants
from ferrule.sandbox.shell.layout import Layout
from ferrule.sandbox.shell.limits import limits
from ferrule.sandbox.shell.process import Contained, Ending, Start, readable
from ferrule.sandbox.shell.proxy import FilteringProxy
from ferrule.sandbox.tier import Tier

__all__ = ["LandlockBackend"]


@cache
def _filter(network: bool) -> str:
    return shell_filter(network, namespaced=False).hex()


class LandlockBackend:
    """Sends requests to one launcher, which is started with the first of them and again should it have ended.

    In tier `NONE` the same launcher starts commands without restricting them.
    """

    def __init__(self, tier: Tier, network: bool) -> None:
        self.tier, self._network = tier, network
        self._launcher: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    @property
    def needs(self) -> Sequence[str]:
        """See `Backend`: nothing, for the launcher is not restricted."""
        return ()

    @property
    def has_mounts(self) -> bool:
        """See `Backend`."""
        return False

    async def start(self, layout: Layout, start: Start) -> tuple[Contained, FilteringProxy | None]:
        """See `Backend`."""
        request = await asyncio.to_thread(self._request, layout, start)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        described = os.memfd_create("request", os.MFD_CLOEXEC)
        try:
            with theirs, os.fdopen(described, "wb") as file:
                file.write(request)
                file.flush()
                os.lseek(described, 0, os.SEEK_SET)
                self._send([described, *start.streams, theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        ours.setblocking(False)
        return Landlocked(ours), None

    def _request(self, layout: Layout, start: Start) -> bytes:
        is_contained = self.tier is not Tier.NONE
        filter_ = _filter(self._network) if is_contained else None
        return json.dumps(
            {
                "argv": list(start.argv),
                "environment": start.environment,
                "folder": layout.folder,
                "limits": limits(start),
                "filter": filter_,
                "network": self._network,
                "landlock": layers().landlock if is_contained else 0,
                "grants": grants(layout, network=self._network) if is_contained else [],
            }
        ).encode()

    def _send(self, descriptors: list[int]) -> None:
        for _ in range(2):
            if self._requests is None or self._launcher is None or self._launcher.poll() is not None:
                self._begin()
            assert self._requests is not None
            with suppress(BrokenPipeError, ConnectionResetError):
                socket.send_fds(self._requests, [b"r"], descriptors)
                return
            self._end()
        raise SandboxUnavailable("the launcher of shell commands ended as soon as it was started")

    def _begin(self) -> None:
        self._end()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        root = str(Path(__file__).parents[3])
        program = str(Path(__file__).with_name("launcher.py"))
        with theirs:
            self._launcher = subprocess.Popen(
                [sys.executable, "-I", "-S", program, root, str(theirs.fileno())],
                env={},
                cwd="/",
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._requests = ours

    def _end(self) -> None:
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._launcher is not None:
            self._launcher.wait()
            self._launcher = None

    async def aclose(self) -> None:
        """See `Backend`: the launcher ends when its socket does."""
        await beside(self._end)


class Landlocked:
    """One command, through the keeper that watches it."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line

    async def ended(self) -> Ending:
        """See `Contained`."""
        await readable(self._line.fileno())
        message = self._line.recv(65536)
        if not message:
            raise SandboxUnavailable("the process that watched the command ended before it")
        told = json.loads(message)
        if "error" in told:
            raise SandboxUnavailable(f"the command could not be contained: {told['error']}")
        return Ending.of_status(told["exit"]) if "exit" in told else Ending(None, told["signal"])

    def terminate(self) -> None:
        """See `Contained`."""
        self._tell(b"T")

    def kill(self) -> None:
        """See `Contained`."""
        self._tell(b"K")

    def close(self) -> None:
        """See `Contained`."""
        self._line.close()

    def _tell(self, what: bytes) -> None:
        with suppress(OSError):
            self._line.send(what)
