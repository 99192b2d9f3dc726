"""A conversation kept as JSON comes back as it was, and a file of something else is refused by place."""

import json
import math
from typing import Any

import pytest
from hypothesis import given

from any_conversation import ASKED, CONVERSATIONS
from ferrule.blobs import BlobStore
from ferrule.conversation import (
    Conversation,
    Image,
    Message,
    SampledTokens,
    user,
)
from ferrule.errors import ConversationError
from ferrule.formats.conversation_json import dumps, from_json, loads, to_json
from ferrule.formats.detection import load
from tables import each_case


@given(CONVERSATIONS)
def test_whatever_a_conversation_holds_comes_back(conversation: Conversation) -> None:
    blobs = BlobStore()
    assert from_json(to_json(conversation)) == conversation
    assert from_json(to_json(conversation, blobs), blobs) == conversation
    json.dumps(to_json(conversation), allow_nan=False)


@given(CONVERSATIONS)
def test_as_text_it_comes_back_too_and_can_be_written_as_utf_8(conversation: Conversation) -> None:
    text = dumps(conversation)
    text.encode()
    # What JSON itself makes of two halves of a surrogate pair, and of nothing else.
    assert loads(text) == from_json(json.loads(json.dumps(to_json(conversation))))


def test_half_of_a_pair_survives_and_two_halves_become_their_character() -> None:
    half = Conversation((user("a\ud83d"), user("\udc80b")))
    assert loads(dumps(half)) == half
    halves = Conversation((user("\ud83d\ude00"),), half.now)
    assert from_json(to_json(halves)) == halves
    assert loads(dumps(halves)).messages[0].text == "😀"


def test_a_log_probability_that_is_no_number_comes_back() -> None:
    message = Message(
        "assistant", (), SampledTokens((1, 2, 3), (math.nan, -math.inf, 0.0), "f", "d", "turn"), {"x": math.nan}
    )
    text = dumps(Conversation((message,)))
    json.loads(text, parse_constant=pytest.fail)
    found = loads(text).messages[0]
    assert found.sampled is not None
    assert math.isnan(found.sampled.logprobs[0])
    assert found.sampled.logprobs[1:] == (-math.inf, 0.0)
    assert math.isnan(found.extra["x"])


def test_the_shape_of_the_file() -> None:
    data = to_json(ASKED)
    assert {key: data[key] for key in ("format", "version", "now")} == {
        "format": "ferrule-conversation",
        "version": 1,
        "now": "2026-01-31T12:00:00+00:00",
    }
    assert data["messages"][0]["parts"][1] == {"type": "image", "media_type": "image/png", "data": "iVBORw=="}
    assert data["messages"][1]["parts"][1] == {
        "type": "tool_call",
        "id": "call_1",
        "name": "look",
        "arguments": '{"x":  1.0}',
        "source": "<look 1.0>",
    }
    assert data["messages"][1]["sampled"]["logprobs"] == [-0.5, {"$float": "-inf"}]
    assert data["messages"][1]["sampled"]["sampling_logprobs"] == [0.0, -0.25]
    assert data["messages"][1]["sampled"]["weights_versions"] == [[3, 1], [4, 1]]
    assert "sampled" not in data["messages"][3]
    assert "extra" not in data["messages"][3]


def test_what_was_stored_before_ids_had_sampling_logprobs_is_read() -> None:
    data = json.loads(dumps(ASKED))
    del data["messages"][1]["sampled"]["sampling_logprobs"], data["messages"][1]["sampled"]["weights_versions"]
    sampled = from_json(data).messages[1].sampled
    assert sampled is not None
    assert (sampled.ids, sampled.sampling_logprobs, sampled.weights_versions) == ((5, 6), (), ())


def test_images_by_hash_need_their_blobs() -> None:
    blobs = BlobStore()
    data = to_json(ASKED, blobs)
    assert data["messages"][0]["parts"][1] == {
        "type": "image",
        "media_type": "image/png",
        "blob": Image(b"\x89PNG").hash,
    }
    assert from_json(data, blobs) == ASKED
    with pytest.raises(ConversationError, match=r"message 0, part 1: the image .* needs the blobs"):
        from_json(data)
    with pytest.raises(ConversationError, match=r"message 0, part 1: the image .* isn't in the blobs given"):
        from_json(data, BlobStore())


class Swapped(BlobStore):
    """A store in which somebody changed a file."""

    def get(self, name: str) -> bytes | None:
        return b"something else"


def test_a_blob_that_was_changed_is_told() -> None:
    with pytest.raises(ConversationError, match=r"message 0, part 1: the blob .* isn't what it was"):
        from_json(to_json(ASKED, BlobStore()), Swapped())


