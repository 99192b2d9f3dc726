"""Approvals in `ferrule code` on a real terminal: diffs, several calls at once, the person's editor, and "always"."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from openai_server import calls, says
from screens import CTRL_C, ENTER
from test_code_terminal import leave, list_results, opened, project, run  # noqa: F401 - a fixture among them


@pytest.fixture
def editor(tmp_path: Path) -> str:
    """An editor that writes `two` instead of `one`."""
    script = tmp_path / "editor.py"
    script.write_text(
        "import pathlib, sys\n"
        "assert sys.stdin.isatty() and sys.stdout.isatty()\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "path.write_text(path.read_text().replace('one', 'two'))\n"
    )
    return f"{sys.executable} {script}"


def edit(path: str, old: str, new: str, call_id: str = "call_1"):
    return call_id, "edit_file", json.dumps({"path": path, "edits": [{"old": old, "new": new}]})


def read(path: str):
    return "call_0", "read_file", json.dumps({"path": path})


def test_a_diff_is_shown_before_the_file_is_changed(project: Path) -> None:  # noqa: F811
    (project / "api.py").write_text("a = 1\nb = 2\n")
    with opened(project, calls(read("api.py")), calls(edit("api.py", "b = 2", "b = 3")), says("Done.")) as (screen, _):
        screen.type("change b", ENTER)
        shown = screen.wait_for("[y]es")
        assert "writes api.py  (+1 −1)" in shown
        assert "│ -b = 2" in shown
        assert "│ +b = 3" in shown
        assert (project / "api.py").read_text() == "a = 1\nb = 2\n"
        screen.type("y but keep a", ENTER)
        screen.wait_for("Done.")
        leave(screen)
    assert (project / "api.py").read_text() == "a = 1\nb = 3\n"


def test_two_changes_of_one_file_in_one_turn_are_decided_together(project: Path) -> None:  # noqa: F811
    lines = [f"line {number}\n" for number in range(20)]
    (project / "api.py").write_text("".join(lines))
    both = calls(edit("api.py", "line 2\n", "two\n"), edit("api.py", "line 15\n", "fifteen\n", "call_2"))
    with opened(project, calls(read("api.py")), both, says("Done.")) as (screen, scripted):
        screen.type("change both", ENTER)
        shown = screen.wait_for("or a NUMBER to look at one?")
        assert "▸ 2 calls ask to run" in shown
        screen.type("1", ENTER)
        assert "│ +two" in screen.wait_for("[b]ack?")
        screen.type("y", ENTER)
        screen.wait_for("or a NUMBER to look at one?", count=2)
        screen.type("y", ENTER)
        screen.wait_for("Done.")
        leave(screen)
    changed = [line.replace("line 2\n", "two\n").replace("line 15\n", "fifteen\n") for line in lines]
    assert (project / "api.py").read_text() == "".join(changed)
    assert not any("denied" in result for result in list_results(scripted))


def test_a_call_is_edited_in_the_persons_editor(project: Path, editor: str) -> None:  # noqa: F811
    with opened(project, run("touch one"), says("Done."), EDITOR=editor, VISUAL="") as (screen, scripted):
        screen.type("make a file", ENTER)
        screen.wait_for("[y]es")
        screen.type("e", ENTER)
        shown = screen.wait_for("asks to run, edited", "[y]es")
        assert "$ touch two" in shown
        screen.type("y", ENTER)
        screen.wait_for("Done.")
        leave(screen)
    assert [(project / name).exists() for name in ("one", "two")] == [False, True]
    parts = [one["content"] for one in scripted.requests[-1].body["messages"] if one["role"] == "tool"][-1]
    assert 'command: "touch one" → "touch two"]' in parts[-1]["text"]


@pytest.mark.parametrize(("answer", "questions"), [("p", 0), ("a", 1)])
def test_an_always_holds_as_long_as_it_says(project: Path, answer: str, questions: int) -> None:  # noqa: F811
    with opened(project, run("touch one"), run("touch one", "call_2"), says("Done.")) as (screen, _):
        screen.type("make a file", ENTER)
        screen.wait_for("[a]lways this session, [p] in this project")
        screen.type(answer, ENTER)
        shown = screen.wait_for("Done.")
        assert shown.count("asks to run") == 1
        leave(screen)
    with opened(project, run("touch one"), says("Done again.")) as (screen, _):
        screen.type("make it again", ENTER)
        if questions:
            screen.wait_for("[y]es")
            screen.type("n", ENTER)
        shown = screen.wait_for("Done again.")
        assert shown.count("asks to run") == questions
        leave(screen)


def test_an_edited_call_is_shown_as_it_ran(project: Path) -> None:  # noqa: F811
    with opened(project, run("echo one > made"), says("Done.")) as (screen, _):
        screen.type("make a file", ENTER)
        screen.wait_for("[y]es")
        screen.type('e {"command": "echo two > made"}', ENTER)
        screen.wait_for("[y]es", count=2)
        screen.type("y", ENTER)
        shown = screen.wait_for("Done.")
        assert "▸ bash  echo two > made  (edited by you)  →  (no output)" in shown
        assert "the user changed" not in shown
        leave(screen)
    assert (project / "made").read_text() == "two\n"


def test_ctrl_c_at_a_question_says_that_nothing_ran(project: Path) -> None:  # noqa: F811
    with opened(project, run("touch one"), says("Here.")) as (screen, scripted):
        screen.type("make a file", ENTER)
        screen.wait_for("[y]es")
        screen.type(CTRL_C)
        screen.wait_for("▸ bash  touch one  →  not run")
        screen.type("go on", ENTER)
        screen.wait_for("Here.")
        assert "not run: the run was stopped before this call" in list_results(scripted)[-1]
        leave(screen)
    assert not (project / "one").exists()


def test_ctrl_c_keeps_what_a_command_has_written(project: Path) -> None:  # noqa: F811
    script = (run("echo before; echo and; touch begun; sleep 60"), says("Here."))
    with opened(project, *script, arguments=("--profile", "auto"), columns=120) as (screen, scripted):
        screen.type("run it", ENTER)
        screen.wait_until(lambda _: (project / "begun").exists())
        screen.type(CTRL_C)
        screen.wait_for("stopped; it may have taken effect", "│ before\n  │ and")
        screen.type("go on", ENTER)
        screen.wait_for("Here.")
        assert "before\\nand" in list_results(scripted)[-1]
        leave(screen)
