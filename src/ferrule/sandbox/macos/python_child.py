"""Runs under the profile of a Python run: one request from the channel, or the canaries. Started by `python -c`.

The limits and the profile are applied before the interpreter starts, so nothing is contained here.
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

__all__ = ["serve", "try_probes"]


def serve(channel: int, path: Sequence[str], packages: Sequence[str]) -> NoReturn:
    """Load the packages that are installed, then run the one request on the channel."""
    from ferrule.sandbox.python.child import runner

    sys.path.extend(entry for entry in path if entry not in sys.path)
    runner.make_stdio()
    runner.set_own_home()
    for name in packages:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    warnings.filterwarnings("ignore", ".*non-interactive, and thus cannot be shown")
    runner.serve_once(channel)


def try_probes(fields: dict[str, Any]) -> NoReturn:
    """Run each probe with the context of these fields, and write a JSON line: its name, and what it reached or null."""
    from ferrule.sandbox.macos.probes import PROBES, MacProbeContext

    context = MacProbeContext(**{**fields, "readable": tuple(fields["readable"])})
    for probe in PROBES:
        try:
            reached = probe(context)
        except Exception as error:  # noqa: BLE001 - a probe that fails has shown nothing
            reached = f"an error: {type(error).__name__}: {error}"
        os.write(1, json.dumps([probe.__name__, reached]).encode() + b"\n")
    os._exit(0)
