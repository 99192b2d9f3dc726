"""A machine that lacks a part of the full tier skips the tests that need it, and names the part."""

from collections.abc import Generator

import pytest

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.doctor import detect_layers
from ferrule.sandbox.tiers import Tier

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
    except SandboxUnavailable:
        found = detect_layers()
        if Tier.FULL not in {found.tier, found.shell_tier} or found.missing:
            pytest.skip(f"this machine has no full tier: {'; '.join(found.missing)}")
        raise
