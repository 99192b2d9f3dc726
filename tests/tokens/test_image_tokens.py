"""Images as ids: as many placeholders as a function says, at places that the trace tells, and never from text."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from token_parts import byte_tokenizer

from ferrule.conversation import Conversation, Image, ImageInput, SampledTokens, Text, assistant, user
from ferrule.dialects import get_dialect
from ferrule.dialects.segments import Content, Control, ImageSlot
from ferrule.errors import TokenizerError
from ferrule.tokens.render import Rollout, encode_segments, render

QWEN = get_dialect("qwen35")
PAD = "<|image_pad|>"
MARKERS = ("<|vision_start|>", PAD, "<|vision_end|>", "[IMG_BREAK]")
IMAGE, OTHER = Image(b"one"), Image(b"two")


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory):
    return byte_tokenizer(tmp_path_factory.mktemp("vision"), (*QWEN.markers, *MARKERS))


def count_bytes(image):
    """A grid that depends on the image."""
    return len(image.data)


PARTS = st.lists(
    st.one_of(
        st.sampled_from([Text(marker) for marker in MARKERS]),
        st.text(max_size=8).map(Text),
        st.binary(min_size=1, max_size=9).map(Image),
    ),
    max_size=6,
)


@given(turns=st.lists(st.tuples(PARTS, st.sampled_from(["Yes.", PAD])), min_size=1, max_size=3))
def test_there_are_as_many_placeholders_as_the_function_says_and_none_from_text(tokenizer, turns):
    messages = [message for parts, answer in turns for message in (user(*parts), assistant(answer))]
    trace = render(Conversation(tuple(messages)), QWEN, tokenizer, image_tokens=count_bytes)
    shown = [part for parts, _ in turns for part in parts if isinstance(part, Image)]
    assert [place.image for place in trace.images] == shown
    assert [place.length for place in trace.images] == [len(image.data) for image in shown]
    pad = tokenizer.control[PAD]
    places = [at for place in trace.images for at in range(place.start, place.start + place.length)]
    assert [at for at, token in enumerate(trace.ids) if token == pad] == places
    assert not any(trace.mask[at] for at in places)
    assert len(trace.ids) == len(trace.mask) == len(trace.logprobs)


def test_other_tokens_may_stand_among_the_placeholders(tokenizer):
    row = [PAD, PAD, "[IMG_BREAK]"]
    trace = encode_segments([Control("a"), ImageSlot(IMAGE, PAD), Content("b")], tokenizer, lambda _: row * 2)
    control = tokenizer.control
    assert trace.ids == (ord("a"), *[control[PAD], control[PAD], control["[IMG_BREAK]"]] * 2, ord("b"))
    assert trace.images == (ImageInput(IMAGE, 1, 6),)


def test_a_framing_that_names_no_placeholder_is_given_the_tokens(tokenizer):
    assert encode_segments([ImageSlot(IMAGE)], tokenizer, lambda _: [PAD]).images == (ImageInput(IMAGE, 0, 1),)
    with pytest.raises(TokenizerError, match=f"image {IMAGE.hash}: this framing names no placeholder"):
        encode_segments([ImageSlot(IMAGE)], tokenizer, lambda _: 3)


def test_what_is_missing_is_named(tokenizer, nanochat_bytes):
    slot = ImageSlot(IMAGE, PAD)
    with pytest.raises(TokenizerError, match=r"give image_tokens=.* how many <\|image_pad\|> stand for it"):
        encode_segments([slot], tokenizer)
    with pytest.raises(TokenizerError, match="which tokens stand for it"):
        encode_segments([ImageSlot(IMAGE)], tokenizer)
    with pytest.raises(TokenizerError, match=r"no control token '<\|image_pad\|>'"):
        encode_segments([slot], nanochat_bytes, lambda _: 1)
    for nothing in (0, []):
        with pytest.raises(TokenizerError, match="image_tokens gives no token"):
            encode_segments([slot], tokenizer, lambda _, nothing=nothing: nothing)


def sampled(*ids):
    return SampledTokens(ids, (-0.5,) * len(ids), "tokenizer", "dialect", "turn")


def test_the_traces_of_a_rollout_have_its_images():
    rollout = Rollout()
    first, second = ImageInput(IMAGE, 1, 2), ImageInput(OTHER, 6, 1)
    rollout.add([1, 9, 9, 2], sampled(3), (first,))
    rollout.add([1, 9, 9, 2, 3, 4, 9], sampled(5), (first, second))
    (trace,) = rollout.traces()
    assert trace.images == (first, second)
    assert trace.mask == (0, 0, 0, 0, 1, 0, 0, 1)


def test_another_image_behind_the_same_ids_begins_another_trace():
    rollout = Rollout()
    place = ImageInput(IMAGE, 1, 2)
    rollout.add([1, 9, 9, 2], sampled(3), (place,))
    rollout.add([1, 9, 9, 2, 3, 4], sampled(5), (replace(place, image=OTHER),))
    assert [(trace.ids, trace.images[0].image) for trace in rollout.traces()] == [
        ((1, 9, 9, 2, 3), IMAGE),
        ((1, 9, 9, 2, 3, 4, 5), OTHER),
    ]
