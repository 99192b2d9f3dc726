"""The examples of the first three seeds, as far as what they are about exists."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import pytest

from ferrule import Decision, Executor, Image, Tool, ToolCall, ToolRegistry, calculator, model, tool
from ferrule.arithmetic.evaluate import calculate
from ferrule.dialects import get_dialect
from ferrule.dialects.catalogue import get_notation
from ferrule.events import CallFinished
from ferrule.execution.decisions import ApprovalRequest
from ferrule.formats import nanochat, ovis
from ferrule.models.scripted import ScriptedModel
from ferrule.tokens.render import render
from ferrule.tokens.tokenizer import ByteTokenizer, Detokenizer, make_byte_tokenizer_json
from ferrule.tools.scope import CallScope
from tables import each_case

# The first seed: nanochat.

CONVERSATION = {
    "messages": [
        {"role": "user", "content": "What is 12 * 34?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me calculate that."},
                {"type": "python", "text": "12 * 34"},
                {"type": "python_output", "text": "408"},
                {"type": "text", "text": "The answer is 408."},
            ],
        },
    ]
}


@each_case(
    ("expression", "result"),
    [
        ("123,456 * 789", "97406784"),
        ("2 + 2", "4"),
        ("123.45 * 67.89", "8381.0205"),  # the seed says 8381.5005, which is wrong
        ("(100 - 20) / 4", "20"),
        ("0.15 * 240", "36"),
        ('"hello".count("l")', "2"),
        ('"banana".count("a")', "3"),
        ('"cheese".count("e")', "3"),
    ],
)
def test_the_calculators_examples(expression: str, result: str) -> None:
    assert calculate(expression) == result


@pytest.mark.parametrize("expression", ["9**9**9", "__import__('os').system('rm -rf /')", "open('/etc/passwd').read()"])
def test_what_the_calculator_never_evaluates(expression: str) -> None:
    assert calculate(expression).startswith("error: ")


def test_the_training_format_its_tokens_and_their_mask(tmp_path: Path) -> None:
    conversation = nanochat.load(CONVERSATION)
    assert nanochat.dump(conversation) == CONVERSATION
    dialect = get_dialect("nanochat")
    layout = dialect.layout(conversation)
    assert layout.text == (
        "<|bos|><|user_start|>What is 12 * 34?<|user_end|><|assistant_start|>Let me calculate that."
        "<|python_start|>12 * 34<|python_end|><|output_start|>408<|output_end|>The answer is 408.<|assistant_end|>"
    )
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(make_byte_tokenizer_json(dialect.markers)), encoding="utf-8")
    tokenizer = ByteTokenizer(path)
    trace = render(conversation, dialect, tokenizer)
    trained = [token for token, is_trained in zip(trace.ids, trace.mask, strict=True) if is_trained]
    # The end of the turn is trained too; the seed's sketch of a mask leaves it out.
    assert "".join(text for text, _ in Detokenizer(tokenizer).feed(trained)) == (
        "Let me calculate that.<|python_start|>12 * 34<|python_end|>The answer is 408.<|assistant_end|>"
    )


async def test_the_model_in_the_package_uses_the_calculator() -> None:
    run = await model("embedded").chat("What is 12 * 34?").using(calculator).run()
    assert run.text == "12 × 34 is 408."


# The second seed: Ovis.


@tool
def Crop(box: list[float]) -> Image:
    """Look at a part of the picture, for instance [100, 100, 300, 400]."""
    return Image(json.dumps(box).encode())


@tool
def Identify(box: list[float]) -> str:
    """Tell who is at a place in the picture."""
    return "James"


def test_a_positional_call_is_read() -> None:
    events = get_notation("ovis").reader([Crop.spec]).feed("<tool_call>Crop [100,100,300,400]</tool_call>")
    assert [e.call.decode() for e in events if isinstance(e, CallFinished)] == [{"box": [100, 100, 300, 400]}]


async def test_text_and_image_results_in_its_notation() -> None:
    scripted = ScriptedModel(
        "<tool_call>Crop [1,2,3,4]</tool_call>", "<tool_call>Identify [1,2,3,4]</tool_call>", "This is James."
    )
    run = await model(scripted).chat("Who is this?").using(Crop, Identify, mode="ovis").run()
    results = [message.result for message in run.conversation.messages if message.role == "tool"]
    assert [type(result.content[0]).__name__ for result in results] == ["Image", "Text"]
    assert run.text == "This is James."
    shown = scripted.seen[2].messages
    assert any(isinstance(part, Image) for message in shown for part in message.parts)
    assert shown[-1].text == "<tool_response>James</tool_response>"


def test_its_training_data() -> None:
    value = "<tool_call>Identify [100,100,300,400]</tool_call><tool_response>James</tool_response>\nThis is James."
    data = {"conversations": [{"from": "human", "value": "<image>\nWho?"}, {"from": "gpt", "value": value}]}
    loaded = ovis.load(data, [Identify.spec])
    assert [message.role for message in loaded.messages] == ["user", "assistant", "tool", "assistant"]
    assert loaded.messages[2].result.text == "James"
    assert ovis.dump(loaded) == data


def test_tool_files_are_found(tmp_path: Path) -> None:
    written = (
        "from ferrule import tool\n@tool\ndef identify(box: list[float]) -> str:\n    'Tell who.'\n    return 'James'\n"
    )
    (tmp_path / "mock_id_tool.py").write_text(written, encoding="utf-8")
    assert ToolRegistry.discover(tmp_path).names == ("identify",)


# The third seed: nanocoder.


def run_tests(pattern: Annotated[str, "Test file pattern to match"] = "", watch: bool = False) -> str:
    """Run the project's test suite."""
    return f"ran {pattern or 'all'}, watch={watch}"


