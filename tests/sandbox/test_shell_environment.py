"""Which variables a command gets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ferrule.errors import SandboxInputError
from ferrule.sandbox.shell import ShellSandbox
from ferrule.sandbox.shell.settings import clean_environment

SECRETS = {
    **dict.fromkeys(("ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "DISPLAY"), "x"),
    **dict.fromkeys(("DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "LD_PRELOAD", "XDG_RUNTIME_DIR", "DATABASE_URL"), "x"),
    # Let through by a pattern, kept back by their names.
    **dict.fromkeys(("CARGO_REGISTRY_TOKEN", "NODE_AUTH_TOKEN", "UV_INDEX_A_PASSWORD", "LC_SECRET", "PYTHON_KEY"), "x"),
    **dict.fromkeys(
        ("GO_SESSION", "NODE_CERT_DATA", "UV_JWT", "PYTHON_PASS", "CARGO_AUTH_X", "RUST_CRED", "GODSN"), "x"
    ),
    # Kept back by what they hold.
    **dict.fromkeys(("UV_INDEX", "GOPROXY", "EDITOR"), "https://user:password@example.org/simple"),
}
KEPT = {"PATH": "/bin", "HOME": "/home/u", "LC_ALL": "C.UTF-8", "CARGO_HOME": "/c", "SSL_CERT_FILE": "/etc/x"}


def test_secrets_stay_and_settings_go() -> None:
    environment = clean_environment(SECRETS | KEPT)
    assert environment.keys() & SECRETS.keys() == set()
    assert environment.items() >= KEPT.items()


def test_what_the_user_gives_or_names_is_the_user_s_word() -> None:
    environment = clean_environment(SECRETS, passed=["GITHUB_TOKEN"], given={"API_KEY": "given"})
    assert (environment["GITHUB_TOKEN"], environment["API_KEY"]) == ("x", "given")
    assert "ANTHROPIC_API_KEY" not in environment


def test_there_is_always_a_path_and_a_home() -> None:
    assert {"PATH", "HOME"} <= clean_environment({}).keys()


@pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")
@pytest.mark.parametrize("tier", ["full", "container"])
async def test_a_command_sees_no_more(tmp_path: Path, tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    async with ShellSandbox(tmp_path, tier=tier, environment={"GIVEN": "here"}) as shell:
        done = await shell.run("env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")
    names = {line.partition("=")[0] for line in done.output.splitlines()}
    assert "GIVEN" in names
    assert names & SECRETS.keys() == set()


@pytest.mark.parametrize("wrong", [{"A=B": "x"}, {"": "x"}, {"A": "a\0b"}])
async def test_variables_that_are_none(tmp_path: Path, wrong: dict[str, str]) -> None:
    with pytest.raises(SandboxInputError, match="environment"):
        await ShellSandbox(tmp_path, environment=wrong).run("true")
