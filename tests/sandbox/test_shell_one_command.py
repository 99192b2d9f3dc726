"""What one command alone is given or denied: a narrower mode, and hosts of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest

from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.shell import ShellSandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")

PYTHON = os.path.realpath(sys.executable)
FETCH = "no_proxy= {python} -I -c \"import urllib.request as u; print(u.urlopen('http://{host}/x').read())\""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


@pytest.mark.parametrize("tier", ["full", "container"])
async def test_a_command_in_a_narrower_mode_writes_nothing_and_the_next_one_does(workspace: Path, tier: str) -> None:
    (workspace / "kept.txt").write_text("kept\n")
    (workspace / "inner").mkdir()
    attempts = "touch new; echo x > kept.txt; rm kept.txt; mv kept.txt b; ln kept.txt c; mkdir d; echo x > inner/e"
    async with ShellSandbox(workspace, tier=tier) as shell:
        before = await shell.run("echo 1 > inner/first && cat kept.txt")
        done = await shell.run(f"{attempts}; cat kept.txt; echo x > $TMPDIR/y && cat $TMPDIR/y", mode="read-only")
        after = await shell.run("echo 2 > inner/second && cat kept.txt")
    assert (before.exit_code, after.exit_code) == (0, 0)
    assert done.output.endswith("kept\nx\n")
    assert (workspace / "kept.txt").read_text() == "kept\n"
    assert sorted(path.name for path in workspace.iterdir()) == ["inner", "kept.txt"]
    assert sorted(path.name for path in (workspace / "inner").iterdir()) == ["first", "second"]


async def test_a_full_sandbox_can_be_narrowed_to_its_workspace(workspace: Path) -> None:
    outside = workspace.parent / "outside.txt"
    async with ShellSandbox(workspace, mode="full") as shell:
        narrow = await shell.run(f"echo x > {outside}", mode="workspace-write")
        assert (narrow.exit_code, outside.exists()) != (0, True)
        assert not outside.exists()
        assert (await shell.run(f"echo x > {outside}")).exit_code == 0
    assert outside.exists()


async def test_a_mode_is_never_widened(workspace: Path) -> None:
    async with ShellSandbox(workspace, mode="read-only") as shell:
        for wider in ("workspace-write", "full"):
            with pytest.raises(SandboxInputError, match="allows more than the sandbox's own"):
                await shell.run("touch a", mode=wider)
        with pytest.raises(SandboxInputError, match="'everything' is not a valid Mode"):
            await shell.run("true", mode="everything")
    async with ShellSandbox(workspace) as shell:
        with pytest.raises(SandboxInputError, match="read-only mode"):
            await shell.run("true", mode="read-only", writable=[".git"])
    assert list(workspace.iterdir()) == []


async def test_a_job_in_the_background_can_be_narrowed_too(workspace: Path) -> None:
    async with ShellSandbox(workspace) as shell:
        job = await shell.start("touch a; echo done", mode="read-only")
        done = await job.wait(30)
    assert done is not None
    assert done.output.endswith("done\n")
    assert not (workspace / "a").exists()


async def serve_hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    writer.close()


@pytest.mark.parametrize("network", [False, [], ["example.org"]])
async def test_a_command_gets_a_host_that_the_next_one_has_not(workspace: Path, network: bool | list[str]) -> None:
    async with await asyncio.start_server(serve_hello, "127.0.0.1", 0) as server:
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        fetch = FETCH.format(python=PYTHON, host=host)
        async with ShellSandbox(workspace, network=network, readable=[sys.base_prefix]) as shell:
            before = await shell.run(fetch)
            given = await shell.run(fetch, hosts=[host])
            other = await shell.run(FETCH.format(python=PYTHON, host="other.example"), hosts=[host])
            after = await shell.run(fetch)
    assert "hello" in given.output
    assert given.refused == ()
    assert [before.exit_code, after.exit_code] == [1, 1]
    assert other.refused == ("other.example:80",)
    wanted = () if network is False else (host,)
    assert (before.refused, after.refused) == (wanted, wanted)


async def test_refused_hosts_are_named_although_commands_share_their_loopback(workspace: Path) -> None:
    serve = f"{PYTHON} -I -u -m http.server 8765 --bind 127.0.0.1"
    async with ShellSandbox(workspace, network=[], readable=[sys.base_prefix]) as shell:
        job = await shell.start(serve)
        while "Serving" not in await job.read():
            await asyncio.sleep(0.05)
        fetch = FETCH.format(python=PYTHON, host="127.0.0.1:8765").replace("no_proxy=", "").replace("/x", "")
        near = await shell.run(fetch)
        far = await shell.run(FETCH.format(python=PYTHON, host="far.example"))
        await job.stop()
    assert "Directory listing" in near.output
    assert near.refused == ()
    assert far.refused == ("far.example:80",)


async def test_commands_at_the_same_time_are_told_of_their_own_hosts(workspace: Path) -> None:
    async with ShellSandbox(workspace, network=[], readable=[sys.base_prefix]) as shell:
        names = [f"{name}.example" for name in "abc"]
        done = await asyncio.gather(*(shell.run(FETCH.format(python=PYTHON, host=name)) for name in names))
    assert [each.refused for each in done] == [(f"{name}:80",) for name in names]


async def test_the_container_tier_reaches_nothing_and_refuses_hosts_of_a_command(workspace: Path) -> None:
    async with ShellSandbox(workspace, network=[], tier="container") as shell:
        assert (await shell.run("echo there")).output == "there\n"
        with pytest.raises(SandboxUnavailable, match="can't allow single hosts"):
            await shell.run("true", hosts=["example.org"])


@pytest.mark.parametrize("hosts", ["example.org", ["*"], ["http://example.org/"], ["a b"]])
async def test_hosts_that_are_none(workspace: Path, hosts: list[str] | str) -> None:
    async with ShellSandbox(workspace) as shell:
        with pytest.raises(SandboxInputError, match="hosts"):
            await shell.run("true", hosts=hosts)


async def test_nobody_is_asked_anything(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBIAN_FRONTEND", "readline")
    monkeypatch.setenv("PAGER", "less")
    monkeypatch.setenv("GIT_TERMINAL_PROMPT", "1")
    async with ShellSandbox(workspace) as shell:
        done = await shell.run("echo $GIT_TERMINAL_PROMPT $DEBIAN_FRONTEND $PAGER $GIT_PAGER; cat; wc -c < /dev/stdin")
    assert done.output == "0 noninteractive cat cat\n0\n"


async def test_programs_look_for_no_newer_version_of_themselves(workspace: Path) -> None:
    names = ("npm_config_update_notifier", "PIP_DISABLE_PIP_VERSION_CHECK", "GH_NO_UPDATE_NOTIFIER", "DO_NOT_TRACK")
    async with ShellSandbox(workspace) as shell:
        done = await shell.run(" ".join(["echo", *(f"${name}" for name in names)]))
    assert done.output == "false 1 1 1\n"


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is missing")
async def test_a_failing_script_of_npm_needs_no_host(workspace: Path) -> None:
    (workspace / "package.json").write_text('{"scripts": {"test": "exit 3"}}')
    async with ShellSandbox(workspace, network=[]) as shell:
        done = await shell.run("npm test", timeout=60)
    assert done.exit_code == 3, done.output
    assert not done.refused
