"""`run_tests` with real runners, and with hostile patterns."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from called_tools import call_tool

from ferrule.coding.run_tests.tool import make_run_tests
from ferrule.coding.workspace import Workspace
from ferrule.conversation import ToolResult
from ferrule.execution import Policy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")


@pytest_asyncio.fixture
async def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Workspace]:
    """A project for which `python3` is the interpreter of these tests, which has pytest."""
    monkeypatch.setenv("PATH", f"{sys.prefix}/bin:{os.environ['PATH']}")
    folder = tmp_path / "project"
    folder.mkdir()
    async with Workspace(folder) as opened:
        yield opened


def write(workspace: Workspace, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = workspace.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


async def run(workspace: Workspace, **arguments: Any) -> ToolResult:
    return await call_tool([make_run_tests(workspace, arguments.pop("command", None))], "run_tests", **arguments)


PYTEST = """\
import sys, pytest

def test_adds():
    assert 1 + 1 == 2

def test_fails():
    print("printed in the test")
    assert 1 + 1 == 3

class TestMore:
    def test_also_fails(self):
        raise ValueError("broken")

@pytest.mark.skip(reason="later")
def test_later(): ...
"""


async def test_an_edit_within_the_second_of_the_last_run_is_seen(workspace: Workspace) -> None:
    write(workspace, {"test_a.py": "from a import first\n\ndef test_first():\n    assert first == 2\n"})
    source = workspace.folder / "a.py"
    for value, failed in ((1, 1), (2, 0)):
        source.write_text(f"first = {value}\n")
        os.utime(source, (1_700_000_000, 1_700_000_000))
        assert (await run(workspace)).data["failed"] == failed


async def test_pytest_by_its_report(workspace: Workspace) -> None:
    write(workspace, {"conftest.py": "", "tests/test_a.py": PYTEST})
    result = await run(workspace)
    assert result.status == "ok"
    lines = result.text.splitlines()
    assert lines[0] == "FAILED: 1 test passed, 2 failed, 1 skipped"
    assert lines[1:4] == ["Failing:", "- tests/test_a.py::test_fails", "- tests/test_a.py::TestMore::test_also_fails"]
    assert lines[4] == "First failure, tests/test_a.py::test_fails:"
    assert "assert (1 + 1) == 3" in result.text
    assert lines[-1] == "[pytest, because there is conftest.py]"
    assert result.data["failing"] == ["tests/test_a.py::test_fails", "tests/test_a.py::TestMore::test_also_fails"]
    assert (result.data["passed"], result.data["failed"], result.data["skipped"]) == (1, 2, 1)


@pytest.mark.parametrize(
    ("pattern", "passed"),
    [("adds", 1), ("tests/test_a.py::test_adds", 1), ("adds or later", 1), ("tests/test_a.py", 1)],
)
async def test_a_pattern_chooses_tests(workspace: Workspace, pattern: str, passed: int) -> None:
    write(workspace, {"conftest.py": "", "tests/test_a.py": PYTEST})
    assert (await run(workspace, pattern=pattern)).data["passed"] == passed


@pytest.mark.parametrize(
    "pattern",
    [
        "'; touch pwned; '",
        "$(touch pwned)",
        "`touch pwned`",
        "x && touch pwned",
        '"; touch pwned #',
        "-p pwned",
        "--pyargs",
    ],
)
async def test_a_pattern_is_only_a_pattern(workspace: Workspace, pattern: str) -> None:
    write(workspace, {"conftest.py": "", "test_a.py": "def test_a(): ...\n"})
    result = await run(workspace, pattern=pattern)
    assert result.status in ("error", "retry")
    assert not (workspace.folder / "pwned").exists()


async def test_what_passes_says_so_and_warnings_come_with_it(workspace: Workspace) -> None:
    write(workspace, {"Makefile": "test:\n\t@echo careful >&2; python3 -m pytest -q checks.py\n"})
    write(workspace, {"checks.py": "def test_a(): ...\n"})
    result = await run(workspace)
    assert result.text.startswith("passed: 1 test passed, 0 failed, 0 skipped\nWarnings:\ncareful\n")
    assert result.text.endswith("[make, because Makefile has a target `test`]")


async def test_a_file_that_cannot_be_collected_is_a_failure(workspace: Workspace) -> None:
    write(workspace, {"conftest.py": "", "test_a.py": "import nothing_of_this_name\n"})
    result = await run(workspace)
    assert result.text.startswith("FAILED: 0 tests passed, 1 failed")
    assert "nothing_of_this_name" in result.text


@pytest.mark.parametrize(
    "files",
    [
        {"conftest.py": "", "test_a.py": "def test_a(): ...\n"},
        {"test_a.py": "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): ...\n"},
    ],
    ids=["pytest", "unittest"],
)
async def test_no_match_is_not_a_pass(workspace: Workspace, files: dict[str, str]) -> None:
    write(workspace, files)
    result = await run(workspace, pattern="nothing_of_this_name")
    assert result.status == "error"
    assert "no test was run: there is none, or none matches the pattern" in result.text


UNITTEST = """\
import unittest

