"""`ferrule code` on a real terminal: what a person sees and does, with a model that plays a script over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from openai_server import KEY, calls, says, server
from screens import CTRL_C, CTRL_D, ENTER, ESCAPE, UP, Screen
from scripted_http import Reply, ScriptedServer
from server_thread import serve_in_thread


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@contextmanager
def opened(
    project: Path, *script: Reply, arguments: tuple[str, ...] = (), columns: int = 80, rows: int = 24, **changes: str
) -> Iterator[tuple[Screen, ScriptedServer]]:
    """The program in a project, with a model that gives these replies."""
    scripted, home = server(*script), str(project.parent / "home")
    kept = {"XDG_DATA_HOME": home, "XDG_STATE_HOME": home, "XDG_CONFIG_HOME": home, "OPENAI_API_KEY": KEY, **changes}
    with (
        serve_in_thread(lambda: scripted) as address,
        Screen(
            "code", "-m", "openai:m", "--base-url", f"{address}/v1", *arguments, folder=project, columns=columns,
            rows=rows, **kept,
        ) as screen,
    ):  # fmt: skip
        yield screen, scripted


def run(command: str, call_id: str = "call_1", **arguments: Any) -> Reply:
    """A message that runs a shell command."""
    return calls((call_id, "bash", json.dumps({"command": command, **arguments})))


def list_results(scripted: ScriptedServer) -> list[str]:
    """The results that the model was sent with the last request."""
    return [json.dumps(one["content"]) for one in scripted.requests[-1].body["messages"] if one["role"] == "tool"]


def find_status(shown: str) -> str:
    return shown.rstrip().splitlines()[-1]


def wait_for_turn_end(screen: Screen) -> str:
    """Wait until no turn runs: what is typed before is put back into the prompt when the turn is stopped."""
    return screen.wait_until(lambda shown: "Ctrl-C stops" not in find_status(shown), "the end of the turn")


def leave(screen: Screen) -> None:
    screen.type(CTRL_D)
    assert screen.wait_for_end() == 0, screen.text


def test_an_answer_is_rendered_above_the_prompt(project: Path) -> None:
    with opened(project, says("Some **bold** words.\n\n", "- an item\n\n```\nco", "de\n```")) as (screen, _):
        screen.wait_for("ask · openai:m")
        screen.type("hello", ENTER)
        shown = screen.wait_for("› hello", "Some bold words.", " • an item", "code")
        assert "**" not in shown
        assert "```" not in shown
        leave(screen)
        assert "saved as" in screen.text


def test_approving_denying_with_a_reason_and_editing(project: Path) -> None:
    script = (
        run("touch one"),
        run("touch two", "call_2"),
        run("touch three", "call_3"),
        says("Finished."),
    )
    with opened(project, *script) as (screen, scripted):
        screen.type("make files", ENTER)
        screen.wait_for("[y]es")
        screen.type("y", ENTER)
        screen.wait_for("[y]es", count=2)
        assert (project / "one").exists()
        screen.type("n use another name", ENTER)
        screen.wait_for("[y]es", count=3)
        assert "use another name" in list_results(scripted)[1]
        screen.type('e {"command": "touch four"}', ENTER)
        screen.wait_until(lambda shown: "Finished." in shown or shown.count("[y]es") == 4)
        if "Finished." not in screen.text:  # an edited call may be asked about again
            screen.type("y", ENTER)
        screen.wait_for("Finished.")
        assert [(project / name).exists() for name in ("one", "two", "three", "four")] == [True, False, False, True]
        assert "touch four" in list_results(scripted)[2]
        leave(screen)


def test_an_editor_gets_the_terminal_and_the_prompt_comes_back(project: Path) -> None:
    editor = project.parent / "editor"
    editor.write_text('#!/bin/sh\necho "an editor is here"\nread line\necho "touch $line" > "$1"\n')
    editor.chmod(0o755)
    with opened(project, run("touch one"), says("Finished."), EDITOR=str(editor), VISUAL="") as (screen, _):
        screen.type("make a file", ENTER)
        screen.wait_for("[y]es")
        screen.type("e", ENTER)
        screen.wait_for("an editor is here")
        screen.type("edited", ENTER)
        screen.wait_for("touch edited", "[y]es")
        screen.wait_for("[y]es", count=2)
        screen.type("y", ENTER)
        screen.wait_for("Finished.")
        assert (project / "edited").exists()
        leave(screen)


def test_undo_takes_back_what_a_turn_changed(project: Path) -> None:
    (project / "api.py").write_bytes(b"one\r\ntwo\r\n")
    edit = calls(("call_1", "edit_file", json.dumps({"path": "api.py", "edits": [{"old": "two", "new": "2"}]})))
    script = (calls(("call_0", "read_file", '{"path": "api.py"}')), edit, run("touch made", "call_2"), says("Done."))
    with opened(project, *script, arguments=("--profile", "auto")) as (screen, _):
        screen.type("edit it", ENTER)
        screen.wait_for("Done.", "+2", "-two")
        assert (project / "api.py").read_bytes() == b"one\r\n2\r\n"
        screen.type("/diff", ENTER)
        screen.wait_for("+++ b/api.py")
        screen.type("/undo", ENTER)
        screen.wait_for("Undid the turn «edit it»: 1 path removed, 1 path restored", "Not restored: ")
        assert (project / "api.py").read_bytes() == b"one\r\ntwo\r\n"
        assert not (project / "made").exists()
        screen.type("/redo", ENTER)
        screen.wait_for("Redid the turn")
        leave(screen)
    assert (project / "made").exists()


def test_ctrl_c_stops_the_turn_and_the_session_goes_on(project: Path) -> None:
    stalled = Reply(says("I begin to think").pieces[:-2], ending="stalled")
    with opened(project, stalled, says("Here again.")) as (screen, scripted):
        screen.type("think", ENTER)
        screen.wait_for("I begin to think", "Ctrl-C stops")
        screen.type("a queued line", ENTER)
        screen.wait_for("queued: a queued line")
        screen.type(CTRL_C)
        screen.wait_until(lambda shown: "Ctrl-C stops" not in shown and "queued:" not in shown)
        screen.wait_for("› a queued line")  # back at the prompt, to be changed or sent
        screen.type(ENTER)
        screen.wait_for("Here again.")
        said = [one["content"] for one in scripted.requests[-1].body["messages"] if one["role"] != "system"]
        assert said == ["think", "I begin to think", "a queued line"]
        leave(screen)


def test_ctrl_c_twice_leaves(project: Path) -> None:
    with opened(project) as (screen, _):
        screen.wait_for("ask · openai:m")
        screen.type("typed", CTRL_C)
        screen.wait_until(lambda shown: "typed" not in shown)
        screen.type(CTRL_C)
        screen.wait_for("Ctrl-C again leaves")
        screen.type(CTRL_C)
        assert screen.wait_for_end() == 0


def test_what_is_typed_while_it_works_is_queued_and_answered(project: Path) -> None:
    with opened(project, run("touch one"), says("First."), says("Second.")) as (screen, scripted):
        screen.type("one", ENTER)
        screen.wait_for("[y]es")
        screen.type("y", ENTER)
        screen.type("two", ENTER)
        screen.wait_for("First.", "Second.")
        assert scripted.requests[-1].body["messages"][-1]["content"] == "two"
        leave(screen)


def test_a_conversation_is_resumed_with_its_calls_and_its_history(project: Path) -> None:
    with opened(project, says("The answer.")) as (screen, _):
        screen.type("the question", ENTER)
        screen.wait_for("The answer.")
        leave(screen)
    with opened(project, says("More."), arguments=("--continue",)) as (screen, scripted):
        screen.wait_for("resumed", "the question")
        screen.type("and", ESCAPE + ENTER, "more", ENTER)
        screen.wait_for("More.")
        said = [one["content"] for one in scripted.requests[-1].body["messages"] if one["role"] != "system"]
        assert said == ["the question", "The answer.", "and\nmore"]
        screen.type(UP)
        screen.wait_for("› and\n  more", count=2)
        screen.type(CTRL_C)
        leave(screen)
    history = project.parent / "home" / "ferrule" / "code_history"
    assert history.stat().st_mode & 0o777 == 0o600


def test_commands_are_completed_and_unknown_ones_refused(project: Path) -> None:
    with opened(project) as (screen, _):
        screen.wait_for("ask · openai:m")
        screen.type("/po")
        screen.wait_for("/policy [PROFILE]")
        screen.type("lcy", ENTER)
        screen.wait_for("unknown command /polcy; did you mean /policy?")
        screen.type("/plan", ENTER)
        screen.wait_for("profile plan", "plan · openai:m")
        screen.type("/plan", ENTER)
        screen.wait_for("ask · openai:m")
        screen.type("/quit", ENTER)
        assert screen.wait_for_end() == 0


def test_the_beginning_says_what_it_works_with_and_where_a_conversation_stands(project: Path) -> None:
    answer = "\n".join(f"- item {number}" for number in range(20))
    with opened(project, run("echo [bold]x"), says(answer), columns=120, arguments=("--yes",)) as (screen, _):
        screen.wait_for(" · openai:m · profile ask · /help lists the commands\n/")
        screen.type("a [red]title", ENTER)
        screen.wait_for("item 19")
        leave(screen)
    with opened(project, arguments=("--continue",)) as (screen, _):
        shown = screen.wait_for("resumed ", "a [red]title", "› a [red]title\n▸ 1 call\n  - item 0\n", "… 8 more lines")
        assert "item 12" not in shown
        screen.wait_until(lambda now: "context left" not in find_status(now))
        screen.type("/new", ENTER, "/exit", ENTER)
        assert screen.wait_for_end() == 0


def test_a_compacted_conversation_is_undone_and_counted_and_a_new_one_is_not(project: Path) -> None:
    script = (run("touch made"), says("Made."), says("Two."), says("Three."), says("A summary."), says("Four."))
    with opened(project, *script, arguments=("--yes", "--context-limit", "100000"), columns=120) as (screen, _):
        for question, answer in (("one", "Made."), ("two", "Two."), ("three", "Three.")):
            screen.type(question, ENTER)
            screen.wait_for(f"  {answer}")
        before = find_status(screen.wait_for("% context left"))
        screen.type("/compact", ENTER)
        screen.wait_for("messages were replaced by a summary for the model")
        screen.wait_until(lambda shown: "context left" not in find_status(shown))
        assert find_status(screen.text).split("·")[-1] != before.split("·")[-1]  # the summary counts
        screen.type("/undo", ENTER)
        screen.wait_for("Undid the turn «one»: 1 path removed")
        screen.type("/new", ENTER)
        screen.wait_for("a new conversation; the old one stays saved")
        screen.type("/cost", ENTER)
        screen.wait_for("in this session, in this conversation 0 tokens read, 0 written")
        screen.type("/undo", ENTER)
        screen.wait_for("there is nothing to undo in this workspace")
        leave(screen)


def test_the_output_of_a_running_command_is_shown_and_its_end_replaces_it(project: Path) -> None:
    command = 'for i in 1 2 3 4 5 6 7; do echo "\033[31mline $i\033[0m"; done; cat fifo; rm fifo'
    script = (run(f"mkfifo fifo; ({command})", timeout=60), says("Read."))
    with opened(project, *script, arguments=("--yes",)) as (screen, _):
        screen.type("run it", ENTER)
        shown = screen.wait_for("  │ line 3\n  │ line 4\n  │ line 5\n  │ line 6\n  │ line 7\n")
        assert "line 2\n" not in shown
        (project / "fifo").write_text("the end\n")
        screen.wait_for("Read.", "  │ the end")
        leave(screen)


def test_background_jobs_are_counted_listed_read_and_stopped(project: Path) -> None:
    script = (run("echo ready; sleep 600", background=True), says("Started."))
    with opened(project, *script, arguments=("--yes",), columns=100) as (screen, _):
        screen.type("serve", ENTER)
        screen.wait_for("Started.", " · 1 job")
        screen.type("/jobs", ENTER)
        screen.wait_for("job_1 running: echo ready; sleep 600")
        screen.type("/jobs 1", ENTER)
        screen.wait_for("› /jobs 1\n  ready\n")
        screen.type("/jobs stop 1", ENTER)
        screen.wait_for("job_1 ended: ")
        screen.wait_until(lambda shown: " · 1 job" not in shown)
        screen.type("/jobs 7", ENTER)
        screen.wait_for("/jobs: there is no background job 'job_7'; there are: job_1")
        leave(screen)


def test_a_queued_question_is_taken_back(project: Path) -> None:
    stalled = Reply(says("I begin").pieces[:-2], ending="stalled")
    with opened(project, stalled) as (screen, scripted):
        screen.type("think", ENTER)
        screen.wait_for("I begin")
        screen.type("one", ENTER, "two", ENTER)
        screen.wait_for("queued: one\nqueued: two  (Up takes it back)")
        screen.type(UP)
        screen.wait_until(lambda shown: "queued: two" not in shown and "› two" in shown)
        screen.type(" or not", ENTER)
        screen.wait_for("queued: two or not")
        screen.type(CTRL_C)
        screen.wait_for("› one\n  two or not")
        screen.type(CTRL_C)
        assert len(scripted.requests) == 1
        leave(screen)


def test_a_file_is_completed_and_attached_and_a_hidden_one_is_neither(project: Path) -> None:
    (project / "src").mkdir()
    (project / "src" / "api.py").write_text("def fetch(): ...\n")
    (project / ".env").write_text("KEY=secret\n")
    with opened(project, says("Read it."), says("Read more."), columns=100) as (screen, scripted):
        screen.wait_for("ask · openai:m")
        screen.type("see @ap")
        screen.wait_for("src/api.py")
        screen.type("\t", ENTER)
        screen.wait_for("› see @src/api.py")
        screen.type(ENTER)
        screen.wait_for("Read it.")
        question = json.dumps(scripted.requests[-1].body["messages"][-1])
        assert "def fetch(): ..." in question
        (project / "a plan.txt").write_text("the plan\n")
        screen.type("see @.env", ENTER)
        screen.wait_for("@.env: .env is hidden")
        assert len(scripted.requests) == 1
        screen.type('see @src/apy.py and @"a plan.txt" and @src', ENTER)
        screen.wait_for(
            "@src/apy.py: no such file, so nothing was attached; did you mean @src/api.py?",
            "@src is a folder: nothing of it was attached",
        )
        screen.wait_until(lambda _: len(scripted.requests) == 2)
        assert "the plan" in json.dumps(scripted.requests[-1].body["messages"][-1])
        leave(screen)


def test_resizing_and_twenty_columns(project: Path) -> None:
    with opened(project, says("Narrow words are wrapped here."), columns=100) as (screen, _):
        screen.wait_for("ask · openai:m")
        screen.resize(20, 12)
        screen.type("hi", ENTER)
        screen.wait_for("  Narrow words are\n  wrapped here.")
        leave(screen)


def test_control_characters_of_a_model_are_shown_not_obeyed(project: Path) -> None:
    with opened(project, says("evil \x1b[2J\x1b]0;title\x07 text \u202e")) as (screen, _):
        screen.type("hi", ENTER)
        screen.wait_for("› hi", "evil \\x1b[2J\\x1b]0;title\\x07 text \\u202e")
        leave(screen)


def test_a_model_that_cannot_be_used_is_one_line_and_the_end(project: Path) -> None:
    home = str(project.parent / "home")
    with Screen("code", "-m", "openai:m", folder=project, XDG_CONFIG_HOME=home, OPENAI_API_KEY="") as screen:
        assert screen.wait_for_end() == 2
        assert "ferrule: no key for OpenAI: set OPENAI_API_KEY" in screen.text
    with Screen("code", folder=project, XDG_CONFIG_HOME=home) as screen:
        assert screen.wait_for_end() == 2
        assert "--model" in screen.text
