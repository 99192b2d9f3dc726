"""`ferrule mcp list` and `call` on a server of the SDK, and `serve` until Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from scripted_http import ScriptedServer, json_reply
from terminals import ferrule

from ferrule.cli.mcp import print_tools


def test_list_shows_tools_and_what_is_wrong_with_others(
    addresses: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    print_tools(addresses["newest"], 60, as_json=False)
    shown, told = capsys.readouterr()
    assert "add  (from mcp:localhost)\n  Add two numbers.\n    --a  (integer, required)\n" in shown
    assert "    --b  (integer, required)\nerase  (from mcp:localhost, reads only" in shown
    odd, strict, _ = told.splitlines()
    assert odd.startswith("ferrule: the MCP server localhost: 'odd' is not offered: the tool 'odd': not a JSON Schema")
    assert strict.startswith("ferrule: the MCP server localhost: 'strict' is offered, but of its schema word.pattern: ")
    print_tools(addresses["legacy"], 60, as_json=True)
    listed = json.loads(capsys.readouterr().out)
    assert listed[0]["name"] == "add"
    assert listed[1]["annotations"]["read_only"] is True


def test_call_asks_unless_the_server_is_trusted_or_all_is_allowed(addresses: dict[str, str], tmp_path: Path) -> None:
    address = addresses["newest"]
    allowed = ("--yes", "--journal", tmp_path / "calls.jsonl", address, "add", "--a", 1, "--b=2")
    with ThreadPoolExecutor() as pool:
        denied, trusted, added = pool.map(
            lambda words: ferrule("mcp", "call", *words),
            [(address, "erase"), ("--trust", address, "erase"), allowed],
        )
    assert denied.returncode == 1
    assert "--policy FILE, or all with --yes" in denied.stderr
    assert trusted.stdout == "erased\n"
    assert added.stdout == "3\n"
    assert len((tmp_path / "calls.jsonl").read_text().splitlines()) == 2


def test_call_refuses_what_is_wrong(addresses: dict[str, str]) -> None:
    unknown = ferrule("mcp", "call", "--yes", addresses["newest"], "ad")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "\nferrule: unknown tool 'ad'; the nearest: add" in unknown.stderr
    nobody = ferrule("mcp", "list", "/no/such/program")
    assert nobody.returncode == 2
    assert nobody.stderr == (
        "ferrule: the MCP server 'program' (/no/such/program) can't be reached: file not found: '/no/such/program'\n"
    )


def test_what_is_no_server_is_one_line_without_a_traceback() -> None:
    done = ferrule("mcp", "list", "echo hi")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "ferrule: the MCP server 'echo' (echo) ended before it was ready; it wrote 'hi', which is no MCP message: "
        "check that this starts an MCP server\n"
    )


async def test_an_address_of_something_else_is_one_short_line() -> None:
    async with ScriptedServer(lambda _request: json_reply(200, {"hello": "world"})) as server:
        done = await asyncio.to_thread(ferrule, "mcp", "list", f"{server.url}/mcp")
    assert (done.returncode, done.stdout) == (2, "")
    assert "can't be reached: it answered with no MCP message; check that this is the address of" in done.stderr
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) <= 200


def test_serve_refuses_an_address_that_is_none() -> None:
    done = ferrule("mcp", "serve", "--http", "127.0.0.1:99999")
    assert done.returncode == 2
    assert done.stderr.startswith("ferrule: --http 127.0.0.1:99999: write it as HOST:PORT")


def test_serve_ends_by_ctrl_c() -> None:
    command = [sys.executable, "-m", "ferrule", "mcp", "serve"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    stopped, http = (subprocess.Popen([*command, *more], **pipes) for more in ([], ["--http", ":0"]))
    # An answer tells that it serves.
    stopped.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "nothing"}\n')
    stopped.stdin.flush()
    assert "error" in json.loads(stopped.stdout.readline())
    assert "1 tool at http://127.0.0.1:" in http.stderr.readline()
    for process in (stopped, http):
        process.send_signal(signal.SIGINT)
        # Its input stays open: nothing but the signal ends it.
        assert process.wait(20) == 130
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
