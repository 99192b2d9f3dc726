"""Chooses the next id of each conversation where the logits are: they don't leave the device.

The draws are those of `sampling`: the same numbers, from the same distribution, rounded as torch rounds it. Of a
constraint, the bits of its mask go to the device.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from ferrule.engines.constraints import TokenConstraint, TokenMask
from ferrule.engines.sampling import COLDEST, PENALTIES, TokenSampler
from ferrule.engines.sampling import sample_ids as sample_in_numpy
from ferrule.errors import EngineError

_LIKELIEST = (1024, 16_384)
"""How many ids the likeliest ones by `top_p` are searched in first: sorting a whole vocabulary takes long."""
_BLOCK = 1024
_SMALL = 2**18
_SORTED = 2**15
"""Logits up to which numpy is faster on the CPU, where it needn't sort a vocabulary larger than this."""


def sample_ids(logits: Tensor, choosers: Sequence[TokenSampler], vocabulary_size: int) -> tuple[list[int], list[float]]:
    """See `sampling.sample_ids`, which is faster for a few rows on the CPU."""
    is_small = logits.numel() <= _SMALL and (logits.shape[1] <= _SORTED or all(map(_takes_all, choosers)))
    if is_small and logits.device.type == "cpu":
        with np.errstate(all="ignore"):  # overflows are visible in the logits, which are checked
            return sample_in_numpy(logits.numpy(), choosers, vocabulary_size)
    return sample_on_device(logits, choosers, vocabulary_size)


def _takes_all(chooser: TokenSampler) -> bool:
    return chooser.sampling.top_p is None


def sample_on_device(
    logits: Tensor, choosers: Sequence[TokenSampler], vocabulary_size: int
) -> tuple[list[int], list[float]]:
    """See `sampling.sample_ids`. Raises `EngineError` if logits are not finite."""
    masks = _compute_masks(choosers)
    scores = logits[:, :vocabulary_size]
    if masks:
        scores = _hide_illegal(scores, masks)
    ids = scores.argmax(dim=1)
    drawing = [row for row, chooser in enumerate(choosers) if not chooser.is_greedy and chooser.failure is None]
    if drawing:
        ids[drawing] = _draw_ids(scores[drawing], [choosers[row] for row in drawing])
    if masks:
        _advance(ids, scores, {row: (choosers[row], mask) for row, mask in masks.items()})
    logprobs = logits.gather(1, ids[:, None])[:, 0] - _sum_exponentials(logits)
    if not torch.isfinite(logprobs).all():
        raise EngineError("the model's logits are not finite numbers: its weights are damaged or overflow")
    return ids.tolist(), logprobs.tolist()


def _compute_masks(choosers: Sequence[TokenSampler]) -> dict[int, TokenMask]:
    """By row, which ids are legal for those with a constraint; sets the `failure` of one that can't go on."""
    masks = {}
    for row, chooser in enumerate(choosers):
        if chooser.constraint is not None:
            try:
                masks[row] = chooser.constraint.mask()
            except EngineError as error:
                chooser.failure = error
    return masks


def _hide_illegal(logits: Tensor, masks: dict[int, TokenMask]) -> Tensor:
    """A copy with -inf for illegal ids."""
    rows = list(masks)
    packed = torch.from_numpy(np.stack([masks[row] for row in rows])).to(logits.device)
    table = torch.from_numpy(PENALTIES).to(logits.device)
    # The table has what is added to eight ids by a byte of the mask: faster than a mask of single ids.
    known = table.index_select(0, packed.flatten().int()).view(len(rows), -1)[:, : logits.shape[1]]
    penalties = pad(known, (0, logits.shape[1] - known.shape[1]), value=float("-inf"))
    if len(rows) == len(logits):
        return penalties.add_(logits)
    scores = logits.clone()
    scores[rows] += penalties
    return scores


def _advance(ids: Tensor, scores: Tensor, constrained: dict[int, tuple[TokenSampler, TokenMask]]) -> None:
    """Have each constraint go on by the id of its row, or put another one there; describe the choice in the chooser."""
    rows = list(constrained)
    chosen = ids[rows]
    legal_logprobs = scores[rows, chosen] - _sum_exponentials(scores[rows])
    for row, token, logprob in zip(rows, chosen.tolist(), legal_logprobs.tolist(), strict=True):
        chooser, mask = constrained[row]
        legal = int(np.bitwise_count(mask).sum())
        if not legal:
            chooser.failure = EngineError("constraint: no id continues what was sampled")
            continue
        taken = _take(token, chooser, chooser.constraint)
        chooser.is_forced = legal == 1 or taken != token
        chooser.constrained_logprob = None if legal == scores.shape[1] else logprob
        if chooser.is_forced:
            chooser.constrained_logprob = chooser.sampling_logprob = 0.0
        ids[row] = taken


