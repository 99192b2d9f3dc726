"""What file tools may read and write: the same as commands in the sandbox, also while links are swapped."""

from __future__ import annotations

import os
import random
import shlex
import sys
import time
from pathlib import Path

import pytest
from file_access_table import ROWS, VISIBLE, VISIBLE_ROWS, Row, build
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from link_trees import CANARY, PLACES, TREES, make_swapped_tree, make_tree, read_all, swapping

from ferrule.errors import FerruleError, FileAccessRefused, SandboxInputError
from ferrule.sandbox.file_access import FileAccess
from ferrule.sandbox.shell import ShellSandbox
from ferrule.sandbox.shell.access_plan import Access


def can_read(access: FileAccess, path: str) -> bool:
    try:
        access.read_bytes(path)
    except (OSError, FileAccessRefused):
        return False
    return True


def can_write(access: FileAccess, path: str) -> bool:
    """Open for appending, made if it is missing, as the shell's `>>` does."""
    try:
        with access.open_folder(path, Access.WRITE) as folder:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
            os.close(os.open(folder.name, flags, 0o666, dir_fd=folder.descriptor))
    except (OSError, FileAccessRefused):
        return False
    return True


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return build(tmp_path)


def fill(row: Row, names: dict[str, str]) -> str:
    return row.path if "{" not in row.path else row.path.format(**names)


def test_file_tools_decide_as_the_table_says(names: dict[str, str]) -> None:
    access = FileAccess(names["workspace"])
    wrong = [str(row) for row in ROWS if can_read(access, fill(row, names)) is not row.read]
    assert wrong == []
    # One by one, in trees of their own: a file that was made can be read.
    wrong = [str(row) for row in ROWS if can_write(access, fill(row, names)) is not row.write]
    assert wrong == []


@pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")
@pytest.mark.parametrize("tier", ["full", "container"])
async def test_commands_decide_as_the_table_says(names: dict[str, str], tier: str) -> None:
    rows = [row for row in ROWS if "\0" not in row.path]
    async with ShellSandbox(names["workspace"], tier=tier) as shell:
        # Of a hidden file outside commands see an empty one.
        read = await _try_all(shell, rows, names, "head -c 1 -- {path} | grep -q .")
        expected = [row.command[0] if row.command else row.read for row in rows]
        assert [row for row, one, other in zip(rows, read, expected, strict=True) if one is not other] == []
        written = await _try_all(shell, rows, names, ": >> {path}")
        expected = [row.command[1] if row.command else row.write for row in rows]
        # Without mounts nothing keeps a protected path from being made, if it isn't there: it is reported.
        if tier == "full":
            assert [str(row) for row, one, other in zip(rows, written, expected, strict=True) if one is not other] == []


@pytest.mark.parametrize("tier", ["files", "full", "container"])
async def test_what_the_user_shows_is_shown_to_all(names: dict[str, str], tier: str) -> None:
    if tier == "files":
        access = FileAccess(names["workspace"], visible=VISIBLE)
        assert [str(row) for row in VISIBLE_ROWS if can_read(access, fill(row, names)) is not row.read] == []
        assert [str(row) for row in VISIBLE_ROWS if can_write(access, fill(row, names)) is not row.write] == []
        return
    if sys.platform != "linux":
        pytest.skip("the shell sandbox is Linux's")
    async with ShellSandbox(names["workspace"], tier=tier, visible=VISIBLE) as shell:
        read = await _try_all(shell, VISIBLE_ROWS, names, "head -c 1 -- {path} | grep -q .")
        assert [row for row, one in zip(VISIBLE_ROWS, read, strict=True) if one is not row.read] == []
        if tier == "full":
            written = [row for row in VISIBLE_ROWS if row.read]
            assert all(await _try_all(shell, written, names, ": >> {path}"))


@pytest.mark.parametrize("named", [[""], ["/etc/shadow"], ["~/.ssh"], ["../x"], ["a//b"], ["!x"], [5], ".env"])
def test_only_files_of_the_workspace_can_be_shown(tmp_path: Path, named: list[str]) -> None:
    with pytest.raises(SandboxInputError, match="visible"):
        FileAccess(tmp_path, visible=named)


