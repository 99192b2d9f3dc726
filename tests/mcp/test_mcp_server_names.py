"""The names and origins of servers: derived from a program's own name alone, and bound to the command or address."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from mcp_calls import result_of
from terminals import ferrule

from ferrule.execution import Policy
from ferrule.mcp import MCPServer
from tables import each_case

SECRET = "ghp_9sEcReT"
NAMED = {
    "npx -y @modelcontextprotocol/server-filesystem /tmp": "server-filesystem",
    f"env GITHUB_TOKEN={SECRET} npx -y @owner/github@1.2.0": "github",
    f"env -u HOME TOKEN={SECRET} uvx notes": "notes",
    f"docker run -i --rm -e TOKEN={SECRET} ghcr.io/owner/image:2.1": "image",
    f"docker run -eTOKEN={SECRET} -it localhost:5000/owner/image": "image",
    f"podman container run --env TOKEN={SECRET} owner/image@sha256:00ff": "image",
    f"docker run --unknown {SECRET} owner/image": "docker",
    f"docker {SECRET}": "docker",
    f"run --api-key {SECRET}": "run",
    f"/opt/tool/exec {SECRET}": "exec",
    f"npx --api-key {SECRET}": "npx",
    f"npx -y git+https://{SECRET}@github.com/owner/notes": "npx",
    f"npm exec -- notes --api-key {SECRET}": "notes",
    f"uvx --from git+https://{SECRET}@github.com/owner/notes notes": "notes",
    f"uvx --default-index https://me:{SECRET}@example.com/simple notes[cli]==1.0": "notes",
    f"uv run --with mcp python -u server.py --token {SECRET}": "server",
    f"uv --directory /srv run notes --token {SECRET}": "notes",
    f"uv {SECRET} run": "uv",
    f"python3.12 -c {SECRET}": "python3_12",
    f"python -m {SECRET}/x": "python",
    f"node --secret={SECRET} --import tsx dist/notes.js {SECRET}": "notes",
    f"node --secret {SECRET} notes.js": "node",
    f"sh -c {SECRET}": "sh",
    "python3.12 -m notes.server": "notes_server",
    "/usr/bin/python /home/me/weather.py": "weather",
    f"https://me:{SECRET}@mcp.example.com/mcp?key={SECRET}": "mcp_example_com",
    "http://127.0.0.1:8000/mcp": "localhost",
}


@each_case("command", NAMED)
def test_a_name_holds_nothing_but_the_name_of_the_program_or_host(command: str) -> None:
    server = MCPServer(command)
    assert server.name.startswith(NAMED[command])
    assert SECRET.lower() not in f"{server.name} {server.origin} {server!r}".lower()


def test_a_derived_name_is_bound_to_the_command_or_address() -> None:
    pairs = [
        ("node x/dist/index.js", "node y/dist/index.js"),
        ("http://localhost:8000/mcp", "http://localhost:8001/mcp"),
        ("npx -y @owner/notes work", "npx -y @owner/notes home"),
    ]
    for pair in pairs:
        one, other = map(MCPServer, pair)
        assert one.name == other.name
        assert one.origin != other.origin
        assert one.origin.startswith(f"mcp:{one.name}@")
    assert MCPServer("node x/index.js").origin == MCPServer("node x/index.js").origin
    assert MCPServer("node index.js", cwd="/a").origin != MCPServer("node index.js", cwd="/b").origin
    # A new token leaves the trust, and a given name is what it was.
    assert MCPServer("notes --token abc").origin == MCPServer("notes --token xyz").origin
    assert MCPServer("notes", name="notes").origin == "mcp:notes"


async def test_trusting_one_server_trusts_no_other_of_that_name(addresses: dict[str, str]) -> None:
    one, other = MCPServer(addresses["newest"]), MCPServer(addresses["legacy"])
    async with one, other:
        assert one.name == other.name == "localhost"
        for trusted in ("mcp:localhost", other.origin):
            denied = await result_of(one, "erase", policy=Policy(trusted=(trusted,)))
            assert denied.status == "denied"
            assert f'set trusted = ["{one.origin}"] in the policy' in denied.text
        assert (await result_of(one, "erase", policy=Policy(trusted=(one.origin,)))).text == "erased"


def test_variables_of_the_command_line_reach_the_server_and_nothing_else(
    tmp_path: Path,
) -> None:
    (tmp_path / "env_tool.py").write_text(
        "import os\nfrom ferrule import tool\n\n@tool\ndef read_variable(name: str) -> str:\n"
        "    return os.environ.get(name, 'unset')\n"
    )
    server = shlex.join([sys.executable, "-m", "ferrule", "mcp", "serve", str(tmp_path), "--yes"])
    given = ("--env", f"TOKEN={SECRET}", "--env", "FROM_HERE")
    journal = tmp_path / "journal"
    for name, value in {"TOKEN": SECRET, "FROM_HERE": "inherited"}.items():
        call = ("mcp", "call", "--yes", "--journal", str(journal), *given, server, "read_variable", "--name", name)
        assert ferrule(*call, FROM_HERE="inherited").stdout == f"{value}\n"
    assert {json.loads(line).get("origin", "mcp:ferrule@")[:12] for line in journal.read_text().splitlines()} == {
        "mcp:ferrule@"
    }
    listed = ferrule("mcp", "list", *given, server, FROM_HERE="")
    assert "read_variable  (from mcp:ferrule@" in listed.stdout
    assert SECRET not in listed.stdout
    asked = ferrule("ask", "Hi", "--model", "echo", "--mcp", server, *given, FROM_HERE="")
    assert (asked.returncode, asked.stdout) == (0, "Hi\n")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--mcp", "one", "--mcp", "two", "--env", "A=b"], "but there are 2; give each its own in ferrule.toml"),
        (["--mcp", "http://127.0.0.1:1/mcp", "--env", "A=b"], "--env is for one MCP server that is started by a comm"),
        (["--env", "A=b"], "--env is for one MCP server that is started by a command, but there are 0"),
        (["--mcp", "one", "--env", "=b"], "--env =b: write NAME=VALUE, or the NAME of a variable that is set here"),
        (["--mcp", "one", "--env", "UNSET_HERE"], "--env UNSET_HERE: write NAME=VALUE"),
    ],
)
def test_variables_for_no_one_server_are_refused(words: list[str], reason: str) -> None:
    refused = ferrule("ask", "Hi", "--model", "echo", *words)
    assert refused.returncode == 2
    assert reason in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
