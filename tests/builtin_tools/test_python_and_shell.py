"""The tools `python` and `shell`: what they offer, what a policy makes of them, and what a model reads of a call."""

from __future__ import annotations

import datetime
import json
import math
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ferrule.blobs import BlobStore, hash_blob
from ferrule.builtin_tools import PythonSession, python, python_tool, shell, shell_tool
from ferrule.builtin_tools.python_results import render_result
from ferrule.builtin_tools.python_values import render_value, to_plain_json
from ferrule.conversation import Image, Text, ToolCall, ToolResult
from ferrule.errors import FerruleError, ToolDefinitionError
from ferrule.execution import Approver, Decision, Executor, Policy, Rule
from ferrule.execution.decisions import ApprovalRequest
from ferrule.sandbox.python import DataTable, Mount, Opaque, PythonResult, PythonSandbox
from ferrule.sandbox.shell import ShellSandbox
from ferrule.tools.decorator import Tool
from ferrule.tools.intent import Effect
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[PythonSandbox]:
    async with PythonSandbox() as opened:
        yield opened


async def answer(tool: Tool, policy: Policy | None = None, **arguments: Any) -> ToolResult:
    return (await answers(tool, arguments, policy=policy))[0]


async def answers(
    item: Any, *calls: dict[str, Any], policy: Policy | None = None, approver: Approver | None = None
) -> list[ToolResult]:
    registry = ToolRegistry([item])
    async with registry.open() as bound:
        executor = Executor(bound, policy=policy, approver=approver)
        asked = [
            ToolCall(
                f"call_{n}",
                one.get("_tool", bound.names[0]),
                json.dumps({k: v for k, v in one.items() if k != "_tool"}),
            )
            for n, one in enumerate(calls)
        ]
        results = [await executor.run(call, CallScope()) for call in asked]
    assert all(isinstance(result, ToolResult) for result in results)
    return results


async def test_a_model_reads_the_value_as_json(sandbox: PythonSandbox) -> None:
    result = await answer(python_tool(sandbox), code="{'a': [1, 2.5, None, True], 'b': 'é'}")
    assert json.loads(result.text) == {"a": [1, 2.5, None, True], "b": "é"}
    assert result.status == "ok"


async def test_a_model_reads_what_was_printed_and_the_value_apart(sandbox: PythonSandbox) -> None:
    code = "import sys\nprint('one')\nprint('two', file=sys.stderr)\n'three'"
    assert (await answer(python_tool(sandbox), code=code)).text == "one\n[stderr]\ntwo\n[value]\nthree"


async def test_silence_is_said(sandbox: PythonSandbox) -> None:
    assert (await answer(python_tool(sandbox), code="x = 1")).text.startswith("[no output")


async def test_an_error_comes_with_its_trimmed_traceback_and_what_was_printed(sandbox: PythonSandbox) -> None:
    result = await answer(python_tool(sandbox), code="print('before')\ndef half(x):\n    return x / 0\nhalf(1)")
    assert result.status == "error"
    assert "ZeroDivisionError: division by zero" in result.text
    assert "line 3" in result.text
    assert result.text.endswith("before")
    assert "ferrule" not in result.text


async def test_code_that_was_not_run_can_be_written_again(sandbox: PythonSandbox) -> None:
    result = await answer(python_tool(sandbox), code="print('a'")
    assert result.status == "retry"
    assert "'(' was never closed" in result.text
    assert "before" not in result.text


async def test_refused_is_told_apart_from_failed() -> None:
    async with PythonSandbox(packages=(), checks="seed") as strict:
        refused = await answer(python_tool(strict), code="[1].remove(1)")
        failed = await answer(python_tool(strict), code="1 / 0")
    assert (refused.status, failed.status) == ("retry", "error")
    assert "the attribute remove is not allowed" in refused.text


async def test_advice_goes_with_the_result(sandbox: PythonSandbox) -> None:
    result = await answer(python_tool(sandbox), code="import socket\n1")
    assert result.text.startswith("1\n[advice] line 1, column 1: socket needs the network")


async def test_a_figure_and_a_saved_image_come_as_images(sandbox: PythonSandbox) -> None:
    pytest.importorskip("matplotlib")
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.gcf()"
    result = await answer(python_tool(sandbox), code=code)
    images = [part for part in result.content if isinstance(part, Image)]
    assert len(images) == 1
    assert images[0].data.startswith(b"\x89PNG")
    saved = await answer(python_tool(sandbox), code=code.replace("plt.gcf()", "plt.savefig('a.png'); plt.close()"))
    assert [part.media_type for part in saved.content if isinstance(part, Image)] == ["image/png"]


