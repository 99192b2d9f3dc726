"""Which models of transformers the engine runs, by family and by the layers of the cache that it makes for them.

A model is asked once for one token. What the cache then holds says how large keys and values are, and on which device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache

from ferrule.errors import EngineError

BATCHED_FAMILIES = ("llama", "nanochat", "ovis2", "qwen2_5_vl", "qwen3", "qwen3_vl")
"""Their `model_type`: every layer attends to all earlier positions."""
_KNOWN_ATTENTION = ("sdpa", "eager")
_ROPE_OF_EACH_LENGTH = ("dynamic", "longrope")
"""Rotate a position differently in a longer context, so that what was kept of a shorter one is wrong."""


@dataclass(frozen=True, slots=True)
class LayerShape:
    """Keys and values of one layer and one position, `heads` of `key_width` and `value_width` numbers."""

    heads: int
    key_width: int
    value_width: int
    dtype: torch.dtype
    device: torch.device

    @property
    def position_bytes(self) -> int:
        """The bytes of one position."""
        return self.heads * (self.key_width + self.value_width) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What the engine must know of a model. `device` is where ids go; `vocabulary_size` counts its embeddings."""

    family: str
    layers: tuple[LayerShape, ...]
    vocabulary_size: int
    context_length: int
    device: torch.device
    attention: str


def inspect_model(model: Any) -> ModelShape:
    """Raises `EngineError` naming why a model can't be run."""
    config = model.config.get_text_config(decoder=True)
    family = model.config.model_type
    if family not in BATCHED_FAMILIES:
        raise EngineError(f"model family {family} is not run; those that are: {', '.join(BATCHED_FAMILIES)}")
    _check_config(family, config)
    embedding = model.get_input_embeddings()
    device = embedding.weight.device
    return ModelShape(
        family=family,
        layers=_measure_layers(model, family, device),
        vocabulary_size=embedding.num_embeddings,
        context_length=config.max_position_embeddings,
        device=device,
        attention=config._attn_implementation,
    )


def _check_config(family: str, config: Any) -> None:
    attention = config._attn_implementation
    if attention not in _KNOWN_ATTENTION:
        raise EngineError(
            f"attention {attention} is not run; load the model with attn_implementation={_KNOWN_ATTENTION[0]!r}"
        )
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    if rope in _ROPE_OF_EACH_LENGTH:
        raise EngineError(
            f"{family} with rope_type {rope!r} is not run: what is kept of a prefix depends on the length"
        )


def _measure_layers(model: Any, family: str, device: torch.device) -> tuple[LayerShape, ...]:
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model(input_ids=torch.zeros((1, 1), dtype=torch.long, device=device), cache=cache, use_cache=True)
    return tuple(_measure_layer(layer, family) for layer in cache.layers)


def _measure_layer(layer: Any, family: str) -> LayerShape:
    keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
    if type(layer).__name__ != "DynamicLayer" or keys is None or values is None:
        raise EngineError(f"{family} with a cache of {type(layer).__name__} is not run")
    _, heads, _, width = keys.shape
    return LayerShape(heads, width, values.shape[-1], keys.dtype, keys.device)


def count_position_bytes(layers: Sequence[LayerShape]) -> int:
    """The bytes of keys and values of one position in all layers."""
    return sum(layer.position_bytes for layer in layers)
