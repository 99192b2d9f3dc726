"""Resource limits of a process that is about to run model-written code."""

import os
import resource
import struct
from collections.abc import Mapping
from typing import Final

from ferrule.sandbox.linux.syscalls import PreparedCall, prepare_call

__all__ = ["lower", "lower_for_all_runs", "prepare_lower"]

# The same for every run: no core file, queues, locked memory or realtime, few pending signals. By name, since systems
# that only import this module lack some of them.
_SAME_FOR_ALL: Final = {
    "RLIMIT_CORE": 0,
    "RLIMIT_MEMLOCK": 0,
    "RLIMIT_MSGQUEUE": 0,
    "RLIMIT_NICE": 0,
    "RLIMIT_RTPRIO": 0,
    "RLIMIT_SIGPENDING": 256,
}


def lower_for_all_runs() -> None:
    """Lower the limits on resources that none of this process's children need; never raises one."""
    lower({getattr(resource, name): value for name, value in _SAME_FOR_ALL.items()})


def lower(wanted: Mapping[int, int]) -> None:
    """Set each resource's soft and hard limit for this process; never raises one."""
    for kind, value in wanted.items():
        least = _choose_lower(value, resource.getrlimit(kind)[1])
        resource.setrlimit(kind, (least, least))


def prepare_lower(wanted: Mapping[int, int]) -> list[PreparedCall]:
    """Prepare calls that set each resource's soft and hard limit in the process that makes them, irrevocably."""
    calls = []
    for kind, value in wanted.items():
        least = _choose_lower(value, resource.getrlimit(kind)[1])
        calls.append(prepare_call("prlimit64", 0, kind, struct.pack("=QQ", least, least)))
    return calls


def _choose_lower(value: int, hard: int) -> int:
    return value if hard == resource.RLIM_INFINITY else min(value, hard)


def count_tasks(user: int) -> int:
    """Count the user's tasks visible in this process's /proc."""
    count = 0
    for process in os.scandir("/proc"):
        if not process.name.isdigit():
            continue
        try:
            if process.stat().st_uid == user:
                count += sum(1 for _ in os.scandir(f"{process.path}/task"))
        except OSError:  # it has ended, or is hidden from this user
            continue
    return count