async def test_inputs_are_given_to_every_call(sandbox: PythonSandbox) -> None:
    tool = python_tool(sandbox, name="sales", inputs={"sales": [1, 2], "notes.txt": b"hello"})
    assert "sales, notes.txt" in tool.description
    [first, second] = await answers(
        tool, {"code": "sales.append(3)\nsum(sales)"}, {"code": "open('notes.txt').read() + str(sum(sales))"}
    )
    assert (first.text, second.text) == ("6", "hello3")


async def test_time_and_memory_are_the_makers(sandbox: PythonSandbox) -> None:
    slow = await answer(python_tool(sandbox, timeout=0.3), code="print('begun', flush=True)\nwhile True: pass")
    assert slow.status == "error"
    assert "begun" in slow.text
    large = await answer(python_tool(sandbox, memory=64 * 1024 * 1024), code="x = bytearray(10**9)")
    assert large.status == "error"


async def test_a_tool_in_a_hurry_keeps_what_was_printed(sandbox: PythonSandbox) -> None:
    from dataclasses import replace

    tool = replace(python_tool(sandbox), timeout=4.0)
    result = await answer(tool, code="print('begun', flush=True)\nwhile True: pass")
    assert "begun" in result.text


async def test_a_session_keeps_variables_and_can_undo() -> None:
    results = await answers(
        PythonSession,
        {"code": "x = [1]"},
        {"code": "x.append(2)\nx"},
        {"_tool": "python_undo"},
        {"code": "x"},
        {"code": "1 / 0"},
        {"code": "x"},
    )
    assert [one.text for one in results][1:4] == [
        "[1, 2]",
        "undone: the variables are as they were before the last call of python",
        "[1]",
    ]
    assert [one.status for one in results] == ["ok"] * 4 + ["error", "ok"]


async def test_sessions_are_apart_from_each_other() -> None:
    await answers(PythonSession, {"code": "x = 1"})
    [result] = await answers(PythonSession, {"code": "x"})
    assert "NameError" in result.text


async def test_nothing_to_undo_is_said() -> None:
    [result] = await answers(PythonSession, {"_tool": "python_undo"})
    assert (result.status, result.text) == ("error", "error: there is nothing to undo: no code was run")


async def test_the_default_sandbox_is_one_for_all_calls() -> None:
    [first, second] = await answers(python, {"code": "1 + 1"}, {"code": "import numpy\nint(numpy.arange(3).sum())"})
    assert (first.text, second.text) == ("2", "3")


def test_the_default_sandbox_is_closed_when_the_program_ends(tmp_path: Path) -> None:
    code = "import asyncio; from ferrule.builtin_tools.python_code import default_python\n"
    code += "print(asyncio.run(default_python().run('6 * 7')).value)"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert (done.stdout, done.stderr) == ("42\n", "")
    assert list(tmp_path.iterdir()) == []


def test_tools_offer_nothing_that_weakens_a_sandbox() -> None:
    assert list(python.parameters["properties"]) == ["code"]
    assert list(PythonSession().tools[0].parameters["properties"]) == ["code"]
    assert list(shell.parameters["properties"]) == ["command", "timeout", "writable"]


@pytest.mark.parametrize("extra", [{"tier": "none"}, {"network": True}, {"timeout": 10**6}])
async def test_arguments_that_are_not_offered_are_refused(sandbox: PythonSandbox, extra: dict[str, Any]) -> None:
    assert (await answer(python_tool(sandbox), code="1", **extra)).status == "invalid"


def test_importing_the_tools_starts_nothing() -> None:
    code = "import ferrule.builtin_tools, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pydantic", "ferrule.sandbox.python.sandbox", "ferrule.sandbox.shell.sandbox"} & set(loaded)


def judged(tool: Tool, profile: Any, **arguments: Any) -> str:
    assert tool.intent is not None
    return Policy(profile=profile).judge(tool, arguments, tool.intent(arguments)).action


PROFILES = ("plan", "ask", "accept-edits", "auto", "all")


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"mode": "read-only"}, "ask ask ask ask allow"),  # it may read anything
        ({"mode": "workspace-write"}, "deny ask ask allow allow"),
        ({"mode": "full"}, "deny ask ask ask allow"),
        ({"mode": "workspace-write", "tier": "none"}, "deny ask ask ask allow"),
        ({"mode": "read-only", "tier": "none"}, "deny ask ask ask allow"),
    ],
)
def test_profiles_on_the_shell(settings: dict[str, Any], wanted: str, tmp_path: Path) -> None:
    tool = shell_tool(ShellSandbox(tmp_path, **settings))
    assert [judged(tool, profile, command="make") for profile in PROFILES] == wanted.split()
    if settings == {"mode": "read-only"}:
        assert [judged(tool, profile, command="cat a | sort") for profile in PROFILES] == ["allow"] * 5


