"""A program that answers calls with a person at its terminal: `asking_program.py FOLDER CALLS`, for other tests."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from pathlib import Path

from ferrule.conversation import ToolCall
from ferrule.execution import Executor, Policy, SessionGrants
from ferrule.session.terminal.approver import TerminalApprover
from ferrule.tools.decorator import tool
from ferrule.tools.intent import Diff, Effect, Intent
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope


def make_tools(folder: Path):
    """Tools that show what they would do: `write_file`, `edit_file`, `bash` and one with plain arguments."""

    def intend(path: str, after: str) -> Intent:
        file = folder / path
        before = file.read_bytes().decode() if file.exists() else ""
        state = hashlib.sha256(before.encode()).hexdigest()
        return Intent((Effect("write", str(file)),), Diff(path, before, after), state)

    def apply(path: str, edits: list[dict[str, str]]) -> str:
        text = (folder / path).read_text()
        for edit in edits:
            text = text.replace(edit["old"], edit["new"], 1)
        return text

    @tool(intent=lambda arguments: intend(arguments["path"], arguments["content"]))
    async def write_file(path: str, content: str) -> str:
        """Write a file."""
        (folder / path).write_text(content, newline="")
        return "written"

    @tool(intent=lambda arguments: intend(arguments["path"], apply(arguments["path"], arguments["edits"])))
    async def edit_file(path: str, edits: list[dict[str, str]]) -> str:
        """Edit a file."""
        (folder / path).write_text(apply(path, edits))
        return "edited"

    def run(arguments) -> Intent:
        words = tuple(arguments["command"].split())
        effects = (Effect("run", arguments["command"], words), Effect("write", str(folder), words))
        return Intent(effects, f"$ {arguments['command']}\n[in {folder}]")

    @tool(intent=run)
    async def bash(command: str) -> str:
        """Run a command."""
        return f"ran {command}"

    @tool
    async def send(to: str, text: str = "", count: int = 1) -> str:
        """Send something."""
        return f"{count} × {text!r} to {to}"

    return [write_file, edit_file, bash, send]


async def main(folder: Path, calls: list[list[object]]) -> None:
    made = [ToolCall(f"c{number}", str(name), json.dumps(arguments)) for number, (name, arguments) in enumerate(calls)]
    saved: list[str] = []
    grants = SessionGrants(save=lambda always: saved.append(always.scope))
    policy = Policy(profile="ask", grants=grants)
    async with ToolRegistry(make_tools(folder)).open() as bound:
        executor = Executor(bound, policy=policy, approver=TerminalApprover())
        results = await executor.run_all(made, CallScope(workspace=folder))
    print(json.dumps({"results": [result.text for result in results], "saved": saved}))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), json.loads(sys.argv[2])))
