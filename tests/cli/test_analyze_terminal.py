"""`ferrule analyze` on a real terminal: the live tree, the plan that is asked about, and what leaves the machine."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from openai_server import KEY
from screens import CTRL_C, ENTER, Screen
from server_thread import serve_in_thread
from staged_server import StagedServer
from terminals import COMMAND, environment

PLAN = {
    "plans": [
        {
            "approach": "Think first.",
            "tasks": [
                {"id": "t1", "tool": "logic_kernel", "query": "Is 12 enough?"},
                {"id": "t2", "tool": "knowledge_retriever", "query": "What is a truck?", "needs": ["t1"]},
            ],
        }
    ]
}
REASONED = {"conclusion": "It is.", "steps": [{"statement": "12 is more than 10."}], "confidence": 0.9}
ANSWERS: dict[str, Any] = {
    "complexity": {"level": "straightforward"},
    "candidates": PLAN,
    "logic_kernel": REASONED,
    "knowledge_retriever": {"summary": "A vehicle.", "facts": [], "confidence": 0.5},
    "synthesis": {"answer": "It is enough.", "key_findings": []},
    "focused_answer": {"answer_type": "yes_no", "answer_value": True, "formatted_answer": "Yes"},
}
EDITOR = """
import sys
from pathlib import Path

path = Path(sys.argv[1])
text = path.read_text()
Path("seen.toml").write_text(text)
edits = {edits!r}
count = Path("count")
done = int(count.read_text()) if count.exists() else 0
count.write_text(str(done + 1))
old, new = edits[done]
assert old in text
path.write_text(text.replace(old, new))
"""


@contextmanager
def asked(folder: Path, staged: StagedServer, *arguments: str, **changes: str) -> Iterator[Screen]:
    """The command on a terminal, asking this model, whose address isn't known to be this machine's."""
    kept = {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "OPENAI_API_KEY": KEY, **changes}
    with (
        serve_in_thread(staged.serve) as address,
        Screen(
            "analyze", "Is it enough?", "-m", "openai:m", "--base-url", f"{make_foreign(address)}/v1",
            "--mode", "quick", "--no-record", *arguments, folder=folder, columns=120, rows=30, **kept,
        ) as screen,
    ):  # fmt: skip
        yield screen


def make_foreign(address: str) -> str:
    """Another address of the same server, which isn't one of loopback."""
    return address.replace("127.0.0.1", "0.0.0.0")


def find_line(shown: str, words: str) -> str:
    return next(line for line in shown.splitlines() if words in line)


def test_the_tree_shows_what_runs_what_waits_and_what_failed(tmp_path: Path) -> None:
    def reason(body: dict[str, Any]) -> Any:
        if body["temperature"] > 0.4:
            staged.wait("second attempt")
            return REASONED
        if staged.stages.count("logic_kernel") == 1:
            staged.wait("first attempt")
        return "nonsense"

    staged = StagedServer({**ANSWERS, "logic_kernel": reason}, held=("complexity", "knowledge_retriever"))
    with asked(tmp_path, staged) as screen:
        screen.wait_for("analysis  assessing the question")
        staged.release("complexity")
        shown = screen.wait_for("▸ t1 logic_kernel", "· t2 knowledge_retriever")
        assert "Is 12 enough?" in find_line(shown, "▸ t1")
        assert find_line(shown, "· t2").rstrip().endswith("after t1  What is a truck?")
        assert "2 requests, 50 tokens" in find_line(shown, "analysis")
        staged.release("first attempt")
        shown = screen.wait_for("1 retry")
        assert "▸ t1" in find_line(shown, "1 retry")
        staged.release("second attempt")
        shown = screen.wait_for("✓ t1", "▸ t2")
        assert re.search(r"✓ t1 logic_kernel  \d+\.\d s, 1 retry  Is 12 enough\?", shown)
        staged.release("knowledge_retriever")
        assert screen.wait_for_end() == 0
        assert "It is enough." in screen.text
        assert "▸" not in screen.text
        assert "✓" not in screen.text


def test_ctrl_c_takes_the_tree_away_and_leaves_what_was_found(tmp_path: Path) -> None:
    staged = StagedServer(ANSWERS, held=("knowledge_retriever",))
    with asked(tmp_path, staged) as screen:
        screen.wait_for("✓ t1", "▸ t2")
        screen.type(CTRL_C)
        assert screen.wait_for_end() == 130
        assert "partial: the analysis was stopped" in screen.text
        assert "It is." in screen.text
        assert "▸" not in screen.text
        assert screen.text.startswith("No answer was written: the analysis was stopped.")
        staged.release("knowledge_retriever")


