"""Muon for the matrices, AdamW for everything else.

Muon (Keller Jordan, 2024) makes each momentum matrix nearly orthogonal by five Newton-Schulz steps before it is
applied. Matrices of one shape are stacked, so that a step costs a handful of batched products.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_MOMENTUM = 0.95


def orthogonalise(matrices: Tensor, precision: torch.dtype = torch.float32) -> Tensor:
    """A stack (n, rows, columns), rows <= columns, with each matrix's singular values brought close to 1.

    Computed in `precision`: an approximation anyway, which bfloat16 doesn't make worse.
    """
    a, b, c = _COEFFICIENTS
    x = (matrices / (matrices.norm(dim=(-2, -1), keepdim=True) + 1e-7)).to(precision)
    for _ in range(5):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return cast(Tensor, x.to(matrices.dtype))


class Muon:
    """Holds the momenta of matrices; wide ones unchanged, tall ones transposed.

    The workers of `group` have the same gradients, and each computes its part of the updates.
    """

    def __init__(
        self, parameters: list[nn.Parameter], rate: float, weight_decay: float, precision: torch.dtype, group: Any
    ) -> None:
        self._rate, self._decay, self._precision, self._group = rate, weight_decay, precision, group
        groups: dict[tuple[int, int], list[nn.Parameter]] = defaultdict(list)
        for parameter in parameters:
            groups[min(parameter.shape), max(parameter.shape)].append(parameter)
        self._groups = list(groups.items())
        self._momenta = [torch.zeros(len(members), *shape, device=members[0].device) for shape, members in self._groups]

    @torch.no_grad()
    def step(self, scale: float) -> None:
        """Apply the gradients at `scale` times the peak rate."""
        rate = self._rate * scale
        for (_, members), momentum in zip(self._groups, self._momenta, strict=True):
            gradients = torch.stack([_make_wide(_get_gradient(p)) for p in members])
            momentum.lerp_(gradients, 1 - _MOMENTUM)
            updates = self._compute_updates(gradients.lerp(momentum, _MOMENTUM))
            for parameter, update in zip(members, updates, strict=True):
                rows, columns = parameter.shape
                parameter.mul_(1 - rate * self._decay)
                oriented = update if rows <= columns else update.mT
                parameter.add_(oriented, alpha=-rate * max(1.0, rows / columns) ** 0.5)

    def _compute_updates(self, matrices: Tensor) -> Tensor:
        if self._group is None:
            return orthogonalise(matrices, self._precision)
        rank, workers = dist.get_rank(self._group), dist.get_world_size(self._group)
        part = slice(rank * len(matrices) // workers, (rank + 1) * len(matrices) // workers)
        updates = torch.zeros_like(matrices)
        updates[part] = orthogonalise(matrices[part], self._precision)
        dist.all_reduce(updates, group=self._group)
        return updates

    def state_dict(self) -> dict[str, Any]:
        """The momenta, for a checkpoint."""
        return {"momenta": self._momenta}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the momenta from a checkpoint."""
        for mine, saved in zip(self._momenta, state["momenta"], strict=True):
            mine.copy_(saved)


def _get_gradient(parameter: nn.Parameter) -> Tensor:
    return parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)


def _make_wide(matrix: Tensor) -> Tensor:
    return matrix if matrix.shape[0] <= matrix.shape[1] else matrix.mT


class Optimizer:
    """Both optimizers behind one `step`."""

    def __init__(
        self,
        network: nn.Module,
        matrix_rate: float,
        other_rate: float,
        weight_decay: float,
        precision: torch.dtype = torch.float32,
        group: Any = None,
    ) -> None:
        matrices = [p for name, p in network.named_parameters() if p.dim() == 2 and "embed" not in name]
        others = [p for name, p in network.named_parameters() if p.dim() != 2 or "embed" in name]
        self._muon = Muon(matrices, matrix_rate, weight_decay, precision, group)
        self._adam = torch.optim.AdamW(others, lr=other_rate, betas=(0.9, 0.95), weight_decay=0.0)
        self._rate = other_rate

    def step(self, scale: float) -> None:
        """Apply the gradients at `scale` times the peak rates."""
        for group in self._adam.param_groups:
            group["lr"] = self._rate * scale
        self._adam.step()
        self._muon.step(scale)

    def state_dict(self) -> dict[str, Any]:
        """Both states, for a checkpoint."""
        return {"muon": self._muon.state_dict(), "adam": self._adam.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load both states from a checkpoint."""
        self._muon.load_state_dict(state["muon"])
        self._adam.load_state_dict(state["adam"])
