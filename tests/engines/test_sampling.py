"""Greedy, temperature, top-k and top-p over rows of logits."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.engines.protocol import Sampling
from ferrule.engines.sampling import TokenSampler, sample_ids
from ferrule.errors import EngineError


def test_greedy_takes_the_highest_and_gives_its_log_softmax():
    logits = np.float32([[1, 3, 2], [5, 0, 5.5]])
    ids, logprobs = sample_ids(logits, [TokenSampler(Sampling()), TokenSampler(Sampling())])
    assert ids == [1, 2]
    assert logprobs[0] == pytest.approx(3 - math.log(math.e + math.e**3 + math.e**2), abs=1e-6)


@given(st.lists(st.floats(-50, 50, width=32), min_size=2, max_size=40), st.floats(0.01, 5), st.integers(0, 99))
def test_logprobs_are_the_raw_log_softmax_whatever_the_sampling(row, temperature, seed):
    logits = np.float32([row, row[::-1]])
    choosers = [TokenSampler(Sampling(temperature, top_k=2, top_p=0.9, seed=seed)), TokenSampler(Sampling())]
    ids, logprobs = sample_ids(logits, choosers)
    exact = logits.astype(np.float64)
    exact -= np.log(np.exp(exact).sum(axis=1, keepdims=True))
    assert logprobs == pytest.approx([exact[0, ids[0]], exact[1, ids[1]]], abs=1e-4)


def test_draws_follow_the_probabilities():
    probabilities = np.array([0.5, 0.3, 0.15, 0.05])
    logits = np.log(probabilities).astype(np.float32)[None]
    chooser = TokenSampler(Sampling(temperature=1.0, seed=3))
    counts = Counter(sample_ids(logits, [chooser])[0][0] for _ in range(4000))
    assert [counts[i] / 4000 for i in range(4)] == pytest.approx(probabilities, abs=0.03)


@pytest.mark.parametrize(
    ("sampling", "possible"),
    [
        (Sampling(5.0, top_k=1, seed=0), {2}),
        (Sampling(5.0, top_k=2, seed=0), {0, 2}),
        (Sampling(1.0, top_p=0.45, seed=0), {2}),
        (Sampling(1.0, top_p=0.6, seed=0), {0, 2}),
        (Sampling(1.0, top_p=1e-9, seed=0), {2}),
        (Sampling(1.0, top_k=2, top_p=0.999, seed=0), {0, 2}),
        (Sampling(1e-60, seed=0), {2}),
        (Sampling(1.0, top_k=99, top_p=1.0, seed=0), {0, 1, 2, 3}),
    ],
)
def test_what_is_cut_is_never_drawn(sampling, possible):
    logits = np.log(np.float32([[0.3, 0.15, 0.5, 0.05]]))
    chooser = TokenSampler(sampling)
    with np.errstate(over="ignore"):
        assert {sample_ids(logits, [chooser])[0][0] for _ in range(300)} == possible


def test_top_k_keeps_exactly_k_of_equals():
    chooser = TokenSampler(Sampling(1.0, top_k=3, seed=0))
    assert len({sample_ids(np.zeros((1, 10), np.float32), [chooser])[0][0] for _ in range(200)}) == 3


def test_a_row_draws_the_same_in_any_company():
    logits = np.random.default_rng(0).normal(size=(3, 50)).astype(np.float32)
    alone = TokenSampler(Sampling(1.0, seed=7))
    expected = [sample_ids(logits[1:2], [alone])[0][0] for _ in range(20)]
    others = [
        TokenSampler(Sampling(0.7, top_p=0.9, seed=1)),
        TokenSampler(Sampling(1.0, seed=7)),
        TokenSampler(Sampling()),
    ]
    assert [sample_ids(logits, others)[0][1] for _ in range(20)] == expected


def test_a_large_vocabulary_is_drawn_to_its_end():
    logits = np.zeros((1, 150_000), np.float32)
    chooser = TokenSampler(Sampling(1.0, seed=0))
    drawn = [sample_ids(logits, [chooser])[0][0] for _ in range(100)]
    assert max(drawn) > 130_000
    assert min(drawn) < 20_000


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_not_numbers_are_an_error(bad):
    logits = np.float32([[0, bad, 1]])
    with pytest.raises(EngineError, match="not finite"), np.errstate(all="ignore"):
        sample_ids(logits, [TokenSampler(Sampling())])
