"""A machine that lacks a part of the full tier skips the tests that need it, and names the part."""

from collections.abc import Generator

import pytest

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.layers import layers
from ferrule.sandbox.tier import Tier

collect_ignore = ["escapes"]
"""Payloads, some of which are named like tests."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    yield from _skipped_without_a_layer()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    yield from _skipped_without_a_layer()


def _skipped_without_a_layer() -> Generator[None]:
    try:
        yield
    except SandboxUnavailable as error:
        found = layers()
        if found.tier is not Tier.FULL:
            pytest.skip(f"this machine has no full tier: {'; '.join(found.missing)}")
        if found.bubblewrap is None and "bubblewrap" in str(error):
            pytest.skip("bubblewrap is missing")
        raise
