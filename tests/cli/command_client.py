"""Commands in processes of their own that start quickly: forks of a server that the first command starts."""

from __future__ import annotations

import atexit
import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Lock, Thread

_SERVER = Path(__file__).with_name("command_server.py")
_SOURCE = _SERVER.parents[2] / "src"
_SECONDS = 600.0


class ForkedCommand:
    """A command that a server has started: what tests use of `subprocess.Popen`."""

    def __init__(self, arguments: Sequence[str], pid: int, status: Future[int]) -> None:
        self.pid = pid
        self._arguments = list(arguments)
        self._status = status

    def poll(self) -> int | None:
        """The exit status, that of a signal negative; None while the command runs."""
        return self._status.result() if self._status.done() else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit status. Raises `subprocess.TimeoutExpired`."""
        try:
            return self._status.result(timeout)
        except TimeoutError:
            raise subprocess.TimeoutExpired(self._arguments, timeout or 0) from None

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the command has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End the command at once."""
        self.send_signal(signal.SIGKILL)


class CommandServer:
    """The client of `command_server.py`, whose streams are a terminal where those of its commands will be one."""

    def __init__(self, on_a_terminal: bool) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Python looks once at what its streams are, so they are here what they are for each command.
        self._terminal, stream = pty.openpty() if on_a_terminal else (-1, subprocess.PIPE)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(_SERVER), str(theirs.fileno())],
                stdin=stream,
                stdout=stream,
                stderr=stream,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": str(_SOURCE), "OMP_NUM_THREADS": "1"},
            )
        if on_a_terminal:
            os.close(stream)
        self._lock = Lock()
        self._started: Future[tuple[int, Future[int]]] = Future()
        self._running: dict[int, Future[int]] = {}
        self._reader = Thread(target=self._receive, daemon=True)
        self._reader.start()

    def start(
        self,
        arguments: Sequence[str],
        streams: tuple[int, int, int],
        environment: Mapping[str, str],
        folder: Path,
    ) -> ForkedCommand:
        """Start a command with these descriptors as its streams, which stay open here.

        Of a server on a terminal, it leads a session whose terminal is its standard output.
        """
        asked = {"arguments": list(arguments), "environment": dict(environment), "folder": str(folder.absolute())}
        with self._lock:
            self._started = Future()
            socket.send_fds(self._requests, [json.dumps(asked).encode()], streams)
            return ForkedCommand(arguments, *self._started.result(_SECONDS))

    def run(
        self, arguments: list[str], typed: bytes, environment: Mapping[str, str], folder: Path
    ) -> subprocess.CompletedProcess[bytes]:
        """What `subprocess.run` gives for this command. Raises `subprocess.TimeoutExpired` after ten minutes."""
        with ThreadPoolExecutor(3) as threads:
            (stdin, typing), (saying, stdout), (complaining, stderr) = (os.pipe() for _ in range(3))
            command = self.start(arguments, (stdin, stdout, stderr), environment, folder)
            for descriptor in (stdin, stdout, stderr):
                os.close(descriptor)
            threads.submit(_write, typing, typed)
            said, complained = threads.submit(_read, saying), threads.submit(_read, complaining)
            try:
                status = command.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                command.kill()
                raise
            return subprocess.CompletedProcess(arguments, status, said.result(), complained.result())

    def _receive(self) -> None:
        """Hand out what the server says: the id of each command that it started, and how each ended."""
        while answer := self._requests.recv(64):
            kind, *numbers = answer.decode().split()
            if kind == "started":
                status = self._running[int(numbers[0])] = Future()
                self._started.set_result((int(numbers[0]), status))
            else:
                self._running.pop(int(numbers[0])).set_result(int(numbers[1]))
        for waiting in (*self._running.values(), *([] if self._started.done() else [self._started])):
            waiting.set_exception(RuntimeError("the server of commands ended"))

    def close(self) -> None:
        """End the server."""
        self._requests.shutdown(socket.SHUT_WR)
        self._reader.join()
        self._requests.close()
        self._process.communicate()
        if self._terminal >= 0:
            os.close(self._terminal)


def _write(descriptor: int, data: bytes) -> None:
    with open(descriptor, "wb") as stream:
        stream.write(data)


def _read(descriptor: int) -> bytes:
    with open(descriptor, "rb") as stream:
        return stream.read()


@cache
def command_server(on_a_terminal: bool = False) -> CommandServer:
    """The server of this process, which ends with it. Raises `OSError` where none can be started."""
    server = CommandServer(on_a_terminal)
    atexit.register(server.close)
    return server
