"""The tiers of containment that a machine may have, and what each promises."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["PROMISES", "Promises", "Tier"]


class Tier(StrEnum):
    """`FULL`: namespaces, Landlock, seccomp. `CONTAINER`: without namespaces. `SEATBELT`: macOS's sandbox.

    `NONE`: not contained at all.
    """

    FULL = "full"
    CONTAINER = "container"
    SEATBELT = "seatbelt"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Promises:
    """What a tier promises for a Python run, with the layers that enforce it, and what it doesn't promise."""

    holds: Mapping[str, str]
    lacks: tuple[str, ...]


_EVERYWHERE: Final = {
    "no other process is made and no program started": "seccomp",
    "no network: no TCP, UDP, raw or netlink socket, no unix socket by path or name": "seccomp, Landlock",
    "no signal, trace, limit or priority reaches another process": "seccomp, Landlock",
    "no descriptor or environment of the parent is seen": "exec, close_range",
    "no namespaces, mounts, keys, io_uring, bpf, shared memory, memory files": "seccomp",
    "address space, processor time, descriptors and the size of each file are limited": "rlimits",
    "a run ends with its zygote, and the zygote with its parent": "death signal",
}

PROMISES: Final[Mapping[Tier, Promises]] = {
    Tier.FULL: Promises(
        _EVERYWHERE
        | {
            "files outside the view don't exist: neither contents nor names nor sizes are seen": "mount namespace",
            "nothing is written but a folder in memory, limited in size and files": "mount namespace, Landlock",
            "other processes aren't seen, and there is no /proc": "pid namespace",
            "threads are limited for each run": "user namespace, rlimits",
            "nothing that a run wrote is there for the next one": "mount namespace",
        },
        (
            "errors in the kernel itself: runs share it",
            "what timing tells of the machine's load, its caches and processors",
            "locks on files of the view that were taken with fcntl (they end with the run)",
        ),
    ),
    Tier.CONTAINER: Promises(
        _EVERYWHERE
        | {
            "files outside the view can't be read, nor folders there listed": "Landlock",
            "nothing is written, truncated, linked or renamed outside the run's own folder": "Landlock",
            "no mode, owner, time or attribute of any file is changed, not even of its own": "seccomp",
        },
        (
            "whether a file outside the view exists, its size, times and owner can be asked (stat)",
            "the total size and number of the files in a run's folder: only each file's size is limited",
            "threads for each run: about a thousand for all that the sandbox runs",
            "that processes exist, by their numbers (getpgid, getpriority)",
            "hosts that a shell command may reach: Landlock knows ports, not hosts",
            "errors in the kernel itself, and what timing tells",
        ),
    ),
    Tier.SEATBELT: Promises(
        {
            "files outside the view can't be read, nor folders there listed but the root's names": "profile",
            "no file outside the view can be asked for its existence, size or times, but folders above it": "profile",
            "nothing is written, linked or changed outside the run's own folder, which is deleted": "profile",
            "no other process is made and no other program started": "profile, rlimits",
            "no network: nothing is sent, connected or listened to, by TCP, UDP or a unix socket": "profile",
            "no signal reaches another process, and none is seen": "profile",
            "no service of the system is reached but the one that knows the users' names": "profile",
            "no descriptor or environment of the parent is seen": "exec, closed descriptors",
            "processor time, descriptors and the size of each file are limited": "rlimits",
            "each run is a process of its own, from its start to its end": "exec",
        },
        (
            "anything that the canaries don't try at a start: this was written on Linux and has never run on a Mac",
            "memory: the parent looks four times a second, and ends a run that takes more than it may",
            "the total size and number of the files in a run's folder: only each file's size is limited",
            "threads, the priorities of processes, shared memory that a profile has no rule for",
            "that a run ends with a program that is killed while it runs: its processor time is limited all the same",
            "sessions: they are refused",
            "that a shell command's processes all end with it: one that leaves its group runs on, contained",
            "errors in the kernel itself, and what timing tells",
        ),
    ),
    Tier.NONE: Promises(
        {},
        ("everything: limits, a clean environment and an own folder keep honest programs apart, and stop no other",),
    ),
}
