"""Names that a shell or `xargs` takes for something else: no program is given others than those that were judged."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ferrule.sandbox.shell.command_line import parse_command_line

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
SHOW = "printf '%s\\0'"
LISTED = [
    "find . | xargs {}",
    "{} $(find . -type f)",
    "find . -print0 | xargs -0 {}",
    "grep -rl . | xargs {}",
    "for f in $(find .); do {} $f; done",
]
"""With a place for the program: one that reads what it is given is judged, one that shows it is run."""


def is_within(line: str, workspace: Path) -> bool:
    """Whether a command line is judged as reading the workspace alone."""
    parsed = parse_command_line(line, str(workspace))
    return parsed.only_reads and all(f"{effect.target}/".startswith(f"{workspace}/") for effect in parsed.effects)


def plant(workspace: Path, names: Sequence[str]) -> None:
    """Create files, as far as their names are possible and differ."""
    shutil.rmtree(workspace, ignore_errors=True)
    workspace.mkdir()
    for name in names:
        path = workspace / name.lstrip("/")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("text\n", encoding="utf-8")
        except OSError:
            continue


PIECES = st.sampled_from(
    [*"ab", "a.py", "é", "/", "/", " ", "\n", "'", '"', "\\", "*", "?", "[a]", "-n", "@a", "\u00a0"]
)
NAMES = st.lists(PIECES, min_size=1, max_size=5).map("".join).filter(lambda name: not name.endswith("/"))


@given(names=st.lists(NAMES, max_size=4))
@example(names=["x /etc/passwd"])
@example(names=["a.py", "b/a.py", "é"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_judged_as_within_is_given_names_that_are_there(tmp_path: Path, names: list[str]) -> None:
    workspace = Path(os.path.realpath(tmp_path)) / "ws"
    plant(workspace, names)
    there = {os.path.relpath(path, workspace) for path in workspace.rglob("*")} | {"."}
    for line in LISTED:
        if not is_within(line.format("cat"), workspace):
            continue
        for shell in SHELLS:
            done = subprocess.run([shell, "-c", line.format(SHOW)], cwd=workspace, stdout=subprocess.PIPE, check=False)
            given_names = [os.path.normpath(name) for name in os.fsdecode(done.stdout).split("\0") if name]
            assert set(given_names) <= there, (shell, line)


def test_plain_names_are_judged_as_within(tmp_path: Path) -> None:
    workspace = Path(os.path.realpath(tmp_path)) / "ws"
    plant(workspace, ["a.py", "b/+page.svelte", "b/@scope/ünï.py", ".git/hooks/pre-commit.sample"])
    assert all(is_within(line.format("cat"), workspace) for line in LISTED)


def test_a_folder_with_a_blank_at_its_end_holds_no_path(tmp_path: Path) -> None:
    """A cloned folder `x ` with `etc/passwd` makes `/etc/passwd` of what find prints."""
    workspace = Path(os.path.realpath(tmp_path)) / "ws"
    plant(workspace, ["x /etc/passwd"])
    done = subprocess.run(["sh", "-c", f"find . | xargs {SHOW}"], cwd=workspace, capture_output=True, check=True)
    assert b"/etc/passwd" in done.stdout.split(b"\0")
    assert not is_within("find . | xargs cat", workspace)
    assert not is_within("cat $(find .)", workspace)
    assert is_within("find . -print0 | xargs -0 cat", workspace)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "ws"
    plant(folder, ["a.py", "src/b.py"])
    for arguments in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
    return folder


COUNTED = ["wc -l $(git ls-files)", "git ls-files '*.py' | xargs wc -l", "git ls-files | grep src | xargs cat"]
ENDED = "git ls-files -z | xargs -0 cat"
OTHERS = [
    *("cat $(git ls-files --format=/etc/passwd)", "cat $(git ls-files -s)", "cat $(git ls-files ../x)"),
    *("cat $(git ls-files :/)", "cat $(git -C src ls-files)", "cat $(git ls-files --recurse-submodules)"),
    *("cat $(git diff --name-only)", 'cat "$(git ls-files)"', "git ls-files -z | xargs cat"),
]


def test_files_of_git_are_judged_as_within(repository: Path) -> None:
    for line in (*COUNTED, ENDED, "cd src && wc -l $(git ls-files)", "cat $(git ls-files -o --exclude-standard)"):
        assert is_within(line, repository), line
    for line in OTHERS:
        assert not is_within(line, repository), line


@pytest.mark.parametrize("name", ["x /etc/passwd", "-n", "src/-n", "it's", "a*", "@list"])
def test_a_name_that_only_the_index_has_counts(repository: Path, name: str) -> None:
    (repository / "empty").touch()
    blob = subprocess.run(
        ["git", "hash-object", "-w", "empty"], cwd=repository, check=True, capture_output=True, text=True
    ).stdout.strip()
    added = ["git", "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}"]
    subprocess.run(added, cwd=repository, check=True, capture_output=True)
    for line in COUNTED:
        assert not is_within(line, repository), line
    assert is_within(ENDED, repository) is (name[0] not in "-@")
    assert is_within("find . | xargs cat", repository)


def test_an_index_that_cannot_be_read_names_anything(repository: Path) -> None:
    (repository / ".git/index").write_bytes(b"DIRC damaged")
    assert not any(is_within(line, repository) for line in (*COUNTED, ENDED))
    shutil.rmtree(repository / ".git")
    assert not any(is_within(line, repository) for line in (*COUNTED, ENDED))


def test_examples_of_rules_do_not_depend_on_the_folder(tmp_path: Path) -> None:
    workspace = Path(os.path.realpath(tmp_path)) / "ws"
    plant(workspace, ["a"])
    (workspace / "outside").symlink_to("/etc/passwd")
    seen, unseen = (parse_command_line("cat *", str(workspace), looks=looks) for looks in (True, False))
    assert "/etc/passwd" in {effect.target for effect in seen.effects}
    assert {effect.target for effect in unseen.effects} == {str(workspace)}
    listed = parse_command_line("find . -print0 | xargs -0 cat", str(workspace), looks=False)
    assert "/" in {effect.target for effect in listed.effects}