def test_a_folders_mode_and_network_are_what_the_tool_says(tmp_path: Path) -> None:
    for workspace in (tmp_path, None):
        reading = shell_tool(workspace, mode="read-only")
        assert reading.annotations.read_only is True
        assert "nothing can be written" in reading.description
        assert shell_tool(workspace, network=True).annotations.open_world is True
    with pytest.raises(FerruleError, match="isn't a usable folder"):
        shell_tool(tmp_path / "missing")


def test_profiles_on_a_shell_with_hosts(tmp_path: Path) -> None:
    tool = shell_tool(ShellSandbox(tmp_path, mode="read-only", network=["example.org"]))
    assert [judged(tool, profile, command="ls") for profile in PROFILES] == ["deny", "ask", "ask", "ask", "allow"]
    assert tool.annotations.open_world is True
    assert tool.annotations.read_only is False
    assert tool.intent is not None
    assert Effect("net", "example.org") in tool.intent({"command": "ls"}).effects


def test_profiles_on_python() -> None:
    contained = python_tool(PythonSandbox(packages=(), readable=["/usr/share"]))
    assert [judged(contained, profile, code="1") for profile in PROFILES] == ["allow"] * 5
    assert contained.intent is not None
    assert contained.intent({"code": "1"}).effects == (Effect("read", "/usr/share"),)
    assert contained.intent({"code": "1"}).preview == "1"
    free = python_tool(PythonSandbox(packages=(), tier="none"))
    assert [judged(free, profile, code="1") for profile in PROFILES] == ["deny", "ask", "ask", "allow", "allow"]
    with pytest.raises(ToolDefinitionError, match="must be contained"):
        PythonSession(PythonSandbox(packages=(), tier="none"))


def test_what_must_write_git_is_asked_for_as_such(tmp_path: Path) -> None:
    tool = shell_tool(ShellSandbox(tmp_path))
    assert tool.intent is not None
    plain = tool.intent({"command": "make release"})
    words = ("make", "release")
    assert plain.effects == (Effect("run", "make release", words), Effect("write", str(tmp_path), words))
    commit = tool.intent({"command": "make release", "writable": [".git"]})
    assert commit.effects == (*plain.effects, Effect("write", str(tmp_path / ".git"), is_protected=True))
    assert "writes .git, which is protected" in commit.preview
    assert [Policy(profile=profile).judge(tool, {}, plain).action for profile in ("auto", "all")] == ["allow"] * 2
    assert [Policy(profile=profile).judge(tool, {}, commit).action for profile in ("auto", "all")] == ["ask"] * 2
    assert Policy((Rule("allow"),)).judge(tool, {}, commit).action == "ask"


@pytest.mark.parametrize("names", [["/"], ["../x"], [".git/hooks"], ["src"], [".git", ".claude"]])
async def test_nothing_else_can_be_asked_for(names: list[str], tmp_path: Path) -> None:
    result = await answer(shell_tool(tmp_path), command="true", writable=names)
    assert result.status == "error"
    assert "only .git can be asked for" in result.text


async def test_a_model_reads_the_output_of_a_command(tmp_path: Path) -> None:
    async with ShellSandbox(tmp_path) as opened:
        tool = shell_tool(opened)
        [first, second, third, fourth] = await answers(
            tool,
            {"command": "echo one > a.txt; cat a.txt"},
            {"command": "echo two; exit 3"},
            {"command": "true"},
            {"command": "echo begun; sleep 30", "timeout": 0.3},
            policy=Policy(profile="all"),
        )
    assert (first.status, first.text) == ("ok", "one")
    assert (tmp_path / "a.txt").read_text() == "one\n"
    assert (second.status, second.text) == ("error", "error: exit status 3\ntwo")
    assert third.text == "(no output)"
    assert fourth.text.startswith("error: timed out")
    assert fourth.text.endswith("begun")


