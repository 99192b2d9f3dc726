"""The full tier's stages: what commands share, what each has for itself, and mounts that are gone."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from absent_path import NOWHERE
from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.linux import command_namespaces
from ferrule.sandbox.shell import ShellSandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work space"
    folder.mkdir()
    return folder


@pytest.fixture
async def shell(workspace: Path) -> AsyncIterator[ShellSandbox]:
    async with ShellSandbox(workspace, readable=[sys.base_prefix]) as sandbox:
        yield sandbox


def stages(shell: ShellSandbox) -> list[int]:
    """The numbers of the processes that the stages were started as."""
    return [mounted.launcher._process.pid for mounted in shell._running._backend._launchers]


async def said(shell: ShellSandbox, command: str) -> str:
    return (await shell.run(command)).output


async def test_what_appears_is_covered_without_another_stage(shell: ShellSandbox, workspace: Path) -> None:
    await shell.run("true")
    first = stages(shell)
    (workspace / "inner").mkdir()
    (workspace / "inner/.env").write_text("secret")
    (workspace / "inner/id_rsa.d").mkdir()
    (workspace / "inner/id_rsa.d/key").write_text("secret")
    (workspace / "inner/.git").mkdir()
    shown = await said(shell, "cat inner/.env; ls inner/id_rsa.d; cat inner/id_rsa.d/key; echo x >inner/.git/x; :")
    assert "secret" not in shown
    assert "key\n" not in shown.replace("id_rsa.d/key", "")
    assert not (workspace / "inner/.git/x").exists()
    assert stages(shell) == first
    shutil.rmtree(workspace / "inner")
    assert await said(shell, "ls; mkdir inner; echo y >inner/.env; cat inner/.env") == "y\n"
    assert stages(shell) == first


async def test_what_is_replaced_is_still_hidden_and_protected(workspace: Path) -> None:
    secret, settings = workspace / ".env", workspace / "ferrule.toml"
    for each in (secret, settings):
        each.write_text("first")
    (workspace / ".git").mkdir()
    async with ShellSandbox(workspace) as shell:
        attempts = "cat .env; echo x >ferrule.toml; echo x >.git/x; cat ferrule.toml"
        assert "first" in await said(shell, attempts)
        for each in (secret, settings):
            other = workspace / "other"
            other.write_text("second")
            other.rename(each)
        (workspace / ".git").rename(workspace / "was")
        (workspace / ".git").mkdir()
        shown = await said(shell, attempts)
        assert shown.count("second") == 1
        assert settings.read_text() == "second"
        assert not list((workspace / ".git").iterdir())
        # Of the same name and number, perhaps: what was mounted on it is gone all the same.
        secret.unlink()
        secret.write_text("third")
        assert "third" not in await said(shell, attempts)


async def test_what_is_not_there_yet_is_protected_from_the_first_command_of_a_stage(workspace: Path) -> None:
    (workspace / ".git").mkdir()
    async with ShellSandbox(workspace) as shell:
        first = stages(shell)
        done = await shell.run("echo x >.git/x && echo y >.ferrule/y", writable=[".git"])
        assert stages(shell) != first
    assert (workspace / ".git/x").read_text() == "x\n"
    assert "Read-only" in done.output
    assert not (workspace / ".ferrule").exists()


async def test_many_commands_at_once(shell: ShellSandbox) -> None:
    done = await asyncio.gather(*(shell.run(f"echo {number}") for number in range(60)))
    assert [each.output for each in done] == [f"{number}\n" for number in range(60)]
    assert len(stages(shell)) == 1


async def test_a_workspace_that_was_made_anew(shell: ShellSandbox, workspace: Path) -> None:
    assert await said(shell, "echo x >file; ls") == "file\n"
    shutil.rmtree(workspace)
    workspace.mkdir()
    assert await said(shell, "ls; echo y >other; ls") == "other\n"
    assert (workspace / "other").read_text() == "y\n"


async def test_a_server_in_the_background_is_reached_by_other_commands(shell: ShellSandbox, workspace: Path) -> None:
    python = os.path.realpath(sys.executable)
    (workspace / "page").write_text("served")
    job = await shell.start(f"{python} -u -m http.server --bind 127.0.0.1 8000")
    fetch = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8000/page', timeout=5).read())"
    for _ in range(200):
        shown = await said(shell, f'{python} -c "{fetch}" 2>&1')
        if "served" in shown:
            break
        await asyncio.sleep(0.05)
    assert "served" in shown
    # Something that appears between them makes no difference.
    (workspace / ".env").touch()
    assert "served" in await said(shell, f'{python} -c "{fetch}"')
    await job.stop()


async def test_each_command_has_its_own_processes_and_memory(shell: ShellSandbox) -> None:
    job = await shell.start("echo mine >/dev/shm/file; sleep 60")
    shown = await said(shell, "ls /dev/shm; cat /proc/[0-9]*/comm; kill -0 -1 2>/dev/null && echo others")
    assert sorted(shown.split()) == ["sandbox", "sh"]
    assert job.status == "running"
    await job.stop()


async def test_nothing_can_be_put_where_something_is_hidden(shell: ShellSandbox) -> None:
    places = "/run /var/log /var/spool /sys"
    shown = await said(
        shell, f"for each in {places}; do chmod 777 $each; mkdir $each/x && echo made; done 2>/dev/null; :"
    )
    assert shown == ""


async def test_the_first_process_is_closed_to_the_command(shell: ShellSandbox) -> None:
    shown = await said(
        shell,
        "for each in environ maps mem cwd/x root/x fd/0 ns/net; do cat /proc/1/$each && echo open; done 2>/dev/null; :",
    )
    assert shown == ""


async def test_processes_that_were_left_behind_are_reaped(shell: ShellSandbox) -> None:
    left = "for n in 1 2 3 4 5 6 7 8 9; do (true & exec true); done; sleep 0.2; grep -l '^State:.Z' /proc/[0-9]*/status"
    assert await said(shell, f"{left} 2>/dev/null; :") == ""


async def test_a_stage_that_was_killed_is_made_again(shell: ShellSandbox) -> None:
    job = await shell.start("sleep 60")
    for pid in stages(shell):
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(SandboxUnavailable, match="ended before it"):
        await job.wait(20)
    assert await said(shell, "echo again") == "again\n"


async def test_stages_are_few_and_kept_while_something_runs(workspace: Path) -> None:
    names = [f"guarded{number}" for number in range(8)]
    for name in names:
        (workspace / name).mkdir()
    async with ShellSandbox(workspace, protected=names) as shell:
        job = await shell.start("sleep 60")
        for name in names:
            given = await shell.run(f"echo x >{name}/file", writable=[name])
            assert given.exit_code == 0
        assert len(stages(shell)) <= 5
        assert job.status == "running"
        assert (await shell.run("echo y >guarded0/file")).exit_code != 0


def test_places_in_the_list_of_mounts_are_read_as_they_are() -> None:
    assert "/" in command_namespaces.list_mounts()
    assert command_namespaces._unescape(rb"/work\040space\134x\011") == "/work space\\x\t"
    assert command_namespaces.are_unchanged(command_namespaces.list_mounts(), ["/", "/proc"])
    assert not command_namespaces.are_unchanged(command_namespaces.list_mounts(), ["/", NOWHERE])
    assert not command_namespaces.are_unchanged({"/": [("0:0", "/")]}, ["/"])
