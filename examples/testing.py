"""Tests of an agent without keys: a script decides what the model writes, and the model in the package really samples.

pytest finds these tests (`pytest examples/testing.py`); as a program, the file runs them itself.

    $ python examples/testing.py
    the shop counts: ok
    a wrong call is answered and not raised: ok
    a script left over is reported: ok
    the model in the package calculates: ok
    a recording answers in place of its model: ok
"""

import tempfile
from pathlib import Path

from ferrule import ScriptedModel, ToolCall, calculator, model, record, tool

STOCK = {"camel": 3}


@tool(read_only=True)
def count_stock(article: str) -> int:
    """Count how many of an article are in stock."""
    return STOCK[article]


def ask(writer, question: str):
    """The agent that is tested: its model is an argument, so a test can put another in its place."""
    return model(writer).system("You sell camels.").chat(question).using(count_stock).run_sync()


def test_the_shop_counts() -> None:
    """The call that the script writes is really run, and the model is shown its result."""
    script = ScriptedModel(ToolCall("call_1", "count_stock", '{"article": "camel"}'), "Three.")
    run = ask(script, "How many camels?")
    assert run.text == "Three."
    assert script.seen[1].messages[-1].result.text == "3"
    script.assert_used_up()


def test_a_wrong_call_is_answered_and_not_raised() -> None:
    """Wrong arguments, and tools that don't exist, are answered in words that the model can act on."""
    script = ScriptedModel([ToolCall("a", "count_stock", "{}"), ToolCall("b", "count_sotck", "{}")], "Sorry.")
    results = [message.result for message in ask(script, "?").conversation.messages if message.role == "tool"]
    assert [result.status for result in results] == ["invalid", "unknown_tool"]
    assert "nearest is: count_stock" in results[1].text


def test_a_script_left_over_is_reported() -> None:
    """A test that ends too early doesn't pass."""
    script = ScriptedModel("Hello.", "never written")
    ask(script, "Hello?")
    try:
        script.assert_used_up()
    except AssertionError:
        return
    raise RuntimeError("nothing was reported")


def test_the_model_in_the_package_calculates() -> None:
    """No script: the embedded model samples its call, with the same result for the same seed."""
    run = model("embedded").chat("What is 12 * 34?").using(calculator).run_sync()
    assert run.text == "12 × 34 is 408."


def test_a_recording_answers_in_place_of_its_model() -> None:
    """A model is asked once; what it answered is replayed from the file, without a key or a network."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "product.jsonl"
        first = model("embedded", record=file).chat("What is 7 * 8?").using(calculator).run_sync()
        again = model(record(file, mode="replay")).chat("What is 7 * 8?").using(calculator).run_sync()
    assert again.text == first.text == "7 × 8 is 56."


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(name.removeprefix("test_").replace("_", " ") + ": ok")
