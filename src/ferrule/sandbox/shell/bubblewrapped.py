"""Starting a command under bubblewrap, limiting it before it runs, and ending its whole pid namespace."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.shell.limits import limit_process
from ferrule.sandbox.shell.process import Ending, Start, readable

__all__ = ["Bubblewrapped"]


class Bubblewrapped:
    """Bubblewrap itself, outside; its first process, inside (pid 1 of the namespace); and below that the command."""

    def __init__(self, process: subprocess.Popen[bytes], status: int) -> None:
        self._process, self._status, self._told = process, status, b""
        self._outside = os.pidfd_open(process.pid)
        self._first_pid, self._inside = 0, -1

    @classmethod
    async def start(
        cls, bubblewrap: str, arguments: Sequence[str], start: Start, program: bytes, passed: Sequence[int] = ()
    ) -> Bubblewrapped:
        """Start a command; when this returns it runs, or bubblewrap has failed, which `ended` then raises.

        `program` is its seccomp filter, `passed` are further descriptors that it gets.
        """
        status, status_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # Datagrams have no end of file: should this process die now, nothing passes the gate.
        gate, gate_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with gate:
            with gate_end, ExitStack() as given:
                given.callback(os.close, status_end)
                rules = _file_of(given, program)
                inherited = (rules, status_end, gate_end.fileno())
                told = ("--seccomp", rules, "--json-status-fd", status_end, "--block-fd", gate_end.fileno())
                # In a file, because /proc/1/cmdline would tell the command what is hidden from it.
                listed = _file_of(given, os.fsencode("\0".join([*arguments, *map(str, told), ""])))
                argv = [bubblewrap, "--args", str(listed), "--", *start.argv]
                started = cls(_spawn(argv, start, (listed, *inherited, *passed)), status)
            try:
                await started._meet()
                started._let_through(gate, start)
            except BaseException:
                await started.give_up()
                raise
        return started

    async def _meet(self) -> None:
        """Wait until bubblewrap has told of its first process, or has failed."""
        while self._inside < 0:
            await readable(self._status)
            data = os.read(self._status, 4096)
            if not data:
                return
            self._told += data
            if b"}" in self._told:
                self._first_pid = json.loads(self._told[: self._told.index(b"}") + 1])["child-pid"]
                with suppress(ProcessLookupError):
                    self._inside = os.pidfd_open(self._first_pid)
                return

    def _let_through(self, gate: socket.socket, start: Start) -> None:
        """Limit the first process, and open the gate that it waits at."""
        if self._inside >= 0:
            with suppress(ProcessLookupError):
                limit_process(self._first_pid, start)
            gate.send(b"x")

    async def ended(self) -> Ending:
        """See `Contained`."""
        await readable(self._outside)
        self.kill()
        if self._inside >= 0:
            # It is gone only when everything in its namespace is.
            await readable(self._inside)
        self._process.wait()
        while data := os.read(self._status, 4096):
            self._told += data
        if b'"exit-code"' not in self._told:
            raise SandboxUnavailable("bubblewrap could not set the sandbox up")
        return Ending.of_status(self._process.returncode)

    def terminate(self) -> None:
        """See `Contained`. The first process ignores it, as the kernel has it for any pid 1 without a handler."""
        if self._is_alive():
            with suppress(ProcessLookupError):
                os.killpg(self._first_pid, signal.SIGTERM)

    def kill(self) -> None:
        """See `Contained`."""
        if self._inside >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._inside, signal.SIGKILL)
        else:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._outside, signal.SIGKILL)

    async def give_up(self) -> None:
        """End it, whatever it does by now. Its first process is met first: nobody else would end that one."""
        if not self._first_pid:
            await asyncio.shield(asyncio.create_task(self._meet()))
        self.kill()
        for descriptor in (self._inside, self._outside):
            if descriptor >= 0:
                await asyncio.shield(asyncio.create_task(readable(descriptor)))
        self._process.wait()
        self.close()

    def close(self) -> None:
        """See `Contained`."""
        for descriptor in (self._outside, self._inside, self._status):
            if descriptor >= 0:
                os.close(descriptor)

    def _is_alive(self) -> bool:
        """Whether the first process runs, so that its number is still its own."""
        if self._inside < 0:
            return False
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._inside, 0)
            return True
        return False


def _spawn(argv: list[str], start: Start, descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    stdin, stdout, stderr = start.streams
    try:
        return subprocess.Popen(
            argv,
            env=start.environment,
            cwd="/",
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=descriptors,
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxUnavailable(f"{argv[0]} can't be started: {error}") from error


def _file_of(stack: ExitStack, content: bytes) -> int:
    descriptor = os.memfd_create("ferrule")
    stack.callback(os.close, descriptor)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
