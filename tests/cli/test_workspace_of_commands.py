"""The current folder is the workspace of the commands: what a policy lets run there, it asks about outside."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import openai_server
import pytest
from terminals import ferrule

TOOL = '''\
"""A tool that says which file it would write."""

from pathlib import Path

from ferrule import Effect, Intent, tool


@tool(intent=lambda arguments: Intent((Effect("write", arguments["path"]),)))
def save(path: str) -> str:
    """Save a note."""
    Path(path).write_text("a note")
    return "saved"
'''
POLICY = 'profile = "accept-edits"\ntrusted = ["project"]\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a tool file, a policy and the folder `work`."""
    (tmp_path / "work").mkdir()
    (tmp_path / "save_tool.py").write_text(TOOL)
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path


def run(place: Path, *command: str, typed: str = "", **changes: str) -> subprocess.CompletedProcess[str]:
    options = ("--tools", place, "--policy", place / "policy.toml")
    return ferrule(command[0], *options, *command[1:], typed=typed, folder=place / "work", **changes)


def check_written(place: Path) -> None:
    assert (place / "work" / "inside.txt").read_text() == "a note"
    assert not (place / "outside.txt").exists()


@pytest.mark.parametrize("command", ["ask", "chat"])
async def test_a_model_writes_in_the_current_folder_and_not_beside_it(place: Path, command: str) -> None:
    paths = ("inside.txt", "../outside.txt")
    calls = [(f"c{number}", "save", json.dumps({"path": path})) for number, path in enumerate(paths)]
    question, typed = (["Save."], "") if command == "ask" else ([], "Save.\n")
    async with openai_server.server(openai_server.calls(*calls), openai_server.says("Done.")) as server:
        model = ("--model", "compatible:served", "--base-url", f"{server.url}/v1")
        done = await asyncio.to_thread(
            run, place, command, *question, *model, typed=typed, OPENAI_COMPATIBLE_API_KEY=openai_server.KEY
        )
    assert done.returncode == 0, done.stderr
    results = [message["content"] for message in server.requests[1].body["messages"] if message["role"] == "tool"]
    assert results[0] == "saved"
    assert f"write outside the workspace: {place / 'outside.txt'}" in results[1]
    check_written(place)


def test_a_call_by_hand_is_judged_by_the_current_folder_too(place: Path) -> None:
    assert run(place, "call", "save", "--path", "inside.txt").stdout == "saved\n"
    done = run(place, "call", "save", "--path", "../outside.txt")
    assert (done.returncode, done.stdout) == (1, "")
    check_written(place)
