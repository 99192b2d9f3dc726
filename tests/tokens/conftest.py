"""The tokenizers of these tests: bytes with each dialect's control tokens, and an 8k BPE trained here."""

import sysconfig
from pathlib import Path

import pytest
from token_parts import HERMES, byte_tokenizer, train_bpe


@pytest.fixture(scope="session")
def nanochat_bytes(tmp_path_factory):
    return byte_tokenizer(tmp_path_factory.mktemp("nanochat"))


@pytest.fixture(scope="session")
def hermes_bytes(tmp_path_factory):
    return byte_tokenizer(tmp_path_factory.mktemp("hermes"), HERMES.markers)


@pytest.fixture(scope="session")
def bpe_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:60]
    train_bpe(path, (source.read_text(encoding="utf-8", errors="replace") for source in sources))
    return path


@pytest.fixture(scope="session")
def bpe(bpe_file):
    from ferrule.tokens.hugging_face import HuggingFaceTokenizer

    return HuggingFaceTokenizer(bpe_file)
