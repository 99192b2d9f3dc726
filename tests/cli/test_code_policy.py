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


@pytest.mark.parametrize("damaged", ["project", "user", "trust.json", "always.json"])
def test_a_damaged_file_is_one_line_and_the_session_goes_on(project: Path, damaged: str) -> None:
    own = project.parent / "home" / "ferrule"
    save_always(project, [Always("bash: touch", (Rule("allow", "bash", command="touch"),))])
    path = {"project": project, "user": own}.get(damaged, own) / (damaged if "." in damaged else "ferrule.toml")
    if damaged == "trust.json":
        (project / "ferrule.toml").write_text("[code]\ncontext_limit = 100_000")
    path.write_text("{")
    done = run_command(project, "touch a")
    assert done.returncode == 0
    assert done.stdout.endswith("That is all.\n")
    (line,) = [line for line in done.stderr.splitlines() if str(path) in line]
    assert line.startswith("ferrule: ")
    # Nothing that was allowed before is: what can't be read may have said otherwise.
    assert not (project / "a").exists()
