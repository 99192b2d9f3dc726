"""Calls of one message, each of which needs what the ones before it have done to the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule.coding import tools
from ferrule.coding.workspace import Workspace
from ferrule.conversation import ToolCall
from ferrule.execution import ApprovalRequest, Decision, Executor, Policy
from ferrule.tools.scope import CallScope


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


def edit(path: str, old: str, new: str) -> tuple[str, dict[str, Any]]:
    return "edit_file", {"path": path, "edits": [{"old": old, "new": new}]}


def patch(*lines: str) -> tuple[str, dict[str, Any]]:
    return "apply_patch", {"patch": "\n".join(("*** Begin Patch", *lines, "*** End Patch"))}


def bash(command: str) -> tuple[str, dict[str, Any]]:
    return "bash", {"command": command}


MESSAGES = {
    "a new file is edited": ([write("b.py", "one\n"), edit("b.py", "one", "two")], {"b.py": "two\n"}),
    "an edited text is edited": ([edit("a.py", "one", "two"), edit("a.py", "two", "three")], {"a.py": "three\n"}),
    "one line is changed twice": ([edit("a.py", "one", "one two"), edit("a.py", "one", "1")], {"a.py": "1 two\n"}),
    "a file is read after it was written": (
        [write("b.py", "one\n"), ("read_file", {"path": "b.py"}), edit("b.py", "one", "two")],
        {"b.py": "two\n"},
    ),
    "a command makes the file": ([bash("printf 'x\\n' > c.py"), edit("c.py", "x", "y")], {"c.py": "y\n"}),
    "a program makes the file": (
        [bash("python3 -c \"open('c.py','w').write('x')\""), edit("c.py", "x", "y")],
        {"c.py": "y"},
    ),
    "a patch changes a new file": (
        [write("b.py", "one\ntwo\n"), patch("*** Update File: b.py", "@@", "-two", "+2")],
        {"b.py": "one\n2\n"},
    ),
    "a patched file is patched and edited": (
        [
            patch("*** Add File: b.py", "+one", "+two"),
            patch("*** Update File: b.py", "*** Move to: c.py", "@@", "-one", "+1"),
            edit("c.py", "two", "2"),
        ],
        {"c.py": "1\n2\n"},
    ),
    "a file takes the place of one that a command removes": (
        [bash("rm a.py"), write("a.py", "new\n"), edit("a.py", "new", "newer")],
        {"a.py": "newer\n"},
    ),
    "an edit needs two calls before it": (
        [bash("mkdir d"), bash("printf 'x\\n' > d/e.py"), edit("d/e.py", "x", "y")],
        {"d/e.py": "y\n"},
    ),
}


async def run(folder: Path, calls: list[tuple[str, dict[str, Any]]], **options: Any) -> list[Any]:
    (folder / "a.py").write_text("one\n")
    async with Workspace(folder) as workspace, tools(workspace).open() as bound:
        executor = Executor(bound, **options)
        await executor.run(ToolCall("read", "read_file", '{"path": "a.py"}'), CallScope(workspace=folder))
        made = [ToolCall(f"c{number}", name, json.dumps(given)) for number, (name, given) in enumerate(calls)]
        return await executor.run_all(made, CallScope(workspace=folder))


@pytest.mark.parametrize("name", MESSAGES)
async def test_where_nobody_is_asked(name: str, tmp_path: Path) -> None:
    calls, expected = MESSAGES[name]
    results = await run(tmp_path, calls, policy=Policy(profile="auto"))
    assert [result.text for result in results if result.is_error] == []
    assert {path: (tmp_path / path).read_text() for path in expected} == expected


class Person:
    """Allows everything, and keeps what was shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    async def decide(self, request: ApprovalRequest) -> Decision:
        assert request.intent is not None
        self.shown.append(str(request.intent.preview))
        return Decision.allow()


@pytest.mark.parametrize("name", MESSAGES)
async def test_where_a_person_is_asked(name: str, tmp_path: Path) -> None:
    calls, expected = MESSAGES[name]
    person = Person()
    results = await run(tmp_path, calls, policy=Policy(profile="ask"), approver=person)
    assert [result.text for result in results if result.is_error] == []
    assert {path: (tmp_path / path).read_text() for path in expected} == expected
    if calls[-1][0] == "edit_file":
        old, new = (calls[-1][1]["edits"][0][key] for key in ("old", "new"))
        assert f"-{old}" in person.shown[-1]
        assert f"+{new}" in person.shown[-1]


async def test_an_edit_that_fails_after_another_call_counts_as_one_failure(tmp_path: Path) -> None:
    results = await run(tmp_path, [bash("echo > b.py"), edit("a.py", "nothing", "x")], policy=Policy(profile="auto"))
    assert "`old` isn't in the file" in results[1].text
    assert "failed 2 times" not in results[1].text


async def test_what_an_earlier_call_has_changed_is_read_again_first(tmp_path: Path) -> None:
    calls = [bash("sed -i s/one/two/ a.py"), edit("a.py", "one", "three")]
    results = await run(tmp_path, calls, policy=Policy(profile="auto"))
    assert results[1].text == ("error: a.py has changed since you read it: read it again, then decide what to write")
    assert (tmp_path / "a.py").read_text() == "two\n"
