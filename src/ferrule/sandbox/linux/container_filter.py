"""What a container's usual seccomp profile does to a process: no namespaces, no mounts.

Attached before a program is started, it makes this machine behave as such a container does, so that the container tier
can be tried where the full one is to be had.
"""

import errno
from typing import Final

from ferrule.sandbox.linux.bpf import ALLOW, ArgumentCheck, ArgumentRule, Decision, assemble, low, refuse
from ferrule.sandbox.linux.seccomp import attach, no_new_privileges
from ferrule.sandbox.linux.syscall_groups import NEW_NAMESPACES
from ferrule.sandbox.linux.syscall_numbers import AUDIT_ARCH, MACHINE, NUMBERS

__all__ = ["refuse_namespaces"]

_EPERM: Final = refuse(errno.EPERM)
_NAMES: Final = (
    *("unshare", "setns", "mount", "umount2", "pivot_root", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount"),
    *("fspick", "mount_setattr"),
)


def refuse_namespaces() -> None:
    """Every later unshare, setns, mount and clone into a namespace of this process and its children is refused."""
    decisions: dict[int, Decision] = {NUMBERS[name]: _EPERM for name in _NAMES}
    decisions[NUMBERS["clone"]] = ArgumentRule((ArgumentCheck(low(0), (0,), mask=NEW_NAMESPACES),), _EPERM)
    decisions[NUMBERS["clone3"]] = refuse(errno.ENOSYS)
    no_new_privileges()
    attach(assemble(decisions, ALLOW, architecture=AUDIT_ARCH[MACHINE]))
