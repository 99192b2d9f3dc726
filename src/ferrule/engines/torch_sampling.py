"""Chooses the next id of each conversation where the logits are: they don't leave the device.

The draws are those of `sampling`: the same numbers, from the same distribution, rounded as torch rounds it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ferrule.engines.sampling import COLDEST, TokenSampler, choose_legal
from ferrule.errors import EngineError

_LIKELIEST = 1024
"""Ids in which the likeliest ones by `top_p` are searched first: sorting a whole vocabulary takes long."""


def sample_ids(logits: Tensor, choosers: Sequence[TokenSampler]) -> tuple[list[int], list[float]]:
    """An id for each row of `logits` (rows, vocabulary), and its log-softmax before temperature, top-k and top-p.

    Raises `EngineError` if logits are not finite.
    """
    ids = logits.argmax(dim=1)
    drawing = [row for row, one in enumerate(choosers) if one.constraint is None and not one.is_greedy]
    if drawing:
        ids[drawing] = _draw_ids(logits[drawing], [choosers[row] for row in drawing])
    for row, chooser in enumerate(choosers):
        if chooser.constraint is not None:
            ids[row] = choose_legal(logits[row].float().cpu().numpy(), chooser, chooser.constraint)
    logprobs = logits.gather(1, ids[:, None])[:, 0] - torch.logsumexp(logits, dim=1)
    if not torch.isfinite(logprobs).all():
        raise EngineError("the model's logits are not finite numbers: its weights are damaged or overflow")
    return ids.tolist(), logprobs.tolist()


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
    drawn = torch.searchsorted(cumulative, targets[:, None], right=True)
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
