"""Runs models of transformers whose every layer attends to all earlier positions, many conversations in one batch.

Keys and values of all places are preallocated, layer by layer, and written in place: the `Cache` that transformers
asks returns views of them. Conversations of different lengths are told apart by a mask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from ferrule.engines.prefixes import KeptState, Prefix
from ferrule.engines.sampling import TokenSampler
from ferrule.engines.torch_model import LayerShape, ModelShape, count_position_bytes, describe_failure, run_model
from ferrule.engines.torch_sampling import sample_ids

FULL, SLIDING = "full_attention", "sliding_attention"
"""What transformers calls the masks of two kinds of layers."""
KeysValues = tuple[Tensor, Tensor]
"""Of one layer, each (places, heads, positions, width), or without the places."""


@dataclass(slots=True)
class Window:
    """What a forward pass reads and writes: the places from `first` to before `last`, their positions to before `end`.

    It writes from `start`, or at `scattered`, a place and a position for each row, of which `start` is the first.
    """

    first: int = 0
    last: int = 0
    start: int = 0
    end: int = 0
    scattered: KeysValues | None = None

    def set(self, first: int, last: int, start: int, end: int) -> None:
        """Go to neighbouring positions of some places."""
        self.first, self.last, self.start, self.end, self.scattered = first, last, start, end, None

    def get_first(self, width: int | None) -> int:
        """The first position that is attended to, if each attends to `width` positions up to its own."""
        return 0 if width is None else max(0, self.start - width + 1)


class PlacesLayer(CacheLayerMixin):  # type: ignore[misc]
    """The keys and values of all places in one layer, of which a pass sees what the window says.

    All positions are kept also where only the last `width` are attended to: a prefix can then be cropped, and
    conversations of different lengths be computed together.
    """

    def __init__(self, window: Window, width: int | None, keys: Tensor, values: Tensor) -> None:
        super().__init__()
        self.window, self.width = window, width
        self.keys, self.values = keys, values
        self.is_initialized = True
        self.is_sliding = width is not None

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> KeysValues:
        """Write the keys and values of a pass, (rows, heads, new positions, width); returns those that it attends
        to."""
        window = self.window
        if window.scattered is None:
            self.keys[window.first : window.last, :, window.start : window.end] = key_states
            self.values[window.first : window.last, :, window.start : window.end] = value_states
        else:
            places, positions = window.scattered
            places, positions = places.to(self.keys.device), positions.to(self.keys.device)
            self.keys[places, :, positions] = key_states[:, :, 0]
            self.values[places, :, positions] = value_states[:, :, 0]
        seen = slice(window.get_first(self.width), window.end)
        return self.keys[window.first : window.last, :, seen], self.values[window.first : window.last, :, seen]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:  # noqa: ARG002 - the window knows
        """How many positions a pass attends to, and the first of them."""
        first = self.window.get_first(self.width)
        return self.window.end - first, first

    def get_seq_length(self) -> int:
        """The position of a pass's first new id."""
        return self.window.start

    def get_max_length(self) -> int:
        """No limit that the model need know."""
        return -1

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing: the places are made before a pass."""


@dataclass(frozen=True, slots=True)
class KeptKeysValues:
    """A prefix in every layer, with room for `capacity` positions."""

    layers: tuple[KeysValues, ...]
    capacity: int

    @property
    def nbytes(self) -> int:
        """The bytes that it takes."""
        return sum(keys.nbytes + values.nbytes for keys, values in self.layers)


class TorchDecoder:
    """The `BatchDecoder` of a model with full attention."""

    can_crop = True

    def __init__(self, model: Any, shape: ModelShape, vocabulary_size: int) -> None:
        self._model = model
        self._vocabulary_size = vocabulary_size
        self._shape = shape
        self._window = Window()
        self._position_bytes = count_position_bytes(shape.layers)
        self._places = self._capacity = 0
        self._cache: Any = None
        self._attends: dict[str, int | None] = {FULL: None}
        for each in shape.layers:
            if each.width is not None:
                self._attends[SLIDING] = each.width
        self.chunk = 512 if shape.device.type == "cpu" else 2048
        self.clear()

    @property
    def allocated(self) -> int:
        return self._places * self._capacity * self._position_bytes

    def computing(self) -> AbstractContextManager[Any]:
        return torch.inference_mode()

    def measure(self, capacities: Sequence[int]) -> int:
        return len(capacities) * max(capacities, default=0) * self._position_bytes

    def fits(self, capacities: Sequence[int]) -> bool:
        return len(capacities) <= self._places and max(capacities, default=0) <= self._capacity

    def reserve(self, capacities: Sequence[int], lengths: Sequence[int], limit: int) -> None:
        places, capacity = self._choose_shape(len(capacities), max(capacities, default=0), limit)
        kept = min(self._places, places, len(lengths))
        # A layer at a time, so that old and new exist together for one layer only.
        for layer in self._cache.layers:
            for name in ("keys", "values"):
                old = getattr(layer, name)
                # Zeros: what was never written has no weight, but a NaN would show nevertheless.
                new = old.new_zeros((places, old.shape[1], capacity, old.shape[3]))
                for place in range(kept):
                    new[place, :, : lengths[place]] = old[place, :, : lengths[place]]
                setattr(layer, name, new)
        self._places, self._capacity = places, capacity

    def _choose_shape(self, places: int, capacity: int, limit: int) -> tuple[int, int]:
        """Room for growth, so that copies are few, if that takes no more than half of the memory."""
        grown = max(_power_of_two(places), self._places), max(_power_of_two(capacity), self._capacity)
        for shape in (grown, (places, grown[1]), (places, _power_of_two(capacity))):
            if shape[0] * shape[1] * self._position_bytes <= limit // 2:
                return shape
        affordable = limit // max(places * self._position_bytes, 1)
        return places, max(capacity, min(_power_of_two(capacity), affordable))

    def decode(self, ids: Sequence[int], positions: Sequence[int]) -> Tensor:
        rows, start, end = len(ids), min(positions), max(positions) + 1
        device = self._shape.device
        at = torch.tensor(positions, device=device)[:, None]
        self._window.set(0, rows, start, end)
        masks = dict.fromkeys(self._attends, None)
        if end - start > 1:
            self._window.scattered = torch.arange(rows, device=device), at[:, 0]
            masks = {name: self._make_mask(at, width) for name, width in self._attends.items()}
        return self._run(torch.tensor(ids, device=device)[:, None], at, masks)

    def extend(self, place: int, ids: Sequence[int], start: int, wants_logits: bool) -> Tensor | None:
        end, device = start + len(ids), self._shape.device
        positions = torch.arange(start, end, device=device)[None]
        self._window.set(place, place + 1, start, end)
        # Without a mask, sdpa itself hides from each new id those after it, if there are no earlier ones.
        is_plain = start == 0 and self._shape.attention == "sdpa"
        masks = {
            name: None if is_plain and end <= (width or end) else self._make_mask(positions, width)
            for name, width in self._attends.items()
        }
        logits = self._run(torch.tensor([ids], device=device), positions, masks)
        return logits if wants_logits else None

    def copy(self, source: int, target: int, length: int) -> None:
        for layer in self._cache.layers:
            layer.keys[target, :, :length] = layer.keys[source, :, :length]
            layer.values[target, :, :length] = layer.values[source, :, :length]

    def save(self, place: int, length: int, extended: Prefix | None = None) -> KeptKeysValues:
        known, state = 0, self._make_state(length)
        if extended is not None and cast(KeptKeysValues, extended.state).capacity >= length:
            known, state = len(extended.ids), cast(KeptKeysValues, extended.state)
        for layer, (keys, values) in zip(self._cache.layers, state.layers, strict=True):
            keys[:, known:length] = layer.keys[place, :, known:length]
            values[:, known:length] = layer.values[place, :, known:length]
        return state

    def restore(self, place: int, state: KeptState, length: int) -> None:
        for layer, (keys, values) in zip(self._cache.layers, cast(KeptKeysValues, state).layers, strict=True):
            layer.keys[place, :, :length] = keys[:, :length]
            layer.values[place, :, :length] = values[:, :length]

    def clear(self) -> None:
        self._places = self._capacity = 0
        layers = self._shape.layers
        self._cache = Cache(layers=[PlacesLayer(self._window, each.width, *_make_empty(each, 0, 0)) for each in layers])

    def describe_failure(self, error: BaseException) -> str:
        return describe_failure(error, self._shape.device)

    def sample(self, logits: Tensor, choosers: Sequence[TokenSampler]) -> tuple[list[int], list[float]]:
        return sample_ids(logits, choosers, self._vocabulary_size)

    def _run(self, ids: Tensor, positions: Tensor, masks: Mapping[str, Tensor | None]) -> Tensor:
        """The logits after the last id of each row, float32."""
        mask = masks if len(masks) > 1 else masks[FULL]
        return run_model(self._model, ids, positions, self._cache, attention_mask=mask)

    def _make_mask(self, positions: Tensor, width: int | None) -> Tensor:
        """What is added to the scores of new ids at `positions`, (rows, new): (rows, 1, new, positions attended to)."""
        seen = torch.arange(self._window.get_first(width), self._window.end, device=positions.device)
        hidden = seen > positions[..., None]
        if width is not None:
            hidden |= seen <= positions[..., None] - width
        # A boolean mask would be converted in every layer.
        mask = torch.zeros(hidden.shape, dtype=self._shape.layers[0].dtype, device=hidden.device)
        return mask.masked_fill_(hidden, float("-inf"))[:, None]

    def _make_state(self, length: int) -> KeptKeysValues:
        """With a quarter more than needed, for the next turn."""
        capacity = length + length // 4
        layers = (_make_empty(each, 1, capacity) for each in self._shape.layers)
        return KeptKeysValues(tuple((keys[0], values[0]) for keys, values in layers), capacity)


def _make_empty(layer: LayerShape, places: int, capacity: int) -> KeysValues:
    def make(width: int) -> Tensor:
        return torch.empty((places, layer.heads, capacity, width), dtype=layer.dtype, device=layer.device)

    return make(layer.key_width), make(layer.value_width)


def _power_of_two(value: int) -> int:
    return max(1 << (value - 1).bit_length(), 1)
