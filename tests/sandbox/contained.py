"""Runs pieces of Python in processes of their own: plainly, or contained by `ferrule.sandbox.containment`."""

import atexit
import functools
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = str(Path(__file__).parents[2] / "src")
TESTS = str(Path(__file__).parent)
"""What `escaping.container_filter` is imported from."""
PROGRAM = Path(__file__).with_name("contained_program.py").read_text()
WHOLE = "whole"
OPEN_PYTHON = "/usr/bin/python3"
"""An interpreter that every user may start, where there is one."""

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="Landlock, seccomp and namespaces are Linux's")


@functools.cache
def open_paths():
    """The package and `TESTS` where every user can read them: copies, where this checkout lies in one like /root."""
    if all(above.stat().st_mode & 0o001 for above in Path(SOURCE, "ferrule").parents):
        return SOURCE, TESTS
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    Path(folder).chmod(0o755)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(TESTS, "escaping"), f"{folder}/tests/escaping", ignore=ignored)
    return shutil.copytree(SOURCE, f"{folder}/src", ignore=ignored), f"{folder}/tests"


@dataclass(frozen=True)
class Way:
    """How a piece of code is run: in which tier (None: plainly), by whom, and whether namespaces are really refused."""

    tier: str | None
    user: str = "root"
    refused: bool = False

    def __str__(self):
        return "-".join(filter(None, (self.tier or "plain", self.user, "refused" if self.refused else "")))


def ways():
    """Every way that this machine has: as this user, and for root as an ordinary one, too."""
    users = [pwd.getpwuid(os.geteuid()).pw_name]
    if os.geteuid() == 0 and Path(OPEN_PYTHON).exists():
        users.append("nobody")
    found = [Way("full", user) for user in users]
    return found + [Way("container", user, refused) for user in users for refused in (False, True)]


def canary_of(folder):
    """A file outside of all that a body is given, which holds `WHOLE` unless the body got there."""
    return Path(folder, "outside", "canary")


def started(body, way, folder, *, limits=None, readable=()):
    """The process that runs the body, in an empty folder that it leaves as it likes."""
    own, viewed, canary = Path(folder, "runs"), Path(folder, "viewed"), canary_of(folder)
    own.mkdir()
    canary.parent.mkdir()
    viewed.write_text("seen")
    canary.write_text(WHOLE)
    Path(folder).chmod(0o755)
    is_other = way.user == "nobody" and os.geteuid() == 0
    if is_other:
        for path in (own, viewed, canary.parent, canary):
            shutil.chown(path, "nobody", "nogroup")
    given = {
        "paths": open_paths() if is_other else (SOURCE, TESTS),
        "body": body,
        "tier": way.tier,
        "refused": way.refused,
        "folder": str(own),
        "viewed": str(viewed),
        "canary": str(canary),
        "readable": [str(viewed), *map(str, readable)],
        "limits": limits or {},
    }
    return subprocess.Popen(
        [OPEN_PYTHON if is_other else sys.executable, "-I", "-c", PROGRAM, json.dumps(given)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=own,
        env={"PATH": os.defpath},
        **({"user": 65534, "group": 65534, "extra_groups": []} if is_other else {}),
    )


def run(body, way, *, limits=None, readable=(), timeout=60):
    """What the body returns. Fails the test where it doesn't."""
    with (
        tempfile.TemporaryDirectory() as folder,
        started(body, way, folder, limits=limits, readable=readable) as process,
    ):
        out, err = process.communicate(timeout=timeout)
        canary = canary_of(folder)
        if way.tier is not None and (not canary.exists() or canary.read_text() != WHOLE):
            pytest.fail(f"{way}: a file outside was changed")
    if not out:
        pytest.fail(f"{way}: status {process.returncode}, {err.decode()[-1500:]}")
    return json.loads(out)
