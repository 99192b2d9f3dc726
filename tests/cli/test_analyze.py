"""`ferrule analyze`: what is refused, what is shown, and what is left by an analysis that is stopped."""

from __future__ import annotations

import asyncio
import json
import pwd
import shutil
import signal
import subprocess
import time
from pathlib import Path

import openai_server
import pytest
from terminals import COMMAND, Terminal, assert_refused, environment, ferrule

from ferrule.analysis import AnalysisSettings, run_analysis
from ferrule.analysis.recording import record_analysis
from ferrule.analysis.recording.writer import find_last_recording
from ferrule.cli.analysis_run import name_receivers
from ferrule.cli.session_options import SessionOptions
from ferrule.errors import SettingsError
from ferrule.models.scripted import ScriptedModel

ROOT = Path(__file__).parents[2]
SALES = ROOT / "examples" / "analysis" / "sales.jsonl"
KEY = "test-key"
OWN = ("--model", "ollama:m")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["there is no question"]),
        ([" "], ["the question is empty"]),
        (["Why?"], ["the embedded model can't plan an analysis", "--model"]),
        (["Why?", *OWN, "--data", "missing.csv"], ["missing.csv doesn't exist"]),
        (["Why?", *OWN, "--data", "."], ["is a folder"]),
        (["Why?", "--data", "missing.csv"], ["missing.csv doesn't exist"]),
        (["Why?", *OWN, "--data", "1x=a.csv"], ["'1x' can't be the name of a table; it begins with a digit"]),
        (["Why?", *OWN, "--data", "class=a.csv"], ["'class' can't be the name of a table: it is a word of Python"]),
        (["Why?", *OWN, "--data", "https://x.org/a.csv"], ["only files are read: download it"]),
        (["Why?", "orders.csv"], ["unexpected argument: orders.csv; data are given as --data orders.csv"]),
        (["Why?", *OWN, "--data", "orders.csv", "--report", "./orders.csv"], ["a file of --data", "overwritten"]),
        (["Why?", *OWN, "--data", "orders.csv", "--record", "orders.csv"], ["a file of --data"]),
        (["Why?", *OWN, "--report", "a.html", "--notebook", "a.html"], ["the file of --report"]),
        (["--replay", str(SALES), "--report", str(SALES)], ["the recording of --replay", "overwritten"]),
        (
            ["--replay", str(SALES), "--notebook", str(SALES.with_name("sales.csv"))],
            ["a data file of", "overwritten"],
        ),
        (["--continue", str(SALES)], ["there is no question", '"…" --continue']),
        (["--replay", str(SALES), "--report", "."], ["it is a folder"]),
        (["Why?", *OWN, "--set", "concurency=3"], ["unknown setting 'concurency'; the nearest: concurrency"]),
        (["Why?", *OWN, "--mode", "fast"], ["mode: ", "'quick'", "'fast'"]),
        (["Why?", *OWN, "--max-cost", "1"], ["price of ollama:m isn't known", "--price ollama:m=1.0/4.0"]),
        (["Why?", *OWN, "--price", "cheap"], ["--price cheap: write it as READ/WRITTEN", "ollama:m=0.15/0.6"]),
        (["Why?", *OWN, "--price", "1/-2"], ["--price 1/-2: write it as READ/WRITTEN"]),
        (["Why?", *OWN, "--report", "none/out.html"], ["none/out.html: there is no folder"]),
        (["--replay", "missing.jsonl"], ["missing.jsonl: No such file"]),
        (["--replay", "last"], ["no analysis is recorded in"]),
        (["Why?", "--replay", str(SALES)], ["--replay has the recorded question", "--continue"]),
        (["--replay", str(SALES), "--rerun", str(SALES)], ["--replay and --rerun can't be used together"]),
        (["--replay", str(SALES), "--data", "x.csv"], ["--replay reads no data"]),
        (["Why?", *OWN, "--record", "a.jsonl", "--no-record"], ["--record and --no-record"]),
    ],
)
def test_wrong_input_is_one_line(arguments: list[str], words: list[str], tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("region,orders\nNorth,12\n")
    done = ferrule("analyze", *arguments, folder=tmp_path, XDG_DATA_HOME=str(tmp_path / "data"))
    assert_refused(done, *words)


def test_without_a_home_the_last_recording_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_user: int) -> None:
        raise KeyError("uid not found")

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", refuse)
    with pytest.raises(SettingsError, match=r"^there is no folder of recordings: .*; set HOME, or name a recording$"):
        find_last_recording()


