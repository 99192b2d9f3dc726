"""Paths that lie in a workspace, and those that only seem to; and what a policy makes of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from running_tools import answer, call

from ferrule.execution import Executor, Policy, Rule
from ferrule.execution.rule_matching import find_path_outside
from ferrule.tools.decorator import tool
from ferrule.tools.intent import Effect, Intent
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope
from ferrule.toolspec import Annotations, ToolSpec


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A folder to work in, current, with links that lead in and out; `secrets` and `work-more` lie beside it."""
    root = tmp_path / "work"
    (root / "notes").mkdir(parents=True)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "work-more").mkdir()
    (root / "in").symlink_to("notes")
    (root / "out").symlink_to(tmp_path / "secrets")
    (root / "up").symlink_to("..")
    (root / "loop").symlink_to("loop")
    (root / "chain").symlink_to("out")
    (tmp_path / "door").symlink_to(root)
    monkeypatch.chdir(root)
    return root


INSIDE = [
    "{root}",
    "{root}/a.txt",
    "{root}/notes/../a.txt",
    "{root}//notes/./a.txt",
    "{root}/in/a.txt",
    "{root}/not/there/yet.txt",
    "{beside}/door/a.txt",
    "a.txt",
    "notes/a.txt",
    ".",
    "in/../a.txt",
    "grün/猫.txt",
    "a b%20c",
]
OUTSIDE = [
    "",
    "/",
    "/etc/passwd",
    "..",
    "../a.txt",
    "notes/../../a.txt",
    "{root}/../secrets/key",
    "{beside}/work-more/a.txt",
    "{root}-more/a.txt",
    "{beside}/WORK/a.txt",
    "{root}/out",
    "{root}/out/key",
    "out/key",
    "chain/key",
    "up/secrets/key",
    "up/../a.txt",
    "out/../a.txt",
    "notes/%2e%2e/%2e%2e/secrets/key",
    "notes/%252e%252e/%252e%252e/secrets/key",
    "notes\\..\\..\\secrets",
    "../secrets/key\0.txt",
    "a.txt\0",
    "~/a.txt",
    "~root/a.txt",
    "file:///etc/passwd",
    "https://evil.example/a.txt",
    "//etc/passwd",
    "..\u002f..\u002fetc",
]


@pytest.mark.parametrize("target", INSIDE)
def test_inside(workspace, target):
    assert find_path_outside(target.format(root=workspace, beside=workspace.parent), workspace) is None


@pytest.mark.parametrize("target", OUTSIDE)
def test_outside(workspace, target):
    assert find_path_outside(target.format(root=workspace, beside=workspace.parent), workspace) is not None


def test_a_workspace_that_is_a_link_is_where_it_leads(workspace):
    door = workspace.parent / "door"
    assert find_path_outside(str(workspace / "a.txt"), door) is None
    assert find_path_outside(str(workspace.parent / "secrets"), door) is not None


def test_unicode_forms_are_compared_as_they_are_written(workspace):
    composed, decomposed = workspace.parent / "caf\u00e9", workspace.parent / "cafe\u0301"
    composed.mkdir()
    assert find_path_outside(str(composed / "a"), composed) is None
    assert find_path_outside(str(decomposed / "a"), composed) is not None


TOOL = ToolSpec("edit", "", {}, Annotations())


@pytest.mark.parametrize(
    ("profile", "kind", "target", "wanted"),
    [
        ("accept-edits", "write", "a.txt", "allow"),
        ("accept-edits", "write", "../a.txt", "ask"),
        ("accept-edits", "write", "out/a.txt", "ask"),
        ("accept-edits", "read", "a.txt", "allow"),
        ("accept-edits", "read", "/etc/passwd", "ask"),
        ("accept-edits", "run", "make", "ask"),
        ("accept-edits", "net", "example.org", "ask"),
        ("auto", "write", "a.txt", "allow"),
        ("auto", "write", "../a.txt", "ask"),
        ("auto", "read", "/etc/passwd", "ask"),
        ("auto", "run", "make", "allow"),
        ("auto", "net", "example.org", "ask"),
        ("ask", "read", "a.txt", "allow"),
        ("ask", "read", "/etc/passwd", "ask"),
        ("plan", "read", "a.txt", "allow"),
        ("plan", "read", "/etc/passwd", "ask"),
        ("plan", "write", "a.txt", "deny"),
        ("all", "write", "/etc/passwd", "allow"),
    ],
)
def test_profiles_in_a_workspace(workspace, profile, kind, target, wanted):
    verdict = Policy(profile=profile).judge(TOOL, {}, Intent((Effect(kind, target),)), workspace)
    assert verdict.action == wanted


def test_the_reason_names_where_a_path_leads(workspace):
    verdict = Policy(profile="auto").judge(TOOL, {}, Intent((Effect("write", "out/key"),)), workspace)
    assert verdict.reason.endswith(f"edit may write outside the workspace: {workspace.parent / 'secrets' / 'key'}")


def test_a_rule_goes_before_the_workspace(workspace):
    outside = Intent((Effect("write", "/etc/hosts"),))
    assert Policy((Rule("allow", effect="write"),), "auto").judge(TOOL, {}, outside, workspace).action == "allow"
    assert Policy((Rule("deny", effect="write"),), "all").judge(TOOL, {}, outside, workspace).action == "deny"


@pytest.mark.parametrize(("open_world", "wanted"), [(True, "ask"), (False, "allow"), (None, "allow")])
def test_auto_asks_for_a_tool_that_says_it_reaches_the_network(open_world, wanted):
    reaching = ToolSpec("fetch", "", {}, Annotations(open_world=open_world))
    assert Policy(profile="auto").judge(reaching, {}).action == wanted
    reading = ToolSpec("fetch", "", {}, Annotations(read_only=True, open_world=open_world))
    assert Policy(profile="auto").judge(reading, {}).action == "allow"
    assert Policy(profile="ask").judge(reading, {}).action == "allow"


def read_target(arguments):
    return Intent((Effect("write", arguments["path"]),))


@tool(intent=read_target)
def write(path: str) -> str:
    """Write."""
    Path(path).write_text("mine")
    return "written"


def test_a_link_that_leads_elsewhere_by_the_time_of_the_call_is_not_followed(workspace):
    """The second call of the message is judged while its folder is still a folder, which the first one swaps."""

    @tool(serial=True, intent=lambda arguments: Intent((Effect("write", "notes"),)))
    def swap() -> str:
        """Swap the folder for a link that leads out."""
        (workspace / "notes").rmdir()
        (workspace / "notes").symlink_to(workspace.parent / "secrets")
        return "swapped"

    async def run():
        async with ToolRegistry([swap, write]).open() as bound:
            executor = Executor(bound, policy=Policy(profile="accept-edits"))
            calls = [call("swap", "c1"), call("write", "c2", path="notes/a.txt")]
            return await executor.run_all(calls, CallScope(workspace=workspace))

    first, second = asyncio.run(run())
    assert first.text == "swapped"
    assert second.text.startswith("error: denied: this call needs approval, and nobody can be asked (")
    assert "outside the workspace" in second.text
    assert list((workspace.parent / "secrets").iterdir()) == []


def test_without_a_workspace_edits_are_accepted_as_before(tmp_path):
    result = answer(write, call("write", path=str(tmp_path / "a")), policy=Policy(profile="accept-edits"))
    assert result.text == "written"
