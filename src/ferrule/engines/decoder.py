"""The forward pass of Qwen 3 and Llama in numpy, float32: ids in, logits out.

The cost of a small model's step is mostly calls into numpy, so it makes few of them, into reused buffers. A step over
many conversations (`decode`) pads attention to the longest of them; new ids of one conversation (`extend`) form one
chunk. Threads are the BLAS library's: set OPENBLAS_NUM_THREADS before numpy is imported; one is fastest for a model of
a few million parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ferrule.engines.attention import ChunkAttention, PassBuffers, ScratchArrays, StepAttention
from ferrule.engines.config import DecoderConfig
from ferrule.engines.kv_cache import KeyValueCache
from ferrule.engines.safetensors import Array
from ferrule.engines.weights import DecoderWeights, LayerWeights


class TransformerDecoder:
    """Runs the weights over a cache. Not thread-safe: buffers are reused."""

    def __init__(self, config: DecoderConfig, weights: DecoderWeights) -> None:
        self.config = config
        self._weights = weights
        self._rotations = _compute_rotations(config, 0)
        self._memory = ScratchArrays()
        self._tail = PassBuffers(config, 1, ScratchArrays())
        self._buffers = lru_cache(maxsize=64)(lambda rows: PassBuffers(config, rows, self._memory))

    def decode(self, cache: KeyValueCache, ids: Sequence[int], positions: Sequence[int]) -> Array:
        """Feed one id to each of the places 0 to n-1 at its position; returns the logits (n, vocabulary) after each.

        The result is a buffer that the next call overwrites.
        """
        buffers: PassBuffers = self._buffers(len(ids))
        self._begin(buffers, cache, ids, np.asarray(positions))
        attention = StepAttention(cache, 0, positions, buffers, self._memory)
        with np.errstate(over="ignore"):  # exp() of a closed gate: x / inf is the right zero
            for index, layer in enumerate(self._weights.layers):
                self._project(buffers, layer)
                attention.write(index)
                attention.mix(index, layer.scores_are_small)
                self._finish(buffers, layer)
        return self._read_out(buffers)

    def extend(self, cache: KeyValueCache, place: int, ids: Sequence[int], start: int, logits: bool) -> Array | None:
        """Feed new ids of one place, which has `start` positions; returns the logits (1, vocabulary) after the last.

        In the last layer, everything but the keys and values is computed for the last id only: nothing else reads it.
        Without `logits`, for a chunk followed by others, not even that; the result is then None.
        """
        end, last = start + len(ids), self.config.layers - 1
        buffers: PassBuffers = self._buffers(len(ids))
        self._begin(buffers, cache, ids, np.arange(start, end))
        attention = ChunkAttention(cache, place, start, buffers, self._memory)
        with np.errstate(over="ignore"):
            for index, layer in enumerate(self._weights.layers):
                self._project(buffers, layer)
                attention.write(index)
                if index < last:
                    attention.mix(index, layer.scores_are_small)
                    self._finish(buffers, layer)
            return self._finish_last(cache, place, end, buffers) if logits else None

    def _finish_last(self, cache: KeyValueCache, place: int, end: int, buffers: PassBuffers) -> Array:
        """The last layer for a chunk's last id, whose keys and values are already written."""
        layer, tail = self._weights.layers[-1], self._tail
        tail.hidden[...] = buffers.hidden[-1:]
        tail.queries[...] = buffers.queries[-1:]
        attention = StepAttention(cache, place, [end - 1], tail, self._memory)
        attention.mix(self.config.layers - 1, layer.scores_are_small)
        self._finish(tail, layer)
        return self._read_out(tail)

    def _begin(self, buffers: PassBuffers, cache: KeyValueCache, ids: Sequence[int], positions: NDArray[Any]) -> None:
        """Look up the ids' embeddings and their positions' rotations."""
        capacity = cache.data.shape[3]
        if len(self._rotations) < capacity:
            self._rotations = _compute_rotations(self.config, capacity)
        # The caller checks ids; "clip" saves numpy a second buffer.
        np.take(self._weights.embedding, ids, axis=0, out=buffers.hidden, mode="clip")
        np.take(self._rotations, positions, axis=0, out=buffers.rotations[:, 0], mode="clip")

    def _project(self, buffers: PassBuffers, layer: LayerWeights) -> None:
        """Queries, keys and values, normalised if the model does so, and rotated by their positions."""
        self._normalise(buffers)
        np.matmul(buffers.normed, layer.qkv, out=buffers.qkv)
        if layer.head_norm is not None:
            heads = buffers.queries_keys
            squares = np.vecdot(heads, heads, out=buffers.head_squares)
            np.add(squares, self.config.norm_epsilon * self.config.head_dim, out=squares)
            np.sqrt(squares, out=squares)
            np.divide(heads, buffers.head_squares_column, out=heads)
            np.multiply(heads, layer.head_norm, out=heads)
        np.multiply(buffers.pairs, buffers.rotations, out=buffers.pairs)

    def _finish(self, buffers: PassBuffers, layer: LayerWeights) -> None:
        """Add the attention's output, then the feed-forward part's."""
        hidden, projected, gate, opened = buffers.hidden, buffers.projected, buffers.gate, buffers.opened
        np.matmul(buffers.mixed_flat, layer.out, out=projected)
        np.add(hidden, projected, out=hidden)
        self._normalise(buffers)
        np.matmul(buffers.normed, layer.gate_up, out=buffers.gate_up)
        # silu(g) up = g up / (1 + exp(-g)); `gate` is -g, and `down` cancels the sign.
        np.exp(gate, out=opened)
        np.add(opened, 1.0, out=opened)
        np.multiply(gate, buffers.up, out=gate)
        np.divide(gate, opened, out=opened)
        np.matmul(opened, layer.down, out=projected)
        np.add(hidden, projected, out=hidden)

    def _normalise(self, buffers: PassBuffers) -> None:
        squares = np.vecdot(buffers.hidden, buffers.hidden, out=buffers.squares)
        np.add(squares, self.config.norm_epsilon * self.config.hidden_size, out=squares)
        np.sqrt(squares, out=squares)
        np.divide(buffers.hidden, buffers.squares_column, out=buffers.normed)

    def _read_out(self, buffers: PassBuffers) -> Array:
        self._normalise(buffers)
        logits = self._memory.get_array("logits", (buffers.rows, self.config.vocab_size))
        return np.matmul(buffers.normed, self._weights.head, out=logits)


def _compute_rotations(config: DecoderConfig, positions: int) -> NDArray[np.complex64]:
    """Unit complex numbers (positions, head_dim / 2), in float32 as transformers computes them."""
    exponents = np.arange(0, config.head_dim, 2, dtype=np.float32) / np.float32(config.head_dim)
    frequencies = np.float32(1) / np.float32(config.rope_theta) ** exponents
    angles = np.arange(positions, dtype=np.float32)[:, None] * frequencies
    return (np.cos(angles) + 1j * np.sin(angles)).astype(np.complex64)
