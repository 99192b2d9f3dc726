"""Random trees and random turns: undo and redo bring back each state, byte for byte."""

import asyncio
import os
import random
import stat
import tempfile
from pathlib import Path

import pytest
from checkpoint_trees import NAMES, change_randomly, read_tree
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ferrule.coding.checkpoints import Checkpoints

Tree = dict[str, tuple[int, bytes]]


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


def change_known(folder: Path, paths: list[str], chance: random.Random) -> None:
    """What a file tool does: write or delete files at known paths."""
    for path in paths:
        target = folder / path
        if target.is_symlink() or target.is_file():
            target.unlink()
        if chance.random() < 0.8:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(chance.randbytes(10))


def choose_paths(folder: Path, chance: random.Random) -> list[str]:
    """Paths that a file tool could write: no folders, and none below something that isn't one."""
    found = []
    for _ in range(chance.randrange(1, 4)):
        parts = [chance.choice(NAMES) for _ in range(chance.randrange(1, 4))]
        target = folder.joinpath(*parts)
        parents = [folder.joinpath(*parts[:count]) for count in range(1, len(parts))]
        is_open = all(not parent.is_symlink() and (parent.is_dir() or not parent.exists()) for parent in parents)
        is_clear = not any(target in Path(folder, each).parents or folder / each in target.parents for each in found)
        if is_open and is_clear and (target.is_symlink() or not target.is_dir()):
            found.append("/".join(parts))
    return found


async def take_turn(checkpoints: Checkpoints, chance: random.Random) -> None:
    """A turn of file tools, commands or both."""
    workspace = checkpoints.workspace
    checkpoints.begin_turn()
    for _ in range(chance.randrange(1, 4)):
        if chance.random() < 0.6:
            paths = choose_paths(workspace, chance)
            await checkpoints.before_write([workspace / path for path in paths])
            change_known(workspace, paths, chance)
        else:
            await checkpoints.before_command()
            for _ in range(chance.randrange(1, 5)):
                change_randomly(workspace, chance)
    await checkpoints.end_turn()


def change_as_user(workspace: Path, chance: random.Random) -> None:
    """Write to some of the files that exist and can be written, and beside them."""
    files = [path for path in read_tree(workspace) if (workspace / path).is_file()]
    files = [path for path in files if os.access(workspace / path, os.W_OK)]
    for path in [*chance.sample(files, min(len(files), 2)), f"user-{chance.randrange(3)}"]:
        if not (workspace / path).is_symlink():
            (workspace / path).write_bytes(b"by the user " + chance.randbytes(4))


def find_expected(before: Tree, after: Tree, current: Tree) -> Tree:
    """What undo should make of the current state: each path as before the turn, if it is as the turn left it."""
    expected = dict(current)
    for path in before.keys() | after.keys():
        if before.get(path) != after.get(path) and current.get(path) == after.get(path):
            expected.pop(path, None)
            if path in before:
                expected[path] = before[path]
    # A folder stays that holds something of somebody else's, and what should be in its place then stays out.
    for path in sorted(current, key=len, reverse=True):
        is_filled = stat.S_ISDIR(current[path][0]) and any(each.startswith(f"{path}/") for each in expected)
        if is_filled and (path not in expected or not stat.S_ISDIR(expected[path][0])):
            expected[path] = current[path]
    for path in sorted(expected):
        parents = [str(parent) for parent in Path(path).parents if str(parent) != "."]
        if not all(stat.S_ISDIR(expected.get(parent, (0, b""))[0]) for parent in parents):
            del expected[path]
    return expected


async def play_with_user(seed: int, folder: Path) -> None:
    """Turns with changes of the user between them: undo takes back what the turns did, and nothing else."""
    chance = random.Random(seed)
    workspace = folder / "workspace"
    workspace.mkdir()
    for _ in range(chance.randrange(12)):
        change_randomly(workspace, chance)
    checkpoints = Checkpoints(workspace, folder / "store")
    states: list[tuple[Tree, Tree]] = []
    for _ in range(chance.randrange(1, 5)):
        before = read_tree(workspace)
        await take_turn(checkpoints, chance)
        after = read_tree(workspace)
        if before != after:
            states.append((before, after))
        if chance.random() < 0.5:
            change_as_user(workspace, chance)
    for before, after in reversed(states):
        current = read_tree(workspace)
        expected = find_expected(before, after, current)
        report = await checkpoints.undo()
        assert read_tree(workspace) == expected, f"seed {seed}: {report}"
        assert report.is_complete == (not report.kept)
        if expected != current:
            redone = await checkpoints.redo()
            assert read_tree(workspace) == current, f"seed {seed}: {report}\n{redone}"
            await checkpoints.undo()
            assert read_tree(workspace) == expected
    await checkpoints.aclose()
    assert checkpoints.take_announcements() == []


@given(st.integers(0, 2**32))
@settings(max_examples=15)
def test_undo_and_redo_bring_back_each_state(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(seed, Path(folder)))


@pytest.mark.slow
@given(st.integers(0, 2**32))
@settings(max_examples=1000)
def test_undo_and_redo_bring_back_each_state_a_thousand_times(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(seed, Path(folder)))


@given(st.integers(0, 2**32))
@example(3795)
@settings(max_examples=15)
def test_what_the_user_changed_stays(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play_with_user(seed, Path(folder)))


@pytest.mark.slow
@given(st.integers(0, 2**32))
@settings(max_examples=1000)
def test_what_the_user_changed_stays_a_thousand_times(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play_with_user(seed, Path(folder)))
