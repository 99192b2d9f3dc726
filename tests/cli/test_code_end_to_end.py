"""A model that reads, tests, fixes and tests again, by an API of calls or in text, on a terminal and without one."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from openai_server import calls, says, server
from screens import CTRL_D, ENTER, Screen
from scripted_http import Reply, ScriptedServer
from server_thread import serve_in_thread
from terminals import ferrule
from test_code_session import home, project, read_tree  # noqa: F401 - a fixture among them

from ferrule import ToolCall
from ferrule.coding import tools
from ferrule.dialects import get_notation

TESTS = f"{shlex.quote(sys.executable)} -B -m pytest -q -p no:cacheprovider"
PATCH = (
    "*** Begin Patch\n*** Update File: numbers_of.py\n@@ def add(first, second):\n"
    "-    return first * second\n+    return first + second\n*** End Patch"
)
STEPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("search", {"pattern": "def add"}),
    ("read_file", {"path": "numbers_of.py"}),
    ("bash", {"command": TESTS, "timeout": 60}),
    # It is wrong once, and the tests say so.
    ("edit_file", {"path": "numbers_of.py", "edits": [{"old": "first - second", "new": "first * second"}]}),
    ("run_tests", {"timeout": 60}),
    ("apply_patch", {"patch": PATCH}),
    ("write_file", {"path": "docs/notes.md", "content": "`add` adds.\n"}),
    ("bash", {"command": f"{TESTS} && rm notes.txt && chmod 600 .gitignore", "timeout": 60}),
)
ANSWER = "It adds now, and the test passes."


def write_script(notation: str | None, folder: Path) -> list[Reply]:
    """The model's answers, with its calls as the API has them, or as text in a notation."""
    if notation is None:
        replies = [calls((f"call_{at}", name, json.dumps(given))) for at, (name, given) in enumerate(STEPS)]
    else:
        written, specs = get_notation(notation), tools(folder).specs
        replies = [
            says("I go on.\n" + written.call(ToolCall(f"call_{at}", name, json.dumps(given)), specs))
            for at, (name, given) in enumerate(STEPS)
        ]
    return [*replies, says(ANSWER)]


def list_answers(scripted: ScriptedServer, notation: str | None) -> list[str]:
    """What the model was told, one text for each result."""
    messages = scripted.requests[-1].body["messages"]
    role = "tool" if notation is None else "user"
    told = [json.dumps(one["content"]) for one in messages if one["role"] == role]
    return told if notation is None else told[1:]


def check_work(project: Path, answers: list[str]) -> None:  # noqa: F811
    assert len(answers) == len(STEPS), answers
    assert "numbers_of.py:1:" in answers[0]
    assert "first - second" in answers[1]
    assert "1 failed" in answers[2]
    assert "FAILED: 0 tests passed, 1 failed" in answers[4]
    assert "1 passed" in answers[7]
    assert "first + second" in (project / "numbers_of.py").read_text()
    assert (project / "docs" / "notes.md").exists()
    assert not (project / "notes.txt").exists()


def environment(project: Path) -> dict[str, str]:  # noqa: F811
    """The user's own folders, and the Python that has pytest as the one that `run_tests` finds."""
    return {**home(project), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


NOTATIONS = pytest.mark.parametrize("notation", [None, "hermes", "anthropic_xml"], ids=["api", "json", "xml"])


@NOTATIONS
def test_without_a_terminal_as_json(project: Path, notation: str | None) -> None:  # noqa: F811
    before, scripted = read_tree(project), server(*write_script(notation, project))
    with serve_in_thread(lambda: scripted) as address:
        options = ("-m", "openai:m", "--base-url", f"{address}/v1", "--profile", "auto", "--mode", notation or "api")
        done = ferrule("code", "-p", "fix it", "--json", *options, folder=project, **environment(project))
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    found = [event for event in events if event["event"] == "result"]
    assert [event["status"] for event in found] == ["ok", "ok", "error", "ok", "ok", "ok", "ok", "ok"]
    assert (events[-1]["reason"], events[-1]["answer"]) == ("done", ANSWER)
    check_work(project, list_answers(scripted, notation))
    undone = ferrule("code", "undo", "--yes", folder=project, **environment(project))
    assert undone.returncode == 0, undone.stdout
    assert read_tree(project) == before


@NOTATIONS
def test_on_a_terminal_with_a_person_who_approves(project: Path, notation: str | None) -> None:  # noqa: F811
    before, scripted = read_tree(project), server(*write_script(notation, project))
    with serve_in_thread(lambda: scripted) as address:
        options = ("-m", "openai:m", "--base-url", f"{address}/v1", "--mode", notation or "api")
        with Screen("code", *options, folder=project, rows=100, **environment(project)) as screen:
            screen.wait_for("ask · openai:m")
            screen.type("fix it", ENTER)
            for count in range(1, 7):
                screen.wait_for("asks to run", count=count)
                screen.wait_for("[y]es", count=count)
                screen.type("y", ENTER)
            screen.wait_for(ANSWER)
            check_work(project, list_answers(scripted, notation))
            screen.type("/undo", ENTER)
            screen.wait_for("Undid the turn «fix it»")
            screen.type(CTRL_D)
            assert screen.wait_for_end() == 0
    assert read_tree(project) == before
