"""Hostile commands: each works where nothing contains it, and fails in every tier that promises so."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from shell_attacks import ATTACKS, Attack, World, missing, world

from ferrule.sandbox.shell import CommandResult, ShellSandbox

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's"),
    pytest.mark.skipif(bool(missing), reason="needs git and util-linux"),
]


@pytest.fixture(autouse=True)
def secrets_of_the_parent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FERRULE_TEST_VALUE", "unmistakable")
    monkeypatch.setenv("CARGO_REGISTRY_TOKEN", "unmistakable")
    monkeypatch.setenv("PYTHON_INDEX", "https://user:unmistakable@example.org")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def uncontained(made: World, attack: Attack) -> CommandResult:
    """A plain subprocess. Its output goes to a file, since some of them hold on to it."""
    said = made.root / "said"
    with said.open("wb") as file:
        done = subprocess.run(
            [*attack.control, attack.command.format(**made.words())],
            cwd=made.workspace,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            close_fds=False,
        )
    return CommandResult(done.returncode, said.read_text(errors="replace"), "exit")


async def contained(made: World, command: str, tier: str) -> CommandResult:
    # What lies around the workspace can be read, so that what hides is the list; the interpreter may lie anywhere.
    readable = [made.root, sys.base_prefix, os.path.realpath(sys.executable)]
    passed = ["PATH", "HOME", "CARGO_*", "PYTHON*"]
    async with ShellSandbox(made.workspace, tier=tier, readable=readable, passed=passed, grace=0.2) as sandbox:
        return await sandbox.run(command, timeout=30)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_works_in_a_plain_subprocess(tmp_path: Path, attack: Attack) -> None:
    with world(tmp_path) as made:
        done = uncontained(made, attack)
        patience = time.monotonic() + 60
        while not (has_hit := attack.hit(made, done)) and time.monotonic() < patience:
            time.sleep(0.01)  # who listens may hear it after the one who spoke has ended
        assert has_hit, done.output


# Each attack in one of the tiers, and in all of them where slow tests run.
IN_FULL = [each for number, each in enumerate(ATTACKS) if number % 2 == 0 or "container" not in each.tiers]
IN_CONTAINER = [each for each in ATTACKS if each not in IN_FULL]


def list_attacks(quick: list[Attack], everything: list[Attack]) -> list[Any]:
    return [*quick, *(pytest.param(each, marks=pytest.mark.slow) for each in everything if each not in quick)]


@pytest.mark.parametrize("attack", list_attacks(IN_FULL, ATTACKS), ids=lambda attack: attack.name)
async def test_fails_in_the_full_tier(tmp_path: Path, attack: Attack) -> None:
    with world(tmp_path) as made:
        done = await contained(made, attack.command.format(**made.words()), "full")
        assert not attack.hit(made, done), done.output


@pytest.mark.parametrize(
    "attack",
    list_attacks(IN_CONTAINER, [each for each in ATTACKS if "container" in each.tiers]),
    ids=lambda attack: attack.name,
)
async def test_fails_in_the_container_tier(tmp_path: Path, attack: Attack) -> None:
    with world(tmp_path) as made:
        done = await contained(made, attack.command.format(**made.words()), "container")
        assert not attack.hit(made, done), done.output
