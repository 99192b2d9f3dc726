"""What the shell tool makes of a parsed command: its effects, its mode, and the places and hosts that it is given."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ferrule.builtin_tools import shell_tool
from ferrule.conversation import ToolCall, ToolResult
from ferrule.execution import Decision, Executor, Policy, Rule
from ferrule.execution.decisions import ApprovalRequest
from ferrule.sandbox.shell import ShellSandbox
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")


class Yes:
    """Allows everything, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def decide(self, request: ApprovalRequest) -> Decision:
        assert request.intent is not None
        self.asked.append(str(request.intent.preview))
        return Decision.allow(by="a test")


@pytest_asyncio.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[ShellSandbox]:
    folder = tmp_path / "workspace"
    folder.mkdir()
    for words in (["init", "-q"], ["config", "user.name", "a"], ["config", "user.email", "a@b"]):
        subprocess.run(["git", "-C", folder, *words], check=True)
    (folder / "a.txt").write_text("a\n")
    async with ShellSandbox(folder, network=[]) as opened:
        yield opened


async def bash(
    sandbox: ShellSandbox, command: str, policy: Policy, yes: Yes | None = None, **arguments: Any
) -> ToolResult:
    async with ToolRegistry([shell_tool(sandbox, name="bash")]).open() as bound:
        executor = Executor(bound, policy=policy, approver=yes)
        call = ToolCall("call_1", "bash", json.dumps({"command": command, **arguments}))
        result = await executor.run(call, CallScope(workspace=Path(sandbox.workspace)))
    assert isinstance(result, ToolResult)
    return result


def judge(sandbox: ShellSandbox, command: str) -> list[str]:
    tool = shell_tool(sandbox, name="bash")
    assert tool.intent is not None
    intent = tool.intent({"command": command})
    workspace = Path(sandbox.workspace)
    profiles = ("plan", "ask", "accept-edits", "auto", "all")
    return [Policy(profile=profile).judge(tool, {}, intent, workspace).action for profile in profiles]


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("cat a.txt | wc -l", "allow allow allow allow allow"),
        ("git log --oneline | head -3", "allow allow allow allow allow"),
        ("cat /etc/passwd", "ask ask ask ask allow"),
        ("mkdir src && touch src/a.py", "deny ask allow allow allow"),
        ("make", "deny ask ask allow allow"),
        ("ls; rm -rf src", "deny ask ask allow allow"),
        ("git commit -m done", "deny ask ask ask allow"),
        ("echo x > .git/hooks/post-commit", "deny ask ask ask allow"),
        ("echo x > ../outside.txt", "deny ask ask ask allow"),
        ("curl https://example.org/", "deny ask ask ask allow"),
        ("x=rm; eval $x a.txt", "deny ask ask ask allow"),
    ],
)
def test_profiles_on_commands(sandbox: ShellSandbox, command: str, wanted: str) -> None:
    assert judge(sandbox, command) == wanted.split()


async def test_what_settings_make_git_run_is_asked_about(sandbox: ShellSandbox) -> None:
    folder = Path(sandbox.workspace)
    script = folder / "show.sh"
    script.write_text("#!/bin/sh\necho shown; touch pwned\n")
    script.chmod(0o755)
    for words in (["add", "a.txt"], ["commit", "-qm", "a"], ["config", "diff.external", "./show.sh"]):
        subprocess.run(["git", "-C", folder, *words], check=True)
    (folder / "a.txt").write_text("b\n")
    result = await bash(sandbox, "git diff", Policy(profile="ask"))
    assert result.status == "denied"
    assert "git diff" in result.text
    assert not (folder / "pwned").exists()


async def test_git_commits_when_that_was_permitted_without_naming_its_folder(sandbox: ShellSandbox) -> None:
    yes = Yes()
    refused = await bash(sandbox, "git add a.txt && git commit -qm one", Policy(profile="auto"))
    assert refused.status == "denied"
    done = await bash(sandbox, "git add a.txt && git commit -qm one", Policy(profile="auto"), yes)
    assert done.status == "ok", done.text
    assert "writes .git, which is protected" in yes.asked[0]
    log = subprocess.run(
        ["git", "-C", sandbox.workspace, "log", "--format=%s"], capture_output=True, text=True, check=True
    )
    assert log.stdout == "one\n"


async def test_a_rule_for_git_commit_commits_and_nothing_slips_by_it(sandbox: ShellSandbox) -> None:
    policy = Policy(
        (Rule("allow", tool="bash", command="git add"), Rule("allow", tool="bash", command="git commit")), profile="ask"
    )
    assert (await bash(sandbox, "git add a.txt && git commit -qm one", policy)).status == "ok"
    for command in ("git commit -m x; touch pwned", "git commit -m $(touch pwned)", "git commit -m x > pwned"):
        assert (await bash(sandbox, command, policy)).status == "denied", command
    assert not Path(sandbox.workspace, "pwned").exists()


async def test_a_repository_below_the_workspace_can_be_committed_to(sandbox: ShellSandbox) -> None:
    inner = Path(sandbox.workspace, "inner")
    for words in (["init", "-q"], ["config", "user.name", "a"], ["config", "user.email", "a@b"]):
        subprocess.run(["git", "-C", sandbox.workspace, "-C", _make(inner), *words], check=True)
    (inner / "b.txt").write_text("b\n")
    yes = Yes()
    done = await bash(sandbox, "cd inner && git add b.txt && git commit -qm two", Policy(profile="auto"), yes)
    assert done.status == "ok", done.text
    assert "writes inner/.git, which is protected" in yes.asked[0]


def _make(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


async def test_hooks_stay_closed_even_to_what_was_allowed(sandbox: ShellSandbox) -> None:
    result = await bash(sandbox, "echo 'touch pwned' > .git/hooks/pre-commit", Policy(profile="all"))
    assert result.status == "error"
    assert not Path(sandbox.workspace, ".git/hooks/pre-commit").exists()
    both = await bash(sandbox, "git add a.txt && echo x > .git/hooks/pre-commit", Policy(profile="all"))
    assert both.status == "error"
    assert not Path(sandbox.workspace, ".git/hooks/pre-commit").exists()


async def test_a_host_in_the_command_is_asked_for_before_it_runs(sandbox: ShellSandbox) -> None:
    yes = Yes()
    command = "touch ran; curl -sS --max-time 5 http://far.example/x"
    denied = await bash(sandbox, command, Policy(profile="auto"))
    assert denied.status == "denied"
    assert not Path(sandbox.workspace, "ran").exists()
    result = await bash(sandbox, command, Policy(profile="auto"), yes)
    assert len(yes.asked) == 1
    assert "reaches far.example" in yes.asked[0]
    assert "run again" not in result.text


async def test_what_cannot_be_judged_says_why(sandbox: ShellSandbox) -> None:
    yes = Yes()
    result = await bash(sandbox, 'for x in 1 2; do eval "echo $x"; done', Policy(profile="auto"), yes)
    assert result.text == "1\n2"
    assert "not judged: " in yes.asked[0]


async def test_no_checkpoint_is_made_for_what_only_reads(sandbox: ShellSandbox) -> None:
    seen: list[int] = []

    async def before() -> None:
        seen.append(1)

    tool = shell_tool(sandbox, name="bash", before_command=before)
    async with ToolRegistry([tool]).open() as bound:
        executor = Executor(bound, policy=Policy(profile="all"))
        for command in ("cat a.txt", "git status", "make"):
            await executor.run(ToolCall("call_1", "bash", json.dumps({"command": command})), CallScope())
    assert seen == [1]
