"""Loads packages in the zygote, before any run, with the work that each run would repeat: imports, fonts, a figure."""

from __future__ import annotations

import importlib
import io
import mimetypes
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ferrule.sandbox.containment import ZygoteContainment
from ferrule.sandbox.linux import mounts, syscalls
from ferrule.sandbox.python.child import runner
from ferrule.sandbox.tiers import Tier

_ROOM: Final = 64 * 1024 * 1024
_FILES: Final = 1024
_MNT_DETACH: Final = 2
_FOLDER: Final = "run"
"""The name of a run's folder in the full tier, so that paths which a library caches are valid in each run."""


def load(packages: Iterable[str], entered: ZygoteContainment) -> list[str]:
    """Load packages and return those that are installed. They write to a folder that is removed afterwards."""
    # A path that exists and can't be read, as in the container tier, would make `mimetypes` and its callers fail.
    mimetypes.knownfiles.clear()
    mimetypes.init([])
    with _provide_home(entered):
        return [name for name in packages if _try_load(name)]


def _try_load(name: str) -> bool:
    """Load a package; returns False if it isn't installed."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and name.startswith(error.name):
            return False
        raise
    if name in _WARM_UPS:
        _WARM_UPS[name]()
    return True


def _warm_matplotlib() -> None:
    """Draw one figure, which lists the fonts and imports what a first figure needs."""
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots()
    axes.plot([1, 2], [1, 2], label="1")
    axes.set_title("1")
    axes.legend()
    figure.savefig(io.BytesIO(), format="png")
    pyplot.close("all")


_WARM_UPS: Final[Mapping[str, Callable[[], None]]] = {
    "matplotlib": _warm_matplotlib,
    "matplotlib.pyplot": _warm_matplotlib,
}


@contextmanager
def _provide_home(entered: ZygoteContainment) -> Iterator[None]:
    """Provide a home folder for what libraries write while they are loaded; it is removed afterwards."""
    before, environment = os.getcwd(), dict(os.environ)  # noqa: PTH109 - as in `set_own_home`
    folder = entered.scratch / _FOLDER
    is_full = entered.tier is Tier.FULL
    if is_full:
        syscalls.invoke(mounts.prepare_scratch_mount(entered.scratch, _ROOM, _FILES))
    try:
        folder.mkdir(mode=0o700)
        os.chdir(folder)
        runner.set_own_home()
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)
        _remove(folder, entered.scratch if is_full else None)


def _remove(folder: Path, mounted: Path | None) -> None:
    if mounted is None:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        syscalls.invoke(syscalls.prepare_call("umount2", os.fsencode(mounted), _MNT_DETACH))
