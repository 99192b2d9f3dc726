"""`ferrule plugins`, and the tools of plugins in the other commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import COMMAND, SOURCE, assert_refused, environment

sys.path.insert(0, str(Path(__file__).parents[1]))

from plugin_packages import install


@pytest.fixture
def path(tmp_path: Path) -> str:
    return f"{SOURCE}{os.pathsep}{install(tmp_path)}"


def ferrule(path: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**environment(), "PYTHONPATH": path}
    return subprocess.run([*COMMAND, *arguments], capture_output=True, env=environ, text=True, check=False)


def test_plugins_are_listed_with_where_they_come_from(path: str) -> None:
    done = ferrule(path, "plugins")
    assert (done.returncode, done.stderr) == (0, "")
    lines = {tuple(line.split()[:2]): line for line in done.stdout.splitlines()}
    assert lines["tools", "acme:"] == "tools     acme: shout, count_up  (acme-plugins 1.2, acme_tools:ALL)"
    assert lines["models", "acme"] == "models    acme  (acme-plugins 1.2, acme_models:make)"
    for kind in ("tools", "models", "dialects"):
        assert lines[kind, "broken"].endswith("RuntimeError: no licence")


def test_as_json(path: str) -> None:
    listed = {(one["kind"], one["name"]): one for one in json.loads(ferrule(path, "plugins", "--json").stdout)}
    assert listed["tools", "acme"] == {
        "kind": "tools",
        "name": "acme",
        "package": "acme-plugins 1.2",
        "where": "acme_tools:ALL",
        "problem": None,
        "tools": ["shout", "count_up"],
    }
    assert "no licence" in listed["dialects", "broken"]["problem"]


def test_tools_of_plugins_are_offered_where_they_are_wanted(path: str) -> None:
    assert "shout" not in ferrule(path, "tools").stdout
    done = ferrule(path, "tools", "--plugins")
    assert "shout  (from plugin, reads only)" in done.stdout
    told = done.stderr.splitlines()
    assert [line.split("'")[1] for line in told] == ["broken", "missing", "thief"]
    assert all(line.endswith("; its tools are not offered") for line in told)
    done = ferrule(path, "call", "--plugins", "--yes", "shout", "--text", "hi")
    assert (done.returncode, done.stdout) == (0, "HI\n")


def test_a_plugins_model_is_asked(path: str) -> None:
    assert ferrule(path, "ask", "Hi", "--model", "acme:turbo").stdout == "hello from turbo\n"
    assert_refused(ferrule(path, "ask", "Hi", "--model", "broken:x"), "broken", "acme-plugins 1.2", "no licence")
    assert "acme:MODEL" in ferrule(path, "models").stdout


def test_without_plugins_a_line_says_so() -> None:
    done = ferrule(str(SOURCE), "plugins")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "ferrule: no installed package has plugins\n")
