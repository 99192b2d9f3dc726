"""Journals, stores, recordings and policies that lie in the workspace: no tool and no command rewrites its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ferrule import FileJournal, ScriptedModel, model, record
from ferrule.coding.checkpoints import Checkpoints
from ferrule.coding.registry import tools
from ferrule.coding.workspace import Workspace
from ferrule.errors import FileAccessRefused, SandboxInputError
from ferrule.execution.executor import call_tool
from ferrule.execution.policy_file import read_policy
from ferrule.sandbox.file_access import FileAccess
from ferrule.sandbox.python.mounts import Mount, resolve_mounts
from ferrule.sandbox.shell import ShellSandbox
from ferrule.sandbox.shell.access_plan import Access
from ferrule.store import Store

TIERS = pytest.mark.parametrize("tier", ["full", "container"])
POLICY = 'profile = "ask"\n'


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "settings").mkdir(parents=True)
    (folder / "settings/policy.toml").write_text(POLICY)
    (folder / "plain.txt").write_text("plain\n")
    return folder


def assert_hidden(access: FileAccess, name: str, what: str) -> None:
    for kind in Access.READ, Access.WRITE:
        with pytest.raises(FileAccessRefused, match=f"{name} is hidden: it is {what}, which tools can't read or write"):
            access.check(name, kind)


def test_a_journal_is_hidden_while_it_is_open(workspace: Path) -> None:
    access = FileAccess(workspace)
    with FileJournal(workspace / "calls.jsonl"), FileJournal(workspace / "calls.jsonl"):
        assert_hidden(access, "calls.jsonl", "the journal of this session")
    assert access.check("calls.jsonl", Access.WRITE)


def test_a_store_is_hidden_with_the_files_that_sqlite_adds(workspace: Path) -> None:
    with Store(workspace / "kept.db"):
        for name in ("kept.db", "kept.db-wal", "kept.db-shm", "kept.db-journal"):
            assert_hidden(FileAccess(workspace), name, "the store of conversations")
    assert FileAccess(workspace).check("kept.db", Access.READ)


async def test_a_recording_is_hidden_before_it_exists(workspace: Path) -> None:
    recorded = record(workspace / "answers.jsonl", ScriptedModel("Yes."))
    assert_hidden(FileAccess(workspace), "answers.jsonl", "the recording of the model's answers")
    await model(recorded).chat("Is it?").run()
    assert_hidden(FileAccess(workspace), "answers.jsonl", "the recording of the model's answers")
    await recorded.aclose()
    assert FileAccess(workspace).can_read("answers.jsonl")


def test_a_policy_can_be_read_and_not_changed(workspace: Path) -> None:
    (workspace / "link.toml").symlink_to("settings/policy.toml")
    read_policy(workspace / "link.toml")
    access = FileAccess(workspace)
    assert access.read_bytes("link.toml") == POLICY.encode()
    for name in ("settings/policy.toml", "link.toml"):
        with pytest.raises(FileAccessRefused, match=r"is protected: .* since it is a policy of this session"):
            access.check(name, Access.WRITE)


@TIERS
async def test_commands_can_neither_read_nor_write_a_journal(workspace: Path, tier: str) -> None:
    async with ShellSandbox(workspace, tier=tier) as shell:
        await shell.run("true")  # what was hidden first is no reason to look no further
        with FileJournal(workspace / "calls.jsonl") as journal:
            journal.record("started", "1", {"tool": "bash"})
            before = (workspace / "calls.jsonl").read_bytes()
            for command in (
                "cat",
                "echo x >>",
                "echo x >",
                "rm -f",
                "mv plain.txt",
                "ln -sf plain.txt",
                "cp plain.txt",
            ):
                done = await shell.run(f"{command} calls.jsonl")
                assert "started" not in done.output
            assert (workspace / "calls.jsonl").read_bytes() == before
            assert not (workspace / "calls.jsonl").is_symlink()
        assert "started" in (await shell.run("cat calls.jsonl")).output


@TIERS
async def test_commands_can_read_a_policy_and_not_change_it(workspace: Path, tier: str) -> None:
    (workspace / "link.toml").symlink_to("settings/policy.toml")
    read_policy(workspace / "link.toml")
    async with ShellSandbox(workspace, tier=tier) as shell:
        assert (await shell.run("cat settings/policy.toml")).output == POLICY
        for command in (
            "echo x > settings/policy.toml",
            "rm -f settings/policy.toml",
            "echo x > new; mv new settings/policy.toml",
            "mv settings other; mkdir settings; echo x > settings/policy.toml",
            "ln -sf ../plain.txt settings/policy.toml",
        ):
            await shell.run(command)
        with pytest.raises(SandboxInputError, match="isn't a protected path"):
            await shell.run("true", writable=["settings/policy.toml"])
    assert (workspace / "settings/policy.toml").read_text() == POLICY
    assert not (workspace / "settings/policy.toml").is_symlink()


async def test_the_tools_of_the_coding_agent_neither_show_nor_change_them(workspace: Path) -> None:
    read_policy(workspace / "settings/policy.toml")
    with FileJournal(workspace / "calls.jsonl") as journal, Store(workspace / "kept.db"):
        journal.record("started", "1", {"tool": "needle"})
        async with Workspace(workspace) as used:
            offered = tools(used)
            found = await call_tool(offered, {"pattern": "needle"}, name="search")
            listed = await call_tool(offered, {}, name="list_files")
            read = await call_tool(offered, {"path": "calls.jsonl"}, name="read_file")
            written = await call_tool(offered, {"path": "settings/policy.toml", "content": "x"}, name="write_file")
            redirected = await call_tool(offered, {"command": "echo x > settings/policy.toml"}, name="bash")
    assert "No matches" in found.text
    assert "calls.jsonl" not in listed.text
    assert "kept.db" not in listed.text
    assert read.is_error
    assert written.is_error
    assert redirected.is_error
    assert (workspace / "settings/policy.toml").read_text() == POLICY


async def test_undo_leaves_the_journal_and_the_store_as_they_are(workspace: Path, tmp_path: Path) -> None:
    with FileJournal(workspace / "calls.jsonl") as journal:
        checkpoints = Checkpoints(workspace, tmp_path / "checkpoints", FileAccess(workspace))
        checkpoints.begin_turn("change it")
        await checkpoints.before_command()
        (workspace / "plain.txt").write_text("changed\n")
        journal.record("started", "1", {"tool": "bash"})
        recorded = (workspace / "calls.jsonl").read_bytes()
        await checkpoints.end_turn()
        await checkpoints.undo()
        await checkpoints.aclose()
        assert (workspace / "plain.txt").read_text() == "plain\n"
        assert (workspace / "calls.jsonl").read_bytes() == recorded


def test_a_journal_in_use_is_not_mounted_for_python(workspace: Path) -> None:
    with FileJournal(workspace / "calls.jsonl"), pytest.raises(SandboxInputError, match="hidden"):
        resolve_mounts([Mount(workspace / "calls.jsonl")])
    assert resolve_mounts([Mount(workspace / "calls.jsonl")])[0].path == os.fspath(workspace / "calls.jsonl")
