"""A trial of this machine's layers, run in a process of its own: `main` prints what it found, a JSON object a line.

A tier is entered, and its canaries let loose there; nothing is inferred from versions.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

from ferrule.sandbox.canaries import Canaries
from ferrule.sandbox.contain import enter
from ferrule.sandbox.linux.landlock import abi
from ferrule.sandbox.linux.seccomp import has_seccomp
from ferrule.sandbox.tier import Tier
from ferrule.sandbox.view import python_view

__all__ = ["main"]


def main(name: str) -> None:
    """Print what the kernel says, and then whether that tier could be entered, and what its canaries reached."""
    _say({"landlock": abi(), "seccomp": has_seccomp()})
    trial = os.fork()
    if trial == 0:
        _try(Tier(name))
    os.waitpid(trial, 0)


def _try(tier: Tier) -> NoReturn:
    folder = Path(tempfile.mkdtemp(prefix="ferrule-trial-")) if tier is not Tier.FULL else None
    try:
        entered = enter(python_view(), tier, folder=folder)
        results = Canaries.start(entered).results()
        _say({"tier": tier, "canaries": [[result.name, result.reached] for result in results]})
    except (OSError, KeyError) as error:  # KeyError: a processor whose calls have no table here
        _say({"tier": tier, "error": str(error)})
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def _say(found: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
