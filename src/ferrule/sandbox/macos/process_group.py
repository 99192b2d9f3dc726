"""Starts a process in its own group through `exec_limited`, and reaps it; without pidfds, which macOS lacks."""

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
    """How a process ended: exit status (or the negative signal), CPU seconds, peak memory in bytes."""

    status: int
    cpu: float
    peak_memory: int


def make_limit_arguments(
    argv: Sequence[str], limits: Mapping[str, int], places: Mapping[int, int] | None = None
) -> list[str]:
    """Wrap `argv` to run with lowered limits (by name, as in `resource`) and with descriptors moved to `places`."""
    program = str(Path(__file__).with_name("exec_limited.py"))
    settings = json.dumps({"limits": dict(limits), "places": dict(places or {})})
    return [sys.executable, "-I", "-S", "-B", program, settings, *argv]


class ProcessGroup:
    """A new session with its first process, from its start until that is reaped. Created and used on one loop."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: str,
        streams: tuple[int, int, int],
        passed: Sequence[int] = (),
    ) -> None:
        """Start it with only the descriptors `streams` and `passed`, which the caller still owns. Raises `OSError`."""
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
        # A separate thread: waiting in the loop's pool could block the work that runs need in order to end.
        threading.Thread(target=self._reap, args=(loop,), daemon=True).start()

    def signal(self, number: int) -> None:
        """Send a signal to the whole group, unless its first process has been reaped."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def sweep(self) -> None:
        """Kill what the first process left in its group. Call it right after that process has ended."""
        # Pids are reused only after 99,999 others, so this one can't belong to another group yet.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _reap(self, loop: asyncio.AbstractEventLoop) -> None:
        _, status, used = os.wait4(self.pid, 0)
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        gone = ProcessExit(code, used.ru_utime + used.ru_stime, used.ru_maxrss * _MEMORY_UNIT)
        with suppress(RuntimeError):  # the loop may be closed
            loop.call_soon_threadsafe(self._settle, gone)

    def _settle(self, gone: ProcessExit) -> None:
        if not self.ended.done():
            self.ended.set_result(gone)