def test_the_help_names_no_model_that_is_refused() -> None:
    shown = " ".join(ferrule("analyze", "-h").stdout.split())
    assert "embedded" not in shown.partition("--base-url")[0]
    assert "PROVIDER:MODEL" in shown


def test_a_damaged_recording_is_refused_with_the_number_of_its_line(tmp_path: Path) -> None:
    lines = SALES.read_text().splitlines()
    (tmp_path / "run.jsonl").write_text("\n".join([*lines[:4], "{", *lines[4:]]))
    assert_refused(ferrule("analyze", "--replay", "run.jsonl", folder=tmp_path), "run.jsonl, line 5: a damaged row")


def test_a_replay_as_json_has_everything_and_shows_nothing_else(tmp_path: Path) -> None:
    done = ferrule("analyze", "--replay", SALES, "--json", "--report", "out.html", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert sorted(task["id"] for task in found["tasks"]) == ["t1", "t2", "t3", "t4"]
    assert found["focused_answer"]["answer_value"] == "West"
    assert found["stopped"] is None
    assert {link["source"] for link in found["numbers"] if link["kind"] == "computed"} == {"t1", "t2"}
    assert "132,984.63" in (tmp_path / "out.html").read_text()


async def test_a_follow_up_has_the_recorded_results(tmp_path: Path) -> None:
    think = {"tool": "logic_kernel", "query": "Do they?"}
    first, second = ({"id": "t1", **think}, {"id": "t2", "needs": ["t1"], **think})
    earlier, further = (
        [
            {"level": "straightforward"},
            {"plans": [{"tasks": [task]}]},
            {"conclusion": conclusion, "steps": [{"statement": "12 > 10"}], "confidence": 0.9},
            {"answer": conclusion},
            {"answer_type": "yes_no", "answer_value": True, "formatted_answer": "Yes"},
        ]
        for task, conclusion in ((first, "Twelve orders fill a truck."), (second, "So they do."))
    )
    path = tmp_path / "first.jsonl"
    settings = AnalysisSettings(mode="quick")
    model = ScriptedModel(*map(json.dumps, earlier))
    await run_analysis("Do they?", model=model, settings=settings, recording=record_analysis(path))
    async with openai_server.server(*(openai_server.says(json.dumps(one)) for one in further)) as server:
        done = await asyncio.to_thread(
            ferrule, "analyze", "And then?", "-m", "openai:m", "--base-url", f"{server.url}/v1", "--mode", "quick",
            "--continue", path, "--no-record", folder=tmp_path, OPENAI_API_KEY=KEY,
        )  # fmt: skip
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "So they do."), done.stderr
    assert "Twelve orders fill a truck." in json.dumps(server.requests[2].body)


