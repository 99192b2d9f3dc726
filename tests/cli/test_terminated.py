"""A command that is asked to end, by SIGTERM or SIGHUP, leaves none of the sandbox's folders and processes behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from terminals import COMMAND, environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")

RUNNING = 'python3 -c \'import time; open("started", "w").close(); time.sleep(300)\''


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    changes = {name: str(tmp_path / "home") for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")}
    # What runs the tests may have been told to ignore a signal, as `nohup` is.
    command = ["env", "--default-signal", *COMMAND, "call", "--tools", "shell", "--yes", "shell", "--command", RUNNING]
    with subprocess.Popen(command, cwd=folder, env=environment(changes), stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not (folder / "started").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(60) == 128 + number
    assert [path.name for path in folder.iterdir()] == ["started"]
