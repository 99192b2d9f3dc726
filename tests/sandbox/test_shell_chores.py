"""What a coder does in a repository: it passes in the full tier, and comes to what is documented in the container's."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from ferrule._util.background import enter_synchronously
from ferrule.sandbox.shell import ShellSandbox
from ferrule.sandbox.shell.chores import Chore, load_chores

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")

FILES = {
    "a.py": "three = 3\n",
    "moved.py": "",
    "removed.py": "",
    "tracked.py": "",
    "staged.py": "",
    "stashed.py": "",
    "edited.py": "three\n",
    "source/module.py": "number = 1\n",
    "source/edited.py": "three\n",
    "script": "#!/bin/sh\necho script ran\n",
    "program.c": '#include <stdio.h>\nint main(void) { puts("compiled"); return 0; }\n',
    "Makefile": "all: product\nproduct:\n\techo built > product\n\tcat product\n",
    "test_module.py": "def test_it():\n    assert True\n",
}
PAGE = Path(__file__).parents[2] / "docs/sandbox.md"
SECRET = "only-for-its-owner"


def wheel() -> bytes:
    """A package of one module, as pip takes it."""
    information = "demo-1.0.dist-info"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("demo.py", "")
        file.writestr(f"{information}/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        file.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{information}/RECORD", "")
    return made.getvalue()


def fill(folder: Path, *, secret: bool) -> None:
    """Make a repository with one commit, and what the chores begin from."""
    (folder / "source").mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).write_text(content)
    (folder / "demo-1.0-py3-none-any.whl").write_bytes(wheel())
    with tarfile.open(folder / "archive.tar", "w") as file:
        packed = tarfile.TarInfo("packed/file")
        packed.size, packed.mode, packed.uid, packed.gid = 17, 0o600, 12345, 12345  # of another machine
        file.addfile(packed, io.BytesIO(b"from the archive\n"))
    git = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=n@example.org"]
    if shutil.which("git"):
        for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
            subprocess.run([*git, *command], check=True)
    else:
        (folder / ".git/hooks").mkdir(parents=True)
    if secret:
        (folder / ".env").write_text(SECRET)


@cache
def works(program: str) -> bool:
    """A compiler may be there without what it needs to make a program."""
    if program != "gcc":
        return True
    with tempfile.TemporaryDirectory() as name:
        Path(name, "program.c").write_text(FILES["program.c"])
        return subprocess.run(["gcc", "program.c"], cwd=name, stderr=subprocess.DEVNULL).returncode == 0


@pytest.fixture(
    scope="module",
    params=[("full", False), ("full", True), ("container", False), ("container", True)],
    ids=["full", "full with a secret", "container", "container with a secret"],
)
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShellSandbox]:
    tier, secret = request.param
    folder = tmp_path_factory.mktemp("chores") / "repository"
    fill(folder, secret=secret)
    # Beside the interpreter that `needs` shows: what it was installed with may lie anywhere.
    with enter_synchronously(ShellSandbox(folder, tier=tier, readable=[sys.prefix, sys.base_prefix])) as sandbox:
        yield sandbox


@pytest.mark.parametrize("chore", load_chores(), ids=lambda chore: chore.name.replace("`", ""))
def test_chore(shell: ShellSandbox, chore: Chore) -> None:
    missing = [program for program in chore.needs if shutil.which(program) is None or not works(program)]
    if missing:
        pytest.skip(f"{missing[0]} is missing")
    done = shell.run_sync(chore.command.replace("{python}", sys.executable), writable=chore.writable)
    if shell.tier == "container" and chore.refused is not None:
        assert done.exit_code != 0
        # Where it can't lock the index, `git stash` says nothing.
        assert chore.refused.says.lower() in done.output.lower() or not done.output
    else:
        assert done.exit_code == 0, done.output
        assert chore.shows in done.output


def test_what_is_hidden_and_protected_stays_so(shell: ShellSandbox) -> None:
    attempts = "cat .env; echo evil >.git/hooks/post-commit; echo evil >>.git/config; git config core.fsmonitor evil"
    done = shell.run_sync(attempts, writable=[".git"])
    assert SECRET not in done.output
    assert not Path(shell.workspace, ".git/hooks/post-commit").exists()
    assert "evil" not in Path(shell.workspace, ".git/config").read_text()


def test_the_page_shows_the_table() -> None:
    rows = [f"| {each.name} | passes | {each.refused.why if each.refused else 'passes'} |" for each in load_chores()]
    assert "\n".join(rows) in PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_an_environment_with_pip_is_made_and_installed_into(tmp_path: Path) -> None:
    fill(tmp_path / "repository", secret=True)
    with enter_synchronously(ShellSandbox(tmp_path / "repository", tier="full")) as sandbox:
        install = (
            "made/bin/pip install -q --no-index ./demo-1.0-py3-none-any.whl && made/bin/python -m demo && echo ran"
        )
        done = sandbox.run_sync(f"{sys.executable} -m venv made && {install}")
    assert done.output.endswith("ran\n"), done.output
