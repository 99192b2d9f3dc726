"""How one Python run is started under its profile: what it may read, its limits, its environment, its arguments."""

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

# Libraries that packages of these managers are linked with, beside the interpreter's own prefix.
_MANAGERS: Final = {
    "/opt/homebrew": ("lib", "opt", "Cellar"),
    "/usr/local": ("opt", "Cellar"),
    "/opt/local": ("lib",),
}
_PROGRAM: Final = (
    "import json; told = json.loads({told!r}); from ferrule.sandbox.macos.python_child import {name}; {name}({call})"
)


@dataclass(frozen=True, slots=True)
class InterpreterPaths:
    """What all runs of a sandbox may read, as real paths, and what an interpreter is started from."""

    readable: tuple[str, ...]
    links: tuple[str, ...]
    listed: tuple[str, ...]
    programs: tuple[str, ...]

    def make_profile(self, scratch: str) -> Profile:
        """The profile of a run that writes below `scratch`."""
        return make_python_profile(
            readable=self.readable, links=self.links, listed=self.listed, programs=self.programs, scratch=scratch
        )


def find_interpreter_paths(extra: Iterable[Path]) -> InterpreterPaths:
    """That of this interpreter and its packages, and of `extra`. Raises ValueError for what can't be shown."""
    programs = [os.path.realpath(sys.executable)]
    shown = list(find_python_paths(extra).readable)
    for prefix in dict.fromkeys((sys.base_prefix, sys.base_exec_prefix)):
        # A framework's: the library itself, and the program that `bin/python3` only starts.
        shown += [path for name in ("Python", "Resources", "Frameworks") if (path := Path(prefix, name)).exists()]
        programs.append(str(Path(os.path.realpath(prefix), "Resources/Python.app/Contents/MacOS/Python")))
        for manager, names in _MANAGERS.items():
            if prefix.startswith(f"{manager}/"):
                shown += [path for name in names if (path := Path(manager, name)).exists()]
    paths, links = VisiblePaths((*shown, Path(PACKAGE))).plan()
    listed = str(Path(os.path.realpath(PACKAGE)).parent)
    return InterpreterPaths(tuple(map(str, paths)), tuple(map(str, links)), (listed,), tuple(dict.fromkeys(programs)))


def make_macos_limits(wanted: RunLimits) -> dict[str, int]:
    """The limits that macOS knows, by name. Address space isn't among them: it maps gigabytes for any process."""
    return {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": wanted.cpu,
        "RLIMIT_FSIZE": wanted.file_size,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_NOFILE": wanted.files,
        "RLIMIT_NPROC": 0,
    }


def make_serve_program(channel: int, path: Sequence[str], packages: Sequence[str]) -> str:
    """The interpreter's program for one run."""
    told = {"channel": channel, "path": list(path), "packages": list(packages)}
    return _build_program(told, "serve", "told['channel'], told['path'], told['packages']")


def make_canary_program(told: Mapping[str, Any]) -> str:
    """The interpreter's program for the canaries."""
    return _build_program({"around": dict(told)}, "try_out", "told['around']")


def build_run_command(tool: Path, profile: Profile, limits: Mapping[str, int], program: str) -> list[str]:
    """What becomes the interpreter that runs `program`, with lowered limits and under the profile."""
    python = [sys.executable, "-I", "-B", "-X", "utf8", "-c", program]
    return make_limit_arguments(profile.build_command(tool, python), limits)


def _build_program(told: Mapping[str, Any], name: str, call: str) -> str:
    return make_boot_program(_PROGRAM.format(told=json.dumps(told), name=name, call=call))
