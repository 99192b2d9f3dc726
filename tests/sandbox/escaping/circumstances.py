"""Who runs the corpus, and in what: as root or as an ordinary user, freely or under a container's filter."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[1]
SOURCES = HERE.parents[1] / "src"

# An ordinary user can't become root: without root, only the rest is run.
USERS = ("root", "user") if os.geteuid() == 0 else ("user",)
TIERS = ("full", "container")


def run_corpus(
    where: str, *, user: str, tier: str = "full", names: tuple[str, ...] = ()
) -> dict[str, dict[str, object]]:
    """What each payload hit. The container tier is run under the filter of an ordinary container."""
    filtered = where != "plain" and tier == "container"
    return json.loads(
        _output("escaping.corpus", [where, "--tier", tier, "--only", *names], user=user, filtered=filtered)
    )


def _output(module: str, arguments: list[str], *, user: str, filtered: bool) -> str:
    options = ["--user"] * (user == "user") + ["--filtered"] * filtered
    command = [sys.executable, "-m", "escaping.enter", *options, "--", sys.executable, "-m", module, *arguments]
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "PYTHONPATH": f"{SOURCES}:{HERE}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    # A session of its own: in a container this one may have begun outside, and then nobody can be asked for it.
    done = subprocess.run(
        command, env=environment, cwd="/", capture_output=True, text=True, check=False, start_new_session=True
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[-4000:]}"
    return done.stdout


def namespaces(*, user: str) -> dict[str, str]:
    """By kind: the namespaces that the corpus is run in."""
    return json.loads(_output("escaping.namespaces", [], user=user, filtered=False))


def tries(*, user: str, filtered: bool) -> dict[str, str]:
    """What becomes of the calls that a container refuses."""
    return json.loads(_output("escaping.tries", [], user=user, filtered=filtered))
