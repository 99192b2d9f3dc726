"""I8: what is too long loses whole turns, the oldest first."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from token_parts import HERMES, NANOCHAT, conversations

from ferrule.conversation import Conversation, Image, Text, ToolCall, ToolResult, assistant, system, tool_message, user
from ferrule.errors import ContextLengthError
from ferrule.tokens.render import render
from ferrule.tokens.truncation import drop_oldest_turns, split_turns


@pytest.mark.parametrize(("dialect", "fixture"), [(NANOCHAT, "nanochat_bytes"), (HERMES, "hermes_bytes")])
@given(data=st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_whole_turns_leave_oldest_first_and_no_more_than_needed(dialect, fixture, request, data):
    tokenizer = request.getfixturevalue(fixture)

    def count(one):
        return len(render(one, dialect, tokenizer))

    conversation = data.draw(conversations(dialect))
    length = data.draw(st.integers(1, max(1, count(conversation))))
    head, turns = split_turns(conversation)
    try:
        truncation = drop_oldest_turns(conversation, count, limit=length)
    except ContextLengthError:
        last = Conversation((*head, *(turns[-1] if turns else ())), conversation.now)
        assert count(last) > length
        return
    shorter = truncation.conversation
    assert count(shorter) <= length
    shorter.check()
    kept_head, kept = split_turns(shorter)
    assert kept_head == head
    assert kept == turns[len(turns) - len(kept) :]
    assert (*head, *truncation.dropped, *shorter.messages[len(head) :]) == conversation.messages
    if len(kept) < len(turns):
        one_more = [message for turn in turns[len(turns) - len(kept) - 1 :] for message in turn]
        assert count(Conversation((*head, *one_more), conversation.now)) > length


def test_a_conversation_that_fits_is_the_same_object(nanochat_bytes):
    conversation = Conversation((user("Hello"),))
    truncation = drop_oldest_turns(conversation, lambda one: len(render(one, NANOCHAT, nanochat_bytes)), limit=100)
    assert truncation.conversation is conversation
    assert (truncation.dropped, truncation.images, truncation.summary) == ((), (), "")


def test_what_was_dropped_is_told_with_its_images():
    shown, returned = Image(b"one"), Image(b"two")
    first = (
        user("What is this?", shown),
        assistant(ToolCall("call_1", "crop", "{}")),
        tool_message(ToolResult("call_1", "crop", (Text("Here."), returned))),
        assistant("A cat."),
    )
    second = (user("And this?"), assistant("A dog."))
    last = (user("Thanks."),)
    conversation = Conversation((system("Be brief."), *first, *second, *last))

    truncation = drop_oldest_turns(conversation, len, limit=4)
    assert truncation.conversation.messages == (system("Be brief."), *second, *last)
    assert truncation.dropped == first
    assert truncation.images == (shown, returned)
    assert truncation.summary == (
        "the oldest 1 turn (4 messages, 2 images) left out: the conversation had outgrown the model's context"
    )
    assert drop_oldest_turns(conversation, len, limit=3).dropped == (*first, *second)


def test_few_candidates_are_counted_for_many_turns():
    conversation = Conversation(tuple(user(str(number)) for number in range(1000)))
    counted = []

    def count(one):
        counted.append(one)
        return len(one)

    assert len(drop_oldest_turns(conversation, count, limit=10).conversation) == 10
    assert len(counted) <= 12
