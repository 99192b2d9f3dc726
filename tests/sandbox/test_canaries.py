"""Canaries: each reaches what it tries where nothing stops it, and the sandbox refuses to start when one does."""

import json
import subprocess
import sys

import pytest
from contained import SOURCE, needs_linux

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.canaries import CanaryResult, parse_results, require_all_stopped
from ferrule.sandbox.linux.probes import PROBES
from ferrule.sandbox.tiers import Tier

pytestmark = needs_linux

_UNCONTAINED = f"""
import json, os, sys, tempfile
sys.path.append({SOURCE!r})
os.environ["SOME_TOKEN"] = "x"
from pathlib import Path
from ferrule.sandbox.canaries import Canaries
from ferrule.sandbox.containment import enter
from ferrule.sandbox.tiers import Tier
from ferrule.sandbox.visible_paths import VisiblePaths
with tempfile.TemporaryDirectory() as folder:
    results = Canaries.start(enter(VisiblePaths(()), Tier.NONE, folder=Path(folder))).collect_results()
print(json.dumps({{result.name: result.reached for result in results}}))
"""
# Only the kernel decides about these two: descriptors are closed and memory is limited in every tier.
_STOPPED_ANYWHERE = {"exceed_memory", "use_inherited_descriptors", "use_own_folder"}


def test_uncontained_the_probes_get_through():
    done = subprocess.run([sys.executable, "-I", "-c", _UNCONTAINED], capture_output=True, check=True)
    reached = json.loads(done.stdout)
    assert {name for name, found in reached.items() if found is None} == _STOPPED_ANYWHERE
    assert reached.keys() == {probe.__name__ for probe in PROBES}


def test_one_that_gets_through_is_named_and_nothing_runs():
    results = (CanaryResult("a", "reach a", None), CanaryResult("read_outside", "read", "/etc/passwd"))
    with pytest.raises(SandboxUnavailable, match=r"full tier.*read_outside reached /etc/passwd.*doctor"):
        require_all_stopped(results, Tier.FULL)
    require_all_stopped(results[:1], Tier.FULL)
    require_all_stopped(results, Tier.NONE)


def test_one_that_never_answered_counts_as_through():
    said = b"".join(json.dumps([probe.__name__, None]).encode() + b"\n" for probe in PROBES[:-1]) + b'["read_sec'
    assert [result.name for result in parse_results(said) if not result.is_stopped] == [PROBES[-1].__name__]
