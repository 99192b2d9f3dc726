"""Runs models of transformers of which some layers keep a state in place of positions: LFM2, Qwen3-Next.

Padding in the middle of a row would go into such a state, so each conversation has a cache of its own and is computed
alone. A state can't be cropped: what is kept is a copy of it, of use to prompts that go on from there.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache, LinearAttentionLayer

from ferrule.engines.prefixes import KeptState, Prefix
from ferrule.engines.sampling import TokenSampler
from ferrule.engines.torch_model import ModelShape, count_position_bytes, describe_failure, run_model
from ferrule.engines.torch_sampling import sample_ids

_GRAIN = 256
"""Positions for which a place is granted memory at a time."""


@dataclass(frozen=True, slots=True)
class KeptCache:
    """A cache that nothing is fed to, and the bytes that it takes."""

    cache: Any
    nbytes: int


class StateDecoder:
    """The `BatchDecoder` of a model with states, one conversation after the other."""

    can_crop = False

    def __init__(self, model: Any, shape: ModelShape, vocabulary_size: int) -> None:
        self._model = model
        self._vocabulary_size = vocabulary_size
        self._shape = shape
        self._position_bytes = count_position_bytes(shape.layers)
        self._caches: list[Any] = []
        self._capacities: list[int] = []
        self.chunk = 512 if shape.device.type == "cpu" else 2048

    @property
    def allocated(self) -> int:
        return self.measure(self._capacities)

    def computing(self) -> AbstractContextManager[Any]:
        return torch.inference_mode()

    def measure(self, capacities: Sequence[int]) -> int:
        return len(capacities) * self._shape.state_bytes + sum(capacities) * self._position_bytes

    def fits(self, capacities: Sequence[int]) -> bool:
        return len(capacities) == len(self._capacities) and all(map(int.__le__, capacities, self._capacities))

    def reserve(self, capacities: Sequence[int], lengths: Sequence[int], limit: int) -> None:  # noqa: ARG002
        """A cache grows with what is fed: this only counts, so that others know what is left."""
        rounded = [-(-capacity // _GRAIN) * _GRAIN for capacity in capacities]
        self._capacities = rounded if self.measure(rounded) <= limit else list(capacities)
        del self._caches[len(capacities) :]
        self._caches += [None] * (len(capacities) - len(self._caches))

    def decode(self, ids: Sequence[int], positions: Sequence[int]) -> Tensor:
        return torch.cat(
            [self._run(row, [token], at) for row, (token, at) in enumerate(zip(ids, positions, strict=True))]
        )

    def extend(self, place: int, ids: Sequence[int], start: int, wants_logits: bool) -> Tensor | None:
        logits = self._run(place, ids, start)
        return logits if wants_logits else None

    def copy(self, source: int, target: int, length: int) -> None:  # noqa: ARG002 - a state is of one length
        self._caches[target] = _copy_cache(self._caches[source])

    def save(self, place: int, length: int, extended: Prefix | None = None) -> KeptCache:  # noqa: ARG002
        return KeptCache(_copy_cache(self._caches[place]), self.measure([length]))

    def restore(self, place: int, state: KeptState, length: int) -> None:  # noqa: ARG002
        self._caches[place] = _copy_cache(cast(KeptCache, state).cache)

    def clear(self) -> None:
        self._caches, self._capacities = [], []

    def describe_failure(self, error: BaseException) -> str:
        return describe_failure(error, self._shape.device)

    def sample(self, logits: Tensor, choosers: Sequence[TokenSampler]) -> tuple[list[int], list[float]]:
        return sample_ids(logits, choosers, self._vocabulary_size)

    def _run(self, place: int, ids: Sequence[int], start: int) -> Tensor:
        """The logits (1, vocabulary) after the last of a place's new ids, float32."""
        device = self._shape.device
        if not start:  # what an ended conversation has left is of no use
            self._caches[place] = DynamicCache(config=self._model.config)
        positions = torch.arange(start, start + len(ids), device=device)[None]
        return run_model(self._model, torch.tensor([ids], device=device), positions, self._caches[place])


def _copy_cache(cache: Any) -> Any:
    """A copy that goes on independently. Keys and values are shared: what is appended makes new tensors of them."""
    copied = copy.copy(cache)
    copied.layers = [copy.copy(layer) for layer in cache.layers]
    for layer in copied.layers:
        if isinstance(layer, LinearAttentionLayer):
            for name in ("conv_states", "recurrent_states", "has_previous_state"):
                values = getattr(layer, name).items()
                setattr(
                    layer, name, {key: value.clone() if isinstance(value, Tensor) else value for key, value in values}
                )
    return copied
