"""Runs a call in a process of its own, for tools that must be killable. `child.py` is the other side.

The child is a new interpreter in its own session, which imports the function by name. It is killed, with everything
that it started, when it has answered, after a timeout, or when this process dies. This is no containment: that is what
`sandbox/` is for.
"""

from __future__ import annotations

import inspect
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from ferrule.conversation import Image, Text
from ferrule.errors import ToolFailed, ToolRetry
from ferrule.execution.error_results import RaisedElsewhere

_LENGTH = struct.Struct(">Q")


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes | None: ...


class _Writable(Protocol):
    def write(self, data: bytes, /) -> int | None: ...


def write_frame(stream: _Writable, data: bytes) -> None:
    """Write one byte string. Raises `OSError` if the reader is gone."""
    rest = memoryview(_LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[stream.write(bytes(rest)) or 0 :]


def read_frame(stream: _Readable) -> bytes | None:
    """Read the next byte string; None if the stream ends before it is complete."""
    head = _read_exactly(stream, _LENGTH.size)
    return None if head is None else _read_exactly(stream, _LENGTH.unpack(head)[0])


def _read_exactly(stream: _Readable, size: int) -> bytes | None:
    pieces: list[bytes] = []
    while size:
        piece = stream.read(size)
        if not piece:
            return None
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


_BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from ferrule.execution.child import main; main(int(sys.argv.pop()))"
)


class FunctionAddress(NamedTuple):
    """Where the child process finds a function."""

    module: str
    file: str | None
    qualified_name: str


def find_address(function: Callable[..., Any]) -> FunctionAddress:
    """Find where a function is defined. Raises `ToolFailed` if another process couldn't import it."""
    name = getattr(function, "__qualname__", "")
    if not inspect.isfunction(function) or "<" in name:
        raise ToolFailed(f"this tool can't run in a process of its own: {name!r} is not a function of a module")
    module = sys.modules.get(function.__module__)
    file = getattr(module, "__file__", None)
    if function.__module__ == "__main__" and (file is None or not os.path.exists(file)):  # noqa: PTH110 - may be "<stdin>"
        raise ToolFailed("this tool can't run in a process of its own: its module is not a file that can be imported")
    return FunctionAddress(function.__module__, file, name)


class IsolatedCall:
    """One call in a child process: `run` blocks until it has ended, `kill` ends it, from any thread."""

    def __init__(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
        address = find_address(function)
        try:
            self._arguments = pickle.dumps(dict(arguments))
        except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
            raise ToolFailed(f"the arguments can't be sent to the tool's process: {error}") from error
        self._address = json.dumps(address).encode()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_killed = False

    def run(self) -> tuple[Text | Image, ...]:
        """Return the parts of the result. Raises what the function raised, or `RaisedElsewhere` for it."""
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as answers:
            try:
                process = self._start(writing)
            finally:
                os.close(writing)
            assert process.stdin is not None
            try:
                with suppress(BrokenPipeError):
                    write_frame(process.stdin, self._address)
                    write_frame(process.stdin, self._arguments)
                answer = read_frame(answers)
                if answer is None:
                    process.wait()
            finally:
                self.kill()
                status = process.wait()
                process.stdin.close()
        return _unpack(answer, status)

    def kill(self) -> None:
        """Kill the process and everything in its session; if it hasn't started yet, it never will."""
        with self._lock:
            self._is_killed = True
            # Not reaped yet, so the process id can't have been reused.
            if self._process is not None and self._process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)

    def _start(self, writing: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", _BOOTSTRAP, str(writing), json.dumps(sys.path)]
        with self._lock:
            if self._is_killed:
                raise ToolFailed("abandoned before it started")
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, pass_fds=(writing,), start_new_session=True, bufsize=0
            )
            return self._process


def _unpack(answer: bytes | None, status: int) -> tuple[Text | Image, ...]:
    if answer is None:
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        raise RaisedElsewhere("ProcessDied", f"the tool's process ended without a result ({how})")
    kind, content = pickle.loads(answer)
    if kind == "failed":
        raise ToolFailed(content)
    if kind == "retry":
        raise ToolRetry(content)
    if kind == "raised":
        raise RaisedElsewhere(*content)
    parts: tuple[Text | Image, ...] = content
    return parts