def _take(token: int, chooser: TokenSampler, constraint: TokenConstraint | None) -> int:
    assert constraint is not None
    try:
        return constraint.advance(token)
    except EngineError as error:
        chooser.failure = error
        return token


def _draw_ids(logits: Tensor, choosers: Sequence[TokenSampler]) -> Tensor:
    """Draw by the inverse of each row's cumulative distribution, one number from each row's generator.

    Sets each chooser's `sampling_logprob`.
    """
    temperatures = [max(chooser.sampling.temperature, COLDEST) for chooser in choosers]
    scaled = logits - logits.amax(dim=1, keepdim=True)
    scaled /= torch.tensor(temperatures, device=logits.device)[:, None]
    for row, chooser in zip(scaled, choosers, strict=True):
        _keep_likely(row, chooser.sampling.top_k, chooser.sampling.top_p)
    shares = scaled.exp_()
    drawn, totals = _invert(shares, [chooser.draw() for chooser in choosers])
    logprobs = (shares.gather(1, drawn)[:, 0].double() / totals).log()
    for chooser, logprob in zip(choosers, logprobs.tolist(), strict=True):
        chooser.sampling_logprob = logprob
    return drawn[:, 0]


def _invert(shares: Tensor, draws: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Where each row's cumulative sum exceeds its draw, (rows, 1), and the row's sum, in float64.

    The sum is first followed by blocks: torch accumulates a whole row in float64 twenty times slower than it adds it.
    What isn't a number is found at the end.
    """
    size = shares.shape[1]
    whole = size // _BLOCK * _BLOCK
    parts = (shares[:, :whole].view(len(draws), whole // _BLOCK, _BLOCK), shares[:, None, whole:])
    block_sums = torch.cat([part.sum(dim=2, dtype=torch.float64) for part in parts], dim=1)
    ends = block_sums.cumsum(dim=1)
    totals = ends[:, -1]
    targets = (torch.tensor(draws, dtype=torch.float64, device=shares.device) * totals)[:, None]
    blocks = torch.searchsorted(ends, _limit(targets, ends), right=True).clamp_(max=ends.shape[1] - 1)
    ids = blocks * _BLOCK + torch.arange(_BLOCK, device=shares.device)
    inside = shares.gather(1, ids.clamp(max=size - 1)).double().masked_fill_(ids >= size, 0).cumsum(dim=1)
    inside += ends.gather(1, blocks) - block_sums.gather(1, blocks)
    places = torch.searchsorted(inside, _limit(targets, inside), right=True)
    return (blocks * _BLOCK + places).clamp_(max=size - 1), totals


def _limit(targets: Tensor, ends: Tensor) -> Tensor:
    """Rounding up to the last sum would choose an id behind the last one that has a probability."""
    last = ends[:, -1:]
    return torch.minimum(targets, torch.nextafter(last, torch.zeros_like(last)))


def _sum_exponentials(scores: Tensor) -> Tensor:
    """The logarithm of the sum of each row's exponentials; faster than torch's own."""
    highest = scores.amax(dim=1, keepdim=True)
    return highest[:, 0] + (scores - highest).exp_().sum(dim=1).log()


def _keep_likely(scaled: Tensor, top_k: int | None, top_p: float | None) -> None:
    """Set what `top_k` and `top_p` exclude from one row to -inf, in place; exactly k ids stay, ties or not."""
    size = len(scaled)
    if top_k is not None and top_k < size:
        highest, kept = scaled.topk(top_k)
        scaled.fill_(float("-inf")).index_copy_(0, kept, highest)
    if top_p is not None and top_p < 1:
        total = scaled.exp().sum(dtype=torch.float64)
        for count in (*(count for count in _LIKELIEST if count < size), size):
            highest, order = scaled.topk(count)
            probabilities = highest.exp().double()
            before = probabilities.cumsum(0) - probabilities
            is_kept = before < top_p * total
            if count == size or not is_kept[-1]:
                break
        scaled.fill_(float("-inf")).index_copy_(0, order[is_kept], highest[is_kept])