READ_FILE = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Relative or absolute path to the file to read"},
        "offset": {"type": "number", "description": "Line number to start reading from (1-indexed)"},
        "limit": {"type": "number", "description": "Maximum number of lines to read"},
    },
    "required": ["path"],
}


def read_file(path: str, **_: float) -> str:
    return f"the text of {path}"


def test_the_registry_and_its_schemas() -> None:
    registry = ToolRegistry(
        [
            Tool.from_schema("read_file", "Read a file.", READ_FILE, read_file, read_only=True),
            Tool.from_callable(run_tests, approval="always"),
        ]
    )
    first, second = registry.schemas("openai")
    assert first == {
        "type": "function",
        "function": {"name": "read_file", "description": "Read a file.", "parameters": READ_FILE},
    }
    assert second["function"]["parameters"]["properties"]["watch"] == {"type": "boolean", "default": False}
    assert [spec.approval for spec in registry.specs] == [None, "always"]


class Answers:
    """An approver that gives these answers."""

    def __init__(self, *decisions: Decision) -> None:
        self._decisions = list(decisions)
        self.asked: list[tuple[str, Mapping[str, object]]] = []

    async def decide(self, request: ApprovalRequest) -> Decision:
        self.asked.append((request.tool, dict(request.arguments)))
        return self._decisions.pop(0)


async def test_approve_deny_edit() -> None:
    approver = Answers(Decision.allow(), Decision.deny("not now"), Decision.edit({"pattern": "b"}), Decision.allow())
    async with ToolRegistry([Tool.from_callable(run_tests, approval="always")]).open() as bound:
        executor = Executor(bound, approver=approver)
        calls = [ToolCall(f"call_{n}", "run_tests", '{"pattern": "a"}') for n in range(3)]
        results = [await executor.run(call, CallScope()) for call in calls]
    texts = [getattr(result, "text", "") for result in results]
    assert texts[0] == "ran a, watch=False"
    assert "not now" in texts[1]
    assert "ran b, watch=False" in texts[2]


async def test_an_unknown_tool_is_told_to_the_model() -> None:
    scripted = ScriptedModel(ToolCall("call_1", "run_test", "{}"), "So.")
    run = await model(scripted).chat("?").using(Tool.from_callable(run_tests)).run()
    assert run.conversation.messages[2].result.text == "error: unknown tool 'run_test'; the nearest is: run_tests"
