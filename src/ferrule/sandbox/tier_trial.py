"""A trial of this machine's layers, run in a separate process: `main` prints its findings, one JSON object per line.

It enters a tier and runs the canaries there; nothing is inferred from versions.
"""

import json
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from ferrule.sandbox.canaries import Canaries
from ferrule.sandbox.containment import enter
from ferrule.sandbox.linux.command_namespaces import enter_command_namespaces
from ferrule.sandbox.linux.command_root import enter_command_root
from ferrule.sandbox.linux.landlock import read_abi
from ferrule.sandbox.linux.seccomp import has_seccomp
from ferrule.sandbox.tiers import Tier
from ferrule.sandbox.visible_paths import find_python_paths

__all__ = ["main"]


def main(name: str) -> None:
    """Print what the kernel supports, then whether Python could enter a tier and what the canaries reached there.

    For the full tier also whether shell commands could: they need their own /proc and the machine's root.
    """
    tier = Tier(name)
    _print_finding({"landlock": read_abi(), "seccomp": has_seccomp()})
    for each in (_try, _try_commands) if tier is Tier.FULL else (_try,):
        trial = os.fork()
        if trial == 0:
            each(tier)
        os.waitpid(trial, 0)


def _try(tier: Tier) -> NoReturn:
    folder = Path(tempfile.mkdtemp(prefix="ferrule-trial-")) if tier is not Tier.FULL else None
    try:
        entered = enter(find_python_paths(), tier, folder=folder)
        results = Canaries.start(entered).collect_results()
        _print_finding({"tier": tier, "canaries": [[result.name, result.reached] for result in results]})
    except (OSError, KeyError) as error:  # KeyError: no system call table for this processor
        _print_finding({"tier": tier, "error": str(error)})
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def _try_commands(tier: Tier) -> NoReturn:
    try:
        enter_command_root((("read", "/", "/"), ("proc", "/proc", ""), ("dev", "/dev", "")), network=True)
        if os.fork() == 0:
            enter_command_namespaces(network=False)
            _print_finding({"tier": tier})
        else:
            _wait_for_all()  # the child ends with this process, pid 1 of its namespace
    except (OSError, KeyError) as error:
        _print_finding({"tier": tier, "error": str(error)})
    finally:
        os._exit(0)


def _wait_for_all() -> None:
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _print_finding(found: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
