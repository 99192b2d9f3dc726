"""The full tier: a layout as the arguments of bubblewrap, one set of namespaces for each command."""

# Paths are text here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH110, PTH112, PTH118, PTH120

from __future__ import annotations

import os

from ferrule.sandbox.shell.layout import Access, Layout, Mode
from ferrule.sandbox.shell.places import is_within

__all__ = ["arguments"]

# What a program wants to know of the processor, and no more of the machine.
_PROCESSORS = "/sys/devices/system/cpu"
# As root the files of root are ours, without any capability: naming a program in kernel.core_pattern is enough to have
# it run outside, as root.
_KERNEL_SETTINGS = (
    "/proc/sys",
    "/proc/mtrr",
    "/proc/sysrq-trigger",
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/pressure",
)
# An empty folder of the command's own; mounting it read-only would take longer, and what is put there goes with it.
_COVER = ("--size", "65536")
_SHARED_MEMORY = 256 * 1024 * 1024


def arguments(layout: Layout, *, shares_network: bool) -> list[str]:
    """What bubblewrap is told for a layout, up to the command; descriptors and the filter are left to the caller."""
    told = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    told += [] if shares_network else ["--unshare-net"]
    told += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox"]
    for path, access in layout.rules:
        told += _mounted(path, access, layout)
    if shares_network and os.path.exists("/etc/resolv.conf"):
        # It is often a link into /run, which is covered.
        told += ["--ro-bind-try", os.path.realpath("/etc/resolv.conf"), os.path.realpath("/etc/resolv.conf")]
    return [*told, "--remount-ro", "/dev", "--chdir", layout.folder]


def _mounted(path: str, access: Access, layout: Layout) -> list[str]:
    """The arguments for one rule."""
    if access is Access.WRITE:
        return ["--bind", path, path]
    if access is Access.READ:
        return ["--ro-bind", path, path]
    if path == "/proc":
        settings = [each for each in _KERNEL_SETTINGS if os.path.exists(each)] if os.geteuid() == 0 else []
        return ["--proc", "/proc", *(part for each in settings for part in ("--ro-bind", each, each))]
    if path == "/dev":
        return ["--dev", "/dev", "--size", str(_SHARED_MEMORY), "--perms", "1777", "--tmpfs", "/dev/shm"]
    if path in {"/tmp", "/var/tmp"} and layout.mode is not Mode.FULL:
        return ["--bind", layout.scratch, path]
    if path == "/sys":
        return [*_COVER, "--perms", "0755", "--tmpfs", path, "--ro-bind-try", _PROCESSORS, _PROCESSORS]
    if os.path.isdir(path):
        # It can be passed through, since the workspace may lie below, and not be listed.
        return [*_COVER, "--perms", "0111", "--tmpfs", path]
    if is_within(path, layout.workspace):
        # A device on a mount without devices: opening it is refused, which tells more than an empty file.
        return ["--ro-bind", "/dev/null", path]
    # Programs expect to read their own settings: an empty file passes where a refusal stops npm or pip.
    return ["--ro-bind", os.path.join(os.path.dirname(layout.scratch), "empty"), path]
