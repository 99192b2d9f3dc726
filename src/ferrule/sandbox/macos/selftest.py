"""Runs the canaries at the start of the seatbelt tier, in the same containment that runs will have."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.canaries import CanaryResult, parse_results
from ferrule.sandbox.containment import RunLimits
from ferrule.sandbox.macos.probes import PROBES, MacProbeContext
from ferrule.sandbox.macos.python_runs import (
    InterpreterPaths,
    build_run_command,
    make_canary_program,
    make_macos_limits,
)
from ferrule.sandbox.temporary_folders import remove_tree

__all__ = ["try_canaries"]

_SECONDS: Final = 60
_LIMITS: Final = RunLimits(cpu=10, files=64)


def try_canaries(tool: Path, interpreter: InterpreterPaths, environment: Mapping[str, str]) -> tuple[CanaryResult, ...]:
    """Run the canaries under `tool` and return their results; one that didn't answer counts as having got through.

    Raises `SandboxUnavailable` with the reason if `tool` doesn't exist or starts nothing.
    """
    if not os.access(tool, os.X_OK):
        raise SandboxUnavailable(f"the seatbelt tier needs {tool}, which isn't there: it is a program of macOS")
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="ferrule-canaries-")))
    try:
        return _try_probes(tool, interpreter, environment, folder)
    finally:
        remove_tree(folder)


def _try_probes(
    tool: Path, interpreter: InterpreterPaths, environment: Mapping[str, str], folder: Path
) -> tuple[CanaryResult, ...]:
    scratch, witness = folder / "run", folder / "witness"
    scratch.mkdir()
    witness.write_text("reached\n", encoding="utf-8")
    # Without the limit on processes, which would refuse a fork before the profile does.
    limits = {name: most for name, most in make_macos_limits(_LIMITS).items() if name != "RLIMIT_NPROC"}
    context = MacProbeContext(str(witness), str(Path.home()), os.getpid(), limits, interpreter.readable)
    try:
        done = subprocess.run(
            build_run_command(
                tool, interpreter.make_profile(str(scratch)), limits, make_canary_program(asdict(context))
            ),
            env=environment,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(f"{tool} can't be used: {type(error).__name__}: {error}") from error
    if not done.stdout:
        text = done.stderr.decode(errors="replace").strip()[-500:]
        raise SandboxUnavailable(f"{tool} started nothing: it ended with status {done.returncode}: {text}")
    return parse_results(done.stdout, PROBES)
