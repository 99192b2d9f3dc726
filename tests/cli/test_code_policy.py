"""`ferrule code` under the policy of a project, of the user, and of saved answers, and with damaged files of each."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from openai_server import KEY, calls, says, server
from server_thread import serve_in_thread
from terminals import ferrule

from ferrule.execution.always import Always
from ferrule.execution.rules import Rule
from ferrule.session.saved_rules import save_always


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DATA", "STATE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "ferrule").mkdir(parents=True)
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def run_command(folder: Path, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Let a scripted model run one command line; nobody can be asked."""
    script = (calls(("call_1", "bash", json.dumps({"command": command}))), says("That is all."))
    with serve_in_thread(lambda: server(*script)) as address:
        options = ("-m", "openai:m", "--base-url", f"{address}/v1")
        return ferrule("code", "-p", "Do it.", *options, *arguments, folder=folder, OPENAI_API_KEY=KEY)


def test_a_saved_answer_allows_a_command_and_no_chain(project: Path) -> None:
    save_always(project, [Always("bash: touch", (Rule("allow", "bash", command="touch a", exact=True),))])
    run_command(project, "touch a; touch b")
    assert list(project.iterdir()) == []
    done = run_command(project, "touch a")
    assert (done.returncode, [path.name for path in project.iterdir()]) == (0, ["a"]), done.stderr


def test_a_project_tightens_and_allows_only_once_it_is_trusted(project: Path) -> None:
    (project / "ferrule.toml").write_text(
        '[[policy.rules]]\ncommand = "touch a"\naction = "allow"\n'
        '[[policy.rules]]\ncommand = "touch b"\naction = "deny"'
    )
    run_command(project, "touch a")
    run_command(project, "touch b", "--yes")
    assert not (project / "a").exists()
    assert not (project / "b").exists()
    assert ferrule("policy", "trust", "--yes", folder=project).returncode == 0
    run_command(project, "touch a")
    assert (project / "a").exists()


@pytest.mark.parametrize("damaged", ["trust.json", "always.json"])
def test_a_damaged_record_is_one_line_and_the_session_goes_on(project: Path, damaged: str) -> None:
    save_always(project, [Always("bash: touch", (Rule("allow", "bash", command="touch"),))])
    path = project.parent / "home" / "ferrule" / damaged
    (project / "ferrule.toml").write_text("[code]\ncontext_limit = 100_000")
    path.write_text("{")
    done = run_command(project, "touch a")
    assert done.returncode == 0
    assert done.stdout.endswith("That is all.\n")
    (line,) = [line for line in done.stderr.splitlines() if str(path) in line]
    assert line.startswith("ferrule: ")
    assert (project / "a").exists() is (damaged == "trust.json")


DENY_TOUCH = '[[policy.rules]]\ncommand = "touch"\naction = "deny"\nreason = "no new files"'
COMMANDS = [("code", "-p"), ("ask",), ("chat",), ("call",)]


def touch(folder: Path, command: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Let a command of ferrule call bash, with nobody to ask."""
    call = ("call_1", "bash", json.dumps({"command": "touch a"}))
    if command == ("call",):
        return ferrule("call", "--tools", "coding", *arguments, "bash", "--command", "touch a", folder=folder)
    with serve_in_thread(lambda: server(calls(call), says("That is all."))) as address:
        model = ("-m", "openai:m", "--base-url", f"{address}/v1", *arguments)
        tools = () if command[0] == "code" else ("--tools", "coding")
        question, given = ((), "Do it.\n") if command == ("chat",) else (("Do it.",), "")
        return ferrule(*command, *question, *model, *tools, folder=folder, typed=given, OPENAI_API_KEY=KEY)


@pytest.mark.parametrize("owner", ["project", "user"])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_file_denies_runs_in_no_command(project: Path, command: tuple[str, ...], owner: str) -> None:
    (project if owner == "project" else project.parent / "home" / "ferrule").joinpath("ferrule.toml").write_text(
        DENY_TOUCH
    )
    touch(project, command, "--yes")
    assert not (project / "a").exists()
    (project / "all.toml").write_text('profile = "all"')
    touch(project, command, "--policy", "all.toml")
    assert not (project / "a").exists()


def test_what_nothing_denies_runs(project: Path) -> None:
    for command in COMMANDS:
        touch(project, command, "--yes")
        (project / "a").unlink()


def test_rules_for_tools_that_are_not_on_offer_are_no_mistake(project: Path) -> None:
    (project / "ferrule.toml").write_text(DENY_TOUCH.replace("command", 'tool = "bash"\ncommand'))
    done = ferrule("call", "calculator", "--expression", "1+1", folder=project)
    assert (done.stdout, done.stderr) == ("2\n", "")


@pytest.mark.parametrize("damage", ["syntax", "type", "folder", "large", "unreadable"])
@pytest.mark.parametrize("command", [*COMMANDS, ("code", "-p", "--yes"), ("ask", "--yes")])
def test_nothing_runs_beside_a_damaged_file_where_nobody_is_asked(
    project: Path, command: tuple[str, ...], damage: str
) -> None:
    path = project / "ferrule.toml"
    if damage == "folder":
        path.mkdir()
    elif damage == "unreadable":
        path.symlink_to("nowhere")
    else:
        text = {"syntax": f"{DENY_TOUCH}\n[policy", "type": "add_dirs = 1", "large": "#" * 1_000_001}[damage]
        path.write_text(text)
    done = touch(project, command[:-1] if command[-1] == "--yes" else command, *command[-1:] * (command[-1] == "--yes"))
    assert done.returncode == 2
    assert not (project / "a").exists()
    (line,) = done.stderr.splitlines()
    assert str(path) in line
    assert "mend the file, or move it away" in line


def test_no_server_starts_beside_a_damaged_file(project: Path) -> None:
    (project / "ferrule.toml").write_text("[policy]\nprofile = ")
    done = ferrule("mcp", "serve", "coding", folder=project)
    assert done.returncode == 2
    assert "line 2" in done.stderr
