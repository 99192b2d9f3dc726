"""The tools of an MCP server in the planner's hands: a task with one runs the loop that offers it."""

import sys
from pathlib import Path

import pytest
from staged_model import StagedModel

from ferrule.analysis import AnalysisSettings, run_analysis
from ferrule.conversation import ToolCall
from ferrule.execution import Policy
from ferrule.mcp import MCPServer

SERVER = Path(__file__).parents[1] / "mcp" / "sdk_server.py"
ANSWERS = {
    "complexity": {"level": "straightforward"},
    "candidates": {"plans": [{"tasks": [{"id": "t1", "tool": "add", "query": "Add 2 and 3."}]}]},
    "add": [ToolCall("c1", "add", '{"a": 2, "b": 3}'), {"answer": "The server says 5.", "values": {"sum": 5}}],
    "synthesis": {"answer": "It is 5.", "key_findings": []},
    "focused_answer": {"answer_type": "number", "answer_value": 5, "formatted_answer": "5"},
}
QUICK = AnalysisSettings(mode="quick")


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "said"), [(Policy(profile="all"), "5"), (None, "denied")])
async def test_a_task_may_use_a_tool_of_a_server(policy: Policy | None, said: str) -> None:
    model = StagedModel(ANSWERS)
    server = MCPServer([sys.executable, str(SERVER)], name="numbers")
    result = await run_analysis("What is 2 + 3?", model=model, tools=[server], settings=QUICK, policy=policy)
    assert "- add: Add two numbers." in model.find("candidates").question
    answered = [request for request in model.seen if request.key.stage == "add"][1]
    assert said in answered.conversation.messages[-1].result.text
    assert result.tasks[0].result == "The server says 5."
