"""What is found of this machine's layers, and what is found under a filter that refuses namespaces."""

import json
import subprocess
import sys

from contained import SOURCE, TESTS, needs_linux

from ferrule.sandbox.doctor import detect_layers, try_canaries
from ferrule.sandbox.linux.landlock import read_abi
from ferrule.sandbox.tiers import PROMISES, Tier

pytestmark = needs_linux

_UNDER_A_FILTER = f"""
import json, sys
sys.path += [{SOURCE!r}, {TESTS!r}]
from ferrule.sandbox.doctor import detect_layers
from escaping.container_filter import install
install()
found = detect_layers()
print(json.dumps([found.tier, found.namespaces, found.shell_tier, found.missing]))
"""


def test_layers_are_those_of_the_kernel():
    found = detect_layers()
    assert found.landlock == read_abi()
    assert found.tier is not Tier.NONE or found.missing
    assert (found.tier is Tier.FULL) == (found.namespaces and found.seccomp and found.landlock > 0)
    assert detect_layers() is found


def test_without_namespaces_the_tier_is_the_container_s_and_the_reason_is_told():
    done = subprocess.run([sys.executable, "-c", _UNDER_A_FILTER], capture_output=True, check=True)
    tier, namespaces, shell_tier, missing = json.loads(done.stdout)
    assert (tier, namespaces, shell_tier) == (Tier.CONTAINER, False, Tier.CONTAINER)
    assert any("unshare" in line and "profile" in line for line in missing)


def test_canaries_are_stopped_in_each_tier_that_there_is():
    for tier in (Tier.FULL, Tier.CONTAINER)[0 if detect_layers().namespaces else 1 :]:
        results = try_canaries(tier)
        assert len(results) > 8
        assert [result for result in results if not result.is_stopped] == []
    assert try_canaries(Tier.NONE) == ()


def test_each_tier_says_what_holds_and_what_does_not():
    assert set(PROMISES) == set(Tier)
    assert not PROMISES[Tier.NONE].holds
    assert set(PROMISES[Tier.CONTAINER].holds) - set(PROMISES[Tier.FULL].holds)
    assert all(promises.lacks for promises in PROMISES.values())