@each_case(
    ("path", "value", "words"),
    [
        ((), 5, 'an object with "format"'),
        (("format",), "other", 'an object with "format"'),
        (("version",), 2, "version must be 1, not 2; a newer ferrule"),
        (("version",), "x", "version must be 1, not 'x'"),
        (("now",), "noon", "now must be a time such as"),
        (("now",), 5, "now must be a string, not 5"),
        (("title",), "x", "the conversation has 'title'"),
        (("messages",), {}, "messages must be a list"),
        (("messages", 3), "x", "message 3 must be an object with role and parts"),
        (("messages", 3, "role"), "bot", "message 3: role must be one of system, user, assistant, tool, not 'bot'"),
        (("messages", 3, "text"), "x", "message 3 has 'text'"),
        (("messages", 3, "parts"), "x", "message 3: parts must be a list, not 'x'"),
        (("messages", 3, "extra"), [], "message 3: extra must be an object"),
        (("messages", 3, "extra"), {"$tuple": []}, "message 3: extra must be an object"),
        (("messages", 3, "extra"), {"x": {"$float": "1"}}, r"message 3, extra: \$float can't hold '1'"),
        (("messages", 3, "parts", 1), 7, "message 3, part 1 must be an object with a type"),
        (("messages", 3, "parts", 1, "type"), "call", "message 3, part 1: type must be one of text"),
        (("messages", 3, "parts", 1, "kind"), None, "message 3, part 1: kind must be a string, not None"),
        (("messages", 3, "parts", 0, "source"), "x", "message 3, part 0 has 'source'"),
        (("messages", 0, "parts", 1, "data"), "?", "message 0, part 1: not base64"),
        (("messages", 2, "parts", 0, "status"), "fine", "message 2, part 0: status must be one of ok"),
        (("messages", 2, "parts", 0, "content", 1, "media_type"), 1, "message 2, part 0, content 1: media_type"),
        (("messages", 2, "parts", 0, "content", 0, "type"), "reasoning", "content 0: a result holds text and images"),
        (("messages", 1, "sampled"), 1, "message 1, sampled must be an object"),
        (("messages", 1, "sampled", "ids", 0), "5", "message 1, sampled: ids must be whole numbers"),
        (("messages", 1, "sampled", "logprobs", 0), None, "message 1, sampled: logprobs must be numbers"),
        (("messages", 1, "sampled", "ids"), [5], "there are 1 ids and 2 logprobs"),
        (("messages", 1, "sampled", "sampling_logprobs"), [0.0], "there are 2 ids and 1 sampling_logprobs"),
        (("messages", 1, "sampled", "weights_versions", 0), [3], "weights_versions must be pairs of a version and"),
        (("messages", 1, "sampled", "weights_versions", 0), [3, 2], "2 ids, and weights_versions are for another"),
        (("messages", 1, "sampled", "stop"), "bored", "message 1, sampled: stop must be one of turn"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(path: tuple[str | int, ...], value: object, words: str) -> None:
    data = json.loads(dumps(ASKED))
    inner = data
    for step in path[:-1]:
        inner = inner[step]
    if path:
        inner[path[-1]] = value
    with pytest.raises(ConversationError, match=words):
        from_json(data if path else value)


def test_a_field_that_is_missing_is_named() -> None:
    data = json.loads(dumps(ASKED))
    del data["messages"][1]["parts"][1]["name"]
    with pytest.raises(ConversationError, match="message 1, part 1: name must be a string, which is missing"):
        from_json(data)


@pytest.mark.parametrize("extra", [{"x": {1: 2}}, {"x": [object()]}, {"x": {5, 6}}])
def test_what_is_no_data_is_refused(extra: dict[str, object]) -> None:
    with pytest.raises(ConversationError, match="message 0, extra: "):
        to_json(Conversation((Message("user", (), None, extra),)))


def test_values_nested_too_deeply_are_refused() -> None:
    data = json.loads(dumps(ASKED))
    inner = data["messages"][1]["extra"]
    for _ in range(5000):
        inner["x"] = inner = {}
    with pytest.raises(ConversationError, match="message 1, extra: nested more than 200 levels deep"):
        from_json(data)
    with pytest.raises(ConversationError, match="message 0, extra: nested more than 200 levels deep"):
        to_json(Conversation((Message("user", (), None, data["messages"][1]["extra"]),)))


def test_integers_of_thousands_of_digits_are_refused_and_shown_in_no_message() -> None:
    data = to_json(Conversation((user("Hi"),)))
    with pytest.raises(ConversationError, match="version must be 1, not an integer of thousands of digits"):
        from_json(data | {"version": 10**5000})
    with pytest.raises(ConversationError, match="message 0, extra: an integer of so many digits can't be kept"):
        to_json(Conversation((Message("user", (), None, {"made": 10**5000}),)))
    kept = Conversation((Message("user", (), None, {"made": 10**4000}),))
    assert loads(dumps(kept)) == kept


@pytest.mark.parametrize("name", ["openai", "anthropic", "openai-responses", "nanochat", "ovis"])
def test_values_nested_too_deeply_are_refused_in_every_format(name: str) -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    call = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "look", "arguments": deep}}]}
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {"a": deep}}]}
    files = {
        "openai": [call],
        "anthropic": [use],
        "openai-responses": [{"type": "function_call", "call_id": "a", "name": "look", "arguments": deep}],
        "nanochat": [{"role": "user", "content": deep}],
        "ovis": {"conversations": [{"from": "human", "value": deep}]},
    }
    with pytest.raises(ConversationError) as raised:
        load(files[name], name)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_text_that_is_not_json(text: str) -> None:
    with pytest.raises(ConversationError, match="not JSON"):
        loads(text)
