"""The third seed's core tools, their approval and their composition, without the defects of its code."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from ferrule import Decision, Policy, ScriptedModel, ToolCall, ToolRegistry, model
from ferrule.coding import tools
from ferrule.coding.workspace import Workspace
from ferrule.conversation import ToolResult
from ferrule.execution import ApprovalRequest
from ferrule.execution.executor import call_tool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="commands run in the sandbox, which is Linux's")

API = "import urllib.request\n\n\ndef fetch(url):\n    return urllib.request.urlopen(url).read()\n"
CHECK = "python3 -m py_compile src/api.py && echo No errors found"


@pytest_asyncio.fixture
async def core(tmp_path: Path) -> AsyncIterator[ToolRegistry]:
    folder = tmp_path / "proj"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "api.py").write_text(API)
    (tmp_path / "proj-evil").mkdir()
    (tmp_path / "proj-evil" / "s.txt").write_text("secret\n")
    async with Workspace(folder) as workspace:
        yield tools(workspace)


async def call(core: ToolRegistry, name: str, profile: str = "all", **arguments: object) -> ToolResult:
    return await call_tool(core, arguments, name=name, policy=Policy(profile=profile))


async def test_the_core_tools_with_their_parameters(core: ToolRegistry) -> None:
    schemas = {one["function"]["name"]: one["function"]["parameters"] for one in core.schemas("openai")}
    wanted = {
        "read_file": ({"path", "offset", "limit"}, ["path"]),
        "write_file": ({"path", "content"}, ["path", "content"]),
        "bash": ({"command", "timeout"}, ["command"]),
        "search": ({"pattern", "path", "glob", "max_results"}, ["pattern"]),
        "run_tests": ({"pattern", "watch"}, None),
    }
    for name, (parameters, required) in wanted.items():
        assert parameters <= set(schemas[name]["properties"])
        assert schemas[name].get("required") == required
    assert schemas["bash"]["properties"]["timeout"]["default"] == 30
    assert schemas["search"]["properties"]["path"]["default"] == "."
    assert schemas["search"]["properties"]["max_results"]["default"] == 20


async def test_reading(core: ToolRegistry) -> None:
    whole = await call(core, "read_file", path="src/api.py")
    assert whole.text.splitlines()[0] == "1\timport urllib.request"
    part = await call(core, "read_file", path="src/api.py", offset=4, limit=1)
    assert part.text.splitlines()[0] == "4\tdef fetch(url):"
    missing = await call(core, "read_file", path="nothing.py")
    assert missing.text.startswith("error: Error reading nothing.py: ")


@pytest.mark.parametrize("path", ["../proj-evil/s.txt", "/etc/passwd", "src/../../proj-evil/s.txt", "out/s.txt"])
async def test_nothing_outside_is_read_or_written(core: ToolRegistry, path: str, tmp_path: Path) -> None:
    (tmp_path / "proj" / "out").symlink_to(tmp_path / "proj-evil")
    read = await call(core, "read_file", path=path)
    assert read.text.startswith("error: cannot read files outside the working directory")
    written = await call(core, "write_file", path=path, content="x")
    assert written.text.startswith("error: cannot write files outside the working directory")
    assert (tmp_path / "proj-evil" / "s.txt").read_text() == "secret\n"


async def test_writing(core: ToolRegistry, tmp_path: Path) -> None:
    created = await call(core, "write_file", path="docs/deep/a.md", content="é\n")
    assert created.text == "File created: docs/deep/a.md (3 bytes)"
    await call(core, "read_file", path="docs/deep/a.md")
    updated = await call(core, "write_file", path="docs/deep/a.md", content="e\n")
    assert updated.text == "File updated: docs/deep/a.md (2 bytes)\n\nDiff:\n@@ -1 +1 @@\n-é\n+e"
    failed = await call(core, "write_file", path="docs/deep/a.md/b", content="")
    assert failed.text.startswith("error: Error writing docs/deep/a.md/b: ")


async def test_commands(core: ToolRegistry) -> None:
    assert (await call(core, "bash", command="echo out; echo err >&2")).text == "out\nSTDERR:\nerr"
    assert (await call(core, "bash", command="true")).text == "(no output)"
    failed = await call(core, "bash", command="echo 3 tests failed; echo why >&2; exit 3")
    assert failed.text == "error: exit status 3\n3 tests failed\nSTDERR:\nwhy"
    quiet = await call(core, "bash", command="cat; echo $GIT_TERMINAL_PROMPT $DEBIAN_FRONTEND")
    assert quiet.text == "0 noninteractive"
    slow = await call(core, "bash", command="echo begun; sleep 60", timeout=0.5)
    assert slow.text.startswith("error: timed out")
    assert "begun" in slow.text
    long = await call(core, "bash", command="seq 1 2000000")
    assert long.text.startswith("1\n2\n")
    assert "left out" in long.text
    assert long.text.endswith("2000000")


async def test_searching(core: ToolRegistry, tmp_path: Path) -> None:
    found = await call(core, "search", pattern=r"def \w+", glob="*.py")
    assert found.text == "src/api.py:4: def fetch(url):"
    none = await call(core, "search", pattern="x; touch pwned #")
    assert none.text == "No matches found for pattern 'x; touch pwned #' in ."
    assert not (tmp_path / "proj" / "pwned").exists()
    invalid = await call(core, "search", pattern="(")
    assert invalid.is_error
    for number in range(9):
        (tmp_path / "proj" / f"n{number}.txt").write_text("needle\n" * 9)
    many = (await call(core, "search", pattern="needle")).text.splitlines()
    assert many[-1].startswith("[20 of 81 matches shown, in 4 of 9 files")
    assert [line.partition(":")[0] for line in many[:5]] == ["n0.txt"] * 5


async def test_the_project_s_tests_by_a_pattern_that_no_shell_reads(core: ToolRegistry, tmp_path: Path) -> None:
    (tmp_path / "proj" / "test_api.py").write_text(
        "import unittest\n\nclass Api(unittest.TestCase):\n    def test_fetch(self): ...\n"
    )
    passed = await call(core, "run_tests", pattern="test_fetch")
    assert passed.text.startswith("passed: 1 test passed, 0 failed, 0 skipped")
    refused = await call(core, "run_tests", pattern="x; touch pwned")
    assert refused.is_error
    assert not (tmp_path / "proj" / "pwned").exists()


async def test_reading_needs_no_approval_writing_and_commands_do(core: ToolRegistry) -> None:
    allowed = [("read_file", {"path": "src/api.py"}), ("search", {"pattern": "fetch"}), ("bash", {"command": "ls"})]
    for name, arguments in allowed:
        assert (await call(core, name, "ask", **arguments)).status == "ok"
    asked = [("write_file", {"path": "a", "content": ""}), ("bash", {"command": "touch a"})]
    for name, arguments in asked:
        assert (await call(core, name, "ask", **arguments)).status == "denied"


class Person:
    """Approves everything, and keeps what was shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    async def decide(self, request: ApprovalRequest) -> Decision:
        assert request.intent is not None
        self.shown.append(str(request.intent.preview))
        return Decision.allow()


async def test_read_then_write_then_check_then_answer(core: ToolRegistry, tmp_path: Path) -> None:
    new = API.replace(".read()", ".read()  # may raise OSError")
    writer = ScriptedModel(
        ToolCall("1", "read_file", '{"path": "src/api.py"}'),
        ToolCall("2", "write_file", json.dumps({"path": "src/api.py", "content": new})),
        ToolCall("3", "bash", json.dumps({"command": CHECK})),
        "I've said what may be raised.",
    )
    person = Person()
    run = (
        await model(writer).chat("Add error handling.").using(core, policy=Policy(profile="ask"), approver=person).run()
    )
    results = [message.result.text for message in run.conversation.messages if message.role == "tool"]
    assert results[1].startswith("File updated: src/api.py")
    assert results[2] == "No errors found"
    assert run.text == "I've said what may be raised."
    diff, command = person.shown
    assert "+    return urllib.request.urlopen(url).read()  # may raise OSError" in diff
    assert CHECK in command
    assert (tmp_path / "proj" / "src" / "api.py").read_text() == new
