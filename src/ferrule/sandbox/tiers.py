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
    "no other process or program can be started": "seccomp",
    "no network: no TCP, UDP, raw or netlink socket, no unix socket by path or name": "seccomp, Landlock",
    "no signal, trace, limit or priority reaches another process": "seccomp, Landlock",
    "the parent's descriptors and environment can't be reached": "exec, close_range",
    "no namespaces, mounts, keyrings, io_uring, bpf, shared memory or memory files": "seccomp",
    "address space, CPU time, descriptors and the size of each file are limited": "rlimits",
    "a run ends when its zygote ends, and the zygote when its parent does": "death signal",
}

PROMISES: Final[Mapping[Tier, Promises]] = {
    Tier.FULL: Promises(
        _EVERYWHERE
        | {
            "files outside the view don't exist: their contents, names and sizes can't be seen": "mount namespace",
            "only a folder in memory can be written, limited in size and number of files": "mount namespace, Landlock",
            "other processes can't be seen, and there is no /proc": "pid namespace",
            "threads are limited for each run": "user namespace, rlimits",
            "nothing that one run wrote can be read by the next": "mount namespace",
        },
        (
            "kernel vulnerabilities: runs share the kernel",
            "timing side channels: the machine's load, caches and processors",
            "fcntl locks on files of the view (they end with the run)",
        ),
    ),
    Tier.CONTAINER: Promises(
        _EVERYWHERE
        | {
            "files outside the view can't be read, and folders there can't be listed": "Landlock",
            "nothing can be written, truncated, linked or renamed outside the run's own folder": "Landlock",
            "no file's mode, owner, times or attributes can be changed, not even in its own folder": "seccomp",
        },
        (
            "stat on files outside the view: whether they exist, and their size, times and owner",
            "limits on the total size and number of files in a run's folder: only each file's size is limited",
            "a thread limit for each run: there is one of about a thousand for the whole sandbox",
            "hiding that other processes exist (getpgid, getpriority)",
            "a list of hosts for shell commands: Landlock filters ports, not hosts",
            "kernel vulnerabilities and timing side channels",
        ),
    ),
    Tier.SEATBELT: Promises(
        {
            "files outside the view can't be read, and no folders there can be listed except the root": "profile",
            "files outside the view have no readable existence, size or times, except the folders above it": "profile",
            "nothing can be written, linked or changed outside the run's own folder, which is deleted": "profile",
            "no other process or program can be started": "profile, rlimits",
            "no network: no TCP, UDP or unix socket can connect, send or listen": "profile",
            "other processes can't be signalled or seen": "profile",
            "no system service can be reached except the one for user names": "profile",
            "the parent's descriptors and environment can't be reached": "exec, closed descriptors",
            "CPU time, descriptors and the size of each file are limited": "rlimits",
            "each run is a separate process": "exec",
        },
        (
            "anything that the canaries don't try at the start: this was written on Linux and has never run on a Mac",
            "an exact memory limit: the parent checks four times a second, and kills a run that exceeds it",
            "limits on the total size and number of files in a run's folder: only each file's size is limited",
            "limits on threads, process priorities, and shared memory that the profile has no rule for",
            "that a run ends when the program that started it is killed; its CPU time is limited all the same",
            "sessions: they are refused",
            "that all processes of a shell command end with it: one that leaves its group continues, contained",
            "kernel vulnerabilities and timing side channels",
        ),
    ),
    Tier.NONE: Promises(
        {},
        ("anything: limits, a clean environment and a separate folder keep honest programs apart, and stop no others",),
    ),
}
