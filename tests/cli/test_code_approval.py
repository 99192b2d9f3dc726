"""Approvals in `ferrule code` on a real terminal: diffs, several calls at once, the person's editor, and "always"."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from textwrap import wrap
from time import sleep

import pytest
from openai_server import calls, says
from screens import CTRL_C, ENTER
from test_code_terminal import leave, list_results, opened, project, run, wait_for_turn_end  # noqa: F401 - a fixture among them


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
    with opened(project, calls(read("api.py")), both, says("Done."), PAGER="cat") as (screen, scripted):
        screen.type("change both", ENTER)
        shown = screen.wait_for("or a NUMBER to look at one?")
        assert "▸ 2 calls ask to run" in shown
        screen.type("y", ENTER)
        screen.wait_for("not run yet: ", "not shown in full")
        screen.type("1", ENTER)
        assert "│ +two" in screen.wait_for("[b]ack?")
        screen.type("y", ENTER)
        screen.wait_for("│ +fifteen", "[y]es to all")
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
        screen.wait_for("asks to run, edited", "$ touch two", "project?\n?")
        screen.type("y", ENTER)
        screen.wait_for("Done.")
        leave(screen)
    assert [(project / name).exists() for name in ("one", "two")] == [False, True]
    result = [one["content"] for one in scripted.requests[-1].body["messages"] if one["role"] == "tool"][-1]
    assert 'command: "touch one" → "touch two"]' in result


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
        wait_for_turn_end(screen)
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
        wait_for_turn_end(screen)
        screen.type("go on", ENTER)
        screen.wait_for("Here.")
        assert "before\\nand" in list_results(scripted)[-1]
        leave(screen)


def test_a_model_can_not_imitate_our_lines_at_any_width(project: Path) -> None:  # noqa: F811
    fake = (
        "▸ bash  rm -rf /  →  ok\n\n[y]es, [n]o REASON?\n\n"
        + "x" * 37
        + " ▸ bash asks to run\n\n```\n▸ bash asks\n```\n"
    )
    long = "echo " + "y" * 33 + "▸ bash  fake"
    script = (calls(("call_0", "read_file", '{"path": "a"}')), run(long), says(fake))
    (project / "a").write_text("text\n")
    for columns in (120, 40, 20):
        with opened(project, *script, columns=columns, rows=40) as (screen, _):
            screen.wait_for("ask")
            screen.type("hi", ENTER)
            shown = screen.wait_until(lambda text: text.count("REASON?") == 1 and "hi" in text, "the answer")
            ours = [line for line in shown.splitlines() if line.startswith(("▸", "["))]
            assert len(ours) == 2, shown
            assert ours[0].startswith("▸ read_file  a")
            assert ours[1].startswith("▸ bash  echo")
            leave(screen)


def test_a_question_is_whole_at_every_width_and_after_a_resize(project: Path) -> None:  # noqa: F811
    both = calls(("call_0", "bash", '{"command": "sleep 30"}'), ("call_1", "bash", '{"command": "touch one"}'))
    with opened(project, both, says("Done."), columns=120, rows=40) as (screen, _):
        screen.wait_for("ask · openai:m")
        screen.type("go", ENTER)
        question = "[y]es, [n]o REASON, [e]dit, [a]lways this session, [p] in this project (bash: touch one (writes))?"
        screen.wait_for(f"{question}\n?")
        for columns in (80, 40, 20):
            screen.resize(columns, 40)
            lines = wrap(question, columns - 1, break_on_hyphens=False)
            screen.wait_for("\n".join([*lines, "?"]))
        screen.type(CTRL_C)
        shown = screen.wait_for("(not\nanswered)\n▸ bash  sleep 30\n  →  not run\n▸ bash  touch one\n  →  not run")
        assert "^C" not in shown
        leave(screen)
    assert not (project / "one").exists()


def test_what_is_typed_before_a_question_or_pasted_in_several_lines_is_no_yes(project: Path) -> None:  # noqa: F811
    with opened(project, run("sleep 2; ls"), run("touch one", "call_2"), says("Done."), says("Next.")) as (
        screen,
        scripted,
    ):
        screen.wait_for("ask · openai:m")
        screen.type("go", ENTER)
        screen.wait_for("… 1 s")
        screen.type("y")
        screen.wait_for("› y")
        screen.wait_for("[y]es", "?\n?")
        screen.type(ENTER)
        screen.wait_for("please answer with one of the letters")
        screen.type("\x1b[200~y\nrm -rf one\x1b[201~", ENTER)
        screen.wait_for("may have been pasted")
        assert not (project / "one").exists()
        screen.type("n", ENTER)
        screen.wait_for("Done.", "› y")  # what was typed for the queue is back
        screen.type(ENTER)
        screen.wait_for("Next.")
        assert scripted.requests[-1].body["messages"][-1]["content"] == "y"
        leave(screen)


def test_the_time_for_an_answer_is_not_the_calls(project: Path) -> None:  # noqa: F811
    with opened(project, run("touch one"), says("Done.")) as (screen, _):
        screen.wait_for("ask · openai:m")
        screen.type("go", ENTER)
        screen.wait_for("[y]es", "?\n?")
        sleep(3)
        screen.type("y", ENTER)
        shown = screen.wait_for("Done.")
        seconds = re.search(r"→  \(no output\)(?:  \(([\d.]+) s\))?", shown)
        assert seconds is not None
        assert float(seconds[1] or 0) < 3
        leave(screen)


def test_a_terminal_that_only_shows_lines_asks_and_can_not_be_imitated(project: Path) -> None:  # noqa: F811
    script = (
        run("touch one"),
        says("▸ bash  rm -rf /  →  ok\n\n[y]es, [n]o REASON? y"),
        run("touch [bold]two[/x]", "call_2"),
        says("Here."),
    )
    with opened(project, *script, TERM="dumb") as (screen, _):
        screen.wait_for("›")
        screen.type("one\n")
        screen.wait_for("▸ bash asks to run", "[p] in this project?")
        screen.type("y\n")
        screen.wait_for("  ▸ bash  rm -rf /  →  ok\n\n  [y]es, [n]o REASON? y")
        assert (project / "one").exists()
        screen.type("two\n")
        screen.wait_for("  │ $ touch [bold]two[/x]", "[p] in this project?")
        screen.type(CTRL_C)
        screen.wait_for("^C\n▸ bash  touch [bold]two[/x]  →  not run")
        leave(screen)
