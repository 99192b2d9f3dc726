"""Commands in processes of their own that start quickly: forks of a server that the first command starts."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Lock

_SERVER = Path(__file__).with_name("command_server.py")
_SOURCE = _SERVER.parents[2] / "src"
_SECONDS = 600.0


class CommandServer:
    """The client of `command_server.py`: it runs one command at a time."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # Python looks once at what its streams are, so they are pipes here as they are for each command.
            self._process = subprocess.Popen(
                [sys.executable, str(_SERVER), str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": str(_SOURCE), "OMP_NUM_THREADS": "1"},
            )
        self._lock = Lock()

    def run(
        self, arguments: list[str], typed: bytes, environment: Mapping[str, str], folder: Path
    ) -> subprocess.CompletedProcess[bytes]:
        """What `subprocess.run` gives for this command. Raises `subprocess.TimeoutExpired` after ten minutes."""
        asked = {"arguments": arguments, "environment": dict(environment), "folder": str(folder.absolute())}
        with self._lock, ThreadPoolExecutor(3) as threads:
            (stdin, typing), (saying, stdout), (complaining, stderr) = (os.pipe() for _ in range(3))
            socket.send_fds(self._requests, [json.dumps(asked).encode()], [stdin, stdout, stderr])
            for descriptor in (stdin, stdout, stderr):
                os.close(descriptor)
            threads.submit(_write, typing, typed)
            said, complained = threads.submit(_read, saying), threads.submit(_read, complaining)
            status = self._status(arguments)
            return subprocess.CompletedProcess(arguments, status, said.result(), complained.result())

    def _status(self, arguments: list[str]) -> int:
        process = self._answer()
        self._requests.settimeout(_SECONDS)
        try:
            return self._answer()
        except TimeoutError:
            os.kill(process, signal.SIGKILL)
            self._requests.settimeout(None)
            self._answer()
            raise subprocess.TimeoutExpired(arguments, _SECONDS) from None
        finally:
            self._requests.settimeout(None)

    def _answer(self) -> int:
        answer = self._requests.recv(64)
        if not answer:
            raise RuntimeError(f"the server of commands ended: {self._process.communicate()[1].decode()}")
        return int(answer)

    def close(self) -> None:
        """End the server."""
        self._requests.close()
        self._process.communicate()


def _write(descriptor: int, data: bytes) -> None:
    with open(descriptor, "wb") as stream:
        stream.write(data)


def _read(descriptor: int) -> bytes:
    with open(descriptor, "rb") as stream:
        return stream.read()


@cache
def command_server() -> CommandServer:
    """The server of this process, which ends with it. Raises `OSError` where none can be started."""
    server = CommandServer()
    atexit.register(server.close)
    return server
