"""The container tier's files: a layout as Landlock's grants, which can only add.

A folder that holds something hidden or protected can't be granted as a whole, so each of its entries is, one by one.
Nothing new can be made in such a folder then (in a workspace with a `.git`: directly in the workspace), and where it
lies in the workspace, it and all below it can still be listed.
"""

# Paths are text here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH110

from __future__ import annotations

import os
from collections.abc import Iterator

from ferrule.sandbox.shell.layout import Access, Layout, ancestors
from ferrule.sandbox.shell.places import is_within

__all__ = ["Grant", "grants"]

Grant = tuple[str, str]
"""A path, and `read`, `write` or `list`."""

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
# Of the machine, and of no process: what lies in /proc by number would show how others were started.
_FIGURES = ("cpuinfo", "meminfo", "stat", "uptime", "loadavg", "version", "filesystems", "sys/kernel/osrelease")
_ORDER = {Access.HIDDEN: 0, Access.READ: 1, Access.WRITE: 2}


def grants(layout: Layout, *, network: bool) -> list[Grant]:
    """What Landlock is told, for paths that exist now."""
    told = [(f"/dev/{name}", "write") for name in _DEVICES]
    told += [(f"/proc/{name}", "read") for name in _FIGURES] + [("/sys/devices/system/cpu", "read")]
    told += [(os.path.realpath("/etc/resolv.conf"), "read")] if network else []
    there = [grant for grant in told if os.path.exists(grant[0])]
    return [*_Granting(layout).below("/", Access.HIDDEN), (layout.scratch, "write"), *there]


class _Granting:
    """Goes down the folders as far as there are deeper rules."""

    def __init__(self, layout: Layout) -> None:
        self._rules, self._workspace = dict(layout.rules), layout.workspace
        # By path, what the rules below it allow; only folders on the way to a rule are in it.
        self._deeper: dict[str, set[Access]] = {}
        for path, access in layout.rules:
            for folder in ancestors(path):
                self._deeper.setdefault(folder, set()).add(access)

    def below(self, path: str, around: Access) -> Iterator[Grant]:
        """The grants for a path and what lies below it, where `around` holds for what has no rule."""
        access = self._rules.get(path, around)
        deeper = self._deeper.get(path, set())
        is_whole = access is not Access.HIDDEN and all(_ORDER[each] >= _ORDER[access] for each in deeper)
        if is_whole:
            yield path, access.value
        elif is_within(path, self._workspace) and access is not Access.HIDDEN:
            yield path, "list"
        if deeper:
            for name in _entries(path):
                inner = f"{path.rstrip('/')}/{name}"
                if not is_whole or inner in self._rules or inner in self._deeper:
                    yield from self.below(inner, access)


def _entries(path: str) -> list[str]:
    """The names in a folder, without links: a grant would be on what they lead to."""
    try:
        return [entry.name for entry in os.scandir(path) if not entry.is_symlink()]
    except OSError:
        return []
