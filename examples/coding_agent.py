"""A coding agent in a program of your own: it reads, edits and tests a project, and everything it did is undone.

`Reviewer` decides here, so that the program runs by itself: it lets the agent edit, and run nothing but the tests.

    $ python examples/coding_agent.py
    asked: edit_file
      --- a/calc.py
      +++ b/calc.py
      @@ -1,2 +1,2 @@
       def add(a, b):
      -    return a - b
      +    return a + b
    asked: bash
      $ python3 -m unittest -q test_calc
      ...
    OK
    add() subtracted; the test passes now.
    undone: def add(a, b):
        return a - b
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from ferrule import Decision, Policy, ScriptedModel, ToolCall, model
from ferrule.coding import tools
from ferrule.coding.agent import make_agent
from ferrule.coding.checkpoints import Checkpoints
from ferrule.coding.workspace import Workspace

TEST = (
    "import unittest, calc\nclass Test(unittest.TestCase):\n    def test(self):\n        assert calc.add(2, 2) == 4\n"
)
EDIT = {"path": "calc.py", "edits": [{"old": "a - b", "new": "a + b"}]}
SCRIPT = ScriptedModel(
    [ToolCall("call_1", "read_file", '{"path": "calc.py"}'), ToolCall("call_2", "search", '{"pattern": "add"}')],
    ToolCall("call_3", "edit_file", json.dumps(EDIT)),
    ToolCall("call_4", "bash", '{"command": "python3 -m unittest -q test_calc"}'),
    "add() subtracted; the test passes now.",
)


class Reviewer:
    """Decides as the owner of the project would."""

    async def decide(self, request) -> Decision:
        """Show what would happen; allow edits, and the tests."""
        shown = str(request.intent.preview)
        print(f"asked: {request.tool}\n" + "\n".join(f"  {line}" for line in shown.splitlines()))
        is_fine = request.tool == "edit_file" or request.arguments["command"].startswith("python3 -m unittest")
        return Decision.allow() if is_fine else Decision.deny("edit files, and run only the tests")


async def work(folder: Path) -> None:
    """Let the agent mend a bug, and undo it."""
    (folder / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (folder / "test_calc.py").write_text(TEST)
    async with Workspace(folder) as workspace:
        checkpoints = workspace.checkpoints = Checkpoints(folder, folder.parent / "undo", workspace.access)
        agent = make_agent(model(sys.argv[1] if len(sys.argv) > 1 else SCRIPT), folder)
        agent = agent.using(tools(workspace), policy=Policy(profile="ask"), approver=Reviewer(), workspace=folder)
        checkpoints.begin_turn("mend add")
        run = await agent.chat("The test fails. Mend the code.").run()
        await checkpoints.end_turn()
        print(run.conversation.messages[-2].result.text.splitlines()[-1])
        print(run.text)
        await checkpoints.undo()
        print("undone:", (folder / "calc.py").read_text().rstrip())
        await checkpoints.aclose()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        project = Path(made, "project")
        project.mkdir()
        asyncio.run(work(project))
