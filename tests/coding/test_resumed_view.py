"""What is shown of a resumed conversation and of an undone turn: in order, and with counts that fit the list."""

from __future__ import annotations

from ferrule.coding.checkpoints.report import Report, TurnSummary
from ferrule.coding.checkpoints.restore import Restored
from ferrule.coding.overview import describe_last_exchange
from ferrule.conversation import Conversation, Message, Text, ToolCall, user


def _say(text: str, *calls: str) -> Message:
    return Message("assistant", (Text(text), *(ToolCall(name, "bash", "{}") for name in calls)))


def test_calls_are_counted_where_they_were_made() -> None:
    conversation = Conversation((user("go"), _say("I look first.", "a"), _say("Now I change it.", "b", "c")))
    assert describe_last_exchange(conversation) == ["› go", "▸ 1 call", "  Now I change it.", "▸ 2 calls", ""]
    answered = Conversation((user("go"), _say("", "a"), _say("Done.")))
    assert describe_last_exchange(answered) == ["› go", "▸ 1 call", "  Done.", ""]


def test_the_counts_of_an_undo_are_those_of_its_list() -> None:
    turn = TurnSummary(1, "run the tests", 0.0, "undone", 6, True, False)
    paths = ("__pycache__", "__pycache__/a.pyc", "__pycache__/b.pyc", "src/__pycache__", "src/__pycache__/c.pyc")
    done = (*(Restored(path, "removed") for path in paths), Restored("api.py", "restored"))
    report = Report("undo", turn, done, ignored=frozenset(paths))
    assert str(report).split("\n") == [
        "Undid the turn «run the tests»: 1 path restored, 3 ignored paths removed",
        "  restored api.py",
        "  removed __pycache__/ 2 files (ignored)",
        "  removed src/__pycache__/ 1 file (ignored)",
    ]
