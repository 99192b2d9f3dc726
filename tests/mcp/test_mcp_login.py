"""Logging in to a server by OAuth: against the SDK's own authorization server, on loopback."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from mcp_calls import result_of
from terminals import ferrule

from ferrule.errors import RegistryError, SettingsError
from ferrule.mcp import MCPServer
from ferrule.mcp.oauth import delete_tokens, find_token_file, open_login


@pytest.fixture
def guarded() -> Iterator[str]:
    """The address of a server that asks for a login."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("login_server.py"))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def browse(address: str) -> None:
    """Follow the redirects as a browser does, which the server grants without a question."""
    asyncio.get_running_loop().run_in_executor(None, lambda: urllib.request.urlopen(address, timeout=30).read())


async def test_a_person_logs_in_once_and_tokens_are_renewed(guarded: str) -> None:
    with pytest.raises(RegistryError, match=f"asks for a login: run `ferrule mcp login {guarded}`"):
        async with MCPServer(guarded):
            pass
    asked: list[str] = []

    def authorize(address: str) -> None:
        asked.append(address)
        browse(address)

    async with MCPServer(guarded, authorize=authorize) as server:
        assert (await result_of(server, "count_renewals")).text == "0"
    assert len(asked) == 1
    file = find_token_file(guarded)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    # In a new connection the saved token is used, and renewed once it has expired.
    for renewals in ("0", "1"):
        if renewals == "1":
            saved = json.loads(file.read_text())
            file.write_text(json.dumps({**saved, "expires": 1}))
        async with MCPServer(guarded, authorize=asked.append) as server:
            assert (await result_of(server, "count_renewals")).text == renewals
    assert len(asked) == 1
    assert delete_tokens(guarded)
    assert not delete_tokens(guarded)


async def test_the_port_that_a_server_knows_is_used_again_if_it_is_free(guarded: str) -> None:
    async with MCPServer(guarded, authorize=browse):
        pass
    saved = json.loads(find_token_file(guarded).read_text())
    port = urlsplit(saved["client"]["redirect_uris"][0]).port
    async with open_login(guarded, print) as login:
        assert str(login.context.client_metadata.redirect_uris[0]) == f"http://127.0.0.1:{port}/callback"
    with socket.create_server(("127.0.0.1", port)):
        async with open_login(guarded, print) as login:
            assert await login.context.storage.get_client_info() is None


async def test_each_login_of_a_connection_has_its_own_answer(guarded: str) -> None:
    """A server asks again where a tool needs a wider scope."""
    async with open_login(guarded, lambda address: None) as login:
        back = login.context.client_metadata.redirect_uris[0]
        for code in ("first", "second"):
            await login.context.redirect_handler("http://127.0.0.1/authorize")
            await asyncio.to_thread(lambda code=code: urllib.request.urlopen(f"{back}?code={code}", timeout=30).read())
            assert (await login.context.callback_handler()).code == code


async def test_a_refused_login_says_so(guarded: str) -> None:
    def refuse(address: str) -> None:
        back = parse_qs(urlsplit(address).query)["redirect_uri"][0]
        with_error = f"{back}?error=access_denied&error_description=not+you"
        elsewhere = back.replace("/callback", "/favicon.ico")
        loop = asyncio.get_running_loop()

        def visit() -> None:
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(elsewhere, timeout=30)
            urllib.request.urlopen(with_error, timeout=30).read()

        loop.run_in_executor(None, visit)

    with pytest.raises(RegistryError, match=f"the login to {guarded} was refused: not you"):
        async with MCPServer(guarded, authorize=refuse):
            pass


async def test_a_file_that_is_none_is_named(guarded: str) -> None:
    file = find_token_file(guarded)
    file.parent.mkdir(parents=True)
    file.write_text("no JSON")
    with pytest.raises(SettingsError, match=r"is not a file of tokens .*; delete it and log in again"):
        async with open_login(guarded, None):
            pass


def test_the_commands_log_in_and_out(guarded: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ferrule", "mcp", "login", guarded]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline() == "ferrule: open this address in a browser on this machine to log in:\n"
        urllib.request.urlopen(process.stderr.readline().strip(), timeout=30).read()
        shown, rest = process.communicate(timeout=300)
    assert (process.returncode, rest) == (0, "")
    assert shown == f"logged in; the tokens are in {find_token_file(guarded)}\n"
    listed = ferrule("mcp", "list", guarded)
    assert listed.stdout.startswith("count_renewals  (from mcp:localhost@")
    assert ferrule("mcp", "logout", guarded).stdout == "logged out\n"
    again = ferrule("mcp", "list", guarded)
    assert (again.returncode, len(again.stderr.splitlines())) == (2, 1)
    assert "asks for a login: run `ferrule mcp login" in again.stderr
    assert ferrule("mcp", "login", "echo hi").stderr == (
        "ferrule: a login is for a server at an http:// or https:// address\n"
    )
