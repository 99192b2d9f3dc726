"""Reads a checkpoint's tensors, and converts them to the form that `decoder` multiplies with.

`fold_weights` folds in three things once, so that no step pays for them: each RMSNorm's weight and the square root of
its width go into the following matrix, the attention scale into the queries, and the two halves of each head are
interleaved so that a rotary position is one complex multiplication. Queries, keys and values become one matrix, gate
and up another. Logits differ from the unfolded form only by float32 rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ferrule.engines.config import DecoderConfig
from ferrule.engines.safetensors import TensorPlace, read_tensor_places
from ferrule.errors import EngineError

Array = NDArray[np.float32]

DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
"""The types that can be read."""


def read_safetensors(path: Path) -> dict[str, Array]:
    """Every tensor of the file by name, as float32. Raises `EngineError` for an unreadable file."""
    places = read_tensor_places(path)
    try:
        with path.open("rb") as file:
            return {name: _read_tensor(file, name, place, path) for name, place in places.items()}
    except OSError as error:
        raise EngineError(f"can't read weights from {path}: {error.strerror or error}") from error


def _read_tensor(file: BinaryIO, name: str, place: TensorPlace, path: Path) -> Array:
    if place.dtype not in DTYPES:
        raise EngineError(f"{path}: tensor {name!r} has type {place.dtype}; can read {', '.join(DTYPES)}")
    file.seek(place.start)
    return _convert_to_float32(file.read(place.end - place.start), place.dtype, place.shape)


def _convert_to_float32(raw: bytes, dtype: str, shape: tuple[int, ...]) -> Array:
    values = np.frombuffer(raw, DTYPES[dtype])
    if dtype == "BF16":  # the upper half of a float32
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return np.ascontiguousarray(values, np.float32).reshape(shape)


_SAFE_SCORE = 60.0  # exp(60) summed over a million positions is far from float32's limit, exp(88)


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer. Matrices are (inputs, outputs), contiguous; `head_norm` is (heads + kv_heads, head_dim).

    `gate_up` computes the gate negated, and `down` is negated.

    `scores_are_small`: head norms keep every attention score so low that exp() can't overflow float32, so that a
    softmax needn't search for the maximum first.
    """

    qkv: Array
    head_norm: Array | None
    scores_are_small: bool
    out: Array
    gate_up: Array
    down: Array


@dataclass(frozen=True, slots=True)
class DecoderWeights:
    """The weights of a decoder: `embedding` (vocabulary, hidden) and `head` (hidden, vocabulary)."""

    embedding: Array
    layers: tuple[LayerWeights, ...]
    head: Array


def fold_weights(config: DecoderConfig, tensors: Mapping[str, ArrayLike]) -> DecoderWeights:
    """The tensors under Hugging Face's names, of which it keeps copies.

    Raises `EngineError` naming a missing one, one with a wrong shape, or one that numpy can't read as float32.
    """
    vocabulary, hidden = config.vocab_size, config.hidden_size
    embedding = _get_tensor(tensors, "model.embed_tokens.weight", (vocabulary, hidden))
    head = embedding if config.tied_embeddings else _get_tensor(tensors, "lm_head.weight", (vocabulary, hidden))
    final_norm = _get_norm(tensors, "model.norm.weight", hidden)
    return DecoderWeights(
        embedding=np.array(embedding, order="C"),
        layers=tuple(_fold_layer(config, tensors, f"model.layers.{i}.") for i in range(config.layers)),
        head=_transpose(head * final_norm),
    )


def _fold_layer(config: DecoderConfig, tensors: Mapping[str, ArrayLike], prefix: str) -> LayerWeights:
    hidden, inner, head_dim = config.hidden_size, config.intermediate_size, config.head_dim
    query_width, key_width = config.heads * head_dim, config.kv_heads * head_dim

    def get_matrix(name: str, outputs: int, inputs: int) -> Array:
        return _get_tensor(tensors, f"{prefix}{name}.weight", (outputs, inputs))

    queries = _interleave(get_matrix("self_attn.q_proj", query_width, hidden), head_dim)
    keys = _interleave(get_matrix("self_attn.k_proj", key_width, hidden), head_dim)
    values = get_matrix("self_attn.v_proj", key_width, hidden)
    scale = 1 / math.sqrt(head_dim)
    head_norm, highest_score = None, math.inf
    if config.head_norms:
        query_norm = _get_norm(tensors, f"{prefix}self_attn.q_norm.weight", head_dim) * scale
        key_norm = _get_norm(tensors, f"{prefix}self_attn.k_norm.weight", head_dim)
        rows = [query_norm] * config.heads + [key_norm] * config.kv_heads
        head_norm = _interleave(np.concatenate(rows)[:, None], head_dim).reshape(len(rows), head_dim)
        # |q · k| <= |q| |k|, and the length of a normalised head is at most its largest weight (times the folded root).
        highest_score = float(np.abs(query_norm).max() * np.abs(key_norm).max())
    else:
        queries = queries * scale
    # silu(g) = g / (1 + exp(-g)): the decoder receives -g, and `down` cancels the sign.
    gate = -get_matrix("mlp.gate_proj", inner, hidden)
    up = get_matrix("mlp.up_proj", inner, hidden)
    attention_norm = _get_norm(tensors, f"{prefix}input_layernorm.weight", hidden)
    mlp_norm = _get_norm(tensors, f"{prefix}post_attention_layernorm.weight", hidden)
    return LayerWeights(
        qkv=_transpose(np.concatenate([queries, keys, values]) * attention_norm),
        head_norm=head_norm,
        scores_are_small=highest_score < _SAFE_SCORE,
        out=_transpose(get_matrix("self_attn.o_proj", hidden, query_width)),
        gate_up=_transpose(np.concatenate([gate, up]) * mlp_norm),
        down=_transpose(-get_matrix("mlp.down_proj", hidden, inner)),
    )


def _get_tensor(tensors: Mapping[str, ArrayLike], name: str, shape: tuple[int, ...]) -> Array:
    if name not in tensors:
        raise EngineError(f"the weights lack {name}")
    try:
        tensor = np.asarray(tensors[name], np.float32)
    except (TypeError, ValueError, RuntimeError) as error:  # torch has each of them, by type, device and gradient
        kind = type(tensors[name]).__name__
        raise EngineError(
            f"{name} is a {kind} that numpy can't read as float32 ({error}); give a float32 array"
        ) from error
    if tensor.shape != shape:
        raise EngineError(f"{name} has shape {tensor.shape}; the config asks for {shape}")
    return tensor


def _get_norm(tensors: Mapping[str, ArrayLike], name: str, width: int) -> Array:
    """An RMSNorm's weight times the square root of its width: the factor for x / |x|."""
    return _get_tensor(tensors, name, (width,)) * np.float32(math.sqrt(width))


def _interleave(rows: Array, head_dim: int) -> Array:
    """Put row i of each head next to row i + head_dim/2: rotary positions rotate these pairs."""
    halves = rows.reshape(-1, 2, head_dim // 2, rows.shape[1])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows.shape)


def _transpose(matrix: Array) -> Array:
    """From (outputs, inputs), as in checkpoints, to (inputs, outputs)."""
    return np.ascontiguousarray(matrix.T, np.float32)