class Case(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(1 + 1, 2)

    def test_fails(self):
        self.assertEqual(1 + 1, 3, "the sum is wrong")

    @unittest.skip("later")
    def test_later(self): ...
"""


async def test_unittest_by_its_text(workspace: Workspace) -> None:
    write(workspace, {"tests/test_a.py": UNITTEST})
    result = await run(workspace)
    assert result.text.startswith("FAILED: 1 test passed, 1 failed, 1 skipped\nFailing:\n- test_a.Case.test_fails\n")
    assert "the sum is wrong" in result.text
    assert result.text.endswith("[unittest, because tests/test_a.py has test cases of unittest]")
    assert (await run(workspace, pattern="adds")).text.startswith("passed: 1 test passed, 0 failed, 0 skipped")


async def test_make_counts_what_its_program_writes(workspace: Workspace) -> None:
    write(workspace, {"Makefile": "test:\n\tpython3 -m unittest -v checks\n", "checks.py": UNITTEST})
    result = await run(workspace)
    assert result.text.startswith("FAILED: 1 test passed, 1 failed, 1 skipped")
    assert "no pattern" not in result.text
    assert "can't choose tests by a pattern" in (await run(workspace, pattern="x")).text


async def test_numbers_that_cannot_be_read_are_not_invented(workspace: Workspace) -> None:
    write(workspace, {"Makefile": "test:\n\t@echo all is well\n"})
    result = await run(workspace)
    assert result.status == "error"
    assert result.text.startswith("error: exit status 0; the numbers of tests can't be read from the output")
    assert result.text.endswith("all is well")


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is missing")
async def test_cargo(workspace: Workspace) -> None:
    tests = '#[test] fn adds() {}\n#[test] fn fails() { assert_eq!(1, 2, "wrong"); }\n#[test] #[ignore] fn later() {}\n'
    write(
        workspace,
        {"Cargo.toml": '[package]\nname = "demo"\nversion = "0.1.0"\nedition = "2021"\n', "src/lib.rs": tests},
    )
    result = await run(workspace)
    assert result.text.startswith("FAILED: 1 test passed, 1 failed, 1 skipped\nFailing:\n- fails\n"), result.text
    assert "wrong" in result.text
    assert (await run(workspace, pattern="adds")).text.startswith("passed: 1 test passed")


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is missing")
async def test_npm(workspace: Workspace) -> None:
    tests = "const test = require('node:test'); const assert = require('assert');\n"
    tests += "test('adds', () => {}); test('later', {skip: true}, () => {});\n"
    tests += "test('fails', () => { assert.equal(1, 2, 'wrong') });\n"
    write(workspace, {"package.json": '{"scripts": {"test": "node --test"}}', "a.test.js": tests})
    result = await run(workspace)
    assert result.text.startswith("FAILED: 1 test passed, 1 failed, 1 skipped\nFailing:\n- fails\n"), result.text
    assert "wrong" in result.text


@pytest.mark.slow
async def test_tests_that_take_too_long_are_stopped_with_what_they_wrote(workspace: Workspace) -> None:
    write(workspace, {"Makefile": "test:\n\t@echo begun; sleep 60\n"})
    result = await run(workspace, timeout=5)
    assert result.text.startswith("error: the run timed out")
    assert "\nbegun" in result.text


async def test_a_project_without_tests_is_told_what_was_looked_for(workspace: Workspace) -> None:
    write(workspace, {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'})
    result = await run(workspace)
    assert result.status == "error"
    assert "Cargo.toml" in result.text
    assert "test_command" in result.text


async def test_of_several_runners_one_can_be_chosen(workspace: Workspace) -> None:
    write(
        workspace,
        {"conftest.py": "", "test_a.py": "def test_a(): ...\n", "Makefile": "test:\n\tpython3 -m pytest test_a.py\n"},
    )
    assert "[also found: make; `runner` chooses]" in (await run(workspace)).text
    made = await run(workspace, runner="make")
    assert made.text.startswith("passed: 1 test passed")
    assert "[make, because Makefile has a target `test`]" in made.text
    assert "no tests for go found" in (await run(workspace, runner="go")).text


async def test_a_command_of_the_settings_is_used(workspace: Workspace) -> None:
    write(workspace, {"checks.py": PYTEST})
    command = ["python3", "-m", "pytest", "checks.py"]
    assert (await run(workspace, command=command)).data["failed"] == 2
    assert (await run(workspace, command=command, pattern="adds")).data["passed"] == 1
    filled = await run(workspace, command=["python3", "-m", "pytest", "checks.py::{pattern}"], pattern="test_adds")
    assert filled.data["passed"] == 1
    assert "because the settings name it" in filled.text


async def test_a_missing_runner_is_said(workspace: Workspace) -> None:
    result = await run(workspace, command=["no-such-runner-at-all", "test"])
    assert "no-such-runner-at-all isn't installed here" in result.text


async def test_it_is_asked_for_and_rules_for_commands_cover_it(workspace: Workspace) -> None:
    write(workspace, {"Makefile": "test:\n\t@touch ran\n"})
    tool = make_run_tests(workspace)
    for profile in ("ask", "accept-edits", "plan"):
        assert (await call_tool([tool], "run_tests", policy=Policy(profile=profile))).status == "denied"
    assert not (workspace.folder / "ran").exists()
    assert tool.intent is not None
    intent = tool.intent({})
    assert intent.effects[0].words == ("make", "test")
    assert "$ make test" in str(intent.preview)


async def test_the_command_that_is_shown_quotes_as_the_one_that_is_run(workspace: Workspace) -> None:
    write(workspace, {"conftest.py": ""})
    tool = make_run_tests(workspace)
    assert tool.intent is not None
    intent = tool.intent({"pattern": "$(touch made)=$TMPDIR/ferrule-test-report.xml"})
    shown = str(intent.preview).splitlines()[0]
    assert '"--junit-xml=$TMPDIR/ferrule-test-report.xml"' in shown
    assert shown.endswith("'$(touch made)=$TMPDIR/ferrule-test-report.xml'")


async def test_watching_runs_them_again_after_a_change(workspace: Workspace) -> None:
    write(workspace, {"Makefile": "test:\n\t@cat a.txt\n", "a.txt": "first\n"})
    result = await run(workspace, watch=True)
    assert result.text.startswith("started as job_1, ")
    tools = workspace.jobs.make_tools()
    output = ""
    while "waiting for a change" not in output:
        output += (await call_tool(tools, "job_output", id="job_1", wait=20)).text
    assert "first" in output
    await asyncio.sleep(1.1)  # the times of files may be as coarse as a second
    (workspace.folder / "a.txt").write_text("second\n")
    while "second" not in output:
        output += (await call_tool(tools, "job_output", id="job_1", wait=20)).text
    await call_tool(tools, "stop_job", id="job_1")


@pytest.mark.parametrize(("text", "reason"), [('{"a":' * 100_000, "nested too deeply"), ("{", "Expecting")])
async def test_a_package_json_that_cannot_be_read(workspace: Workspace, text: str, reason: str) -> None:
    write(workspace, {"package.json": text})
    result = await run(workspace)
    assert result.is_error
    assert f"package.json can't be read as JSON ({reason}" in result.text
    assert "\n" not in result.text
