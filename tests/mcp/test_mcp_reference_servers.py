"""The reference servers of npm and PyPI, installed here: each is listed, called, and left without a word too many."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp_calls import result_of

from ferrule.conversation import Image
from ferrule.mcp import MCPServer
from ferrule.mcp.requests import ElicitationRequest, SamplingAnswer, SamplingRequest

pytestmark = pytest.mark.slow
TASK = "'simulate-research-query' is not offered: it can only be run as a task, which isn't supported"
Install = Callable[[str], Path]


@pytest.fixture(scope="module")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Installs a package of npm; returns the folder of its programs."""
    if shutil.which("npm") is None:
        pytest.skip("npm is missing")
    folder = tmp_path_factory.mktemp("npm")

    def install(package: str) -> Path:
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), package]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            pytest.skip(f"npm can't install {package}")
        return folder / "node_modules" / ".bin"

    return install


@pytest.fixture(scope="module")
def pip(tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Installs a package of PyPI into an environment of its own; returns the folder of its programs."""
    folder = tmp_path_factory.mktemp("pip")
    venv.create(folder, with_pip=True)

    def install(package: str) -> Path:
        command = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", package]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            pytest.skip(f"pip can't install {package}")
        return folder / "bin"

    return install


async def elicit(request: ElicitationRequest) -> Mapping[str, Any]:
    assert "name" in request.schema["properties"]
    return {"name": "Ada", "check": True}


async def sample(request: SamplingRequest) -> SamplingAnswer:
    assert request.conversation.messages[-1].text.endswith("hi")
    return SamplingAnswer("Hello.", "a model", "turn")


async def test_everything(npm: Install, caplog: pytest.LogCaptureFixture) -> None:
    program = npm("@modelcontextprotocol/server-everything") / "mcp-server-everything"
    # It announces a change of its tools as soon as it is connected, often when it is about to be closed.
    for _ in range(8):
        async with MCPServer([str(program)]) as server:
            assert (await result_of(server, "echo", message="hi")).text == "Echo: hi"
            assert server.instructions.startswith("# Everything Server")
            assert server.problems == (TASK,)
    assert set(caplog.messages) == {f"the MCP server mcp-server-everything: {TASK}"}
    async with MCPServer([str(program)], elicit=elicit, sample=sample) as server, server.open_tools(()):
        weather = await result_of(server, "get-structured-content", location="Chicago")
        assert weather.text.count("temperature") == 1
        assert set(weather.data) == {"temperature", "conditions", "humidity"}
        assert "temperature" in server.registry.get("get-structured-content").output_schema["properties"]
        picture = await result_of(server, "get-tiny-image")
        assert len(picture.content) == 3
        asked = await result_of(server, "trigger-elicitation-request")
        assert "- Name: Ada" in asked.text
        sampled = await result_of(server, "trigger-sampling-request", prompt="hi", maxTokens=10)
        assert "Hello." in sampled.text
        wrong = await result_of(server, "get-sum", a="one")
        assert wrong.status == "invalid"


async def test_files(npm: Install, tmp_path: Path) -> None:
    program = npm("@modelcontextprotocol/server-filesystem") / "mcp-server-filesystem"
    (tmp_path / "a.txt").write_text("the text of a")
    async with MCPServer([str(program), str(tmp_path)]) as server:
        listed = await result_of(server, "list_directory", path=str(tmp_path))
        assert (listed.text, listed.data) == ("[FILE] a.txt", {"content": "[FILE] a.txt"})
        assert (await result_of(server, "read_text_file", path=str(tmp_path / "a.txt"))).text == "the text of a"
        assert (await result_of(server, "read_text_file", path="/etc/passwd")).status == "error"
        # It repeats its blocks in the structured content.
        (tmp_path / "a.png").write_bytes(b"\x89PNG")
        picture = await result_of(server, "read_media_file", path=str(tmp_path / "a.png"))
        assert picture.content == (Image(b"\x89PNG"),)


async def test_memory(npm: Install, tmp_path: Path) -> None:
    program = npm("@modelcontextprotocol/server-memory") / "mcp-server-memory"
    entity = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
    async with MCPServer([str(program)], env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}) as server:
        assert (await result_of(server, "create_entities", entities=[entity])).status == "ok"
        graph = await result_of(server, "read_graph")
        assert graph.text.count("writes programs") == 1
        assert graph.data["entities"][0]["name"] == "Ada"


@pytest.mark.parametrize(
    ("package", "options", "tool", "arguments", "text"),
    [
        ("mcp-server-time", ["--local-timezone=UTC"], "get_current_time", {"timezone": "UTC"}, '"timezone": "UTC"'),
        ("mcp-server-git", [], "git_status", {"repo_path": "."}, "Repository status"),
        ("mcp-server-fetch", [], "fetch", {"url": "http://127.0.0.1:9/"}, "error: "),
    ],
)
async def test_of_pypi(
    pip: Install, tmp_path: Path, package: str, options: list[str], tool: str, arguments: dict[str, Any], text: str
) -> None:
    program = pip(package) / package
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    if "repo_path" in arguments:
        arguments = {"repo_path": str(tmp_path)}
    async with MCPServer([str(program), *options]) as server:
        assert server.problems == ()
        assert text in (await result_of(server, tool, **arguments)).text


def test_the_commands_print_nothing_else(npm: Install) -> None:
    program = npm("@modelcontextprotocol/server-everything") / "mcp-server-everything"
    command = [sys.executable, "-m", "ferrule", "mcp"]
    for words in (["list", str(program)], ["call", "--yes", str(program), "echo", "--message", "hi"]):
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=120, check=True)
        assert done.stderr == f"ferrule: the MCP server mcp-server-everything: {TASK}\n"
