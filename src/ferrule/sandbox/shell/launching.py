"""This side of `launcher.py`: the launcher's process, and each command that it keeps."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.shell.process import Ending, Start, readable

__all__ = ["INTERPRETER", "PACKAGE", "Kept", "Launcher", "Stale"]

INTERPRETER = os.path.realpath(sys.executable)
PACKAGE = str(Path(__file__).parents[2])
"""The folder that the launcher's modules lie in: `ferrule` itself."""

_PROGRAM = "sandbox/shell/launcher.py"
_LONGEST = 65_536


class Stale(Exception):  # noqa: N818 - what happened
    """The launcher has ended, or what it was started among isn't what was asked for any more: start another."""


class Launcher:
    """A process that starts commands, and ends with all of them when it is ended."""

    def __init__(self, process: subprocess.Popen[bytes], requests: socket.socket, errors: int) -> None:
        self._process, self._requests, self._errors = process, requests, errors

    @classmethod
    async def start(
        cls, kind: str, wrapper: Sequence[str] = (), *, package: str = PACKAGE, passed: Sequence[int] = ()
    ) -> Launcher:
        """Start one, under the program `wrapper` where there is one, and wait until it takes requests.

        `kind` is as `launcher.py` has it, `package` is where the wrapped program finds `ferrule`. Raises
        `SandboxUnavailable` with what was said instead.
        """
        requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        errors = os.memfd_create("errors", os.MFD_CLOEXEC)
        program = [INTERPRETER, "-I", "-S", f"{package}/{_PROGRAM}", str(Path(package).parent)]
        try:
            with theirs:
                process = _spawned([*wrapper, *program, str(theirs.fileno()), kind], errors, (theirs.fileno(), *passed))
        except BaseException:
            requests.close()
            os.close(errors)
            raise
        launcher = cls(process, requests, errors)
        try:
            await launcher._is_ready()
        except BaseException:
            launcher.end()
            raise
        return launcher

    async def _is_ready(self) -> None:
        await readable(self._requests.fileno())
        if not self._requests.recv(_LONGEST):
            self._process.wait()
            said = os.pread(self._errors, _LONGEST, 0).decode(errors="replace").strip()
            raise SandboxUnavailable(f"the launcher of shell commands did not start: {said}")

    async def begin(self, request: Mapping[str, Any], start: Start) -> tuple[Kept, Sequence[int]]:
        """A command that has begun, and the descriptors that came with the news.

        Raises `Stale` where nothing has been started, `SandboxUnavailable` where it could not be contained.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        kept = Kept(ours)
        try:
            with theirs:
                self._send(request, start, theirs)
            told, descriptors = await kept.told()
            if not told or told.get("stale"):
                raise Stale
            if "error" in told:
                raise SandboxUnavailable(f"the command could not be contained: {told['error']}")
        except BaseException:
            kept.kill()
            with suppress(SandboxUnavailable):
                await asyncio.shield(asyncio.create_task(kept.ended()))
            kept.close()
            raise
        return kept, descriptors

    def end(self) -> None:
        """End it and its commands, and wait until they are gone. Not to be called twice."""
        self._requests.close()
        self._process.wait()
        os.close(self._errors)

    def _send(self, request: Mapping[str, Any], start: Start, line: socket.socket) -> None:
        with os.fdopen(os.memfd_create("request", os.MFD_CLOEXEC), "wb") as file:
            file.write(json.dumps(request).encode())
            file.flush()
            file.seek(0)
            try:
                socket.send_fds(self._requests, [b"r"], [file.fileno(), *start.streams, line.fileno()])
            except (BrokenPipeError, ConnectionResetError) as error:
                raise Stale from error


class Kept:
    """One command, through the keeper that watches it."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        line.setblocking(False)

    async def told(self) -> tuple[dict[str, Any], Sequence[int]]:
        """What comes next from the keeper, empty where it has ended, and the descriptors that came with it."""
        await readable(self._line.fileno())
        with suppress(ConnectionResetError):
            message, descriptors, _, _ = socket.recv_fds(self._line, _LONGEST, 1)
            return (json.loads(message) if message else {}), descriptors
        return {}, ()

    async def ended(self) -> Ending:
        """See `Contained`."""
        told: dict[str, Any] = {"began": True}
        while "began" in told:
            told, descriptors = await self.told()
            for descriptor in descriptors:
                os.close(descriptor)
        if not told:
            raise SandboxUnavailable("the process that watched the command ended before it")
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


def _spawned(argv: Sequence[str], errors: int, passed: Sequence[int]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            argv,
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=passed,
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxUnavailable(f"{argv[0]} can't be started: {error}") from error
