"""`ferrule mcp list` and `call` on a server of the SDK, and `serve` until Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from scripted_http import ScriptedServer, json_reply
from terminals import ferrule

from ferrule.cli.mcp import print_tools
from ferrule.mcp import MCPServer


def test_list_shows_tools_and_what_is_wrong_with_others(
    addresses: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    print_tools(addresses["newest"], 60, as_json=False)
    shown, told = capsys.readouterr()
    origin = MCPServer(addresses["newest"]).origin
    assert f"add  (from {origin})\n  Add two numbers.\n    --a  (integer, required)\n" in shown
    assert f"    --b  (integer, required)\nerase  (from {origin}, reads only" in shown
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


def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = ferrule("mcp", "serve", "--http", address)
    assert (done.returncode, done.stderr) == (2, f"ferrule: {address}: Address already in use\n")


def test_serve_works_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "note.txt").write_text("two litres\n")
    (tmp_path / "rules.toml").write_text('rules = [{ action = "allow", tool = "read_file" }]')
    words = ["mcp", "serve", "coding", "--policy", "../rules.toml", "--folder", str(tmp_path / "place")]
    served = shlex.join([sys.executable, "-m", "ferrule", *words])
    assert "two litres" in ferrule("mcp", "call", "--yes", served, "read_file", "--path", "note.txt").stdout
    missing = ferrule("mcp", "serve", "coding", "--folder", tmp_path / "nowhere")
    assert (missing.returncode, missing.stderr) == (2, f"ferrule: {tmp_path}/nowhere: No such file or directory\n")


SPEAKING = """
from ferrule import tool

@tool
def speak() -> str:
    '''Print, and wait until it was seen.'''
    print("it speaks")
    with open("seen") as seen:
        return seen.read()
"""


OPENING = {
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
}
SPEAK = {"method": "tools/call", "params": {"name": "speak", "arguments": {}}}


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_prints_of_served_tools_reach_stderr_at_once(tmp_path: Path, transport: str) -> None:
    (tmp_path / "speak_tool.py").write_text(SPEAKING)
    os.mkfifo(tmp_path / "seen")
    command = [sys.executable, "-m", "ferrule", "mcp", "serve", "--yes", "--folder", str(tmp_path), "."]
    words = [*command, "--http", ":0"] if transport == "http" else command
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **pipes) as process, ThreadPoolExecutor() as pool:
        if transport == "http":
            address = process.stderr.readline().split()[-1]
            calling = pool.submit(ferrule, "mcp", "call", "--yes", address, "speak")
        else:
            for message in ({**OPENING, "id": 1}, {"method": "notifications/initialized"}, {**SPEAK, "id": 2}):
                process.stdin.write(f"{json.dumps({'jsonrpc': '2.0', **message})}\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == 1
        assert process.stderr.readline() == "it speaks\n"
        (tmp_path / "seen").write_text("seen")
        if transport == "http":
            assert calling.result().stdout == "seen\n"
        else:
            assert json.loads(process.stdout.readline())["result"]["content"][0]["text"] == "seen"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=300)[0] == ""


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
