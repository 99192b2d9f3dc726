"""Random trees and random turns: undo and redo bring back each state, byte for byte."""

import asyncio
import random
import tempfile
from pathlib import Path

import pytest
from checkpoint_trees import change_randomly, read_tree
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.coding.checkpoints import Checkpoints


async def play(seed: int, folder: Path) -> None:
    """Random turns of a command each; after each undo and redo, the state is the one recorded before or after it."""
    chance = random.Random(seed)
    workspace = folder / "workspace"
    workspace.mkdir()
    for _ in range(chance.randrange(12)):
        change_randomly(workspace, chance)
    states = [read_tree(workspace)]
    checkpoints = Checkpoints(workspace, folder / "store")
    for number in range(chance.randrange(1, 5)):
        checkpoints.begin_turn(f"turn {number}")
        await checkpoints.before_command()
        for _ in range(chance.randrange(1, 9)):
            change_randomly(workspace, chance)
        if chance.random() < 0.8:
            await checkpoints.end_turn()
        state = read_tree(workspace)
        if chance.random() < 0.2:  # as a new program
            await checkpoints.aclose()
            checkpoints = Checkpoints(workspace, folder / "store")
        if state != states[-1]:
            states.append(state)
    at = len(states) - 1
    for _ in range(12):
        if chance.random() < 0.6:
            report = await checkpoints.undo()
            at, is_possible = max(at - 1, 0), at > 0
        else:
            report = await checkpoints.redo()
            at, is_possible = min(at + 1, len(states) - 1), at + 1 < len(states)
        assert report.is_complete == is_possible, report
        assert read_tree(workspace) == states[at], f"seed {seed}: {report}"
    await checkpoints.aclose()
    assert checkpoints.take_announcements() == []


@given(st.integers(0, 2**32))
@settings(max_examples=40)
def test_undo_and_redo_bring_back_each_state(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(seed, Path(folder)))


@pytest.mark.slow
@given(st.integers(0, 2**32))
@settings(max_examples=1000)
def test_undo_and_redo_bring_back_each_state_a_thousand_times(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(seed, Path(folder)))
