"""The paths of the host's file system that a contained process can see, read-only and at the same path."""

import os
import site
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ferrule.sandbox.paths import follow_links

__all__ = ["SHARED_PREFIXES", "VisiblePaths", "find_python_paths"]

_SYSTEM: Final = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"),
    *("/usr/share/zoneinfo", "/usr/share/fonts", "/usr/local/share/fonts", "/usr/share/fontconfig", "/etc/fonts"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/timezone"),
)
_PREFIX_ENTRIES: Final = ("bin", "lib", "lib64", "share", "pyvenv.cfg")
SHARED_PREFIXES: Final = ("/usr", "/usr/local", "/")
"""Interpreter prefixes that hold much else besides."""


@dataclass(frozen=True, slots=True)
class VisiblePaths:
    """Host paths that are visible, read-only, at the same path; nothing else is."""

    readable: tuple[Path, ...]

    def plan(self) -> tuple[list[Path], dict[Path, str]]:
        """The real paths, none below another, and the symbolic links on the way to them.

        A missing path is left out. Raises ValueError for a relative path or the root.
        """
        links: dict[Path, str] = {}
        real: set[Path] = set()
        for path in self.readable:
            if not path.is_absolute():
                raise ValueError(f"a view's paths are absolute, not {str(path)!r}")
            *passed, found = follow_links(str(path))
            links |= {Path(link): str(Path(link).readlink()) for link in passed}
            real |= {Path(found)} if Path(found).exists() else set()
        if Path("/") in real:
            raise ValueError("a view can't hold the whole root: name the folders to read")
        outermost = sorted(path for path in real if not any(parent in real for parent in path.parents))
        return outermost, links


def find_python_paths(extra: Iterable[Path] = ()) -> VisiblePaths:
    """The running interpreter, its packages, the system libraries and `extra`; nothing else in the home folder.

    Entries of `sys.path` that belong to neither the interpreter nor its installed packages (the script's own folder,
    `PYTHONPATH`, the target of an editable install) are not visible, since no one chose to show them: name them in
    `extra`.
    """
    paths = [Path(path) for path in _SYSTEM]
    paths += [Path(sys.executable), Path(os.path.realpath(sys.executable))]
    paths += [
        Path(found) for name in ("stdlib", "platstdlib", "purelib", "platlib") if (found := sysconfig.get_path(name))
    ]
    for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}:
        if prefix not in SHARED_PREFIXES:
            paths += [Path(prefix, name) for name in _PREFIX_ENTRIES]
    paths += [Path(path) for path in site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        paths.append(Path(site.getusersitepackages()))
    return VisiblePaths(tuple(dict.fromkeys(path for path in (*paths, *extra) if path.exists())))
