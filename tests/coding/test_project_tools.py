"""The tools that a project brings: nothing of them runs before it was trusted, and they take no other tool's name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ferrule.coding.project_tools import find_project_tools
from ferrule.coding.workspace import Workspace
from ferrule.errors import RegistryError
from ferrule.execution import Policy
from ferrule.execution.executor import call_tool
from ferrule.session.project import load_project

GREET = '''
from pathlib import Path
from ferrule import tool

Path({ran!r}).touch()


@tool(read_only=True)
def {name}(who: str) -> str:
    """Greet somebody."""
    return f"hello, {{who}}"
'''
TEMPLATE = """
[[tools]]
name = "{name}"
description = "Show a word."
command = ["printf", "%s", "{{word}}"]

[tools.parameters.word]
description = "The word"
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person who has trusted nothing yet."""
    folder = tmp_path / "home"
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(folder / name))
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".ferrule" / "tools").mkdir(parents=True)
    return folder


@pytest.fixture
async def workspace(project: Path) -> AsyncIterator[Workspace]:
    async with Workspace(project) as opened:
        yield opened


def write_tool(project: Path, name: str = "greet") -> Path:
    path = project / ".ferrule" / "tools" / f"{name}_tool.py"
    path.write_text(GREET.format(ran=str(project / "ran"), name=name))
    return path


async def test_untrusted_files_are_named_and_not_run(project: Path, workspace: Workspace) -> None:
    write_tool(project)
    found = find_project_tools(workspace, load_project(project))
    assert len(found.registry) == 0
    assert found.list_untrusted() == ["runs .ferrule/tools/greet_tool.py in ferrule's own process"]
    (line,) = found.describe_untrusted()
    assert line.startswith("1 tool file in .ferrule/tools not loaded, as not trusted or changed since: greet_tool.py")
    assert not (project / "ran").exists()


async def test_trusted_files_are_loaded_from_then_on_until_they_change(project: Path, workspace: Workspace) -> None:
    path = write_tool(project)
    found = find_project_tools(workspace, load_project(project)).trust()
    assert found.registry.names == ("greet",)
    assert found.list_untrusted() == []
    again = find_project_tools(workspace, load_project(project))
    assert (again.registry.names, again.describe_untrusted()) == (("greet",), [])
    path.write_text(path.read_text() + "\n# changed\n")
    changed = find_project_tools(workspace, load_project(project))
    assert len(changed.registry) == 0
    assert "not trusted or changed since" in changed.describe_untrusted()[0]


async def test_a_change_between_the_question_and_the_answer_is_not_trusted(project: Path, workspace: Workspace) -> None:
    path = write_tool(project)
    found = find_project_tools(workspace, load_project(project))
    path.write_text(path.read_text() + "\n# changed\n")
    with pytest.raises(RegistryError, match="has changed since it was trusted"):
        found.trust()
    assert not (project / "ran").exists()
    assert find_project_tools(workspace, load_project(project)).untrusted is not None


async def test_the_same_content_elsewhere_is_asked_about_again(tmp_path: Path, project: Path) -> None:
    write_tool(project)
    find_project_tools(Workspace(project), load_project(project)).trust()
    other = tmp_path / "other"
    (other / ".ferrule").mkdir(parents=True)
    (project / ".ferrule" / "tools").rename(other / ".ferrule" / "tools")
    assert find_project_tools(Workspace(other), load_project(other)).untrusted is not None


async def test_templates_count_once_the_file_was_trusted(project: Path, workspace: Workspace) -> None:
    (project / "ferrule.toml").write_text(TEMPLATE.format(name="show"))
    read = load_project(project)
    untrusted = find_project_tools(workspace, read)
    assert len(untrusted.registry) == 0
    (line,) = untrusted.describe_untrusted()
    assert "ferrule.toml is not trusted, or has changed since" in line
    assert "offers the tool show, which runs: printf %s {word}; to look at it and decide" in line
    found = find_project_tools(workspace, read.trust())
    assert found.registry.names == ("show",)
    assert found.registry.tools[0].origin == "project"
    result = await call_tool(found.registry, {"word": "$(id)"}, name="show", policy=Policy(profile="all"))
    assert result.text == "$(id)"


async def test_a_template_that_may_write_has_a_checkpoint_before_it(project: Path) -> None:
    (project / "ferrule.toml").write_text(TEMPLATE.format(name="show").replace("printf", "touch").replace('"%s", ', ""))
    noted: list[str] = []

    class Checkpoints:
        async def before_write(self, paths: object) -> None:
            noted.append("write")

        async def before_command(self) -> None:
            noted.append("command")

    async with Workspace(project, checkpoints=Checkpoints()) as watched:
        found = find_project_tools(watched, load_project(project).trust())
        await call_tool(found.registry, {"word": "x"}, name="show", policy=Policy(profile="all"))
    assert noted == ["command"]


@pytest.mark.parametrize("name", ["bash", "search"])
async def test_no_tool_of_a_project_takes_the_name_of_another(project: Path, workspace: Workspace, name: str) -> None:
    (project / "ferrule.toml").write_text(TEMPLATE.format(name=name) + TEMPLATE.format(name="show"))
    write_tool(project, "show")
    found = find_project_tools(workspace, load_project(project).trust()).trust()
    assert found.registry.names == ("show",)
    assert found.problems == (
        f"{name} is not offered: there is another tool of this name; rename it",
        "show is not offered: there is another tool of this name; rename it",
    )


async def test_problems_are_lines_and_cost_no_other_tool(project: Path, workspace: Workspace) -> None:
    write_tool(project)
    (project / ".ferrule" / "tools" / "broken_tool.py").write_text("import absent_module\n")
    found = find_project_tools(workspace, load_project(project)).trust()
    assert found.registry.names == ("greet",)
    assert len(found.problems) == 1
    assert "absent_module" in found.problems[0]
    (project / ".ferrule" / "tools" / "link.py").symlink_to("greet_tool.py")
    linked = find_project_tools(workspace, load_project(project))
    assert len(linked.registry) == 0
    assert "is a link" in linked.problems[0]


def run_tools(project: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ferrule", "tools", "coding"]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)


async def test_commands_offer_what_was_trusted_and_name_the_rest(project: Path, workspace: Workspace) -> None:
    write_tool(project)
    before = run_tools(project)
    assert "greet  " not in before.stdout
    assert "greet_tool.py; to look at it and decide: ferrule policy trust" in " ".join(before.stderr.split())
    find_project_tools(workspace, load_project(project)).trust()
    after = run_tools(project)
    assert "greet  (from project" in after.stdout
    assert after.stderr == ""
