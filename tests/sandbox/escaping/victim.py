"""Watches a process of the host that no payload may touch: a sleeper that holds the secret."""

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path

from escaping.system_calls import numbers

IOPRIO_WHO_PROCESS = 1
# The place, in /proc/PID/stat after the name, of the address at which the environment begins.
ENVIRONMENT_START = 47
MOMENT = 0.2


class Victim:
    """A sleeping process in a group of its own, with the secret in its environment and open as its descriptor 0."""

    def __init__(self, secret_file: Path, secret_name: str, secret: str) -> None:
        # The second variable is there to be overwritten.
        environment = {"AAAA": "untouched-untouched", secret_name: secret}
        with secret_file.open("rb") as file:
            self.process = subprocess.Popen(
                ["/bin/sleep", "120"], env=environment, stdin=file, stdout=subprocess.DEVNULL, process_group=0
            )
        self.pid = self.process.pid
        while not Path(f"/proc/{self.pid}/environ").read_bytes():
            time.sleep(0.001)  # the kernel is still setting it up
        self._before = self._state()

    @property
    def address(self) -> int:
        """Where in its memory the environment begins."""
        return int(self._stat()[ENVIRONMENT_START])

    def changes(self) -> list[str]:
        """What is different from the beginning. A signal takes a moment to do its work, so that it looks again."""
        end = time.monotonic() + MOMENT
        while not (found := self._changes()) and time.monotonic() < end:
            time.sleep(0.02)
        return found

    def _changes(self) -> list[str]:
        if self.process.poll() is not None:
            return [f"the victim ended with {self.process.returncode}"]
        now = self._state()
        return [f"the victim's {what}: {now[what]}" for what, before in self._before.items() if now[what] != before]

    def end(self) -> None:
        """End and reap it."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def _stat(self) -> list[str]:
        return Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()

    def _state(self) -> dict[str, object]:
        folder = Path(f"/proc/{self.pid}")
        status = dict(
            line.split(":\t", 1) for line in (folder / "status").read_text("utf-8").splitlines() if "\t" in line
        )
        return {
            "tracer": status["TracerPid"],
            "processors": sorted(os.sched_getaffinity(self.pid)),
            "class": os.sched_getscheduler(self.pid),
            "priority": os.getpriority(os.PRIO_PROCESS, self.pid),
            "disk priority": ctypes.CDLL(None).syscall(numbers()["ioprio_get"], IOPRIO_WHO_PROCESS, self.pid),
            "limits": (folder / "limits").read_text("utf-8"),
            "memory": (folder / "environ").read_bytes(),
            "score": (folder / "oom_score_adj").read_text("utf-8"),
        }