async def _try_all(shell: ShellSandbox, rows: list[Row], names: dict[str, str], command: str) -> list[bool]:
    """Whether a command works for each path, all in one command line: later ones see what earlier ones made."""
    lines = []
    for row in rows:
        path = fill(row, names)
        quoted = f"./{path}" if path.startswith(("-", "~")) and not path.startswith("~/") else path
        quoted = f"{names['home']}/{path[2:]}" if path.startswith("~/") else quoted
        one = command.format(path=shlex.quote(quoted))
        lines.append(f"if ( {one} ) 2>/dev/null </dev/null; then echo yes; else echo no; fi")
    script = Path(names["workspace"], "try-all.sh")
    script.write_text("\n".join(lines), encoding="utf-8", errors="surrogateescape")
    result = await shell.run("sh ./try-all.sh", separate=True)
    return [line == "yes" for line in result.output.split()]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "../proj-evil/s.txt",
            r"cannot read files outside the working directory .*proj: \.\./proj-evil/s\.txt\. The user can",
        ),
        ("link-outside.txt", r"link-outside\.txt, which leads to .*proj-evil/s\.txt"),
        (".env", r"^\.env is hidden: files of its name may hold secrets"),
        ("link-to-env", r"link-to-env, which leads to \.env, is hidden"),
        ("target-of-env.txt", r"is hidden: it may hold secrets \(by the settings, a link with such a name"),
        ("a\0b", r"a\\x00b isn't a usable path: it holds a NUL character"),
        ("\ud800", "half of a surrogate pair"),
        ("", "^'' isn't a usable path: it is empty"),
        ("x/" * 2500, "more than the 4,095 that a path can have"),
        ("socket", "socket is a socket, not a file"),
        ("\x1b[2J\u202e/../../x", r"\\x1b\[2J\\u202e"),
    ],
)
def test_refusals_say_why(names: dict[str, str], path: str, message: str) -> None:
    with pytest.raises(FileAccessRefused, match=message) as refused:
        FileAccess(names["workspace"]).read_bytes(path)
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 1000


def test_a_link_to_itself_says_so(names: dict[str, str]) -> None:
    Path(names["workspace"], "circle").symlink_to("circle")
    with pytest.raises(FileAccessRefused, match=r"^circle is a link that leads in a circle"):
        FileAccess(names["workspace"]).read_bytes("circle")


def test_protected_places_say_so(names: dict[str, str]) -> None:
    with pytest.raises(FileAccessRefused, match=r"^\.git/hooks/x is protected: it can be read but not changed"):
        FileAccess(names["workspace"]).check(".git/hooks/x", Access.WRITE)


def test_added_folders_have_the_same_rules(names: dict[str, str]) -> None:
    Path(names["outside"], ".env").write_text("secret")
    access = FileAccess(names["workspace"], [names["outside"]])
    outside = names["outside"]
    assert access.read_bytes(f"{outside}/s.txt") == b"secret\n"
    assert access.read_bytes("link-outside.txt") == b"secret\n"
    assert can_write(access, f"{outside}/new.txt")
    assert not can_read(access, f"{outside}/.env")
    assert not can_write(access, f"{outside}/.git/hooks/x")
    assert not can_read(access, "../outside.txt")


def test_lists_can_be_changed(names: dict[str, str]) -> None:
    access = FileAccess(names["workspace"], hidden=["plain.txt"], protected=["sub"])
    assert can_read(access, ".env")
    assert not can_read(access, "plain.txt")
    assert not can_write(access, "sub/x")
    assert can_write(access, ".vscode/tasks.json")


@pytest.mark.parametrize("folder", ["missing", "plain.txt", "/"])
def test_a_folder_that_can_not_be_used(names: dict[str, str], folder: str) -> None:
    with pytest.raises(SandboxInputError, match="isn't a usable folder"):
        FileAccess(os.path.join(names["workspace"], folder))  # noqa: PTH118


def test_a_secret_that_appears_is_hidden_at_once(names: dict[str, str]) -> None:
    access = FileAccess(names["workspace"])
    snapshot = access.take_snapshot()
    path = Path(names["workspace"], "sub", "new.key")
    path.write_text("secret")
    assert snapshot.decide(str(path)) is Access.HIDDEN
    assert not can_read(access, "sub/new.key")
    assert str(path) in access.take_snapshot().list_hidden()


# Random trees, and races


@pytest.mark.slow
@given(TREES, st.lists(PLACES, min_size=1, max_size=6))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_random_links_lead_nowhere_outside(
    tmp_path_factory: pytest.TempPathFactory, tree: list[tuple[str, str]], tried: list[str]
) -> None:
    workspace, outside = make_tree(tmp_path_factory.mktemp("tree"), tree)
    before = read_all(outside)
    access = FileAccess(workspace)
    for place in [*tried, *(place for place, _ in tree)]:
        real = Path(os.path.realpath(workspace / place))
        is_inside = real.is_relative_to(workspace)
        try:
            data = access.read_bytes(place)
        except (OSError, FerruleError):
            # Asked of the system: `realpath` makes up a path for a link that leads in a circle.
            assert not (is_inside and (workspace / place).is_file()), f"{place} is a file inside"
        else:
            assert data == b"inside" or is_inside
            assert CANARY not in data
        if can_write(access, place):
            assert is_inside
    assert read_all(outside) == before


def test_links_swapped_while_files_are_read_and_written(tmp_path: Path) -> None:
    workspace, outside = make_swapped_tree(tmp_path)
    access = FileAccess(workspace)
    access.take_snapshot()
    found, choose = set(), random.Random(1)
    with swapping(workspace, outside):
        end = time.monotonic() + 4
        while time.monotonic() < end:
            path = choose.choice(["folder/a", "file", "link", "deep/er/a", "folder/../file"])
            try:
                found.add(access.read_bytes(path))
            except (OSError, FileAccessRefused):
                found.add(b"refused")
            can_write(access, choose.choice(["folder/new", "deep/er/new", "folder/a"]))
    assert found <= {b"inside", b"", b"refused"}
    assert b"inside" in found
    assert read_all(outside) == {"a": CANARY}
