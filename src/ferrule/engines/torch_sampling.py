"""Chooses the next id of each conversation where the logits are: they don't leave the device.

The draws are those of `sampling`: the same numbers, from the same distribution, rounded as torch rounds it. Of a
constraint, the bits of its mask go to the device.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ferrule.engines.constraints import TokenConstraint, TokenMask
from ferrule.engines.sampling import COLDEST, TokenSampler
from ferrule.errors import EngineError

_LIKELIEST = 1024
"""Ids in which the likeliest ones by `top_p` are searched first: sorting a whole vocabulary takes long."""


def sample_ids(logits: Tensor, choosers: Sequence[TokenSampler]) -> tuple[list[int], list[float]]:
    """An id for each row of `logits` (rows, vocabulary), and its log-softmax before temperature, top-k and top-p.

    Raises `EngineError` if logits are not finite.
    """
    masks = _compute_masks(choosers)
    scores = _hide_illegal(logits, masks) if masks else logits
    ids = scores.argmax(dim=1)
    drawing = [row for row, chooser in enumerate(choosers) if not chooser.is_greedy and chooser.failure is None]
    if drawing:
        ids[drawing] = _draw_ids(scores[drawing], [choosers[row] for row in drawing])
    if masks:
        _advance(ids, scores, {row: (choosers[row], mask) for row, mask in masks.items()})
    logprobs = logits.gather(1, ids[:, None])[:, 0] - torch.logsumexp(logits, dim=1)
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
    bits = packed[:, :, None].bitwise_right_shift(torch.arange(8, dtype=torch.uint8, device=logits.device)) & 1
    is_legal = torch.zeros((len(rows), logits.shape[1]), dtype=torch.bool, device=logits.device)
    known = bits.reshape(len(rows), -1)[:, : logits.shape[1]]
    is_legal[:, : known.shape[1]] = known.bool()
    scores = logits.clone()
    scores[rows] = logits[rows].masked_fill(~is_legal, float("-inf"))
    return scores


def _advance(ids: Tensor, scores: Tensor, constrained: dict[int, tuple[TokenSampler, TokenMask]]) -> None:
    """Have each constraint go on by the id of its row, or put another one there; describe the choice in the chooser."""
    rows = list(constrained)
    chosen = ids[rows]
    legal_logprobs = scores[rows, chosen] - torch.logsumexp(scores[rows], dim=1)
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
    scaled = (logits - logits.amax(dim=1, keepdim=True)) / torch.tensor(temperatures, device=logits.device)[:, None]
    for row, chooser in zip(scaled, choosers, strict=True):
        _keep_likely(row, chooser.sampling.top_k, chooser.sampling.top_p)
    cumulative = scaled.exp_().cumsum(dim=1, dtype=torch.float64)
    totals = cumulative[:, -1]
    draws = torch.tensor([chooser.draw() for chooser in choosers], dtype=torch.float64, device=logits.device)
    # Rounding up to the total would choose an id after the last one with a probability.
    targets = torch.minimum(draws * totals, torch.nextafter(totals, torch.zeros_like(totals)))
    # What isn't a number is found behind the last id; the caller checks for it.
    drawn = torch.searchsorted(cumulative, targets[:, None], right=True).clamp_(max=logits.shape[1] - 1)
    shares = scaled.gather(1, drawn)[:, 0].double() / totals
    for chooser, logprob in zip(choosers, shares.log().tolist(), strict=True):
        chooser.sampling_logprob = logprob
    return drawn[:, 0]


def _keep_likely(scaled: Tensor, top_k: int | None, top_p: float | None) -> None:
    """Set what `top_k` and `top_p` exclude from one row to -inf, in place; exactly k ids stay, ties or not."""
    size = len(scaled)
    if top_k is not None and top_k < size:
        highest, kept = scaled.topk(top_k)
        scaled.fill_(float("-inf")).index_copy_(0, kept, highest)
    if top_p is not None and top_p < 1:
        total = scaled.exp().sum(dtype=torch.float64)
        for count in (min(_LIKELIEST, size), size):
            highest, order = scaled.topk(count)
            probabilities = highest.exp().double()
            before = probabilities.cumsum(0) - probabilities
            is_kept = before < top_p * total
            if count == size or not is_kept[-1]:
                break
        scaled.fill_(float("-inf")).index_copy_(0, order[is_kept], highest[is_kept])