async def test_a_plan_is_edited_with_tools_that_it_did_not_use(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/logic_kernel/knowledge_retriever/ "$1"\n')
    editor.chmod(0o755)
    answers = (
        {"level": "straightforward"},
        {"plans": [{"tasks": [{"id": "t1", "tool": "logic_kernel", "query": "What is known?"}]}]},
        {"summary": "Trucks are large.", "confidence": 0.9},
        {"answer": "They are large."},
        {"answer_type": "none", "answer_value": None, "formatted_answer": "unknown"},
    )
    async with openai_server.server(*(openai_server.says(json.dumps(one)) for one in answers)) as server:
        arguments = ("-m", "openai:m", "--base-url", f"{server.url}/v1", "--mode", "quick", "--no-record", "--plan")

        def approve() -> int:
            with Terminal(
                "analyze", "Are they?", *arguments, EDITOR=str(editor), VISUAL="", OPENAI_API_KEY=KEY
            ) as seen:
                seen.expect("t1 logic_kernel")
                seen.expect("[n]o: ")
                seen.type("e\r")
                seen.expect("t1 knowledge_retriever")
                seen.expect("[n]o: ")
                seen.type("y\r")
                seen.expect("They are large.")
                return seen.ended()

        assert await asyncio.to_thread(approve) == 0


@pytest.mark.parametrize(
    ("options", "models", "receivers"),
    [
        ({"model": "ollama:m"}, {}, None),
        ({"model": "openai:m"}, {"code": "ollama:m"}, "openai:m"),
        ({"model": "ollama:m"}, {"code": "openai:m", "py_executor": "openai:m"}, "openai:m"),
        ({"model": "openai:m", "base_url": "http://127.0.0.1:1/v1", "fallback": "groq:n"}, {}, "groq:n"),
    ],
)
def test_every_receiver_of_the_data_is_named(
    options: dict[str, str], models: dict[str, str], receivers: str | None
) -> None:
    assert name_receivers(SessionOptions(**options), AnalysisSettings(models=models)) == receivers


def test_a_replay_without_its_data_says_what_the_notebook_will_miss(tmp_path: Path) -> None:
    shutil.copy(SALES, tmp_path / "run.jsonl")
    shutil.copytree(SALES.with_suffix(".blobs"), tmp_path / "run.blobs")
    files = ("--report", "out.html", "--notebook", "out.ipynb")
    done = ferrule("analyze", "--replay", "run.jsonl", "--json", *files, folder=tmp_path)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "ferrule: sales.csv isn't there; the notebook reads it from there when it runs, so put it back first"
    ]
    assert "SHA-256" in (tmp_path / "out.html").read_text()
    assert "'sales.csv'" in (tmp_path / "out.ipynb").read_text()


def test_a_replay_without_its_figures_is_refused(tmp_path: Path) -> None:
    shutil.copy(SALES, tmp_path / "run.jsonl")
    done = ferrule("analyze", "--replay", "run.jsonl", "--report", "out.html", folder=tmp_path)
    assert_refused(done, "a figure or frame of it, is missing; copy the folder run.blobs along with the recording")
    assert not (tmp_path / "out.html").exists()


@pytest.mark.slow
async def test_ctrl_c_leaves_what_was_found_and_a_recording(tmp_path: Path) -> None:
    plan = {"plans": [{"approach": "Think.", "tasks": [{"id": "t1", "tool": "logic_kernel", "query": "Think."}]}]}
    answers = ({"level": "straightforward"}, plan)
    async with openai_server.server(*(openai_server.says(json.dumps(one)) for one in answers)) as server:
        process = subprocess.Popen(
            [*COMMAND, "analyze", "Is it so?", "-m", "openai:m", "--base-url", f"{server.url}/v1", "--mode", "quick",
             "--record", "run.jsonl"],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment({"OPENAI_API_KEY": KEY, "XDG_DATA_HOME": str(tmp_path)}),
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while len(server.requests) < 3 and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        process.send_signal(signal.SIGINT)
        shown, errors = await asyncio.to_thread(process.communicate, timeout=300)
    assert process.returncode == 130, errors
    assert "partial: the analysis was stopped" in shown
    assert "recorded in run.jsonl" in errors
    assert KEY not in (tmp_path / "run.jsonl").read_text()
    again = ferrule("analyze", "--replay", "run.jsonl", folder=tmp_path)
    assert again.returncode == 1
    assert "partial: the analysis was stopped" in again.stdout
