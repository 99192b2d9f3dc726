"""The full tier: a layout as the arguments of bubblewrap, for a launcher that runs among its mounts."""

# Paths are text here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH110, PTH112, PTH118, PTH120

from __future__ import annotations

import os

from ferrule.sandbox.shell.layout import Access, Layout, Mode
from ferrule.sandbox.shell.places import is_within

__all__ = ["LAUNCHER", "arguments"]

# What a program wants to know of the processor, and no more of the machine.
_PROCESSORS = "/sys/devices/system/cpu"
_COVER = ("--size", "65536")
# What the launcher makes each command's own namespaces with. It gives them up before the command is there.
_CAPABILITIES = ("CAP_SYS_ADMIN", "CAP_SETPCAP", "CAP_NET_ADMIN")
LAUNCHER = "/run/ferrule/ferrule"
"""Where the launcher finds `ferrule`, wherever that lies outside."""


def arguments(layout: Layout, *, shares_network: bool, package: str) -> list[str]:
    """What bubblewrap is told for a layout, up to the launcher, whose `package` is seen at `LAUNCHER`."""
    told = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    told += [] if shares_network else ["--unshare-net"]
    told += ["--die-with-parent", "--new-session", "--hostname", "sandbox", "--cap-drop", "ALL"]
    told += [part for name in _CAPABILITIES for part in ("--cap-add", name)]
    covers = ["/dev"]
    for path, access in layout.rules:
        mounted = _mounted(path, access, layout)
        told += mounted
        covers += [path] if "--tmpfs" in mounted else []
    if shares_network and os.path.exists("/etc/resolv.conf"):
        # It is often a link into /run, which is covered.
        told += ["--ro-bind-try", os.path.realpath("/etc/resolv.conf"), os.path.realpath("/etc/resolv.conf")]
    told += ["--ro-bind", package, LAUNCHER]
    # Last, when all that lies in them is mounted: what a command put there would be there for the next one.
    return [*told, *(part for path in covers for part in ("--remount-ro", path))]


def _mounted(path: str, access: Access, layout: Layout) -> list[str]:
    """The arguments for one rule."""
    if access is Access.WRITE:
        return ["--bind", path, path]
    if access is Access.READ:
        return ["--ro-bind", path, path]
    if path == "/proc":
        return ["--proc", "/proc"]
    if path == "/dev":
        return ["--dev", "/dev"]
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
