"""Builds the command of one Python run under its profile: readable paths, limits and arguments."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ferrule.sandbox.containment import RunLimits
from ferrule.sandbox.installation import PACKAGE, make_boot_program
from ferrule.sandbox.macos.process_group import make_limit_arguments
from ferrule.sandbox.macos.profiles import make_python_profile
from ferrule.sandbox.macos.sbpl import Profile
from ferrule.sandbox.visible_paths import VisiblePaths, find_python_paths

__all__ = ["InterpreterPaths", "build_run_command", "find_interpreter_paths", "make_macos_limits"]

# Libraries outside the interpreter's prefix that these managers' packages are linked with.
_MANAGERS: Final = {
    "/opt/homebrew": ("lib", "opt", "Cellar"),
    "/usr/local": ("opt", "Cellar"),
    "/opt/local": ("lib",),
}
_PROGRAM: Final = (
    "import json; given = json.loads({given!r}); from ferrule.sandbox.macos.python_child import {name}; {name}({call})"
)


@dataclass(frozen=True, slots=True)
class InterpreterPaths:
    """The real paths that all runs of a sandbox may read, and that an interpreter is started from."""

    readable: tuple[str, ...]
    links: tuple[str, ...]
    listed: tuple[str, ...]
    programs: tuple[str, ...]

    def make_profile(self, scratch: str) -> Profile:
        """Make the profile of a run that writes below `scratch`."""
        return make_python_profile(
            readable=self.readable, links=self.links, listed=self.listed, programs=self.programs, scratch=scratch
        )


def find_interpreter_paths(extra: Iterable[Path]) -> InterpreterPaths:
    """Find the paths of this interpreter, its packages and `extra`. Raises ValueError for paths that can't be shown."""
    programs = [os.path.realpath(sys.executable)]
    shown = list(find_python_paths(extra).readable)
    for prefix in dict.fromkeys((sys.base_prefix, sys.base_exec_prefix)):
        # Of a framework build: the library itself, and the program that `bin/python3` starts.
        shown += [path for name in ("Python", "Resources", "Frameworks") if (path := Path(prefix, name)).exists()]
        programs.append(str(Path(os.path.realpath(prefix), "Resources/Python.app/Contents/MacOS/Python")))
        for manager, names in _MANAGERS.items():
            if prefix.startswith(f"{manager}/"):
                shown += [path for name in names if (path := Path(manager, name)).exists()]
    paths, links = VisiblePaths((*shown, Path(PACKAGE))).plan()
    listed = str(Path(os.path.realpath(PACKAGE)).parent)
    return InterpreterPaths(tuple(map(str, paths)), tuple(map(str, links)), (listed,), tuple(dict.fromkeys(programs)))


def make_macos_limits(wanted: RunLimits) -> dict[str, int]:
    """Return the limits by name, without address space: macOS maps gigabytes for any process."""
    return {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": wanted.cpu,
        "RLIMIT_FSIZE": wanted.file_size,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_NOFILE": wanted.files,
        "RLIMIT_NPROC": 0,
    }


def make_serve_program(channel: int, path: Sequence[str], packages: Sequence[str]) -> str:
    """Return the interpreter's program for one run."""
    given = {"channel": channel, "path": list(path), "packages": list(packages)}
    return _build_program(given, "serve", "given['channel'], given['path'], given['packages']")


def make_canary_program(context: Mapping[str, Any]) -> str:
    """Return the interpreter's program for the canaries; `context` has the fields of `MacProbeContext`."""
    return _build_program({"context": dict(context)}, "try_probes", "given['context']")


def build_run_command(tool: Path, profile: Profile, limits: Mapping[str, int], program: str) -> list[str]:
    """Return the command that runs `program` in an interpreter with lowered limits and under the profile."""
    python = [sys.executable, "-I", "-B", "-X", "utf8", "-c", program]
    return make_limit_arguments(profile.build_command(tool, python), limits)


def _build_program(given: Mapping[str, Any], name: str, call: str) -> str:
    return make_boot_program(_PROGRAM.format(given=json.dumps(given), name=name, call=call))
