"""Resource limits of a process that is about to run what a model wrote."""

import os
import resource
import struct
from collections.abc import Mapping
from typing import Final

from ferrule.sandbox.linux.syscalls import Ready, prepare_call

__all__ = ["lower", "lower_calls", "lower_for_all_runs"]

# The same for every run: no core file, no queues, no locked memory, no realtime, few pending signals. By name, since
# other systems, where this is imported and never called, don't have all of them.
_SAME_FOR_ALL: Final = {
    "RLIMIT_CORE": 0,
    "RLIMIT_MEMLOCK": 0,
    "RLIMIT_MSGQUEUE": 0,
    "RLIMIT_NICE": 0,
    "RLIMIT_RTPRIO": 0,
    "RLIMIT_SIGPENDING": 256,
}


def lower_for_all_runs() -> None:
    """Lowers this process's limits by what its children need of none of them; what is lower already stays."""
    lower({getattr(resource, name): value for name, value in _SAME_FOR_ALL.items()})


def lower(wanted: Mapping[int, int]) -> None:
    """Sets both limits, soft and hard, of each resource for this process; what is lower already stays."""
    for kind, value in wanted.items():
        least = _choose_lower(value, resource.getrlimit(kind)[1])
        resource.setrlimit(kind, (least, least))


def lower_calls(wanted: Mapping[int, int]) -> list[Ready]:
    """Calls that set both limits, soft and hard, of each resource for the process that makes them, which is final."""
    calls = []
    for kind, value in wanted.items():
        least = _choose_lower(value, resource.getrlimit(kind)[1])
        calls.append(prepare_call("prlimit64", 0, kind, struct.pack("=QQ", least, least)))
    return calls


def _choose_lower(value: int, hard: int) -> int:
    return value if hard == resource.RLIM_INFINITY else min(value, hard)


def count_tasks(user: int) -> int:
    """All tasks of the user that this process's /proc shows."""
    count = 0
    for process in os.scandir("/proc"):
        if not process.name.isdigit():
            continue
        try:
            if process.stat().st_uid == user:
                count += sum(1 for _ in os.scandir(f"{process.path}/task"))
        except OSError:  # it has ended meanwhile, or hides from this user
            continue
    return count
