"""What a process has used, asked of the kernel rather than of the process."""

from __future__ import annotations

import time
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """Processor time of all its threads until now; 0 where it can't be asked."""
    try:
        # Its CPU clock, as clock_getcpuclockid(3) numbers it.
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def peak_memory(pid: int) -> int:
    """The most bytes that were resident; 0 where it can't be asked."""
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return 0
    _, _, rest = status.partition(b"VmHWM:")
    return int(rest.split(maxsplit=1)[0]) * 1024 if rest else 0
