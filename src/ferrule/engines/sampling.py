"""Chooses the next id of each conversation in a batch, and returns its raw log-probability.

Of a conversation with a constraint only legal ids are considered: each has the share of its probability among these.

Each conversation that samples has its own generator, so its draws do not depend on the rest of the batch. Logits do, by
about one part in a million: matrix products of other shapes are rounded differently. The same seed therefore gives the
same ids in any batch, unless two probabilities are that close.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

from ferrule.engines.constraints import GrammarMatcher, TokenConstraint, TokenMask
from ferrule.engines.protocol import Sampling
from ferrule.engines.weights import Array
from ferrule.errors import EngineError

COLDEST = float(np.finfo(np.float32).tiny)
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
_KEPT = _BITS.astype(np.float32)
PENALTIES = np.where(_BITS, np.float32(0), np.float32(-np.inf))
"""What eight ids are multiplied with and what is added to them, by a byte of a mask: far faster than an index."""
_FEW = 512
"""Legal ids of which a list is faster than a value for each id of the vocabulary."""
_SHORT = 256
"""Bytes of a mask up to which Python's whole numbers are faster than arrays."""
_PRECISE = 1e-30
"""A sum of float32 from which on its logarithm is right."""


class TokenSampler:
    """One conversation's `Sampling`, with the state of its generator, and where it is in its grammar."""

    def __init__(self, sampling: Sampling, constraint: TokenConstraint | None = None) -> None:
        self.sampling = sampling
        self.constraint = constraint
        self.is_forced = False
        """Whether the constraint left one id only for the last one."""
        self.constrained_logprob: float | None = None
        """The last one's log-probability among the ids that the constraint left; None if it refused none."""
        self.sampling_logprob = 0.0
        """The last one's log-probability in the distribution that it was drawn from: 0 if it was the only choice."""
        self.failure: EngineError | None = None
        """Why there is no next id: the generation can't go on, the others of the batch can."""
        self.is_greedy = sampling.temperature == 0
        self._generator = None if self.is_greedy else np.random.default_rng(sampling.seed)

    def draw(self) -> float:
        """The next number of this conversation's generator, in [0, 1)."""
        assert self._generator is not None
        return self._generator.random()


def sample_ids(
    logits: Array, choosers: Sequence[TokenSampler], vocabulary_size: int | None = None
) -> tuple[list[int], list[float]]:
    """An id for each row of `logits` (rows, ids), and its log-softmax before temperature, top-k and top-p.

    A model may have logits for more ids than its vocabulary, of `vocabulary_size`, has: those are never sampled.

    Raises `EngineError` if logits are not finite.
    """
    rows = np.arange(len(choosers))
    scores = logits[:, :vocabulary_size]
    has_more = scores.shape[1] < logits.shape[1]
    likeliest = scores.argmax(axis=1)
    highest = logits.max(axis=1) if has_more else logits[rows, likeliest]
    shares = np.exp(logits - highest[:, None])
    totals = shares.sum(axis=1)
    drawing = [row for row, one in enumerate(choosers) if one.constraint is None and not one.is_greedy]
    ids = likeliest.copy()
    if drawing:
        ids[drawing] = _draw_ids(scores[drawing], [choosers[row] for row in drawing])
    for row, chooser in enumerate(choosers):
        if chooser.constraint is not None:
            ids[row] = choose_legal(scores[row], chooser, chooser.constraint, None if has_more else shares[row])
    logprobs = logits[rows, ids] - highest - np.log(totals)
    if not np.isfinite(logprobs).all():
        raise EngineError("the model's logits are not finite numbers: its weights are damaged or overflow float32")
    return ids.tolist(), logprobs.tolist()


def choose_legal(logits: Array, chooser: TokenSampler, constraint: TokenConstraint, shares: Array | None = None) -> int:
    """A legal id, by which the constraint goes on; any id, and the chooser's `failure`, if there is none.

    `shares` are the exponentials of the logits less the highest one, if they are known.
    """
    try:
        if isinstance(constraint, GrammarMatcher):
            return _try_ids(logits, chooser, constraint)
        return _choose_by_mask(logits, chooser, constraint, shares)
    except EngineError as error:
        chooser.failure = error
        return 0


def _try_ids(logits: Array, chooser: TokenSampler, constraint: GrammarMatcher) -> int:
    """A legal id, chosen again without each illegal one: in a grammar that is followed so, a mask takes far longer.

    Only what was tried is known to be illegal, so the log-probabilities are those among all others.
    """
    chooser.is_forced = constraint.is_forced
    scores = logits
    chosen = _choose(scores, chooser)
    while not constraint.allows(chosen):
        scores = scores.copy() if scores is logits else scores
        scores[chosen] = -np.inf
        _check_legal(float(scores.max()))
        chosen = _choose(scores, chooser)
    constraint.advance(chosen)
    if chooser.is_forced:
        chooser.constrained_logprob = chooser.sampling_logprob = 0.0
    else:
        chooser.constrained_logprob = None if scores is logits else _compute_logprob(scores, chosen)
    return chosen


