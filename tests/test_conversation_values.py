"""What programs write by hand: converted where that is what they mean, refused with what to do where not."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ferrule import Conversation, ConversationError, Message, Text, ToolCall, ToolResult, assistant, user
from ferrule.conversation import tool_message
from tables import each_case


def test_lists_strings_and_dicts_become_what_they_mean() -> None:
    listed: Any = [user("Hi"), assistant("Hello")]
    assert Conversation(listed) == Conversation(tuple(listed))
    parts: Any = ["Hi", Text("you")]
    assert Message("user", parts).parts == (Text("Hi"), Text("you"))
    words: Any = "Hi"
    assert Message("user", words) == user("Hi")
    assert ToolResult("a", "f", words).content == (Text("Hi"),)
    arguments: Any = {"city": "Århus", "days": 2}
    assert ToolCall("a", "f", arguments).arguments == '{"city": "Århus", "days": 2}'


@each_case(
    ("make", "said"),
    [
        (lambda: Conversation(({"role": "user"},)), r"not the dict .*ferrule\.formats\.detection\.load reads"),
        (lambda: Conversation([{"role": "user"}]), r"not the dict .*ferrule\.formats\.detection\.load reads"),
        (lambda: Conversation("Hi"), r"as in Conversation\(\(user\(…\),\)\), not the str 'Hi'"),
        (lambda: Conversation(user("Hi")), "a Conversation takes messages"),
        (lambda: Conversation(5), "must be a tuple, not the int 5"),
        (lambda: Conversation().add("Hi"), r"add\(\) takes messages, not the str 'Hi'; for a question: user\('Hi'\)"),
        (lambda: Conversation().add({"role": "user"}), r"ferrule\.formats\.detection\.load reads"),
        (lambda: replace(Conversation(), messages=["Hi"]), r"for a question: user\('Hi'\)"),
        (lambda: ToolCall("a", "f", [1]), r"as JSON text or a dict, not the list \[1\]"),
        (lambda: ToolCall("a", "f", None), "as JSON text or a dict, not None"),
        (lambda: ToolCall("a", "f", {"x": {1}}), "can't be written as JSON: Object of type set"),
        (lambda: Message("bot", ()), "role is system, user, assistant or tool, not the str 'bot'"),
        (lambda: Message("user", (5,)), "a Message's parts are Text, .*, not the int 5"),
        (lambda: Message("user", {"text": "Hi"}), "a Message's parts must be a tuple, not the dict"),
        (lambda: Text(None), "a Text takes a string, not None"),
        (lambda: ToolResult("a", "f", 408), "a ToolResult's content must be a tuple, not the int 408"),
        (lambda: ToolResult("a", "f", [408]), "takes Text and Image, not the int 408"),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ConversationError, match=said):
        make()


def test_the_request_is_the_users_last_message() -> None:
    assert Conversation().request == ""
    assert Conversation((user("One"), assistant("Yes."), user("Two"), assistant("Yes."))).request == "Two"


def test_the_next_calls_number_is_free_also_after_turns_were_dropped() -> None:
    def call(call_id: str) -> tuple[Message, Message]:
        return assistant(ToolCall(call_id, "f", "{}")), tool_message(ToolResult(call_id, "f", "x"))

    whole = Conversation((user("a"), *call("call_1"), user("b"), *call("call_2")))
    assert Conversation().next_call_number == 1
    assert whole.next_call_number == Conversation(whole.messages[3:]).next_call_number == 3
    # Ids of others aren't numbers, but are counted; a number of thousands of digits isn't read.
    named = Conversation((user("a"), *call("toolu_a"), *call("call_" + "9" * 5000), *call("call_7f")))
    assert named.next_call_number == 4
