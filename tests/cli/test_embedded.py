"""The commands on the model in the package, as the README shows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from terminals import SOURCE, assert_refused, ferrule

EXAMPLES = SOURCE.parent / "examples"

pytestmark = pytest.mark.skipif(
    not Path(SOURCE, "ferrule", "embedded", "model.safetensors").is_file(),
    reason="src/ferrule/embedded/model.safetensors is missing: train it with `ferrule train embedded`",
)


def test_the_first_question() -> None:
    done = ferrule("ask", "What is 123456 * 789?")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0] == "▸ calculator  123456 * 789  →  97406784"
    assert "97406784" in lines[1].replace(",", "")


def test_a_chat_goes_on() -> None:
    done = ferrule("chat", typed="What is 12 * 34?\nWhat is 7 + 8?\n")
    results = [line.rpartition("→  ")[2] for line in done.stdout.splitlines() if line.startswith("▸ ")]
    assert results == ["408", "15"]


def test_a_tool_of_ones_own_is_called() -> None:
    done = ferrule("ask", "What's the weather in Paris tomorrow?", "--tools", EXAMPLES / "weather_tool.py", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert json.dumps({"city": "Paris", "day": "tomorrow"}) in json.dumps(events)
    assert "Light rain, 14 degrees." in done.stdout


def test_the_calculator_can_be_left_out() -> None:
    done = ferrule("ask", "What is 12 * 34?", "--tools", EXAMPLES / "weather_tool.py", "--no-calculator")
    assert done.returncode == 0, done.stderr
    assert "408" not in done.stdout
    assert_refused(ferrule("ask", "What is 2 + 2?", "--no-calculator"), "trained to call tools; name one with --tools")


def test_a_tool_that_has_no_signature_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    file = tmp_path / "pack_tool.py"
    file.write_text(
        "from typing import TypedDict\n\nfrom ferrule import tool\n\n\nclass Box(TypedDict):\n    width: int\n\n\n"
        "@tool\ndef pack(box: Box) -> str:\n    'Pack a box.'\n    return 'packed'\n"
    )
    assert_refused(
        ferrule("ask", "Pack a box.", "--tools", file),
        "this model can't be offered the tool 'pack': its parameter 'box' takes an object",
    )


def test_a_text_that_is_too_long_for_the_model_is_said_to_be(tmp_path: Path) -> None:
    done = ferrule("ask", "-", typed="What is 2 + 2? " * 20_000)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the question has filled the model's context of 640 tokens; ask for less at once" in done.stderr
    file = tmp_path / "log_tool.py"
    file.write_text(
        "from ferrule import tool\n\n\n@tool\ndef get_log() -> str:\n    'Get the server log.'\n"
        "    return 'request served in 12 ms\\n' * 200\n"
    )
    done = ferrule("ask", "Get the server log", "--tools", file, "--yes")
    assert done.returncode == 1
    assert "the question and what its tools returned have filled the model's context" in done.stderr


def test_what_the_model_never_learned_is_refused_before_anything_is_written() -> None:
    assert_refused(
        ferrule("ask", "What is 2 + 2?", "--no-tools"),
        "embedded was trained to call tools; name one with --tools, leave out --no-tools or --no-calculator, "
        "or choose another --model",
    )
    assert_refused(
        ferrule("ask", "What is 2 + 2?", "--mode", "hermes"),
        "trained to write calls in its own notation, not in hermes; leave out --mode, or choose another --model",
    )


def test_render_needs_no_more_than_a_conversation(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    assert ferrule("synth", data, "--count", "12").returncode == 0
    assert '"tools"' in data.read_text()
    done = ferrule("render", data)
    assert done.returncode == 0
    assert "nanochat-tools: 12 conversations" in done.stdout


def test_eval_measures_the_model_in_the_package() -> None:
    done = ferrule("eval", "embedded", "--count", "20")
    assert done.returncode == 0
    assert "right answer" in done.stdout