def test_a_plan_is_edited_until_it_can_run_and_then_approved(tmp_path: Path) -> None:
    edits = [
        ('"logic_kernel"', '"logic_colonel"'),
        ('"Is 12 enough?"', '"Is 12 enough'),
        (
            '"logic_colonel"\nneeds = []\nquery = "Is 12 enough',
            '"knowledge_retriever"\nneeds = []\nquery = "What is 12 enough?"',
        ),
    ]
    (tmp_path / "edit.py").write_text(EDITOR.format(edits=edits))
    staged = StagedServer(ANSWERS)
    editor = shlex.join([sys.executable, str(tmp_path / "edit.py")])
    with asked(tmp_path, staged, "--plan", VISUAL=editor) as screen:
        shown = screen.wait_for("Run this plan? [y]es, [e]dit, [n]o:")
        assert "plan: Think first." in shown
        assert "t2 knowledge_retriever  What is a truck?  (needs t1)" in shown
        assert staged.stages == ["complexity", "candidates"]
        screen.type("e", ENTER)
        assert "logic_colonel" in screen.wait_for("the plan can't run:")
        screen.wait_for("Run this plan?", count=2)
        screen.type("edit", ENTER)
        screen.wait_for("the plan can't be read: not TOML:", "goes on with your text")
        screen.wait_for("Run this plan?", count=3)
        screen.type("e", ENTER)
        screen.wait_for("t1 knowledge_retriever  What is 12 enough?")
        screen.wait_for("Run this plan?", count=4)
        screen.type("y", ENTER)
        assert screen.wait_for_end() == 0
    assert 'approach = "Think first."' in (tmp_path / "seen.toml").read_text()
    assert staged.stages[2:4] == ["knowledge_retriever", "knowledge_retriever"]
    assert "What is 12 enough?" in staged.bodies[2]["messages"][-1]["content"]


def test_ctrl_c_at_the_question_about_the_plan_ends_the_analysis(tmp_path: Path) -> None:
    staged = StagedServer(ANSWERS)
    with asked(tmp_path, staged, "--plan") as screen:
        screen.wait_for("Run this plan? [y]es, [e]dit, [n]o:")
        screen.type(CTRL_C)
        assert screen.wait_for_end() == 130
        shown = screen.text
    # What is asked for stays to be seen, and the result begins on a line of its own.
    assert "\nThere is no answer: the analysis was stopped.\n" in shown
    assert "t2 knowledge_retriever  What is a truck?  (needs t1)\n" in shown
    assert "Traceback" not in shown
    assert staged.stages == ["complexity", "candidates"]


@pytest.mark.slow
def test_a_plan_that_is_refused_runs_nothing(tmp_path: Path) -> None:
    staged = StagedServer(ANSWERS)
    with asked(tmp_path, staged, "--plan", VISUAL="", EDITOR="") as screen:
        screen.wait_for("Run this plan?")
        screen.type("e", ENTER)
        screen.wait_for("no editor is set; set $VISUAL or $EDITOR")
        screen.wait_for("Run this plan?", count=2)
        screen.type("n", ENTER)
        assert screen.wait_for_end() == 1
        assert "There is no answer: the plan was not approved." in screen.text
    assert staged.stages == ["complexity", "candidates"]


def write_data(folder: Path) -> Path:
    (folder / "s.csv").write_text("region,orders\nNorth,12\nSouth,30\n\x1b[31mEast,7\n")
    return folder / "s.csv"


@pytest.mark.parametrize("changes", [(), pytest.param(("--json",), marks=pytest.mark.slow)], ids=["text", "json"])
def test_what_leaves_the_machine_is_shown_before_anything_does(tmp_path: Path, changes: tuple[str, ...]) -> None:
    write_data(tmp_path)
    said = tmp_path / "said"
    before: list[str] = []
    staged = StagedServer(ANSWERS)
    staged.on_request = lambda: before.append(said.read_text())
    with serve_in_thread(staged.serve) as address, said.open("wb") as errors:
        done = subprocess.run(
            [*COMMAND, "analyze", "Is it enough?", "-m", "openai:m", "--base-url", f"{make_foreign(address)}/v1",
             "--mode", "quick", "--no-record", "--data", "s.csv", "--share", "samples", *changes],
            cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            env=environment({"OPENAI_API_KEY": KEY, "XDG_CONFIG_HOME": str(tmp_path)}),
        )  # fmt: skip
    assert done.returncode == 0, said.read_text()
    title, *lines = before[0].splitlines()
    assert title == "what leaves this machine for openai:m, besides the question and what code computes:"
    shown = "\n".join(line.removeprefix("  ") for line in lines)
    if changes:
        assert json.loads(done.stdout)["shared"] == shown
        assert said.read_text() == before[0]
    sent = [json.dumps(body["messages"], ensure_ascii=False) for body in staged.bodies]
    assert "East" in shown
    assert all("East" not in one or json.dumps(shown, ensure_ascii=False)[1:-1] in one for one in sent)
    assert sum("East" in one for one in sent) >= 3


@pytest.mark.slow
def test_what_leaves_the_machine_is_shown_on_a_terminal_above_the_tree(tmp_path: Path) -> None:
    write_data(tmp_path)
    staged = StagedServer(ANSWERS, held=("complexity",))
    with asked(tmp_path, staged, "--data", "s.csv", "--share", "schema") as screen:
        shown = screen.wait_for("what leaves this machine for openai:m", "analysis  assessing the question")
        assert shown.index("what leaves") < shown.index("region") < shown.index("analysis  assessing the question")
        assert "North" not in shown
        staged.release("complexity")
        assert screen.wait_for_end() == 0
        assert "what leaves this machine" in screen.text


@pytest.mark.slow
def test_nothing_is_said_where_the_model_is_on_this_machine(tmp_path: Path) -> None:
    write_data(tmp_path)
    staged = StagedServer(ANSWERS)
    with serve_in_thread(staged.serve) as address:
        arguments = ("analyze", "Is it enough?", "-m", "openai:m", "--base-url", f"{address}/v1", "--mode", "quick")
        with Screen(
            *arguments, "--no-record", "--data", "s.csv", folder=tmp_path, columns=120, OPENAI_API_KEY=KEY
        ) as screen:
            assert screen.wait_for_end() == 0
            assert "leaves this machine" not in screen.text
