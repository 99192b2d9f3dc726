"""`ferrule synth`, `train` and `eval`: what is written, what is refused, and that nothing is left half-done."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from terminals import COMMAND, Terminal, assert_refused, environment, ferrule, interrupted

from absent_path import NOWHERE

TINY = (
    "--set",
    "hidden_size=32",
    "--set",
    "layers=1",
    "--set",
    "heads=2",
    "--set",
    "workers=1",
    "--set",
    "compile=false",
)
WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; sys.argv[0] = 'ferrule'; from ferrule.cli import main; main()"


def test_synth_writes_as_many_conversations_as_asked(tmp_path: Path) -> None:
    out = tmp_path / "data.jsonl"
    done = ferrule("synth", out, "--count", "20", "--seed", "3")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"20 conversations in {out}\n", "")
    lines = out.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 20
    assert all(json.loads(line)["messages"] for line in lines)
    ferrule("synth", tmp_path / "again.jsonl", "--count", "20", "--seed", "3")
    ferrule("synth", tmp_path / "other.jsonl", "--count", "20", "--seed", "3", "--held-out")
    assert (tmp_path / "again.jsonl").read_bytes() == out.read_bytes() != (tmp_path / "other.jsonl").read_bytes()


def test_synth_writes_to_standard_output_and_the_count_to_stderr() -> None:
    done = ferrule("synth", "-", "--count", "1")
    assert (done.returncode, done.stderr) == (0, "1 conversation in -\n")
    assert json.loads(done.stdout)["messages"]


def test_synth_shows_a_bar_on_a_terminal(tmp_path: Path) -> None:
    with Terminal("synth", tmp_path / "data.jsonl", "--count", "600") as terminal:
        terminal.expect("conversations")
        terminal.expect("600/600")
        assert terminal.ended() == 0


def test_control_c_leaves_no_half_written_file(tmp_path: Path) -> None:
    out = tmp_path / "data.jsonl"
    out.write_text("what was there before\n")
    arguments = [*COMMAND, "synth", str(out), "--count", "100000000"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        deadline = time.monotonic() + 60
        # Until something is written, so that nothing is imported any more: interrupted in the code of a class that
        # `dataclass` makes, Python ends by the signal, whatever its program then does with the exception.
        while not any(one.stat().st_size for one in tmp_path.iterdir() if one != out) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(list(tmp_path.iterdir())) == 2
        assert interrupted(process) == (130, "")
    assert list(tmp_path.iterdir()) == [out]
    assert out.read_text() == "what was there before\n"


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    assert_refused(ferrule("synth", f"{NOWHERE}/data.jsonl", "--count", "1"), NOWHERE, "there is no folder")
    assert_refused(ferrule("synth", tmp_path, "--count", "1"), "directory")


def test_settings_come_from_a_file_then_from_set_then_from_options(tmp_path: Path) -> None:
    config = tmp_path / "recipe.toml"
    config.write_text("layers = 3\nheads = 2\nsteps = 5\n")
    options = ("--config", config, "--set", "heads=4", "--set", "steps=6", "--steps", "7", "--show-settings")
    shown = json.loads(ferrule("train", "embedded", "--out", tmp_path, *options).stdout)
    assert (shown["layers"], shown["heads"], shown["steps"]) == (3, 4, 7)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--set", "depth=3"), ("'depth'", "layers")),
        (("--set", "layers"), ("NAME=VALUE",)),
        (("--set", "layers=many"), ("layers", "integer", "'many'")),
        (("--set", "hidden_size=33"), ("hidden_size", "32", "33")),
        (("--config", f"{NOWHERE}.toml"), (f"{NOWHERE}.toml", "No such file")),
        (("--config", "/dev/stdin"), ("not TOML",)),
        (("--resume", *TINY), ("no checkpoint",)),
    ],
)
def test_settings_that_cannot_be_are_refused(options: tuple[str, ...], words: tuple[str, ...], tmp_path: Path) -> None:
    assert_refused(ferrule("train", "embedded", "--out", tmp_path, *options, typed="= ="), *words)


def test_training_without_torch_says_what_to_install(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, "train", "embedded", "--out", str(tmp_path / "run")],
        capture_output=True,
        env=environment(),
        text=True,
        check=False,
    )
    assert_refused(done, "needs torch", "pip install 'ferrule[train]'")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_short_training_run_gives_a_model_that_can_be_measured(tmp_path: Path) -> None:
    options = ("--steps", "2", *TINY, "--set", "batch_tokens=512", "--set", "checkpoint_every=1")
    done = ferrule("train", "embedded", "--out", tmp_path / "run", *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"the model is in {tmp_path / 'run' / 'model'}\n"
    assert "step 2 of 2  loss " in done.stderr
    assert_refused(ferrule("train", "embedded", "--out", tmp_path / "run", *options), "contains a run", "--resume")
    measured = ferrule(
        "eval", "embedded", "--model", tmp_path / "run" / "model", "--count", "3", "--set", "most_tokens=5", "--json"
    )
    assert measured.returncode == 0, measured.stderr
    assert json.loads(measured.stdout)["tables"][0]["total"]["n"] == 3


def test_eval_prints_a_table(reckoner: str) -> None:
    folder = reckoner.removeprefix("local:")
    done = ferrule("eval", "embedded", "--model", folder, "--count", "3", "--set", "most_tokens=5")
    assert done.returncode == 0, done.stderr
    assert "right call" in done.stdout


def test_eval_refuses_what_cannot_be_measured(tmp_path: Path) -> None:
    assert_refused(ferrule("eval", "embedded", "--model", tmp_path), str(tmp_path), "config.json")
    assert_refused(ferrule("eval", "embedded", "--phrasings", "all"), "phrasings", "'steering'", "'all'")
