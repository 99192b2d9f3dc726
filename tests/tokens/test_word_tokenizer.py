"""The tokenizer of words: the ids of `tokenizers`, every word alike wherever it stands, and never a control token."""

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ferrule.errors import TokenizerError
from ferrule.models.checkpoints.loading import read_tokenizer
from ferrule.tokens.hugging_face import HuggingFaceTokenizer
from ferrule.tokens.tokenizer import make_byte_tokenizer_json
from ferrule.tokens.word_tokenizer import WordTokenizer, make_word_tokenizer_json

CONTROL = ("<|bos|>", "<|python_start|>")
MERGES = [
    ("t", "h"),
    ("th", "e"),
    ("Ġ", "the"),
    ("s", "t"),
    ("st", "r"),
    (":", "Ġ"),
    (":Ġ", "str"),
    (",", "Ġ"),
    ("Ã", "¤"),
]
TEXTS = st.text(st.sampled_from("the str,:=\"_(1) ä日\n'T\u2028") | st.characters(exclude_categories=["Cs"]))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "tokenizer.json"
    path.write_text(json.dumps(make_word_tokenizer_json(CONTROL, MERGES)), encoding="utf-8")
    return path


@given(text=TEXTS)
@example(text='the theme: str, x="the", and the <|bos|>')
@example(text="thethestrstststhe" * 9)
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_ids_are_what_the_library_gives(file, text):
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed: pip install 'ferrule[local]'")
    theirs = tokenizers.Tokenizer.from_file(str(file))
    theirs.encode_special_tokens = True  # as text: what is drawn may be a marker
    ours = WordTokenizer(file)
    ids = ours.encode_text(text)
    assert ids == theirs.encode(text).ids == HuggingFaceTokenizer(file).encode_text(text)
    assert b"".join(map(ours.decode_token, ids)) == text.encode()
    assert set(ids).isdisjoint(ours.control.values())
    assert HuggingFaceTokenizer(file).fingerprint == ours.fingerprint


def test_control_tokens_and_size_are_what_the_library_gives(file):
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed: pip install 'ferrule[local]'")
    theirs, ours = tokenizers.Tokenizer.from_file(str(file)), WordTokenizer(file)
    assert {name: theirs.token_to_id(name) for name in CONTROL} == ours.control == HuggingFaceTokenizer(file).control
    assert theirs.encode("the<|python_start|>").ids == [*ours.encode_text("the"), ours.control["<|python_start|>"]]
    assert theirs.get_vocab_size() == ours.vocabulary_size


def test_a_word_has_the_same_ids_wherever_it_stands(file):
    ours = WordTokenizer(file)
    word = ours.encode_text("strthest")
    for before, after in (("", " "), (" ", "."), ('"', '"'), ("_", "_"), ("1", "1"), ('="', "\n")):
        start, end = ours.encode_text(before), ours.encode_text(after)
        assert ours.encode_text(f"{before}strthest{after}") == [*start, *word, *end]


def test_a_long_word_is_merged_at_all_places_at_once(file):
    word = "the" * 100_000
    ids = WordTokenizer(file).encode_text(word)
    assert ids == 100_000 * WordTokenizer(file).encode_text("the")


def test_a_frequent_word_has_its_space_with_it(file):
    ours = WordTokenizer(file)
    assert [ours.decode_token(token) for token in ours.encode_text("a the x: str, str")] == [
        b"a", b" the", b" ", b"x", b": str", b", ", b"str",
    ]  # fmt: skip


def test_ids_of_bytes_come_first_and_then_the_control_tokens(file):
    ours = WordTokenizer(file)
    assert [ours.decode_token(n) for n in range(256)] == [bytes([n]) for n in range(256)]
    assert ours.control == {"<|bos|>": 256, "<|python_start|>": 257}
    assert ours.decode_token(258) == b"th"
    assert ours.vocabulary_size == 258 + len(MERGES)
    with pytest.raises(TokenizerError, match="999 is not in this vocabulary"):
        ours.decode_token(999)


def test_a_lone_surrogate_becomes_a_question_mark(file):
    assert WordTokenizer(file).encode_text("a\ud800b") == WordTokenizer(file).encode_text("a?b")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "can't be read"),
        (json.dumps(make_byte_tokenizer_json(CONTROL)), "divides texts in another way"),
        (json.dumps({**make_word_tokenizer_json(CONTROL, MERGES), "added_tokens": 1}), "is missing or invalid"),
        (json.dumps(make_word_tokenizer_json(CONTROL, [("x", "y"), ("q", "zz")])), "is missing or invalid"),
    ],
)
def test_another_file_is_refused(tmp_path, content, message):
    path = tmp_path / "tokenizer.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(TokenizerError, match=message):
        WordTokenizer(path)


def test_a_folders_tokenizer_is_read_without_the_library(file, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    assert isinstance(read_tokenizer(file), WordTokenizer)
