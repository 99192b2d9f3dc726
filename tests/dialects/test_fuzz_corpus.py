"""The fuzzer's corpus, without the fuzzer: what it is seeded with, and every input that once broke a reader."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "fuzz"))

from target import check, corpus, notations


@pytest.mark.parametrize("notation", list(notations()))
def test_the_corpus_breaks_no_promise(notation):
    inputs = corpus(notation)
    assert inputs
    for data in inputs:
        for size in (0, 1, 6, 15, 128):
            check(notations()[notation], data[:1] + bytes((size,)) + data[2:])
