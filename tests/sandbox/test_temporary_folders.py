"""A sandbox's own folder: locked while its program lives, removed with it, and swept where the program was killed."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ferrule.sandbox.temporary_folders import TemporaryFolder

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def said(place: Path, program: str) -> str:
    environment = {"TMPDIR": str(place), "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    return done.stdout


def aged(path: Path) -> Path:
    os.utime(path, (0, 0))
    return path


def test_what_a_killed_program_left_is_swept_and_nothing_else(place: Path) -> None:
    program = (
        "import os, signal; from ferrule.sandbox.temporary_folders import TemporaryFolder\n"
        "own = TemporaryFolder('ferrule-test-'); "
        "open(own.path + '/spilled', 'w').close(); print(own.path, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    left = [Path(said(place, program).strip()) for _ in range(2)]
    living = TemporaryFolder("ferrule-test-")
    open_to_others = place / "ferrule-test-shared"
    open_to_others.mkdir(0o755)
    link = place / "ferrule-test-link"
    link.symlink_to(place / "elsewhere")
    (place / "elsewhere").mkdir(0o700)
    for each in (left[0], Path(living.path), open_to_others, place / "elsewhere"):
        aged(each)
    TemporaryFolder("ferrule-test-").remove()
    assert not left[0].exists()
    kept = (left[1], Path(living.path), open_to_others, place / "elsewhere")
    assert all(each.is_dir() for each in kept)
    living.remove()
    living.remove()
    assert not Path(living.path).exists()


def test_a_fork_leaves_its_parents_folder_alone(place: Path) -> None:
    own = TemporaryFolder("ferrule-test-")
    program = (
        "import os; from ferrule.sandbox.temporary_folders import TemporaryFolder\n"
        "own = TemporaryFolder('ferrule-test-')\n"
        "if os.fork() == 0:\n    own.remove(); os._exit(0)\n"
        "os.wait(); print(os.path.isdir(own.path)); own.remove(); print(os.path.isdir(own.path))"
    )
    assert said(place, program) == "True\nFalse\n"
    own.remove()
    assert list(place.iterdir()) == []


def test_what_a_dying_process_still_writes_is_removed_too(place: Path) -> None:
    own = TemporaryFolder("ferrule-test-")
    end = time.monotonic() + 0.3

    def write() -> None:
        number = 0
        while time.monotonic() < end and Path(own.path).exists():
            number += 1
            with suppress(FileNotFoundError):
                Path(own.path, f"file{number}").touch()

    writer = threading.Thread(target=write)
    writer.start()
    own.remove(60)
    writer.join()
    assert list(place.iterdir()) == []
