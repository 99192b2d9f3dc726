"""A process in a group of its own, started through `exec_limited`, and reaped; without pidfds, which macOS lacks."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["ProcessExit", "ProcessGroup", "make_limit_arguments"]

# Bytes on macOS, kilobytes elsewhere.
_MEMORY_UNIT: Final = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """How a process ended: its exit status (or minus a signal), CPU seconds, peak memory in bytes."""

    status: int
    cpu: float
    peak_memory: int


def make_limit_arguments(
    argv: Sequence[str], limits: Mapping[str, int], places: Mapping[int, int] | None = None
) -> list[str]:
    """The arguments that become `argv` with lowered limits (by name, as in `resource`) and descriptors in `places`."""
    program = str(Path(__file__).with_name("exec_limited.py"))
    told = json.dumps({"limits": dict(limits), "places": dict(places or {})})
    return [sys.executable, "-I", "-S", "-B", program, told, *argv]


class ProcessGroup:
    """A session of its own with its first process, from its start until that is reaped. Made and used on one loop."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: str,
        streams: tuple[int, int, int],
        passed: Sequence[int] = (),
    ) -> None:
        """Start it, with no descriptors but `streams` and `passed`, which stay the caller's. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        stdin, stdout, stderr = streams
        self._process = subprocess.Popen(
            argv,
            env=environment,
            cwd=folder,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=passed,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self.ended: asyncio.Future[ProcessExit] = loop.create_future()
        # A thread of its own: those of the loop's pool do what runs wait for before they end.
        threading.Thread(target=self._reap, args=(loop,), daemon=True).start()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all of the group, while its first process hasn't been reaped."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def sweep(self) -> None:
        """Kill what the first process left in its group, right after its end."""
        # Numbers go round among 99,999 of them: this one can't have come back yet.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _reap(self, loop: asyncio.AbstractEventLoop) -> None:
        _, status, used = os.wait4(self.pid, 0)
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        gone = ProcessExit(code, used.ru_utime + used.ru_stime, used.ru_maxrss * _MEMORY_UNIT)
        with suppress(RuntimeError):  # a loop that was closed waits for nobody
            loop.call_soon_threadsafe(self._settle, gone)

    def _settle(self, gone: ProcessExit) -> None:
        if not self.ended.done():
            self.ended.set_result(gone)
