"""I8: what is too long loses whole turns, the oldest first."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from token_parts import HERMES, NANOCHAT, conversations

from ferrule.conversation import Conversation, user
from ferrule.errors import TokenizerError
from ferrule.tokens.render import render
from ferrule.tokens.truncation import truncated, turns_of


@pytest.mark.parametrize(("dialect", "fixture"), [(NANOCHAT, "nanochat_bytes"), (HERMES, "hermes_bytes")])
@given(data=st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_whole_turns_leave_oldest_first_and_no_more_than_needed(dialect, fixture, request, data):
    tokenizer = request.getfixturevalue(fixture)
    conversation = data.draw(conversations(dialect))
    whole = len(render(conversation, dialect, tokenizer))
    length = data.draw(st.integers(1, max(1, whole)))
    head, turns = turns_of(conversation)
    try:
        shorter = truncated(conversation, dialect, tokenizer, length=length)
    except TokenizerError:
        last = Conversation((*head, *(turns[-1] if turns else ())), conversation.now)
        assert len(render(last, dialect, tokenizer)) > length
        return
    assert len(render(shorter, dialect, tokenizer)) <= length
    shorter.check()
    kept_head, kept = turns_of(shorter)
    assert kept_head == head
    assert kept == turns[len(turns) - len(kept) :]
    if len(kept) < len(turns):
        one_more = [message for turn in turns[len(turns) - len(kept) - 1 :] for message in turn]
        assert len(render(Conversation((*head, *one_more), conversation.now), dialect, tokenizer)) > length


def test_a_conversation_that_fits_is_the_same_object(nanochat_bytes):
    conversation = Conversation((user("Hello"),))
    assert truncated(conversation, NANOCHAT, nanochat_bytes, length=100) is conversation
