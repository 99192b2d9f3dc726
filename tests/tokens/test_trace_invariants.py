"""What must always hold of a rendered conversation, for both dialects, with bytes and with an 8k BPE."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from token_parts import EVIL, HERMES, NANOCHAT, conversations

from ferrule.conversation import Conversation, Message, SampledTokens, assistant, user
from ferrule.dialects.segments import Content, Control, SampledIds
from ferrule.tokens.render import encode_segments, find_spelled_markers, render
from ferrule.tokens.tokenizer import Detokenizer

COMBINATIONS = [(NANOCHAT, "nanochat_bytes"), (NANOCHAT, "bpe"), (HERMES, "hermes_bytes"), (HERMES, "bpe")]
every_combination = pytest.mark.parametrize(("dialect", "fixture"), COMBINATIONS)
many = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)


def framing_only(layout):
    """The layout with nothing in it but the dialect's own words."""
    return [segment for segment in layout.with_prompt if isinstance(segment, Control)]


@every_combination
@given(data=st.data())
@many
def test_no_content_yields_a_control_token(dialect, fixture, request, data):
    tokenizer = request.getfixturevalue(fixture)
    layout = dialect.layout(data.draw(conversations(dialect)))
    control = set(tokenizer.control.values())
    given_ids = [token for token in encode_segments(layout.with_prompt, tokenizer).ids if token in control]
    assert given_ids == [token for token in encode_segments(framing_only(layout), tokenizer).ids if token in control]


@every_combination
@given(data=st.data())
@many
def test_ids_mask_and_logprobs_have_equal_lengths_and_the_text_is_all_there(dialect, fixture, request, data):
    tokenizer = request.getfixturevalue(fixture)
    layout = dialect.layout(data.draw(conversations(dialect)))
    trace = encode_segments(layout.segments, tokenizer)
    assert len(trace.ids) == len(trace.mask) == len(trace.logprobs) == len(trace)
    assert set(trace.mask) <= {0, 1}
    text = b"".join(map(tokenizer.decode_token, trace.ids))
    assert text == layout.text.encode("utf-8", "replace")
    trained = b"".join(tokenizer.decode_token(token) for token, on in zip(trace.ids, trace.mask, strict=True) if on)
    expected = "".join(s.text for s in layout.segments if s.trained)
    assert trained == expected.encode("utf-8", "replace")


@every_combination
@given(data=st.data())
@many
def test_a_generation_prompt_is_a_prefix_of_all_that_follows(dialect, fixture, request, data):
    tokenizer = request.getfixturevalue(fixture)
    conversation = data.draw(conversations(dialect))
    whole = render(conversation, dialect, tokenizer)
    for at, message in enumerate(conversation.messages):
        if message.role != "assistant":
            continue
        before = replace(conversation, messages=conversation.messages[:at])
        # nanochat joins a system message to the next user's, so right before that one there is no generation point.
        assume(at == 0 or conversation.messages[at - 1].role != "system")
        prompt = render(before, dialect, tokenizer, with_prompt=True)
        assert whole.ids[: len(prompt)] == prompt.ids
        assert whole.mask[: len(prompt)] == prompt.mask


@every_combination
@given(data=st.data())
@many
def test_sampled_ids_stand_as_they_are_and_only_they_are_trained(dialect, fixture, request, data):
    tokenizer = request.getfixturevalue(fixture)
    ids = tuple(data.draw(st.lists(st.integers(0, tokenizer.vocabulary_size - 1), min_size=1, max_size=30)))
    logprobs = tuple(-0.5 * at for at in range(len(ids)))
    sampled = SampledTokens(ids, logprobs, tokenizer.fingerprint, dialect.name, "turn")
    asked = Conversation((user(data.draw(EVIL)),))
    prompt = render(asked, dialect, tokenizer, with_prompt=True)
    answered = asked.add(Message("assistant", assistant("decoded somehow").parts, sampled))
    trace = render(answered.add(user("Go on.")), dialect, tokenizer)
    start, end = len(prompt), len(prompt) + len(ids)
    assert trace.ids[:start] == prompt.ids
    assert (trace.ids[start:end], trace.logprobs[start:end]) == (ids, logprobs)
    assert trace.mask == (0,) * start + (1,) * len(ids) + (0,) * (len(trace) - end)
    assert trace.logprobs[:start] + trace.logprobs[end:] == (None,) * (len(trace) - len(ids))
    closer = tokenizer.control["<|assistant_end|>" if dialect is NANOCHAT else "<|im_end|>"]
    assert trace.ids[max(end - 1, 0) : end + 1].count(closer) >= 1


