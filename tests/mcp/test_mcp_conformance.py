"""The official conformance suite, against our server and our client: what fails stands in docs/mcp-conformance.md.

The suite says which scenarios each revision of the protocol requires; it runs them, and others that it doesn't score.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from mcp_calls import result_of

from ferrule.errors import FerruleError
from ferrule.mcp import MCPServer
from ferrule.mcp.requests import ElicitationRequest
from installed_packages import find_node, install_from_npm

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "mcp-conformance.md"
VERSION = "0.2.0-alpha.12"
REVISIONS = ("2025-11-25", "2026-07-28")
VALUES: Mapping[str, Any] = {"string": "a", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
MEASURES_TIME = "client-sse-retry-timing"
"""The suite's check whose outcome depends on the load of the machine."""


@pytest.fixture(scope="module")
def suite() -> list[str]:
    """The command of the suite."""
    package = install_from_npm(f"@modelcontextprotocol/conformance@{VERSION}") / "@modelcontextprotocol" / "conformance"
    return [str(find_node(22)), str(package / "dist" / "index.js")]


@pytest.fixture
def address() -> Iterator[str]:
    command = [sys.executable, str(HERE / "conformance_server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        yield process.stdout.readline().strip()
        process.terminate()


async def run_suite(command: list[str], folder: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, "-o", str(folder), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    return output.decode()


def find_failures(folder: Path) -> dict[str, bool]:
    """Whether each scenario failed; the suite writes the checks of each into a folder with its name and the time."""
    failed = {}
    for file in folder.rglob("checks.json"):
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*$", "", file.parent.relative_to(folder).as_posix()).removeprefix(
            "server-"
        )
        checks = json.loads(file.read_text())
        failed[scenario] = any(one["status"] == "FAILURE" and one["id"] != MEASURES_TIME for one in checks)
    return failed


def check_page(side: str, failed: Mapping[str, Mapping[str, bool]], scored: Mapping[str, set[str]]) -> None:
    """Check that the page names what fails, nothing else, and how many of the required scenarios pass."""
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(rf"^\| {side} \| (`.*?`) \|", page, re.MULTILINE)
    patterns = [pattern for row in rows for pattern in re.findall(r"`(.*?)`", row)]
    failing = {name for scenarios in failed.values() for name, is_failed in scenarios.items() if is_failed}
    unnamed = {name for name in failing if not any(fnmatchcase(name, pattern) for pattern in patterns)}
    assert unnamed == set(), "these fail, and the page doesn't say why"
    assert [one for one in patterns if not any(fnmatchcase(name, one) for name in failing)] == [], "these pass by now"
    for revision, scenarios in failed.items():
        required = scored[revision]
        assert required <= set(scenarios)
        passed = sum(not scenarios[name] for name in required)
        assert f"| {revision} | {side} | {passed} of {len(required)} |" in page


def read_scored(suite: list[str], side: str) -> dict[str, set[str]]:
    """The scenarios that each revision requires, of one side."""
    scored = {}
    for revision in REVISIONS:
        command = [*suite, "list", "--requirements", revision]
        listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
        part = listed.partition(f"{side.capitalize()} scenarios")[2].partition("\n\n")[0]
        scored[revision] = set(re.findall(r"^  - (\S+)", part, re.MULTILINE))
    return scored


async def test_our_server(suite: list[str], address: str, tmp_path: Path) -> None:
    failed = {}
    for revision in REVISIONS:
        output = await run_suite([*suite, "server", "--url", address, "--requirements", revision], tmp_path / revision)
        failed[revision] = find_failures(tmp_path / revision)
        assert failed[revision], output
    check_page("server", failed, read_scored(suite, "server"))


async def test_our_client(suite: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A server that doesn't answer the SDK's first request in time is taken for one of an older revision.
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 120.0)
    failed = {}
    async with answering(monkeypatch, tmp_path / "settings") as port:
        client = f"{sys.executable} -S {HERE / 'conformance_client.py'} {port}"
        for revision in REVISIONS:
            command = [*suite, "client", "--command", client, "--requirements", revision, "--timeout", "300000"]
            output = await run_suite(command, tmp_path / revision)
            failed[revision] = find_failures(tmp_path / revision)
            assert failed[revision], output
    check_page("client", failed, read_scored(suite, "client"))


@asynccontextmanager
async def answering(monkeypatch: pytest.MonkeyPatch, settings: Path) -> AsyncIterator[int]:
    """Do the work of the suite's client, `conformance_client.py`, for each that connects to this port."""
    numbers = count()

    # The suite starts all of its clients at once, more than a small machine serves in the time that the SDK gives them.
    one_at_a_time = asyncio.Lock()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        given = json.loads(await reader.readline())
        try:
            async with one_at_a_time:
                # Logins are saved by address, and a scenario's server may get the port that another had.
                monkeypatch.setenv("XDG_CONFIG_HOME", str(settings / str(next(numbers))))
                said = await connect(given["address"], given["scenario"], given["context"])
        except FerruleError as error:
            said = str(error)
        writer.write(f"{said}\n".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def connect(address: str, scenario: str, context: Mapping[str, Any]) -> str:
    """List a server's tools and call them: as the scenario says, or each once."""
    options: dict[str, Any] = {"authorize": browse} if scenario.startswith("auth/") else {"elicit": elicit}
    options["start_timeout"] = 120
    async with MCPServer(address, **options) as server:
        tools = {tool.name: tool for tool in server.registry.tools}
        calls = context.get("toolCalls") or [
            {"name": name, "arguments": make_arguments(tool.spec.parameters)} for name, tool in tools.items()
        ]
        if "json_schema_echo" in tools:
            schema = tools["json_schema_2020_12_tool"].spec.parameters
            calls = [{"name": "json_schema_echo", "arguments": {"schema": schema}}]
        results = [await result_of(server, call["name"], **call["arguments"]) for call in calls]
    return " ".join(f"{result.name}: {result.status}" for result in results)


def browse(address: str) -> None:
    """Log in as a browser would: follow the redirects, which the suite grants without a question."""

    def visit() -> None:
        with suppress(urllib.error.HTTPError):
            urllib.request.urlopen(address, timeout=20).read()

    asyncio.get_running_loop().run_in_executor(None, visit)


async def elicit(_request: ElicitationRequest) -> Mapping[str, Any]:
    """Accept without an answer, so that the defaults count."""
    return {}


def make_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: VALUES.get(str(one.get("type")), "a") for name, one in schema.get("properties", {}).items()}
