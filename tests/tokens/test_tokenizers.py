"""The byte tokenizer and the Hugging Face one: the ids of `tokenizers`, and never a control token."""

import json
import sys

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from token_parts import ALL_MARKERS, EVIL, byte_tokenizer

from ferrule.errors import TokenizerError
from ferrule.tokens.hugging_face import HuggingFaceTokenizer
from ferrule.tokens.tokenizer import ByteTokenizer, make_byte_tokenizer_json

many = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def library(path):
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed: pip install 'ferrule[local]'")
    return tokenizers.Tokenizer.from_file(str(path))


@given(text=st.text())
@example(text="<|python_start|>")
@many
def test_bytes_are_what_the_library_gives(nanochat_bytes, tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "same.json"
    if not path.exists():
        path.write_text(json.dumps(make_byte_tokenizer_json(list(nanochat_bytes.control))), encoding="utf-8")
    theirs = library(path)
    theirs.encode_special_tokens = True  # as text: what is drawn may be a marker
    expected = theirs.encode(text).ids
    ours = ByteTokenizer(path)
    assert ours.encode_text(text) == expected
    assert HuggingFaceTokenizer(path).encode_text(text) == expected
    assert HuggingFaceTokenizer(path).fingerprint == ours.fingerprint
    assert b"".join(map(ours.decode_token, expected)) == text.encode()


def test_both_tokenizers_agree_on_names_and_size(tmp_path):
    ours = byte_tokenizer(tmp_path)
    pytest.importorskip("tokenizers", reason="tokenizers is not installed: pip install 'ferrule[local]'")
    theirs = HuggingFaceTokenizer(tmp_path)
    assert theirs.control == ours.control
    assert theirs.vocabulary_size == ours.vocabulary_size == 256 + 9
    assert [theirs.decode_token(n) for n in range(265)] == [ours.decode_token(n) for n in range(265)]


def test_a_vocabulary_in_another_order_is_followed(tmp_path):
    settings = make_byte_tokenizer_json(["<|bos|>"])
    settings["model"]["vocab"] = {character: 255 - token for character, token in settings["model"]["vocab"].items()}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(settings), encoding="utf-8")
    assert ByteTokenizer(path).encode_text("é") == library(path).encode("é").ids


@given(text=EVIL)
@many
def test_no_text_yields_a_control_token_and_all_of_it_is_kept(bpe, text):
    ids = bpe.encode_text(text)
    assert set(ids).isdisjoint(bpe.control.values())
    assert b"".join(map(bpe.decode_token, ids)) == text.encode("utf-8", "replace")


@given(text=st.text())
@many
def test_text_without_a_marker_has_the_librarys_ids(bpe, bpe_file, text):
    if not any(marker in text for marker in ALL_MARKERS):
        assert bpe.encode_text(text) == library(bpe_file).encode(text).ids


def test_a_lone_surrogate_becomes_a_question_mark(bpe, nanochat_bytes):
    for tokenizer in (bpe, nanochat_bytes):
        assert tokenizer.encode_text("a\ud800b") == tokenizer.encode_text("a?b")


def test_special_or_not_every_added_token_is_control(bpe):
    assert set(bpe.control) == set(ALL_MARKERS)
    assert bpe.decode_token(bpe.control["<tool_call>"]) == b"<tool_call>"
    assert bpe.vocabulary_size == 1 + max(bpe.control.values())


def test_an_added_token_that_is_in_the_vocabulary_too_is_not_reached(tmp_path):
    """A Unigram model finds `</s>` in text by itself, since it is one of its pieces."""
    pytest.importorskip("tokenizers", reason="tokenizers is not installed: pip install 'ferrule[local]'")
    pieces = [["<unk>", 0.0], ["</s>", -1.0], *([character, -4.0] for character in "▁</s>abc")]
    pieces += [["<0x0A>", -4.0]]
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
    file = {
        "version": "1.0",
        "added_tokens": [{"id": 1, "content": "</s>", **added}],
        "pre_tokenizer": metaspace,
        "decoder": metaspace,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": False},
    }
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file), encoding="utf-8")
    tokenizer = HuggingFaceTokenizer(path)
    ids = tokenizer.encode_text("a </s>b</s>")
    assert 1 not in ids
    assert b"".join(map(tokenizer.decode_token, ids)) == b"a </s>b</s>"
    assert tokenizer.decode_token(9) == b"c"
    assert tokenizer.decode_token(10) == b"\n"
    assert tokenizer.decode_token(1) == b"</s>"


def test_without_the_library_the_extra_is_named(tmp_path, monkeypatch):
    byte_tokenizer(tmp_path)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(TokenizerError, match=r"pip install 'ferrule\[local\]'"):
        HuggingFaceTokenizer(tmp_path)


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path):
    path = tmp_path / "tokenizer.json"
    for text in ("", "[]", '{"added_tokens": [{}]}', '{"model": {"type": "BPE", "merges": []}}'):
        path.write_text(text, encoding="utf-8")
        for reader in (ByteTokenizer, HuggingFaceTokenizer):
            with pytest.raises(TokenizerError, match=r"tokenizer\.json"):
                reader(path)
    with pytest.raises(TokenizerError, match="can't be read"):
        ByteTokenizer(tmp_path / "missing.json")


def test_ids_that_are_not_there_are_refused(bpe, nanochat_bytes):
    for tokenizer in (bpe, nanochat_bytes):
        with pytest.raises(TokenizerError, match="token id 999999 is not in this vocabulary"):
            tokenizer.decode_token(999_999)
