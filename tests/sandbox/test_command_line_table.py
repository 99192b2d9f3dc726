"""The table of shell commands: each yields the parts, effects and decisions that it names."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from ferrule import tool
from ferrule.execution.policy import Policy, Profile
from ferrule.sandbox.shell.command_line import CommandLine, parse_command_line
from ferrule.tools.intent import Effect, Intent
from tables import each_case

TABLE = tomllib.loads((Path(__file__).parent / "command_lines" / "commands.toml").read_text(encoding="utf-8"))
ROWS = [row for rows in TABLE["commands"].values() for row in rows]
PROFILES: tuple[Profile, ...] = ("ask", "accept-edits", "auto", "plan")


@tool
def bash(command: str) -> str:
    """Run a command."""
    return command


def show(effect: Effect, workspace: str) -> str:
    marks = ("+" if effect.words else "") + ("!" if effect.is_protected else "")
    target = effect.target
    if effect.kind in ("read", "write"):
        target = "." if target == workspace else target.removeprefix(f"{workspace}/")
    return f"{effect.kind}{marks} {target}"


def decide(line: CommandLine, profile: Profile, workspace: Path) -> str:
    """What the policy says of a call of the shell tool with this command."""
    intent = Intent(line.effects, line.text, asks=line.problem is not None)
    return Policy(profile=profile).judge(bash, {"command": line.text}, intent, workspace).action


def place(text: str, workspace: Path) -> str:
    return text.replace("/ws/", f"{workspace}/")


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace of all rows without files."""
    return make_workspace(tmp_path_factory)


def make_workspace(factory: pytest.TempPathFactory) -> Path:
    folder = factory.mktemp("row") / "ws"
    (folder / "src").mkdir(parents=True)
    return folder


@each_case("row", ROWS, ids=[row["run"][:60].encode("unicode_escape").decode() for row in ROWS])
def test_table(row: dict[str, Any], empty: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    workspace = make_workspace(tmp_path_factory) if row.get("tree") else empty
    for path, content in row.get("tree", {}).items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("-> "):
            (workspace / path).symlink_to(content.removeprefix("-> "))
        else:
            (workspace / path).write_text(content)
    line = parse_command_line(place(row["run"], workspace), str(workspace))
    assert (line.problem is not None) is (row["is"] == "unknown"), line
    if "parts" in row:
        assert [list(part.words) for part in line.parts if part.kind == "program"] == row["parts"]
    if row["is"] == "unknown":
        assert line.effects == (Effect("run", line.text),)
    elif "effects" in row:
        assert sorted({show(effect, str(workspace)) for effect in line.effects}) == sorted(set(row["effects"]))
    wanted = TABLE["decisions"][row["is"]]
    assert [decide(line, profile, workspace) for profile in PROFILES] == wanted, line.effects
    for part in line.parts:
        assert line.text[part.start : part.end] == part.text
