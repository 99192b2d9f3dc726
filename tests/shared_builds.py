"""What takes seconds to build is built once in a run of the tests, however many processes run them."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def built_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """The folder of this name, which whoever needs it first fills by `build` while the others wait.

    No test may write into it. Raises what `build` raises; the next one who needs the folder then tries again.
    """
    base = factory.getbasetemp()
    # Each of xdist's workers has a folder of its own inside that of the run.
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, unfinished = shared / f"built_{name}", shared / f"unfinished_{name}"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            build(unfinished)
            unfinished.rename(folder)
    return folder
