"""Runs the quickstart word for word in a copy of the clone, as `make quickstart` does, also in a fresh machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "docs"))

from run_quickstart import ROOT, copy_clone

FRESH_MACHINE = ROOT.parent / "shared" / "fresh-machine"

pytestmark = pytest.mark.slow


def test_the_quickstart_runs_word_for_word() -> None:
    command = [sys.executable, str(ROOT / "docs" / "run_quickstart.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not FRESH_MACHINE.exists(), reason="../shared/fresh-machine is missing")
@pytest.mark.skipif(os.geteuid() != 0, reason="a fresh machine is made as root")
def test_the_quickstart_runs_word_for_word_in_a_fresh_machine(tmp_path: Path) -> None:
    """The fresh machine clones what is committed; here it gets the files as they are now."""
    clone = tmp_path / "main"
    clone.mkdir()
    copy_clone(clone)
    git = ["git", "-c", "user.name=test", "-c", "user.email=test"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "copy"]):
        subprocess.run([*git, *arguments], cwd=clone, check=True)
    done = subprocess.run(
        [FRESH_MACHINE, "make", "quickstart"], cwd=clone, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
