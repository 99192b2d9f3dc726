"""This side of `launcher.py`: the launcher's process, and each command that it keeps."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.shell.command import CommandRequest, ContainedProcess
from ferrule.sandbox.shell.settings import ShellSettings
from ferrule.sandbox.shell.streams import Streams

__all__ = ["INTERPRETER", "Launcher", "PathVanished", "StaleLauncher", "describe_command"]

INTERPRETER = os.path.realpath(sys.executable)

# The folder of the launcher's package, `ferrule`.
_PACKAGE = Path(__file__).parents[2]
_PROGRAM = "sandbox/shell/launcher.py"
_MAX_MESSAGE_BYTES = 65_536


class StaleLauncher(Exception):  # noqa: N818 - what happened
    """The launcher has ended, or its mounts aren't what was requested any more: start another."""


class PathVanished(SandboxUnavailable):
    """A path existed when the workspace was scanned, but not when it was mounted on: scan again."""


class Launcher:
    """A process that starts commands; ending it ends all of them."""

    def __init__(self, process: subprocess.Popen[bytes], requests: socket.socket, errors: int) -> None:
        self._process, self._requests, self._errors = process, requests, errors

    @classmethod
    async def start(cls, kind: str, settings: Mapping[str, Any]) -> Launcher:
        """Start a launcher and wait until it accepts requests.

        `kind` and `settings` are described in `launcher.py`. Raises `SandboxUnavailable` with its error
        output, `PathVanished` if a path no longer exists.
        """
        requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        errors = os.memfd_create("errors", os.MFD_CLOEXEC)
        program = [INTERPRETER, "-I", "-S", f"{_PACKAGE}/{_PROGRAM}", str(_PACKAGE)]
        try:
            with theirs, _make_json_file("settings", settings) as file:
                passed = (theirs.fileno(), file.fileno())
                process = _spawn([*program, str(passed[0]), kind, str(passed[1])], errors, passed)
        except BaseException:
            requests.close()
            os.close(errors)
            raise
        launcher = cls(process, requests, errors)
        try:
            await launcher._wait_until_ready()
        except BaseException:
            launcher.end()
            raise
        return launcher

    async def _wait_until_ready(self) -> None:
        await _wait_until_readable(self._requests.fileno())
        if not self._requests.recv(_MAX_MESSAGE_BYTES):
            self._process.wait()
            error_output = os.pread(self._errors, _MAX_MESSAGE_BYTES, 0).decode(errors="replace").strip()
            raise _make_error("the launcher of shell commands did not start", error_output)

    async def begin(self, request: Mapping[str, Any], streams: Streams) -> tuple[ContainedProcess, Sequence[int]]:
        """Start a command; returns its processes and the descriptors sent with the reply.

        Raises `StaleLauncher` if nothing was started, `SandboxUnavailable` if it could not be contained, and
        `PathVanished` if that was because a path no longer exists.
        """
        line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        line.setblocking(False)
        process = ContainedProcess(partial(_wait_until_ended, line), partial(_send_signal, line), line.close)
        try:
            with theirs:
                self._send(request, streams, theirs)
            message, descriptors = await _receive(line)
            if not message or message.get("stale"):
                raise StaleLauncher
            if "error" in message:
                raise _make_error("the command could not be contained", message["error"])
        except BaseException:
            process.send_signal(signal.SIGKILL)
            with suppress(SandboxUnavailable):
                await asyncio.shield(asyncio.create_task(process.wait()))
            process.close()
            raise
        return process, descriptors

    def end(self) -> None:
        """End the launcher and its commands, and wait until they are gone. Must not be called twice."""
        self._requests.close()
        self._process.wait()
        os.close(self._errors)

    def _send(self, request: Mapping[str, Any], streams: Streams, line: socket.socket) -> None:
        with _make_json_file("request", request) as file:
            try:
                socket.send_fds(self._requests, [b"r"], [file.fileno(), *streams, line.fileno()])
            except (BrokenPipeError, ConnectionResetError) as error:
                raise StaleLauncher from error


def _make_error(what: str, error_output: str) -> SandboxUnavailable:
    kind = PathVanished if f"[Errno {errno.ENOENT}]" in error_output else SandboxUnavailable
    return kind(f"{what}: {error_output}")


async def _receive(line: socket.socket) -> tuple[dict[str, Any], Sequence[int]]:
    """Receive a supervisor's next message, empty if it has ended, and the descriptors sent with it."""
    await _wait_until_readable(line.fileno())
    with suppress(ConnectionResetError):
        message, descriptors, _, _ = socket.recv_fds(line, _MAX_MESSAGE_BYTES, 1)
        return (json.loads(message) if message else {}), descriptors
    return {}, ()


async def _wait_until_ended(line: socket.socket) -> int:
    """See `ContainedProcess.wait`."""
    message: dict[str, Any] = {"began": True}
    while "began" in message:
        message, descriptors = await _receive(line)
        for descriptor in descriptors:
            os.close(descriptor)
    if not message:
        raise SandboxUnavailable("the process that supervised the command ended before it")
    if "error" in message:
        raise SandboxUnavailable(f"the command could not be contained: {message['error']}")
    status: int = message["exit"] if "exit" in message else -message["signal"]
    return status


def _send_signal(line: socket.socket, number: int) -> None:
    """See `ContainedProcess.send_signal`."""
    with suppress(OSError):
        line.send(b"T" if number == signal.SIGTERM else b"K")


async def _wait_until_readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _settle, future)
    try:
        await future
    finally:
        loop.remove_reader(descriptor)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def describe_command(settings: ShellSettings, request: CommandRequest) -> dict[str, Any]:
    """A launcher request for a command, without where and how it is contained."""
    return {
        "argv": [settings.shell, "-c", request.command],
        "environment": request.environment,
        "limits": _list_resource_limits(settings),
    }


def _list_resource_limits(settings: ShellSettings) -> dict[int, int]:
    """Hard limits by resource. RLIMIT_NPROC has no effect for root, whose processes the kernel doesn't count."""
    return {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: settings.file_size,
        resource.RLIMIT_NPROC: settings.processes,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_RTPRIO: 0,
    }


def _make_json_file(name: str, content: Mapping[str, Any]) -> BinaryIO:
    """Create a file in memory with JSON, positioned at its start."""
    file = os.fdopen(os.memfd_create(name, os.MFD_CLOEXEC), "w+b")
    file.write(json.dumps(content).encode())
    file.flush()
    file.seek(0)
    return file


def _spawn(argv: Sequence[str], errors: int, passed: Sequence[int]) -> subprocess.Popen[bytes]:
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
