"""No order of the file tools' writes leaves a folder that git takes for a repository and runs programs of."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest
from called_tools import call_tool

from ferrule.coding.files.tools import make_file_tools
from ferrule.coding.workspace import Workspace
from ferrule.execution import Policy
from ferrule.sandbox.shell import ShellSandbox

POLICY = Policy(profile="all")
PARTS = ("HEAD", "objects/x", "refs/x", "config")
LAYOUTS = {
    "bare": PARTS,
    "worktree": ("HEAD", "commondir", "../common/objects/x", "../common/refs/x", "../common/config"),
}


def make_parts(canary: Path) -> dict[str, str]:
    settings = (
        f'[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = "touch {canary};:"\n'
    )
    return {"HEAD": "ref: refs/heads/main\n", "config": settings, "commondir": "../common\n", "x": ""}


def run_git(folder: Path, *arguments: str) -> int:
    folder.mkdir(exist_ok=True)
    settings = {"GIT_CEILING_DIRECTORIES": str(folder.parent), "GIT_CONFIG_NOSYSTEM": "1", "PATH": "/usr/bin:/bin"}
    return subprocess.run(["git", *arguments], cwd=folder, env=settings, capture_output=True, check=False).returncode


def write_patch(files: dict[str, str]) -> str:
    added = (
        f"*** Add File: {path}\n" + "".join(f"+{line}\n" for line in text.split("\n")) for path, text in files.items()
    )
    return f"*** Begin Patch\n{''.join(added)}*** End Patch\n"


def name_files(layout: tuple[str, ...], parts: dict[str, str]) -> dict[str, str]:
    """The files of a layout, by path in the workspace."""
    return {str(Path(os.path.normpath(f"bare/{part}"))): parts[Path(part).name] for part in layout}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
@pytest.mark.parametrize("name", ["write_file", "apply_patch"])
async def test_any_order(tmp_path: Path, layout: tuple[str, ...], name: str) -> None:
    files = name_files(layout, make_parts(tmp_path / "canary"))
    orders = list(permutations(files))
    for number, order in enumerate(orders if len(orders) < 100 else orders[::7]):
        workspace = tmp_path / f"proj{number}"
        workspace.mkdir()
        tools = make_file_tools(Workspace(workspace))
        refused = []
        for path in order:
            arguments = {"path": path, "content": files[path]}
            if name == "apply_patch":
                arguments = {"patch": write_patch({path: files[path]})}
            result = await call_tool(tools, name, policy=POLICY, **arguments)
            refused += [result.text] * result.is_error
        assert refused, order
        assert "protected like .git: git takes bare for a repository" in refused[0]
        assert run_git(workspace / "bare", "rev-parse") != 0
        run_git(workspace / "bare", "status")
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize("layout", list(LAYOUTS.values())[:2], ids=list(LAYOUTS)[:2])
async def test_in_one_patch(tmp_path: Path, layout: tuple[str, ...]) -> None:
    files = name_files(layout, make_parts(tmp_path / "canary"))
    workspace = tmp_path / "proj"
    workspace.mkdir()
    result = await call_tool(
        make_file_tools(Workspace(workspace)), "apply_patch", policy=POLICY, patch=write_patch(files)
    )
    assert "git takes bare for a repository" in result.text
    assert list(workspace.iterdir()) == []


async def test_by_a_move(tmp_path: Path) -> None:
    workspace = tmp_path / "proj"
    for part in ("objects", "refs"):
        (workspace / "bare" / part).mkdir(parents=True)
    (workspace / "bare/other").write_text("ref: refs/heads/main\n")
    tools = make_file_tools(Workspace(workspace))
    await call_tool(tools, "read_file", path="bare/other")
    changed = "@@\n-ref: refs/heads/main\n+ref: refs/heads/x\n"
    patch = f"*** Begin Patch\n*** Update File: bare/other\n*** Move to: bare/HEAD\n{changed}*** End Patch\n"
    result = await call_tool(tools, "apply_patch", policy=POLICY, patch=patch)
    assert "bare/HEAD is protected like .git" in result.text
    assert (workspace / "bare/other").exists()


@pytest.mark.parametrize(
    "path", ["hooks/post-receive", "config", "config.worktree", "commondir", "HEAD", "info/attributes", "HOOKS/update"]
)
async def test_in_an_existing_bare_repository(tmp_path: Path, path: str) -> None:
    run_git(tmp_path / "proj", "init", "-q", "--bare", "x.git")
    tools = make_file_tools(Workspace(tmp_path / "proj"))
    await call_tool(tools, "read_file", path=f"x.git/{path}")
    result = await call_tool(tools, "write_file", policy=POLICY, path=f"x.git/{path}", content="evil")
    assert f"x.git/{path} is protected like .git: git takes x.git for a repository" in result.text
    result = await call_tool(tools, "write_file", policy=POLICY, path="x.git/notes.txt", content="harmless")
    assert not result.is_error


@pytest.mark.parametrize(
    "path", ["config", "hooks/use_x.ts", "src/objects/a.py", "src/refs/b.py", "src/head.py", "info/x"]
)
async def test_ordinary_files_of_such_names(tmp_path: Path, path: str) -> None:
    result = await call_tool(make_file_tools(Workspace(tmp_path)), "write_file", policy=POLICY, path=path, content="x")
    assert not result.is_error, result.text


@pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")
async def test_half_by_files_and_half_by_a_command(tmp_path: Path) -> None:
    canary, workspace = tmp_path / "canary", tmp_path / "proj"
    workspace.mkdir()
    tools, parts = make_file_tools(Workspace(workspace)), make_parts(canary)
    for path in ("bare/config", "bare/objects/x", "bare/refs/x", "tree/commondir", "common/objects/x", "common/refs/x"):
        written = await call_tool(tools, "write_file", policy=POLICY, path=path, content=parts[Path(path).name])
        assert not written.is_error
    (workspace / "common/config").write_text(parts["config"])
    async with ShellSandbox(workspace) as shell:
        done = await shell.run("echo ref: refs/heads/main | tee bare/HEAD >tree/HEAD")
    assert "git in bare would run or obey" in "; ".join(done.repositories)
    assert "git in tree would run or obey" in "; ".join(done.repositories)
    for name in ("bare", "tree"):
        run_git(workspace / name, "status")
    assert not canary.exists()
    assert (workspace / "bare/config.refused").exists()
    assert (workspace / "tree/commondir.refused").exists()


async def test_the_plant_works_where_nothing_checks(tmp_path: Path) -> None:
    for part, text in name_files(PARTS, make_parts(tmp_path / "canary")).items():
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / part).write_text(text)
    assert run_git(tmp_path / "bare", "status") == 0
    assert (tmp_path / "canary").exists()
