"""What a start of the seatbelt tier tries first: its canaries, in the very containment that runs will have."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.canaries import CanaryResult, results_of
from ferrule.sandbox.contain import Limits
from ferrule.sandbox.linux.trees import remove_tree
from ferrule.sandbox.macos.probes import PROBES, Around
from ferrule.sandbox.macos.runs import Ground, arguments, limits_of, trying

__all__ = ["canary_results"]

_SECONDS: Final = 60
_LIMITS: Final = Limits(cpu=10, files=64)


def canary_results(tool: Path, ground: Ground, environment: Mapping[str, str]) -> tuple[CanaryResult, ...]:
    """What each canary came to under `tool`; one that didn't answer is said to have got through.

    Raises `SandboxUnavailable` with the reason where `tool` isn't there or starts nothing.
    """
    if not os.access(tool, os.X_OK):
        raise SandboxUnavailable(f"the seatbelt tier needs {tool}, which isn't there: it is a program of macOS")
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="ferrule-canaries-")))
    try:
        return _tried(tool, ground, environment, folder)
    finally:
        remove_tree(folder)


def _tried(tool: Path, ground: Ground, environment: Mapping[str, str], folder: Path) -> tuple[CanaryResult, ...]:
    scratch, witness = folder / "run", folder / "witness"
    scratch.mkdir()
    witness.write_text("reached\n", encoding="utf-8")
    # Without the limit on processes, which would refuse a fork before the profile is asked.
    limits = {name: most for name, most in limits_of(_LIMITS).items() if name != "RLIMIT_NPROC"}
    around = Around(str(witness), str(Path.home()), os.getpid(), limits, ground.readable)
    try:
        done = subprocess.run(
            arguments(tool, ground.profile(str(scratch)), limits, trying(asdict(around))),
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
        words = done.stderr.decode(errors="replace").strip()[-500:]
        raise SandboxUnavailable(f"{tool} started nothing: it ended with status {done.returncode}: {words}")
    return results_of(done.stdout, PROBES)
