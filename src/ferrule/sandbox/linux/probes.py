"""The canaries' probes: one short function per promise, run in a contained process.

Each returns what it reached, or None if it was stopped. Where the call itself must be refused, an errno showing that
the kernel checked the arguments (EFAULT, EINVAL, ENOENT) counts as reached.
"""

import errno
import mmap
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ferrule.sandbox.common_probes import read_secrets, succeeds, use_own_folder
from ferrule.sandbox.containment import RunLimits, ZygoteContainment
from ferrule.sandbox.linux.identity import read_capabilities
from ferrule.sandbox.linux.syscalls import call, prctl
from ferrule.sandbox.tiers import Tier

__all__ = ["LIMITS", "PROBES", "ProbeContext"]

LIMITS: Final = RunLimits(memory=256 * 1024 * 1024, files=32, threads=8, cpu=10)
_REFUSALS: Final = (errno.EPERM, errno.EACCES, errno.ENOSYS)
_ELSEWHERE: Final = ("/etc/passwd", "/etc/hostname", "/proc/self/environ", "/proc/1/cmdline", "/sys/kernel", "/dev/shm")
_WRITABLE_ELSEWHERE: Final = ("/", "/tmp", "/var/tmp", "/dev/shm", "/dev", "/home", "/root", "/run")
_DANGEROUS: Final = (
    *("io_uring_setup", "bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "ptrace", "process_vm_readv"),
    *("memfd_create", "open_by_handle_at", "shmget", "mq_open", "pidfd_open", "fanotify_init", "clone3", "syslog"),
    *("unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "open_tree", "fsopen", "execve", "execveat"),
)
_PR_GET_SECCOMP, _PR_GET_NO_NEW_PRIVS = 21, 39


@dataclass(frozen=True, slots=True)
class ProbeContext:
    """What a probe knows of its process: the containment, the zygote's pid and the descriptors left open."""

    entered: ZygoteContainment
    zygote: int
    kept: frozenset[int]


Probe = Callable[[ProbeContext], str | None]


def read_outside(context: ProbeContext) -> str | None:
    """read a file, or list a folder, that isn't in the view"""
    entered = context.entered
    seen = [*map(str, entered.view.readable), *(file.path for file in entered.files)]
    outside = [path for path in _ELSEWHERE if not any(path == name or path.startswith(f"{name}/") for name in seen)]
    if entered.tier is Tier.CONTAINER:
        outside.append(str(entered.scratch))
    return next((path for path in outside if succeeds(_look_into, path)), None)


def write_outside(context: ProbeContext) -> str | None:
    """make a file outside the run's own folder, or change one that is seen"""
    own = Path.cwd() if context.entered.tier is Tier.CONTAINER else context.entered.scratch
    for folder in (*map(Path, _WRITABLE_ELSEWHERE), Path(os.__file__).parent, own.parent):
        witness = folder / f"ferrule-canary-{context.zygote}"
        if folder != own and succeeds(witness.touch):
            witness.unlink()
            return str(folder)
    mode = Path(os.__file__).stat().st_mode & 0o7777
    return f"the mode of {os.__file__}" if succeeds(os.chmod, os.__file__, mode) else None


def use_network(_: ProbeContext) -> str | None:
    """open a socket of any kind"""
    for family in (
        socket.AF_INET,
        socket.AF_INET6,
        socket.AF_UNIX,
        socket.AF_NETLINK,
        socket.AF_PACKET,
        socket.AF_VSOCK,
    ):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
            if _is_looked_at("socket", family, kind, 0):
                return f"a socket of family {family}, kind {kind}"
    return None


def make_process(_: ProbeContext) -> str | None:
    """fork"""
    try:
        child = os.fork()
    except OSError as error:
        return None if error.errno in _REFUSALS else str(error)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "a second process"


def reach_processes(context: ProbeContext) -> str | None:
    """signal the zygote or everything, or set its limits and priority"""
    zygote = context.zygote if context.zygote != os.getpid() else context.zygote + 1
    attempts = (("kill", zygote, 0), ("kill", -1, 0), ("prlimit64", zygote, 7), ("sched_setaffinity", zygote, 0))
    for name, *arguments in (*attempts, ("setpriority", 0, zygote, 0), ("rt_sigqueueinfo", zygote, 0)):
        if _is_looked_at(name, *arguments):
            return name
    return None


def use_dangerous_call(_: ProbeContext) -> str | None:
    """make a system call that nothing contained may make: namespaces, mounts, programs, keys, io_uring, …"""
    return next((name for name in _DANGEROUS if _is_looked_at(name, -1, 0, 0, 0, 0)), None)


def keep_privileges(context: ProbeContext) -> str | None:
    """keep a capability, or a way to gain one"""
    left = read_capabilities() & ~context.entered.capabilities
    if left:
        return f"capabilities {left:#x}"
    if not prctl(_PR_GET_NO_NEW_PRIVS):
        return "new privileges by exec"
    return None if prctl(_PR_GET_SECCOMP) == 2 else "system calls unfiltered"


def exceed_memory(_: ProbeContext) -> str | None:
    """take more memory than its limit"""
    try:
        mmap.mmap(-1, LIMITS.memory + 1).close()
    except OSError:
        return None
    return f"{LIMITS.memory} bytes and one"


def use_inherited_descriptors(context: ProbeContext) -> str | None:
    """use a descriptor that the zygote has open"""
    for descriptor in range(1024):
        if descriptor not in context.kept and succeeds(os.fstat, descriptor):
            return f"descriptor {descriptor}"
    return None


PROBES: Final[tuple[Probe, ...]] = (
    *(use_inherited_descriptors, use_own_folder, read_outside, write_outside, use_network, make_process),
    *(reach_processes, use_dangerous_call, keep_privileges, exceed_memory, read_secrets),
)


def _look_into(path: str) -> None:
    if Path(path).is_dir():
        os.scandir(path).close()
    else:
        os.close(os.open(path, os.O_RDONLY))


def _is_looked_at(name: str, *arguments: int) -> bool:
    try:
        call(name, *arguments)
    except OSError as error:
        return error.errno not in _REFUSALS
    return True