class Agreeable:
    """Says yes, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def decide(self, request: ApprovalRequest) -> Decision:
        assert request.intent is not None
        self.asked.append(request.intent.preview)
        return Decision.allow(by="a test")


async def test_git_is_written_only_where_that_was_asked_for(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "a").write_text("a")
    commit = "git -c user.name=a -c user.email=a@b add a && git -c user.name=a -c user.email=a@b commit -qm a"
    async with ShellSandbox(tmp_path) as opened:
        tool, asking = shell_tool(opened), {"command": commit, "writable": [".git"]}
        [refused, unasked] = await answers(tool, {"command": commit}, asking, policy=Policy(profile="all"))
        yes = Agreeable()
        [done] = await answers(tool, asking, approver=yes)
    assert (refused.status, unasked.status) == ("error", "denied")
    assert done.status == "ok", done.text
    assert len(yes.asked) == 1
    assert "writes .git, which is protected" in yes.asked[0]


async def test_no_policy_allows_a_shell_everything(tmp_path: Path) -> None:
    async with ShellSandbox(tmp_path) as opened:
        [read, written] = await answers(shell_tool(opened), {"command": "ls"}, {"command": "touch a"})
    assert (read.status, written.status) == ("ok", "denied")
    assert not (tmp_path / "a").exists()


async def test_a_timeout_has_bounds(tmp_path: Path) -> None:
    tool = shell_tool(tmp_path, longest=0.3)
    assert (await answer(tool, command="true", timeout=-1)).status == "retry"
    assert (await answer(tool, command="sleep 30", timeout=10**6)).text.startswith("error: timed out")


def test_values_become_text_that_a_model_can_read() -> None:
    table = DataTable(("city", "people"), (("Paris", 2.1), ("Rome", None)), (0, 1), 5)
    assert render_value(table) == "    city  people\n0  Paris     2.1\n1   Rome    null\n[2 of 5 rows]"
    assert render_value("text") == "text"
    assert render_value((1, {2, 3})) == "[1, [2, 3]]"
    assert render_value(Opaque("x.Y", "<Y>")) == "<Y>"
    assert render_value(Image(b"")) == "[image, image/png]"
    assert render_value(datetime.date(2020, 1, 2)) == '"2020-01-02"'


def test_values_become_json_whatever_they_are() -> None:
    numpy = pytest.importorskip("numpy")
    value = {
        "nan": math.nan,
        "inf": [-math.inf],
        "bytes": b"\x00",
        "keys": {(1, 2): 3},
        "same": {1: "a", "1": "b"},
        "array": numpy.arange(2),
        "table": DataTable(("a",), ((1,),), (0,), 1),
        "odd": Opaque("x.Y", "<Y>"),
        "big": 10**30,
    }
    assert json.loads(json.dumps(to_plain_json(value), allow_nan=False)) == {
        "nan": "NaN",
        "inf": ["-Infinity"],
        "bytes": {"base64": "AA=="},
        "keys": [[[1, 2], 3]],
        "same": [[1, "a"], ["1", "b"]],
        "array": [0, 1],
        "table": {"columns": ["a"], "rows": [[1]], "index": [0], "total_rows": 1},
        "odd": {"type": "x.Y", "repr": "<Y>"},
        "big": 10**30,
    }


async def test_a_session_begins_with_its_inputs_and_mounts_and_keeps_them_when_undone(tmp_path: Path) -> None:
    table = tmp_path / "sales.csv"
    table.write_text("city\nRome\n")
    inputs = {"rate": 2, "notes.txt": "written\n"}
    async with PythonSandbox(packages=()) as sandbox:
        session = PythonSession(sandbox, inputs=inputs, mounts=[Mount(table)])
        scope = CallScope()
        try:
            read = "open('sales.csv').read() + open('notes.txt').read() + str(rate)"
            assert await session.python(read, scope) == [Text("city\nRome\nwritten\n2")]
            await session.python_undo()
            assert await session.python("rate", scope) == [Text("2")]
        finally:
            await session.close()


async def test_a_tool_reads_its_mounts_and_keeps_what_the_code_leaves(tmp_path: Path) -> None:
    table = tmp_path / "sales.csv"
    table.write_text("city\nRome\n")
    async with PythonSandbox(packages=()) as sandbox:
        made = python_tool(sandbox, mounts=[Mount(table, "data/sales.csv")])
        assert "data/sales.csv" in made.description
        blobs = BlobStore()
        code = "open('copy.csv', 'w').write(open('data/sales.csv').read())"
        [text] = await made.function(code, CallScope(blobs=blobs))
        name = hash_blob(b"city\nRome\n")
        assert text == Text(f"10\n[files, kept by content: copy.csv (10 bytes) as {name}]")
        assert blobs.get(name) == b"city\nRome\n"


def test_images_of_a_result_are_limited_in_number_and_in_bytes() -> None:
    many = PythonResult(images=tuple(Image(bytes([number])) for number in range(20)))
    [text, *images] = render_result(many)
    assert len(images) == 16
    assert text == Text("[left out: 4 of 20 images]")
    blobs = BlobStore()
    large = Image(bytes(9 * 1024 * 1024))
    assert render_result(PythonResult(images=(large,)), blobs) == [
        Text(f"[left out: 1 of 1 images, kept as {hash_blob(large.data)}]")
    ]
    assert blobs.get(hash_blob(large.data)) == large.data
