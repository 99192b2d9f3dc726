"""What must always hold of a rendered conversation, for both dialects, with bytes and with an 8k BPE."""

import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from token_parts import EVIL, HERMES, NANOCHAT, byte_tokenizer, conversations

from ferrule.conversation import Conversation, Image, Message, Reasoning, SampledTokens, assistant, user
from ferrule.dialects import get_dialect, list_dialects
from ferrule.dialects.segments import Content, Control, Layout, SampledIds
from ferrule.dialects.template.dialect import make_template_dialect
from ferrule.errors import TokenizerError
from ferrule.tokens.render import encode_layout, encode_segments, find_spelled_markers, render
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


ASKED = Conversation((user("Hi"), assistant("Ho")))


@pytest.mark.parametrize("name", list_dialects())
def test_a_tokenizer_without_the_control_tokens_of_a_dialect_is_refused(tmp_path, name):
    dialect = get_dialect(name)
    layout = dialect.layout(ASKED)
    with pytest.raises(TokenizerError, match="this tokenizer has no control token for '"):
        render(ASKED, dialect, byte_tokenizer(tmp_path, ()))
    # Each of them, where it is written; not those that aren't, and not markers that may be ordinary text.
    for lacking in layout.control_tokens:
        tokenizer = byte_tokenizer(tmp_path, [one for one in layout.control_tokens if one != lacking])
        if lacking in layout.text:
            with pytest.raises(TokenizerError, match=re.escape(f"no control token for {lacking!r}")):
                render(ASKED, dialect, tokenizer)
        else:
            render(ASKED, dialect, tokenizer)


def test_a_marker_is_missing_only_where_it_would_be_ordinary_text(tmp_path):
    lacking = byte_tokenizer(tmp_path, ["<|im_start|>", "<|im_end|>x"])
    layout = Layout((Control("<|im_end|>x"), Content("<|im_end|>")), stops=("<|im_end|>",))
    assert len(encode_layout(layout, lacking)) == 1 + len("<|im_end|>")
    for segment in (Control("<|im_end|>\n"), SampledIds((65,), (-0.1,), "<|im_end|>")):
        with pytest.raises(TokenizerError, match=r"for '<\|im_end\|>', so"):
            encode_layout(replace(layout, segments=(segment,)), lacking)
    with pytest.raises(TokenizerError, match=r"for '<\|im_end\|>', so"):
        encode_layout(replace(layout, segments=(), prompt=(Control("<|im_end|>"),)), lacking, with_prompt=True)
    template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    with pytest.raises(TokenizerError, match=r"for '<\|im_end\|>', so"):
        render(ASKED, make_template_dialect(template), lacking)


def test_a_trace_has_the_losses_of_its_layout(nanochat_bytes):
    thought = Conversation((user("Hi", Image(b"x", "image/png")), assistant(Reasoning("Hm."), "Ho")))
    trace = render(thought, NANOCHAT, nanochat_bytes)
    assert [loss.kind for loss in trace.losses] == ["image", "reasoning"]
    assert trace.losses == NANOCHAT.layout(thought).losses
    assert render(ASKED, NANOCHAT, nanochat_bytes).losses == ()


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
