"""Random trees of files are turned into others by one patch, whatever their encodings and line ends; or not at all."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from called_tools import call_tool
from checkpoint_trees import read_tree
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule import Policy
from ferrule._util.line_diff import find_changes
from ferrule.coding.files.tools import make_file_tools
from ferrule.coding.workspace import Workspace

ENCODINGS = [("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")]
NAMES = ["a.txt", "b c.txt", "d/e.txt", "d/f/g.txt", "ünï.txt", "-h", "d/*** End Patch"]
MARKERS = ["@@", "@@ a", "*** n", "*** End of File", "*** Add File: x", "*** Begin Patch"]
WORDS = st.sampled_from(["a", "b", "  a", "", "x\ty", "+p", "-m", " s", "é“日", *MARKERS])
LINES = st.lists(WORDS, min_size=1, max_size=8)


@dataclass(frozen=True)
class File:
    """A file by its lines, each with an end, which is written in one encoding."""

    lines: tuple[str, ...]
    encoding: str = "utf-8"
    mark: bytes = b""
    line_end: str = "\n"

    @property
    def data(self) -> bytes:
        return self.mark + "".join(line + self.line_end for line in self.lines).encode(self.encoding)


FILES = st.builds(
    lambda lines, encoding, line_end: File(tuple(lines), *encoding, line_end),
    LINES,
    st.sampled_from(ENCODINGS),
    st.sampled_from(["\n", "\r\n"]),
)
TREES = st.dictionaries(st.sampled_from(NAMES), FILES, min_size=1, max_size=5)
given_changes = given(TREES, st.lists(LINES, min_size=2, max_size=4), st.randoms(use_true_random=False))
"""A tree, lines to write into its files, and what else is left to chance."""


def write_hunk(before: tuple[str, ...], after: tuple[str, ...]) -> list[str]:
    """One hunk of the whole file, in which the lines that stay are context."""
    written, at = ["@@"], 0
    for a, b, c, d in find_changes(list(before), list(after)):
        written += [f" {line}" for line in before[at:a]]
        written += [*(f"-{line}" for line in before[a:b]), *(f"+{line}" for line in after[c:d])]
        at = b
    return [*written, *(f" {line}" for line in before[at:])]


def edit(old: tuple[str, ...], chance: random.Random, lines: list[list[str]]) -> tuple[str, ...]:
    """The lines with some of them, in one or two places, replaced by others."""
    new = list(old)
    for _ in range(chance.randrange(1, 3)):
        start = chance.randrange(len(new) + 1)
        new[start : start + chance.randrange(3)] = chance.choice(lines)[: chance.randrange(3)]
    return tuple(new) or ("a",)


def change(tree: dict[str, File], chance: random.Random, lines: list[list[str]]) -> tuple[list[str], dict[str, File]]:
    """A patch of random changes, each file at most once, and the tree that it should give."""
    written, expected = list[str](), dict(tree)
    free = [name for name in NAMES if name not in tree]
    for name, file in tree.items():
        action = chance.choice(["keep", "delete", "update", "move"])
        new = edit(file.lines, chance, lines)
        target = free.pop() if action == "move" and free else ""
        if action == "delete":
            written += [f"*** Delete File: {name}"]
            del expected[name]
        elif action in ("update", "move") and new != file.lines:
            written += [f"*** Update File: {name}", *([f"*** Move to: {target}"] if target else [])]
            written += write_hunk(file.lines, new)
            del expected[name]
            expected[target or name] = File(new, file.encoding, file.mark, file.line_end)
    for name in free[: chance.randrange(3)]:
        new = tuple(chance.choice(lines))
        written += [f"*** Add File: {name}", *(f"+{line}" for line in new)]
        expected[name] = File(new)
    return written, expected


def make_tree(factory: pytest.TempPathFactory, tree: dict[str, File]) -> Path:
    folder = factory.mktemp("tree").resolve()
    for name, file in tree.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(file.data)
        (folder / name).chmod(0o750)
    return folder


def apply(folder: Path, patch: list[str]) -> str:
    tools = make_file_tools(Workspace(folder))
    text = "\n".join(["*** Begin Patch", *patch, "*** End Patch"])
    result = asyncio.run(call_tool(tools, "apply_patch", patch=text, policy=Policy(profile="all")))
    return result.text if result.is_error else ""


@given_changes
@settings(max_examples=80, deadline=None)
def test_a_patch_gives_the_other_tree(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, File], lines: list[list[str]], chance: random.Random
) -> None:
    folder = make_tree(tmp_path_factory, tree)
    patch, expected = change(tree, chance, lines)
    if not patch:
        return
    assert apply(folder, patch) == ""
    found = {path: entry for path, entry in read_tree(folder).items() if (folder / path).is_file()}
    assert {path: data for path, (_, data) in found.items()} == {path: file.data for path, file in expected.items()}
    for path, (mode, _) in found.items():
        assert path not in tree or mode & 0o777 == 0o750, "an existing file keeps its mode"


@given_changes
@settings(max_examples=50, deadline=None)
def test_a_patch_of_which_one_part_does_not_apply_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, File], lines: list[list[str]], chance: random.Random
) -> None:
    folder = make_tree(tmp_path_factory, tree)
    (folder / "last.txt").write_text("last\n")
    before = read_tree(folder)
    patch, _ = change(tree, chance, lines)
    wrong = chance.choice([
        ["*** Update File: missing.txt", "@@", "-a", "+b"],
        ["*** Update File: last.txt", "@@", "-not there", "+b"],
        ["*** Delete File: missing.txt"],
        ["*** Add File: last.txt/below", "+a"],
        ["*** Add File: ../outside.txt", "+a"],
        ["*** Add File: .env", "+a"],
    ])  # fmt: skip
    assert apply(folder, [*patch, *wrong] if chance.random() < 0.5 else [*wrong, *patch]) != ""
    assert read_tree(folder) == before
    assert sorted(path.name for path in folder.parent.iterdir() if path.name == "outside.txt") == []