def _choose(scores: Array, chooser: TokenSampler) -> int:
    return int(scores.argmax() if chooser.is_greedy else _draw_ids(scores[None], [chooser])[0])


def _choose_by_mask(logits: Array, chooser: TokenSampler, constraint: TokenConstraint, shares: Array | None) -> int:
    mask = constraint.mask()
    count = count_legal(mask)
    chooser.sampling_logprob = 0.0
    if count <= _FEW:
        ids = _list_legal(mask)
        chosen, chooser.constrained_logprob = _choose_among(ids, logits[ids], chooser)
    else:
        chosen, chooser.constrained_logprob = _choose_among_many(mask, logits, chooser, shares)
    taken = constraint.advance(chosen)
    chooser.is_forced = count == 1 or taken != chosen
    if chooser.is_forced:
        chooser.constrained_logprob = chooser.sampling_logprob = 0.0
    elif count == len(logits):
        chooser.constrained_logprob = None
    return taken


def count_legal(mask: TokenMask) -> int:
    """How many ids a mask has."""
    if len(mask) > _SHORT:
        return int(np.bitwise_count(mask).sum())
    return int.from_bytes(mask.tobytes(), "little").bit_count()


def _list_legal(mask: TokenMask) -> NDArray[np.intp]:
    """The ids of a mask that has few."""
    if len(mask) <= _SHORT or len(mask) % 8:
        return np.flatnonzero(np.unpackbits(mask, bitorder="little"))
    words = mask.view(np.uint64)
    at = np.flatnonzero(words)
    rows, bits = np.unpackbits(words[at].view(np.uint8), bitorder="little").reshape(-1, 64).nonzero()
    return at[rows] * 64 + bits


def _choose_among(ids: NDArray[np.intp], scores: Array, chooser: TokenSampler) -> tuple[int, float]:
    """One of these ids, which have these logits, and its log-probability among them."""
    likeliest = scores.argmax() if len(scores) else 0
    highest = float(scores[likeliest]) if len(scores) else -np.inf
    _check_legal(highest)
    if len(ids) == 1:
        return int(ids[0]), 0.0
    at = likeliest if chooser.is_greedy else _draw_ids(scores[None], [chooser])[0]
    return int(ids[at]), float(scores[at]) - highest - log(np.exp(scores - highest).sum())


def _choose_among_many(
    mask: TokenMask, logits: Array, chooser: TokenSampler, shares: Array | None
) -> tuple[int, float]:
    """A legal id, and its log-probability among the legal ones."""
    kept = 0.0 if shares is None else float(shares @ _spread(_KEPT, mask, len(logits), 0))
    likeliest = int(logits.argmax())
    if chooser.is_greedy and kept > _PRECISE and mask[likeliest // 8] >> likeliest % 8 & 1:
        return likeliest, -log(kept)
    scores = logits + _spread(PENALTIES, mask, len(logits), -np.inf)
    chosen = _choose(scores, chooser)
    _check_legal(float(scores[chosen]))
    if kept > _PRECISE:
        return chosen, float(logits[chosen]) - float(logits[likeliest]) - log(kept)
    return chosen, _compute_logprob(scores, chosen)


def _spread(table: Array, mask: TokenMask, size: int, missing: float) -> Array:
    """What a table has for each id of a vocabulary, of which a mask may know fewer ids."""
    values: Array = table.take(mask, axis=0).reshape(-1)[:size]
    return values if len(values) == size else np.pad(values, (0, size - len(values)), constant_values=missing)


def _check_legal(score: float) -> None:
    if score == -np.inf:
        raise EngineError("constraint: no id continues what was sampled")


def _compute_logprob(scores: Array, chosen: int) -> float:
    highest = scores.max()
    return float(scores[chosen] - highest - np.log(np.exp(scores - highest).sum()))


def _draw_ids(logits: Array, choosers: Sequence[TokenSampler]) -> NDArray[np.intp]:
    """Draw by the inverse of each row's cumulative distribution, one number from each row's generator.

    Sets each chooser's `sampling_logprob`.
    """
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
    drawn_logprobs = scaled[np.arange(len(choosers)), drawn] - np.log(totals)
    for chooser, logprob in zip(choosers, drawn_logprobs.tolist(), strict=True):
        chooser.sampling_logprob = logprob
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
