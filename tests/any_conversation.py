"""Conversations of every kind, drawn by hypothesis, and one that holds a bit of everything."""

import math
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import strategies as st

from ferrule.conversation import (
    Conversation,
    Image,
    MalformedCall,
    Message,
    Reasoning,
    SampledTokens,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    tool_message,
    user,
)

# Halves of surrogate pairs too: what a cut stream leaves.
TEXTS = st.text(st.characters(), max_size=12)
IMAGES = st.builds(Image, st.binary(max_size=12), st.sampled_from(["image/png", "image/jpeg"]))
CONTENT = st.one_of(st.builds(Text, TEXTS), IMAGES)
STATUSES = ("ok", "error", "retry", "denied", "timeout", "cancelled", "unknown_tool", "invalid", "interrupted")
PARTS = st.one_of(
    CONTENT,
    st.builds(Reasoning, TEXTS),
    st.builds(ToolCall, TEXTS, TEXTS, TEXTS, st.none() | TEXTS),
    st.builds(MalformedCall, TEXTS, TEXTS, TEXTS),
    st.builds(ToolResult, TEXTS, TEXTS, st.lists(CONTENT, max_size=2).map(tuple), st.sampled_from(STATUSES)),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(TEXTS | st.sampled_from(["$float", "$bytes", "$tuple", "$object"]), inner, max_size=2)
    ),
    max_leaves=6,
)
SAMPLED = st.lists(st.tuples(st.integers(0, 200_000), st.floats(allow_nan=False, max_value=0)), max_size=4).flatmap(
    lambda pairs: st.builds(
        SampledTokens,
        st.just(tuple(one for one, _ in pairs)),
        st.just(tuple(one for _, one in pairs)),
        TEXTS,
        TEXTS,
        st.sampled_from(["turn", "calls", "length", "context", "cancelled", "error"]),
    )
)
MESSAGES = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.lists(PARTS, max_size=3).map(tuple),
    st.none() | SAMPLED,
    st.dictionaries(TEXTS, VALUES, max_size=2),
)
ZONES = st.none() | st.integers(-840, 840).map(lambda minutes: timezone(timedelta(minutes=minutes)))
CONVERSATIONS = st.builds(
    Conversation, st.lists(MESSAGES, max_size=4).map(tuple), st.datetimes(timezones=ZONES, allow_imaginary=False)
)

ASKED = Conversation(
    (
        user("What is in it?", Image(b"\x89PNG")),
        Message(
            "assistant",
            (Reasoning("Look."), ToolCall("call_1", "look", '{"x":  1.0}', "<look 1.0>")),
            SampledTokens((5, 6), (-0.5, -math.inf), "abc", "hermes", "calls", (0.0, -0.25), ((3, 1), (4, 1))),
            {"anthropic": [{"text": "Look.", "signature": "s"}]},
        ),
        tool_message(ToolResult("call_1", "look", (Text("a cat"), Image(b"cat", "image/jpeg")))),
        assistant("A cat.", MalformedCall("call_2", "<look", "truncated")),
    ),
    datetime(2026, 1, 31, 12, tzinfo=UTC),
)
