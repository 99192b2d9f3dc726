"""The resource limits of a command, put on its first process before the command itself exists."""

from __future__ import annotations

import resource

from ferrule.sandbox.linux.limits import lower
from ferrule.sandbox.shell.process import Start

__all__ = ["limit_process", "limits"]


def limits(start: Start) -> dict[int, int]:
    """Hard limits by resource. The kernel doesn't count the processes of root, so for root that one stops nothing."""
    return {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: start.file_size,
        resource.RLIMIT_NPROC: start.processes,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_RTPRIO: 0,
    }


def limit_process(pid: int, start: Start) -> None:
    """Limit another process of ours; a limit that is lower already stays."""
    lower(limits(start), pid=pid)
