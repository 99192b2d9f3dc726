"""`ferrule code` is killed at random moments of its work: no file, turn, session or store is lost, no process survives.

Only the program itself is killed, as by the system when memory runs out; what it started has to end with it.
"""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "coding"))

from endless_model import NAMES, EndlessModel, State, make_content, read_state, read_version
from openai_server import KEY
from server_thread import serve_in_thread
from terminals import COMMAND, environment, ferrule


class KilledProgram:
    """One workspace, in which programs are killed one after the other."""

    def __init__(self, top: Path, *, is_repository: bool) -> None:
        self.workspace, self.home = top / "project", top / "home"
        self.workspace.mkdir(parents=True)
        self._changes = {name: str(self.home) for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")}
        self._changes["OPENAI_API_KEY"] = KEY
        self._is_repository, self._questions = is_repository, 0
        self._states: dict[str, State] = {}
        for number, name in enumerate(NAMES):
            (self.workspace / name).write_text(make_content(number))
        if is_repository:
            for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -qm first"):
                subprocess.run(["git", *command.split()], cwd=self.workspace, check=True)

    def kill_once(self, seed: int) -> None:
        """Start the program, kill it, and check everything that it left."""
        model = EndlessModel(self.workspace, seed, self._states)
        with serve_in_thread(model.serve) as address:
            options = ("-m", "openai:m", "--base-url", f"{address}/v1", "--profile", "auto")
            self._work_and_kill(model, options, random.Random(seed))
            self._check_processes(model.marker)
            self._check_files()
            self._check_records()
            if model.questions:
                self._check_undo(model)
                self._check_resuming(model, options)
                self._check_leftovers()

    def _work_and_kill(self, model: EndlessModel, options: tuple[str, ...], chance: random.Random) -> None:
        questions = "".join(f"question {self._questions + number}.\n" for number in range(50))
        self._questions += 50
        lines = self.home.parent / "questions.txt"
        lines.write_text(questions)
        with (
            lines.open("rb") as typed,
            (self.home.parent / "errors.txt").open("wb") as errors,
            subprocess.Popen(
                [*COMMAND, "code", *options],
                cwd=self.workspace,
                env=environment(self._changes),
                stdin=typed,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            ) as process,
        ):
            if chance.random() < 0.1:
                time.sleep(chance.uniform(0, 2))
            else:
                model.wait_for_request(1, 60)
                model.wait_for_request(chance.randrange(1, 16), 3)
                time.sleep(chance.choice([0, chance.uniform(0, 0.03), chance.uniform(0, 0.3)]))
            assert process.poll() is None, (self.home.parent / "errors.txt").read_text()
            process.kill()

    def _check_processes(self, marker: str) -> None:
        """Check that no process of a command is left: neither one that was to go on, nor one in the workspace."""
        deadline = time.monotonic() + 20
        while left := list(find_processes(marker, self.workspace)):
            assert time.monotonic() < deadline, left
            time.sleep(0.02)

    def _check_files(self) -> None:
        """Check that each file that a tool wrote is the old or the new content."""
        for path in (*map(self.workspace.joinpath, NAMES), *self.workspace.glob("made/*/new.txt")):
            read_version(path)
        for path in self.workspace.glob("made-*.txt"):
            assert read_version(path) == int(path.stem.removeprefix("made-"))

    def _check_records(self) -> None:
        """Check that the store of conversations and the journal are whole."""
        store = self.home / "ferrule" / "conversations.db"
        if store.exists():
            with closing(sqlite3.connect(store)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        for journal in (self.home / "ferrule" / "code").glob("*.jsonl"):
            for line in journal.read_bytes().splitlines(keepends=True):
                # A line that the kill cut has no end, until the next program ends it.
                assert not line.endswith(b"\n") or isinstance(json.loads(line), dict)

    def _check_undo(self, model: EndlessModel) -> None:
        """Check that undo brings back the state before the turn, and redo the one that was found."""
        found, question = read_state(self.workspace), model.questions[-1]
        last = model.states[question]
        done = self._run("undo", "--yes")
        said = re.search(r"Undid the turn «(question \d+\.)»", done.stdout)
        if said is None:
            assert without_temporary(found) == last, done
            if "Undid" not in done.stdout:
                assert "nothing to undo" in done.stdout
                return
        else:
            assert done.returncode == 0, done
            assert read_state(self.workspace) == model.states[said[1]], done
            assert said[1] == question or without_temporary(found) == last, done
        assert self._run("redo", "--yes").returncode == 0
        assert read_state(self.workspace) == without_temporary(found)

    def _check_resuming(self, model: EndlessModel, options: tuple[str, ...]) -> None:
        """Check that the next program goes on with everything that the model was told."""
        told = model.bodies[-1]["messages"]
        done = self._run("--continue", "-p", "go on", *options)
        assert done.returncode == 0, done
        assert "Traceback" not in done.stderr
        assert "As you like." in done.stdout
        assert model.bodies[-1]["messages"][: len(told)] == told

    def _check_leftovers(self) -> None:
        """Check that neither temporary files nor the sandbox's empty folders are left once another program ran here."""
        assert list(self.workspace.rglob(".ferrule-*")) == []
        assert [path.name for path in self.workspace.glob(".*")] == ([".git"] if self._is_repository else [])

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return ferrule("code", *arguments, folder=self.workspace, **self._changes)


def without_temporary(state: dict[str, tuple[int, bytes]]) -> dict[str, tuple[int, bytes]]:
    """The state without the files that hadn't got their names yet."""
    return {path: entry for path, entry in state.items() if not Path(path).name.startswith(".ferrule-")}


def find_processes(marker: str, folder: Path) -> Iterator[str]:
    """The command lines of processes with this argument, or which work in this folder."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = process.joinpath("cmdline").read_bytes().decode(errors="replace").split("\0")
            place = os.readlink(process / "cwd")  # noqa: PTH115 - of a folder that may be gone
        except OSError:
            continue
        if marker in words or Path(place).is_relative_to(folder):
            yield " ".join(words)


@pytest.mark.slow
def test_nothing_is_lost_when_the_program_is_killed(tmp_path: Path) -> None:
    """In a repository and in a folder that is none, each start finds what those before have left."""
    first = random.SystemRandom().randrange(10**6)
    programs = [KilledProgram(tmp_path / str(one), is_repository=one) for one in (True, False)]
    for number in range(100):
        print(f"seed {first + number}")
        programs[number % 2].kill_once(first + number)