def test_a_closer_is_written_once(nanochat_bytes):
    end = nanochat_bytes.control["<|assistant_end|>"]
    cut = encode_segments([SampledIds((65,), (-0.1,), "<|assistant_end|>")], nanochat_bytes)
    assert (cut.ids, cut.mask) == ((65, end), (1, 0))
    whole = encode_segments([SampledIds((65, end), (-0.1, -0.2), "<|assistant_end|>")], nanochat_bytes)
    assert (whole.ids, whole.mask) == ((65, end), (1, 1))


def test_foreign_samples_are_encoded_anew(nanochat_bytes):
    message = assistant("Hi")
    plain = Conversation((user("?"), message))
    expected = render(plain, NANOCHAT, nanochat_bytes)
    for fingerprint, dialect in (("another", "nanochat"), (nanochat_bytes.fingerprint, "hermes")):
        sampled = SampledTokens((1, 2, 3), (-1.0, -1.0, -1.0), fingerprint, dialect, "turn")
        conversation = replace(plain, messages=(plain.messages[0], replace(message, sampled=sampled)))
        assert render(conversation, NANOCHAT, nanochat_bytes) == expected


def test_text_of_one_run_is_encoded_together(bpe):
    apart = [Content("print", trained=True), Content("able", trained=True)]
    joined = encode_segments([Content("printable", trained=True)], bpe)
    assert encode_segments(apart, bpe) == joined
    assert encode_segments([apart[0], Content("able", trained=False)], bpe).mask[-1] == 0


def test_recurring_runs_are_kept_and_equal(bpe):
    segments = [Control("<|im_start|>system\n"), Content("Be brief.", recurs=True), Control("<|im_end|>\n")]
    assert encode_segments(segments, bpe) == encode_segments(segments, bpe)
    for number in range(600):
        encode_segments([Content(f"prompt {number}", recurs=True)], bpe)
    assert encode_segments(segments, bpe).ids[0] == bpe.control["<|im_start|>"]


def test_markers_without_a_token_are_named(nanochat_bytes, bpe):
    assert not find_spelled_markers(NANOCHAT, nanochat_bytes)
    assert set(find_spelled_markers(HERMES, nanochat_bytes)) == set(HERMES.markers)
    assert not find_spelled_markers(HERMES, bpe)


@given(text=EVIL, data=st.data())
@many
def test_the_detokenizer_never_shows_half_a_character(nanochat_bytes, text, data):
    text = text.encode("utf-8", "replace").decode()
    ids = nanochat_bytes.encode_text(text)
    cut = data.draw(st.integers(0, len(ids)))
    for chunks in ([[token] for token in ids], [ids[:cut], ids[cut:]]):
        detokenizer = Detokenizer(nanochat_bytes)
        shown = ""
        for chunk in chunks:
            for piece, is_control in detokenizer.feed(chunk):
                assert not is_control
                shown += piece
                assert text.startswith(shown)
        assert shown + detokenizer.flush() == text


@pytest.mark.parametrize("emoji", ["🎉", "👩🏽‍🚀", "é", "𝒳"])
def test_an_emoji_split_at_every_byte_appears_whole(nanochat_bytes, emoji):
    detokenizer = Detokenizer(nanochat_bytes)
    shown = [piece for token in nanochat_bytes.encode_text(emoji) for piece in detokenizer.feed([token])]
    assert [text for text, _ in shown] == list(emoji)


def test_a_control_token_ends_a_broken_character(nanochat_bytes):
    detokenizer = Detokenizer(nanochat_bytes)
    bos = nanochat_bytes.control["<|bos|>"]
    assert detokenizer.feed([*nanochat_bytes.encode_text("🎉")[:2], bos, 65]) == [
        ("\ufffd", False),
        ("<|bos|>", True),
        ("A", False),
    ]
    assert detokenizer.feed([0xF0]) == []
    assert detokenizer.flush() == "\ufffd"
