"""Which models of transformers the engine runs, by family and by the layers of the cache that it makes for them.

A model is asked once for one token. What the cache then holds says how large keys and values are, and on which device.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer, LinearAttentionLayer
from transformers.utils import logging

from ferrule.engines.families import RUN_FAMILIES, STATE_FAMILIES
from ferrule.errors import EngineError

_KNOWN_ATTENTION = ("sdpa", "eager")
_ROPE_OF_EACH_LENGTH = ("dynamic", "longrope")
_ROPE_REASON = "it rotates a position differently in a longer context, so that what was kept of a shorter one is wrong"


@dataclass(frozen=True, slots=True)
class LayerShape:
    """Keys and values of one layer and one position, `heads` of `key_width` and `value_width` numbers."""

    heads: int
    key_width: int
    value_width: int
    dtype: torch.dtype
    device: torch.device
    width: int | None = None
    """How many positions up to its own each attends to; None for all."""

    @property
    def position_bytes(self) -> int:
        """The bytes of one position."""
        return self.heads * (self.key_width + self.value_width) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What the engine must know of a model. `device` is where ids go; `vocabulary_size` counts its embeddings."""

    family: str
    layers: tuple[LayerShape, ...]
    state_bytes: int
    """Of all layers together that keep a state, for one conversation; 0 if there are none."""
    vocabulary_size: int
    context_length: int
    device: torch.device
    attention: str


def inspect_model(model: Any) -> ModelShape:
    """Set a model to evaluation mode, and measure it. Raises `EngineError` naming why it can't be run."""
    if not isinstance(model, PreTrainedModel) or model.get_output_embeddings() is None:
        raise EngineError(f"{type(model).__name__} is not a causal language model of transformers")
    model.eval()
    config = model.config.get_text_config(decoder=True)
    family, name = model.config.model_type, f"{type(model).__name__} ({model.config.model_type})"
    if family not in RUN_FAMILIES:
        raise EngineError(f"{name} is not among the families that this engine runs: {', '.join(RUN_FAMILIES)}")
    _check_config(name, config)
    embedding = model.get_input_embeddings()
    device = embedding.weight.device
    if device.type == "meta":
        raise EngineError(f"{name} has no weights: it is on the device meta; load them first")
    layers, state_bytes = _measure_layers(model, name, device)
    if state_bytes and family not in STATE_FAMILIES:
        raise EngineError(f"{name} has layers that keep a state, which only {', '.join(STATE_FAMILIES)} may have")
    return ModelShape(
        family=family,
        layers=layers,
        state_bytes=state_bytes,
        vocabulary_size=embedding.num_embeddings,
        context_length=config.max_position_embeddings,
        device=device,
        attention=config._attn_implementation,
    )


def _check_config(name: str, config: Any) -> None:
    attention = config._attn_implementation
    if attention not in _KNOWN_ATTENTION:
        raise EngineError(
            f"{name} with {attention} attention is not run: load it with attn_implementation={_KNOWN_ATTENTION[0]!r}"
        )
    ropes = getattr(config, "rope_parameters", None) or {}
    for rope in (ropes, *(value for value in ropes.values() if isinstance(value, dict))):
        if rope.get("rope_type") in _ROPE_OF_EACH_LENGTH:
            raise EngineError(f"{name} with rope_type {rope['rope_type']!r} is not run: {_ROPE_REASON}")


def _measure_layers(model: Any, name: str, device: torch.device) -> tuple[tuple[LayerShape, ...], int]:
    """The layers with keys and values, and the bytes of the others' states."""
    cache = DynamicCache(config=model.config)
    try:
        with torch.no_grad(), silence_transformers():
            ids = torch.zeros((1, 1), dtype=torch.long, device=device)
            model(input_ids=ids, cache=cache, use_cache=True)
            if any(type(layer) is LinearAttentionLayer for layer in cache.layers):
                # A state goes on by other kernels, and transformers warns once of each that isn't installed.
                model(input_ids=ids, cache=cache, use_cache=True)
    except Exception as error:  # whatever a wrong config makes the model stumble over
        raise EngineError(f"{name} can't compute one token: {type(error).__name__}: {error}") from error
    shapes, state_bytes = [], 0
    for layer in cache.layers:
        if type(layer) is LinearAttentionLayer:
            state_bytes += sum(tensor.nbytes for tensor in list_states(layer))
        elif type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) and layer.is_initialized:
            shapes.append(_measure_layer(layer))
        else:
            raise EngineError(f"{name} with a cache of {type(layer).__name__} is not run")
    if len({shape.width for shape in shapes} - {None}) > 1:
        raise EngineError(f"{name} with sliding windows of several sizes is not run")
    return tuple(shapes), state_bytes


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Without transformers' warnings: of loading, where they are errors, and of optional kernels in a first pass.

    Its progress bar is for terminals.
    """
    level, has_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if has_bar:
            logging.enable_progress_bar()


def _measure_layer(layer: Any) -> LayerShape:
    _, heads, _, width = layer.keys.shape
    window = getattr(layer, "sliding_window", None)
    return LayerShape(heads, width, layer.values.shape[-1], layer.keys.dtype, layer.keys.device, window)


def list_states(layer: Any) -> list[torch.Tensor]:
    """The tensors of a layer that keeps a state."""
    states = (*layer.conv_states.values(), *layer.recurrent_states.values())
    return [state for state in states if state is not None]


def count_position_bytes(layers: Sequence[LayerShape]) -> int:
    """The bytes of keys and values of one position in all layers."""
    return sum(layer.position_bytes for layer in layers)


def run_model(model: Any, ids: torch.Tensor, positions: torch.Tensor, cache: Any, **inputs: Any) -> torch.Tensor:
    """The logits after the last of each row's `ids`, float32."""
    if model.training:
        raise EngineError("the model is in training mode, which changes what it computes; call model.eval() first")
    output = model(input_ids=ids, position_ids=positions, cache=cache, use_cache=True, logits_to_keep=1, **inputs)
    logits: torch.Tensor = output.logits[:, -1].float()
    return logits


def describe_failure(error: BaseException, device: torch.device) -> str:
    """What a consumer should know of an error that a model raised."""
    if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error):
        lines = str(error).splitlines()
        return f"out of memory on {device}: set a smaller kv_memory or max_batch ({lines[0]})"
    return str(error) or repr(error)
