"""What is found of this machine's layers, and what is found under a filter that refuses namespaces."""

import json
import subprocess
import sys

from contained import SOURCE, needs_linux

from ferrule.sandbox.layers import canary_results, layers
from ferrule.sandbox.linux.landlock import abi
from ferrule.sandbox.tier import PROMISES, Tier

pytestmark = needs_linux

_UNDER_A_FILTER = f"""
import json, sys
sys.path.append({SOURCE!r})
from ferrule.sandbox.layers import layers
from ferrule.sandbox.linux.container_filter import refuse_namespaces
refuse_namespaces()
found = layers()
print(json.dumps([found.tier, found.namespaces, found.bubblewrap, found.missing]))
"""


def test_layers_are_those_of_the_kernel():
    found = layers()
    assert found.landlock == abi()
    assert found.tier is not Tier.NONE or found.missing
    assert (found.tier is Tier.FULL) == (found.namespaces and found.seccomp and found.landlock > 0)
    assert layers() is found


def test_without_namespaces_the_tier_is_the_container_s_and_the_reason_is_told():
    done = subprocess.run([sys.executable, "-c", _UNDER_A_FILTER], capture_output=True, check=True)
    tier, namespaces, bubblewrap, missing = json.loads(done.stdout)
    assert (tier, namespaces, bubblewrap) == (Tier.CONTAINER, False, None)
    assert any("unshare" in line and "profile" in line for line in missing)


def test_canaries_are_stopped_in_each_tier_that_there_is():
    for tier in (Tier.FULL, Tier.CONTAINER)[0 if layers().namespaces else 1 :]:
        results = canary_results(tier)
        assert len(results) > 8
        assert [result for result in results if not result.is_stopped] == []
    assert canary_results(Tier.NONE) == ()


def test_each_tier_says_what_holds_and_what_does_not():
    assert set(PROMISES) == set(Tier)
    assert not PROMISES[Tier.NONE].holds
    assert set(PROMISES[Tier.CONTAINER].holds) - set(PROMISES[Tier.FULL].holds)
    assert all(promises.lacks for promises in PROMISES.values())
