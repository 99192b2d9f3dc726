"""What runs under the profile of a Python run: one request of the channel, or the canaries. Started by `python -c`.

The limits were lowered and the profile put on before the interpreter began, so nothing here contains anything.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

__all__ = ["serve", "try_out"]


def serve(channel: int, path: Sequence[str], packages: Sequence[str]) -> NoReturn:
    """Load the packages that are installed, then run the one request that comes on the channel."""
    from ferrule.sandbox.python.child import runner

    sys.path.extend(entry for entry in path if entry not in sys.path)
    runner.make_stdio()
    runner.set_own_home()
    for name in packages:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    warnings.filterwarnings("ignore", ".*non-interactive, and thus cannot be shown")
    runner.serve_once(channel)


def try_out(told: dict[str, Any]) -> NoReturn:
    """Try each probe, and write a JSON line for each: its name, and what it reached or null."""
    from ferrule.sandbox.macos.probes import PROBES, MacProbeContext

    around = MacProbeContext(**{**told, "readable": tuple(told["readable"])})
    for probe in PROBES:
        try:
            reached = probe(around)
        except Exception as error:  # noqa: BLE001 - a probe that fails has shown nothing
            reached = f"an error: {type(error).__name__}: {error}"
        os.write(1, json.dumps([probe.__name__, reached]).encode() + b"\n")
    os._exit(0)
