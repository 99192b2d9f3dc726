"""Sampling in torch is sampling in numpy: the same ids by the same draws, and the same log-probabilities."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from test_constraints import Tokens  # noqa: E402

from ferrule.dialects.grammar import CharacterSet, LiteralText  # noqa: E402
from ferrule.engines import Sampling  # noqa: E402
from ferrule.engines.constraint_compiler import ConstraintCompiler  # noqa: E402
from ferrule.engines.sampling import TokenSampler, sample_ids  # noqa: E402
from ferrule.engines.torch_sampling import sample_ids as sample_in_torch  # noqa: E402
from ferrule.engines.torch_sampling import sample_on_device  # noqa: E402
from ferrule.errors import EngineError  # noqa: E402

SAMPLINGS = [
    Sampling(),
    Sampling(temperature=1.0),
    Sampling(temperature=1e-30),
    Sampling(temperature=0.7, top_k=5),
    Sampling(temperature=1.5, top_p=0.8),
    Sampling(temperature=3.0, top_p=0.99),  # of more ids than are searched first
    Sampling(temperature=1.2, top_k=300, top_p=0.9),
    Sampling(temperature=1.0, top_k=10_000, top_p=1.0),
]


def describe(chooser: TokenSampler) -> tuple[object, ...]:
    return chooser.is_forced, chooser.sampling_logprob, chooser.constrained_logprob, str(chooser.failure)


def compare(logits, make_choosers, vocabulary_size) -> None:
    """Sample both ways and compare all that is known of each choice."""
    ours, theirs = make_choosers(), make_choosers()
    ids, logprobs = sample_on_device(torch.from_numpy(logits), ours, vocabulary_size)
    expected_ids, expected_logprobs = sample_ids(logits, theirs, vocabulary_size)
    going_on = [row for row, chooser in enumerate(theirs) if chooser.failure is None]
    assert [ids[row] for row in going_on] == [expected_ids[row] for row in going_on]
    assert [logprobs[row] for row in going_on] == pytest.approx([expected_logprobs[row] for row in going_on], abs=1e-5)
    for chooser, expected in zip(map(describe, ours), map(describe, theirs), strict=True):
        for one, other in zip(chooser, expected, strict=True):
            assert one == (pytest.approx(other, abs=1e-4) if isinstance(other, float) else other)


@pytest.mark.parametrize("seed", range(5))
def test_draws_are_those_of_numpy(seed):
    logits = np.random.default_rng(seed).normal(0, 2, (len(SAMPLINGS), 5000)).astype(np.float32)
    for vocabulary_size in (5000, 5500, 4000):
        compare(logits, lambda: [TokenSampler(_with_seed(each, seed)) for each in SAMPLINGS], vocabulary_size)


def _with_seed(sampling: Sampling, seed: int) -> Sampling:
    return Sampling(sampling.temperature, sampling.top_k, sampling.top_p, seed=seed)


def test_exactly_k_ids_stay_of_equal_ones():
    logits = torch.zeros((64, 100))
    ids, _ = sample_on_device(logits, [TokenSampler(Sampling(1.0, top_k=3, seed=seed)) for seed in range(64)], 100)
    assert len(set(ids)) == 3


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_constraint_leaves_what_is_legal(temperature):
    """Beside free rows, with more logits than the vocabulary has ids, and one whose text has ended."""
    pytest.importorskip("llguidance", reason="llguidance is not installed")
    compiler = ConstraintCompiler(Tokens())
    grammars = [LiteralText("abc"), None, CharacterSet("xyz"), None, LiteralText("a")]
    logits = np.random.default_rng(1).normal(0, 2, (5, 300)).astype(np.float32)

    def make_choosers():
        choosers = []
        for seed, grammar in enumerate(grammars):
            constraint = None if grammar is None else compiler.compile(grammar, [255], 50)
            choosers.append(TokenSampler(Sampling(temperature, seed=seed), constraint))
        choosers[-1].constraint.advance(ord("a"))
        choosers[-1].constraint.advance(255)
        return choosers

    for vocabulary_size in (300, 262):
        compare(logits, make_choosers, vocabulary_size)


def test_ids_beyond_the_vocabulary_are_never_sampled():
    logits = np.zeros((200, 20), np.float32)
    logits[:, 15:] = 5
    choosers = [TokenSampler(Sampling(1.0 if seed else 0.0, seed=seed)) for seed in range(200)]
    for ids, logprobs in (
        sample_on_device(torch.from_numpy(logits), choosers, 15),
        sample_ids(logits, choosers, 15),
        sample_in_torch(torch.from_numpy(logits), choosers, 15),
    ):
        assert max(ids) < 15
        # Of all logits, as a forward pass in training has them.
        assert logprobs == pytest.approx([-float(np.log(15 + 5 * np.exp(5)))] * 200)
        assert [chooser.sampling_logprob for chooser in choosers[1:]] == pytest.approx([-float(np.log(15))] * 199)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_logits_that_are_not_finite_are_an_error(value, temperature):
    logits = torch.zeros((2, 10))
    logits[1, 3] = value
    with pytest.raises(EngineError, match="not finite"):
        sample_on_device(logits, [TokenSampler(Sampling(temperature)) for _ in range(2)], 10)
