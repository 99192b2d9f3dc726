"""Models and tools that the commands are tried on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "servers"))
sys.path.insert(0, str(Path(__file__).parent))

from memorised import memorise
from tool_files import write_tools

from ferrule import ToolRegistry, calculator
from ferrule.conversation import Conversation, Text, ToolCall, ToolResult, assistant, tool_message, user
from ferrule.formats import nanochat
from function_cache import function_cache
from shared_builds import built_once

__all__ = ["function_cache"]

QUESTION = "What is 123456 * 789?"


def _turns(*turns: tuple[str, str, str, str]) -> Conversation:
    messages = []
    for question, call, output, reply in turns:
        calls = [{"type": "python", "text": call}, {"type": "python_output", "text": output}] if call else []
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": [*calls, {"type": "text", "text": reply}]})
    return nanochat.load({"messages": messages})


@pytest.fixture(scope="session")
def reckoner(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model in the nanochat dialect that knows two short conversations."""
    conversations = [
        _turns(
            (QUESTION, "123456 * 789", "97406784", "123,456 × 789 is 97,406,784."),
            ("And half of it?", "97406784 / 2", "48703392", "Half of it is 48,703,392."),
        ),
        _turns(("Divide 1 by 0.", "1 / 0", "error: division by zero", "Nothing can be divided by zero.")),
    ]
    return f"local:{built_once(tmp_path_factory, 'reckoner', lambda folder: memorise(folder, conversations))}"


@pytest.fixture(scope="session")
def chatterer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of random weights, whose answers end where its context of 65,536 tokens does."""
    folder = tmp_path_factory.mktemp("chatterer")
    return f"local:{memorise(folder, [_turns(('x', '', '', 'y'))], steps=0, context=65536, has_end=False)}"


@pytest.fixture(scope="session")
def tool_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tool files, all of them sound."""
    return write_tools(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="session")
def waiting_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one tool, `wait`."""
    folder = tmp_path_factory.mktemp("waiting")
    write_tools(folder, "wait_tool.py")
    return folder


@pytest.fixture(scope="session")
def waiter(tmp_path_factory: pytest.TempPathFactory, waiting_folder: Path) -> str:
    """A model in the Hermes dialect that calls `wait`, whatever it is told first."""
    specs = ToolRegistry([calculator, ToolRegistry.discover(waiting_folder)]).specs
    result = ToolResult("call_1", "wait", (Text("waited"),))
    conversation = Conversation(
        (
            user("Wait."),
            assistant(ToolCall("call_1", "wait", '{"seconds": 1}')),
            tool_message(result),
            assistant("I waited."),
        )
    )
    folder = built_once(tmp_path_factory, "waiter", lambda place: memorise(place, [conversation], "hermes", specs))
    return f"local:{folder}"
