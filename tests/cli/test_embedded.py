"""The commands on the model in the package, as the README shows them."""

from __future__ import annotations

from pathlib import Path

import pytest
from terminals import SOURCE, assert_refused, ferrule

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


def test_other_tools_are_refused_before_anything_is_written(tool_folder: Path) -> None:
    done = ferrule("ask", "Shout hello.", "--tools", tool_folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "ferrule: embedded can only use calculator, not shout, picture, wait; leave those out, or choose another "
        "--model\n"
    )


def test_what_the_model_never_learned_is_refused_before_anything_is_written() -> None:
    assert_refused(
        ferrule("ask", "What is 2 + 2?", "--no-tools"),
        "embedded was trained to call calculator; leave out --no-tools, or choose another --model",
    )
    assert_refused(
        ferrule("ask", "What is 2 + 2?", "--mode", "hermes"),
        "trained to write calls in its own notation, not in hermes; leave out --mode, or choose another --model",
    )


def test_render_needs_no_more_than_a_conversation(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    drawn = ferrule("synth", "-", "--count", "12").stdout.splitlines()
    # The tokenizer in the package has no tokens for an offer.
    data.write_text("\n".join([line for line in drawn if '"tools"' not in line][:3]))
    done = ferrule("render", data)
    assert done.returncode == 0
    assert "nanochat: 3 conversations" in done.stdout


def test_eval_measures_the_model_in_the_package() -> None:
    done = ferrule("eval", "embedded", "--count", "20")
    assert done.returncode == 0
    assert "right answer" in done.stdout
