"""Commands of the seatbelt tier: how they are started and ended, what their profile says, and the refusal to start."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

import pytest
from macos_shells import Shells
from seatbelt import allows, stand_in

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.macos.profiles import make_shell_profile
from ferrule.sandbox.python import PythonSandbox
from ferrule.sandbox.shell import ShellSandbox
from ferrule.sandbox.shell.backends.seatbelt import build_seatbelt_rules, reserve_port
from ferrule.sandbox.shell.host_rules import HostRules

needs_mac = pytest.mark.skipif(sys.platform != "darwin", reason="Seatbelt is macOS's, and has been tried on no Mac yet")


@pytest.fixture
def shells(tmp_path: Path) -> Shells:
    return Shells(stand_in(tmp_path), tmp_path.resolve())


async def test_a_command_runs_in_the_workspace_and_ends_with_its_own_status(shells: Shells) -> None:
    done = await shells.run("pwd; cat; echo err >&2; exit 7", given="given\n")
    assert done.output == f"{shells.workspace}\ngiven\nerr\n"
    assert (done.exit_code, done.ended) == (7, "exit")
    assert (await shells.run("kill -9 $$")).signal == 9
    assert (await shells.run("ulimit -c; ls /proc/self/fd 2>/dev/null | wc -l")).output.split()[0] == "0"


@pytest.mark.parametrize(
    ("command", "ended"),
    [("sleep 20", "timeout"), ("trap '' TERM; sleep 20 & wait; sleep 20", "timeout"), ("yes", "output")],
)
async def test_a_command_that_goes_on_is_ended_with_its_group(shells: Shells, command: str, ended: str) -> None:
    begin = time.monotonic()
    assert (await shells.run(command, timeout=0.5, grace=0.3)).ended == ended
    assert time.monotonic() - begin < 10


async def test_what_a_command_leaves_in_its_group_ends_with_it(shells: Shells) -> None:
    mark = shells.workspace / "mark"
    await shells.run(f"while true; do : >{mark}; sleep 0.01; done & sleep 0.2")
    mark.unlink(missing_ok=True)
    time.sleep(0.2)
    assert not mark.exists()


async def test_what_was_never_contained_is_no_command_that_failed(tmp_path: Path) -> None:
    tool = tmp_path / "sandbox-exec"
    tool.write_text("#!/bin/sh\necho 'sandbox-exec: bad profile' >&2\nexit 65\n")
    tool.chmod(0o755)
    with pytest.raises(SandboxUnavailable, match="could not contain the command: sandbox-exec: bad profile"):
        await Shells(tool, tmp_path.resolve()).run("true")
    with pytest.raises(SandboxUnavailable, match="could not contain"):
        await Shells(tmp_path / "nothing", tmp_path.resolve() / "other").run("true")


@pytest.mark.parametrize("network", [False, True, ["example.org"]])
async def test_nothing_runs_where_nothing_is_contained(shells: Shells, network: bool | list[str]) -> None:
    rules = HostRules(network) if isinstance(network, list) else network
    backend = shells.make_backend(rules)
    with Path(os.devnull).open("r+b") as null:
        streams = (null.fileno(), null.fileno(), null.fileno())
        with pytest.raises(SandboxUnavailable, match="seatbelt tier doesn't hold") as refused:
            await backend.start(shells.layout(), shells.make_request(": >ran"), streams)
    for name in ("signal-outside", "link-hidden", "move-hidden"):
        assert name in str(refused.value)
    assert ("network" in str(refused.value)) == (network is not True)
    assert not (shells.workspace / "ran").exists()


def test_the_profile_follows_the_layout(shells: Shells, tmp_path: Path) -> None:
    workspace = shells.workspace.resolve()
    (workspace / ".git").mkdir()
    (workspace / "deep").mkdir()
    (workspace / "deep/.env").write_text("secret")
    layout = shells.layout()
    profile = make_shell_profile(
        rules=build_seatbelt_rules(layout), scratch=layout.scratch, absent=layout.absent, network=False
    )
    assert allows(profile, "file-write-create", f"{workspace}/deep/x")
    assert allows(profile, "file-write-create", f"{shells.state}/tmp/x")
    assert allows(profile, "file-read-data", "/usr/bin/true")
    for path in (f"{workspace}/.git/config", f"{workspace}/.mcp.json", "/usr/bin/true", f"{shells.state}/canary"):
        assert not allows(profile, "file-write-create", path), path
    home = Path.home().resolve()
    for path in (f"{workspace}/deep/.env", f"{shells.state}/canary", f"{home}/Library/Keychains/login.keychain-db"):
        assert not allows(profile, "file-read-data", path), path
    assert not allows(profile, "file-write-unlink", f"{workspace}/deep")


def test_the_profile_keeps_what_ferrule_is_started_from(shells: Shells) -> None:
    (shells.workspace / "tools/.venv").mkdir(parents=True)
    (shells.workspace / "env").symlink_to("tools/.venv")
    layout = shells.layout("tools/.venv", "env", "absent/site-packages")
    profile = make_shell_profile(
        rules=build_seatbelt_rules(layout), scratch=layout.scratch, absent=layout.absent, network=False
    )
    for name in ("tools/.venv/evil.pth", "env", "absent/site-packages", "absent/site-packages/evil.pth", ".vscode/x"):
        assert not allows(profile, "file-write-create", f"{shells.workspace}/{name}"), name
    for name in ("env", "tools", "tools/.venv", "absent"):
        assert not allows(profile, "file-write-unlink", f"{shells.workspace}/{name}"), name
    assert allows(profile, "file-write-create", f"{shells.workspace}/tools/new")


def test_a_proxy_has_its_port_to_itself() -> None:
    listening, held = reserve_port()
    port = listening.getsockname()[1]
    try:
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            if family == socket.AF_INET6 and not held:
                continue
            with socket.socket(family) as other, pytest.raises(OSError, match="in use"):
                other.bind((address, port))
    finally:
        for each in (listening, *held):
            each.close()


@needs_mac
@pytest.mark.parametrize("kind", ["python", "shell"])
async def test_on_a_mac_it_starts_and_contains(kind: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    if kind == "python":
        async with PythonSandbox() as sandbox:
            assert sandbox.tier == "seatbelt"
            assert (await sandbox.run("import numpy\n1 + 1")).value == 2
            read = await sandbox.run(f"open({str(secret)!r}).read()")
            assert read.error is not None
            assert "PermissionError" in read.error.message
        return
    workspace = tmp_path / "workspace"
    (workspace / ".git").mkdir(parents=True)
    async with ShellSandbox(workspace) as shell:
        done = await shell.run(f"echo made >file; cat file; cat ~/.ssh/*; echo x >.git/x; echo x >{secret}")
        assert done.output.startswith("made\n")
    assert secret.read_text() == "secret"
    assert list((workspace / ".git").iterdir()) == []
