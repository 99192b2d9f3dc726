"""Whole sessions of `ferrule code` where something is missing, full, read-only, gone or narrow: nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "coding"))

from checkpoint_trees import read_tree
from openai_server import KEY, calls, says, server
from screens import ENTER
from scripted_http import Reply, ScriptedServer
from server_thread import serve_in_thread
from terminals import COMMAND, environment, ferrule
from test_code_terminal import leave, list_results, opened, project, run  # noqa: F401 - a fixture among them

from ferrule.store import Store

STRANGE_SERVER = Path(__file__).parents[1] / "mcp" / "strange_server.py"


def call(name: str, **arguments: Any) -> tuple[str, str, str]:
    """A call whose id is its name's."""
    return f"call_{name}", name, json.dumps(arguments)


def home(project: Path, **changes: str) -> dict[str, str]:  # noqa: F811
    place = str(project.parent / "home")
    own = {f"XDG_{name}_HOME": place for name in ("DATA", "STATE", "CONFIG")}
    return {**own, "OPENAI_API_KEY": KEY, **changes}


def ask(
    project: Path,  # noqa: F811
    *script: Reply,
    arguments: Sequence[str | Path] = (),
    before: Sequence[str | Path] = (),
    program: Sequence[str] = COMMAND,
    **changes: str,
) -> tuple[subprocess.CompletedProcess[str], ScriptedServer]:
    """Ask one question of a process of its own, started by the command `before`."""
    scripted = server(*script)
    with serve_in_thread(lambda: scripted) as address:
        options = ("-p", "work", "-m", "openai:m", "--base-url", f"{address}/v1", "--profile", "auto", *arguments)
        done = subprocess.run(
            [*before, *program, "code", *options],
            cwd=project,
            env=environment(home(project, **changes)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert "Traceback" not in done.stderr + done.stdout, done
    return done, scripted


def check_saved(project: Path, answer: str) -> None:  # noqa: F811
    """Check that the session is in the store, with its last answer."""
    with Store(project.parent / "home" / "ferrule" / "conversations.db", create=False) as store:
        (kept,) = store.list(folder=str(project))
        assert store.load(kept.id).conversation.messages[-1].text == answer


def mounted(kind: str, project: Path) -> tuple[str | Path, ...]:  # noqa: F811
    """The command that runs another one on such a workspace."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    script = Path(__file__).with_name("mounted_workspace.py")
    return "unshare", "-rm", sys.executable, script, kind, project, project.parent / "result"


WRITES = (
    calls(call("read_file", path="a.py")),
    calls(call("edit_file", path="a.py", edits=[{"old": "a = 1", "new": "a = 2" + " " * 100_000}])),
    calls(call("write_file", path="new/b.py", content="b" * 100_000)),
    calls(call("apply_patch", patch="*** Begin Patch\n*** Add File: c.py\n+" + "c" * 100_000 + "\n*** End Patch")),
    calls(call("bash", command="seq 100000 > d.txt")),
    calls(call("search", pattern="a = 1")),
    says("I could not."),
)


@pytest.mark.parametrize(
    ("kind", "reason"), [("read-only", "the file system is read-only"), ("full", "the disk is full")]
)
def test_a_workspace_that_takes_no_changes(project: Path, kind: str, reason: str) -> None:  # noqa: F811
    (project / "a.py").write_text("a = 1\n")
    done, scripted = ask(project, *WRITES, before=mounted(kind, project))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "I could not."), done
    read, *writes, command, found = list_results(scripted)
    assert "a = 1" in read
    for result in writes:
        assert reason in result
        assert "nothing was changed" in result
    assert "error: exit status" in command
    assert "a.py:1: a = 1" in found
    left = read_tree(project.parent / "result")
    # What a command has written before the disk was full stays, as after any command that fails.
    assert set(left) <= {"a.py", "d.txt"}
    assert left["a.py"][1] == b"a = 1\n"
    check_saved(project, "I could not.")


def make_bare_program(top: Path) -> tuple[str, ...]:
    """A Python with our packages whose folder of programs has nothing else in it, such as ripgrep."""
    (top / "bin").mkdir(parents=True)
    (top / "bin" / "python").symlink_to(sys.executable)
    (top / "lib").symlink_to(Path(sys.prefix) / "lib")
    shutil.copy(Path(sys.prefix) / "pyvenv.cfg", top)
    return str(top / "bin" / "python"), *COMMAND[1:]


def test_no_git_and_no_ripgrep(project: Path, tmp_path: Path) -> None:  # noqa: F811
    (project / "a.py").write_text("a = 1\n")
    before = read_tree(project)
    script = (
        calls(call("search", pattern=r"a = \d")),
        calls(call("read_file", path="a.py")),
        calls(call("edit_file", path="a.py", edits=[{"old": "a = 1", "new": "a = 2"}])),
        calls(call("bash", command="echo x > made")),
        says("Done."),
    )
    program = make_bare_program(tmp_path / "bare")
    done, scripted = ask(project, *script, program=program, PATH=str(tmp_path / "bare" / "bin"))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Done."), done
    found, *_, command = list_results(scripted)
    assert "error: ripgrep isn't installed" in found, "the answer says why nothing was searched"
    assert "error" not in command
    assert (project / "a.py").read_text() == "a = 2\n"
    undo = [*program, "code", "undo", "--yes"]
    bare = environment(home(project, PATH=str(tmp_path / "bare" / "bin")))
    undone = subprocess.run(undo, cwd=project, env=bare, capture_output=True, text=True, check=False)
    assert (undone.returncode, undone.stderr) == (0, ""), undone
    assert read_tree(project) == before
    check_saved(project, "Done.")


def test_a_server_that_cannot_be_reached_costs_its_tools_alone_where_a_person_sees_it(
    project: Path,  # noqa: F811
) -> None:
    pids = project.parent / "pids"
    sound = f"{sys.executable} {STRANGE_SERVER} none {pids}"
    servers = ("--mcp", sound, "--mcp", f"{sys.executable} -c pass")
    with opened(project, calls(call("pid")), calls(call("die")), says("Done."), arguments=servers) as (
        screen,
        scripted,
    ):
        screen.wait_for("its tools are not offered")
        screen.type("work", ENTER)
        screen.wait_for("▸ pid asks to run", "[y]es")
        screen.type("y", ENTER)
        screen.wait_for("▸ die asks to run")
        screen.type("y", ENTER)
        screen.wait_for("Done.")
        leave(screen)
    answered, died = list_results(scripted)
    assert pids.read_text().split()[0] in answered
    assert "error" in died
    check_saved(project, "Done.")
    for number in pids.read_text().split():
        assert not Path("/proc", number).exists(), "the server outlives the session"


def test_without_a_person_every_server_must_be_there(project: Path) -> None:  # noqa: F811
    pids = project.parent / "pids"
    sound = f"{sys.executable} {STRANGE_SERVER} none {pids}"
    done, _ = ask(project, arguments=("--mcp", sound, "--mcp", f"{sys.executable} -c pass"))
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    done, scripted = ask(project, calls(call("pid")), says("Done."), arguments=("--mcp", sound, "--yes", "--json"))
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (result,) = [event for event in events if event["event"] == "result"]
    assert (done.returncode, result["status"], result["text"]) == (0, "ok", pids.read_text().split()[-1])
    assert result["text"] in list_results(scripted)[0]
    check_saved(project, "Done.")


def test_a_file_that_is_deleted_between_approval_and_write(project: Path) -> None:  # noqa: F811
    (project / "a.py").write_text("a = 1\n")
    script = (
        calls(call("read_file", path="a.py")),
        calls(call("edit_file", path="a.py", edits=[{"old": "a = 1", "new": "a = 2"}])),
        says("It is gone."),
        says("As you like."),
    )
    with opened(project, *script) as (screen, scripted):
        screen.type("change a", ENTER)
        screen.wait_for("│ +a = 2", "[y]es")
        (project / "a.py").unlink()
        screen.type("y", ENTER)
        screen.wait_for("It is gone.")
        assert list(project.iterdir()) == []
        said = "has changed since it was approved; look at it again: Error reading a.py: there is no such file"
        assert said in list_results(scripted)[1]
        screen.type("go on", ENTER)
        screen.wait_for("As you like.")
        leave(screen)
    assert list(project.iterdir()) == []
    check_saved(project, "As you like.")


def test_a_model_that_repeats_a_failing_edit_is_told_so(project: Path) -> None:  # noqa: F811
    (project / "a.py").write_text("a = 1\n")
    edit = calls(call("edit_file", path="a.py", edits=[{"old": "b = 1", "new": "b = 2"}]))
    done, scripted = ask(project, calls(call("read_file", path="a.py")), *[edit] * 6, says("I give up."))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "I give up."), done
    _, first, second, *later = list_results(scripted)
    assert "isn't in the file" in first
    assert "failed 2 times" in second
    assert "failed 6 times" in later[-1]
    assert (project / "a.py").read_text() == "a = 1\n"
    check_saved(project, "I give up.")


def test_a_model_that_never_stops_repeating_it_is_stopped(project: Path) -> None:  # noqa: F811
    (project / "a.py").write_text("a = 1\n")
    edit = calls(call("edit_file", path="a.py", edits=[{"old": "b = 1", "new": "b = 2"}]))
    done, scripted = ask(project, *[edit] * 20)
    assert done.returncode == 1, done
    assert len(scripted.requests) == 8
    assert "the model repeats a call that fails in the same way; tell it how to go on" in done.stderr
    with opened(project, says("I read it first."), arguments=("--continue",)) as (screen, _):
        screen.type("go on", ENTER)
        screen.wait_for("I read it first.")
        leave(screen)
    assert (project / "a.py").read_text() == "a = 1\n"


@pytest.mark.parametrize("columns", [20, 33])
def test_a_change_is_approved_in_a_narrow_terminal(project: Path, columns: int) -> None:  # noqa: F811
    (project / "a.py").write_text("a = 1\n")
    script = (
        calls(call("read_file", path="a.py")),
        calls(call("edit_file", path="a.py", edits=[{"old": "a = 1", "new": "a_name_that_is_longer = 2"}])),
        says("Done."),
    )
    with opened(project, *script, columns=columns, rows=60) as (screen, _):
        screen.type("change a", ENTER)
        joined = screen.wait_until(lambda shown: "[y]es" in shown.replace("\n", ""), "[y]es").replace("\n", "")
        assert "a_name_that" in joined.replace("│", "").replace(" ", "")
        screen.type("y", ENTER)
        screen.wait_for("Done.")
        leave(screen)
    assert (project / "a.py").read_text() == "a_name_that_is_longer = 2\n"


def test_lines_of_a_pipe_each_get_an_answer_and_a_refusal_where_somebody_would_be_asked(
    project: Path,  # noqa: F811
) -> None:
    script = (run("touch made"), says("I may not."), says("Two."))
    scripted = server(*script)
    with serve_in_thread(lambda: scripted) as address:
        options = ("-m", "openai:m", "--base-url", f"{address}/v1")
        done = ferrule("code", *options, typed="one\n\ntwo\n", folder=project, **home(project))
    assert [line for line in done.stdout.splitlines() if line in ("I may not.", "Two.")] == ["I may not.", "Two."]
    assert "Traceback" not in done.stderr
    assert "denied" in list_results(scripted)[0]
    assert not (project / "made").exists()
    check_saved(project, "Two.")


def test_a_store_that_is_damaged_in_the_middle_of_a_session_is_one_line(project: Path) -> None:  # noqa: F811
    place = project.parent / "home" / "ferrule" / "conversations.db"
    with opened(project, says("One."), says("Two."), says("Three.")) as (screen, _):
        screen.type("1?", ENTER)
        # The end of the turn is saved by then: no file is damaged while it is written.
        screen.wait_until(lambda shown: "One." in shown and "Ctrl-C stops" not in shown)
        for path in place.parent.glob("conversations.db*"):
            os.truncate(path, 0)
            path.write_bytes(b"not a database" * 1000)
        screen.type("2?", ENTER)
        screen.wait_for("Two.")
        screen.type("3?", ENTER)
        shown = screen.wait_for("Three.", "the conversation can't be saved")
        assert "Traceback" not in shown
        leave(screen)
