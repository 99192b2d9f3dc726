"""Chooses the next id of each conversation in a batch, and returns its raw log-probability.

Each conversation that samples has its own generator, so its draws do not depend on the rest of the batch. Logits do, by
about one part in a million: matrix products of other shapes are rounded differently. The same seed therefore gives the
same ids in any batch, unless two probabilities are that close.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ferrule.engines.constraints import GrammarMatcher
from ferrule.engines.protocol import Sampling
from ferrule.engines.weights import Array
from ferrule.errors import EngineError

COLDEST = float(np.finfo(np.float32).tiny)


class TokenSampler:
    """One conversation's `Sampling`, with the state of its generator, and where it is in its grammar."""

    def __init__(self, sampling: Sampling, constraint: GrammarMatcher | None = None) -> None:
        self.sampling = sampling
        self.constraint = constraint
        self.is_forced = False
        """Whether the constraint left one id only for the last one."""
        self.constrained_logprob: float | None = None
        """The last one's log-probability among the ids that the constraint left; None if it refused none."""
        self.failure: EngineError | None = None
        """Why there is no next id: the generation can't go on, the others of the batch can."""
        self.is_greedy = sampling.temperature == 0
        self._generator = None if self.is_greedy else np.random.default_rng(sampling.seed)

    def draw(self) -> float:
        """The next number of this conversation's generator, in [0, 1)."""
        assert self._generator is not None
        return self._generator.random()


def sample_ids(logits: Array, choosers: Sequence[TokenSampler]) -> tuple[list[int], list[float]]:
    """An id for each row of `logits` (rows, vocabulary), and its log-softmax before temperature, top-k and top-p.

    Raises `EngineError` if logits are not finite.
    """
    rows = np.arange(len(choosers))
    likeliest = logits.argmax(axis=1)
    highest = logits[rows, likeliest]
    totals = np.exp(logits - highest[:, None]).sum(axis=1)
    sampling = [row for row, chooser in enumerate(choosers) if not chooser.is_greedy]
    ids = likeliest
    if sampling:
        ids = likeliest.copy()
        ids[sampling] = _draw_ids(logits[sampling], [choosers[row] for row in sampling])
    for row, chooser in enumerate(choosers):
        if chooser.constraint is not None:
            ids[row] = keep_legal(int(ids[row]), logits[row], chooser, chooser.constraint)
    logprobs = logits[rows, ids] - highest - np.log(totals)
    if not np.isfinite(logprobs).all():
        raise EngineError("the model's logits are not finite numbers: its weights are damaged or overflow float32")
    return ids.tolist(), logprobs.tolist()


def keep_legal(chosen: int, logits: Array, chooser: TokenSampler, constraint: GrammarMatcher) -> int:
    """The chosen id, or one that is chosen in place of the illegal ones, which moves the constraint on.

    Drawing again without what was illegal gives each legal id the share of its probability among these.
    """
    chooser.is_forced = constraint.is_forced
    scores = logits
    while not constraint.allows(chosen):
        scores = scores.copy() if scores is logits else scores
        scores[chosen] = -np.inf
        if not np.isfinite(scores.max()):
            chooser.failure = EngineError("constraint: no id continues what was sampled")
            return chosen
        chosen = int(scores.argmax() if chooser.is_greedy else _draw_ids(scores[None], [chooser])[0])
    constraint.advance(chosen)
    if chooser.is_forced:
        chooser.constrained_logprob = 0.0
    else:
        chooser.constrained_logprob = None if scores is logits else _compute_logprob(scores, chosen)
    return chosen


def _compute_logprob(scores: Array, chosen: int) -> float:
    highest = scores.max()
    return float(scores[chosen] - highest - np.log(np.exp(scores - highest).sum()))


def _draw_ids(logits: Array, choosers: Sequence[TokenSampler]) -> NDArray[np.intp]:
    """Draw by the inverse of each row's cumulative distribution, one number from each row's generator."""
    temperatures = np.array([max(chooser.sampling.temperature, COLDEST) for chooser in choosers], np.float32)
    # Divided after subtracting the maximum: a tiny temperature then gives -inf and never inf - inf.
    scaled = (logits - logits.max(axis=1, keepdims=True)) / temperatures[:, None]
    for row, chooser in zip(scaled, choosers, strict=True):
        _keep_likely(row, chooser.sampling.top_k, chooser.sampling.top_p)
    cumulative = np.cumsum(np.exp(scaled), axis=1, dtype=np.float64)
    totals = cumulative[:, -1]
    targets = np.array([chooser.draw() for chooser in choosers]) * totals
    # Rounding up to the total would choose an id after the last one with a probability.
    targets = np.minimum(targets, np.nextafter(totals, 0))
    drawn: NDArray[np.intp] = np.count_nonzero(cumulative <= targets[:, None], axis=1)
    return drawn


def _keep_likely(scaled: Array, top_k: int | None, top_p: float | None) -> None:
    """Set what `top_k` and `top_p` exclude from one row to -inf, in place; exactly k ids stay, ties or not."""
    size = len(scaled)
    if top_k is not None and top_k < size:
        scaled[np.argpartition(scaled, size - top_k)[: size - top_k]] = -np.inf
    if top_p is not None and top_p < 1:
        order = np.argsort(-scaled, kind="stable")
        probabilities = np.exp(scaled[order])
        before = np.cumsum(probabilities, dtype=np.float64) - probabilities
        scaled[order[before >= top_p * probabilities.sum(dtype=np.float64)]] = -np.inf
