"""`ferrule code --record`, `--cost` and `/model`: replayed elsewhere, what a turn took, and which address is asked."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from openai_server import KEY, calls, says, server
from server_thread import serve_in_thread
from terminals import ferrule


def make_clone(folder: Path, branch: str) -> Path:
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", branch, str(folder)], check=True)
    (folder / "api.py").write_text("def fetch():\n    ...\n")
    (folder / "test_api.py").write_text(
        "import unittest\n\nclass Test(unittest.TestCase):\n    def test(self):\n        pass\n"
    )
    return folder


def home(place: Path, **more: str) -> dict[str, str]:
    return dict.fromkeys(("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"), str(place)) | more


def call(call_id: str, name: str, **arguments: Any) -> Any:
    return calls((call_id, name, json.dumps(arguments)))


def test_a_recorded_session_is_replayed_in_another_clone_without_a_server(tmp_path: Path) -> None:
    here, there, recording = (
        make_clone(tmp_path / "here", "main"),
        make_clone(tmp_path / "x/y", "next"),
        tmp_path / "r.jsonl",
    )
    script = (
        call("call_1", "read_file", path=str(here / "api.py")),
        call("call_2", "bash", command="pwd"),
        call("call_3", "bash", command=f"{sys.executable} -B -m unittest", timeout=60),
        call("call_4", "write_file", path="new.py", content="x = 1\n"),
        says(f"I looked into {here}/api.py."),
    )
    asked = ("code", "-p", "look", "-m", "openai:m", "--record", recording, "--profile", "auto")
    with serve_in_thread(lambda: server(*script)) as address:
        options = ("--base-url", f"{address}/v1")
        first = ferrule(*asked, *options, folder=here, **home(tmp_path / "h1", OPENAI_API_KEY=KEY))
    assert first.returncode == 0, first.stderr
    assert str(here) not in recording.read_text("utf-8")
    again = ferrule(*asked, folder=there, **home(tmp_path / "h2", FERRULE_RECORD="replay"))
    assert again.returncode == 0, again.stderr
    shown = [re.sub(r"in [\d.]+s", "in some time", done.stdout) for done in (first, again)]
    assert shown[1] == shown[0].replace(str(here), str(there))
    assert (there / "new.py").read_text() == "x = 1\n"


def test_a_changed_file_or_question_is_noticed_when_replaying(tmp_path: Path) -> None:
    here, recording = make_clone(tmp_path / "here", "main"), tmp_path / "r.jsonl"
    asked = ("code", "-m", "openai:m", "--record", recording)
    with serve_in_thread(lambda: server(call("call_1", "read_file", path="api.py"), says("Read."))) as address:
        first = ferrule(
            *asked, "-p", "read", "--base-url", f"{address}/v1", folder=here, **home(tmp_path, OPENAI_API_KEY=KEY)
        )
    assert first.returncode == 0, first.stderr
    replaying = home(tmp_path, FERRULE_RECORD="replay")
    other = ferrule(*asked, "-p", "write", folder=here, **replaying)
    assert other.returncode != 0
    assert "recorded 'read', now 'write'" in other.stderr
    (here / "api.py").write_text("def fetched():\n    ...\n")
    changed = ferrule(*asked, "-p", "read", folder=here, **replaying)
    assert changed.returncode != 0
    assert "holds no answer of openai:m to this request" in changed.stderr


@pytest.mark.parametrize("is_json", [False, True])
def test_cost_shows_what_a_turn_took(tmp_path: Path, is_json: bool) -> None:
    options = ("--cost", *(("--json",) if is_json else ()))
    done = ferrule("code", "-p", "hi there", "-m", "echo", *options, folder=tmp_path, **home(tmp_path / "h"))
    assert done.returncode == 0, done.stderr
    if is_json:
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert [one["event"] for one in events][-2:] == ["cost", "finished"]
        assert events[-2]["tokens"] == {"prompt": 0, "cached": 0, "sampled": 0}
    else:
        assert "0 tokens read, 0 written; first token after " in done.stderr


@pytest.mark.parametrize(
    ("first", "named", "reaches"),
    [
        ("--model", "openai:other", True),
        ("--model", "vllm:other", False),
        ("FERRULE_MODEL", "openai:other", True),
        ("echo", "vllm:other", True),
    ],
)
def test_another_model_is_asked_at_the_address_that_is_for_it(
    tmp_path: Path, first: str, named: str, reaches: bool
) -> None:
    with serve_in_thread(lambda: server(says("Here."))) as address:
        variables = home(tmp_path / "h", OPENAI_API_KEY=KEY, VLLM_API_KEY=KEY)
        options = ("-m", "openai:m", "--base-url", f"{address}/v1")
        if first != "--model":
            variables["FERRULE_BASE_URL"] = f"{address}/v1"
            options = ("-m", "echo") if first == "echo" else ()
        if first == "FERRULE_MODEL":
            variables["FERRULE_MODEL"] = "openai:m"
        done = ferrule("code", *options, typed=f"/model {named}\nhi\n", folder=tmp_path, **variables)
    assert ("Here." in done.stdout) is reaches, done.stderr
