"""The forward pass of Qwen 3 and Llama in numpy, float32: ids in, logits out.

The cost of a small model's step is mostly calls into numpy, so it makes few of them, into reused buffers. A step over
many conversations (`decode`) pads attention to the longest of them; new ids of one conversation (`extend`) form one
chunk. Both kinds of attention exponentiate scores without dividing, mix the values, and divide the mix, which is
smaller than the scores; they differ only in how they read keys. Threads are the BLAS library's: set
OPENBLAS_NUM_THREADS before numpy is imported; one is fastest for a model of a few million parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ferrule.engines.config import DecoderConfig
from ferrule.engines.kv_cache import KeyValueCache
from ferrule.engines.weights import Array, DecoderWeights, LayerWeights


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


class ScratchArrays:
    """Named scratch arrays that grow and are reused: fresh memory costs more than the computation in it."""

    def __init__(self) -> None:
        self._blocks: dict[str, Array] = {}
        self._future = np.zeros((0, 0), np.float32)

    def get_array(self, name: str, shape: tuple[int, ...]) -> Array:
        """An uninitialised array, which the next call with this name may overwrite."""
        size = math.prod(shape)
        block = self._blocks.get(name)
        if block is None or block.size < size:
            block = self._blocks[name] = np.empty(size + size // 4, np.float32)
        return block[:size].reshape(shape)

    def get_future_mask(self, rows: int) -> Array:
        """An additive mask that hides from each of `rows` consecutive positions those after it."""
        if len(self._future) < rows:
            self._future = _make_mask(~np.tri(rows, dtype=bool))
        return self._future[:rows, :rows]


class PassBuffers:
    """The intermediate arrays of a pass over `rows` ids, and the views of them that a layer needs."""

    def __init__(self, config: DecoderConfig, rows: int, memory: ScratchArrays) -> None:
        head_dim, kv_heads = config.head_dim, config.kv_heads
        rotated = config.heads + kv_heads
        group = config.heads // kv_heads

        def make_array(name: str, *shape: int) -> Array:
            return memory.get_array(name, (rows, *shape))

        self.rows = rows
        self.places = np.arange(rows)
        self.hidden = make_array("hidden", config.hidden_size)
        self.normed = make_array("normed", config.hidden_size)
        self.projected = make_array("projected", config.hidden_size)
        self.squares, self.head_squares = make_array("squares"), make_array("head squares", rotated)
        self.squares_column, self.head_squares_column = self.squares[:, None], self.head_squares[:, :, None]
        self.rotations = make_array("rotations", 1, head_dim).view(np.complex64)
        self.qkv = make_array("qkv", (rotated + kv_heads) * head_dim)
        heads = self.qkv.reshape(rows, rotated + kv_heads, head_dim)
        self.queries_keys = heads[:, :rotated]
        self.pairs = self.queries_keys.view(np.complex64)
        # One row per head, so that attention is a matrix-vector product: BLAS is twice as fast at it as at three rows.
        self.queries = heads[:, : config.heads].reshape(rows, kv_heads, group, 1, head_dim)
        self.new_keys_values = heads[:, config.heads :]
        self.mixed_flat = make_array("mixed", config.heads * head_dim)
        self.mixed = self.mixed_flat.reshape(self.queries.shape)
        self.gate_up = make_array("gate up", 2 * config.intermediate_size)
        self.gate = self.gate_up[:, : config.intermediate_size]
        self.up = self.gate_up[:, config.intermediate_size :]
        self.opened = make_array("opened", config.intermediate_size)


class StepAttention:
    """One query for each of some neighbouring places, at `positions`, over the whole content of their places."""

    def __init__(
        self,
        cache: KeyValueCache,
        first_place: int,
        positions: Sequence[int],
        buffers: PassBuffers,
        memory: ScratchArrays,
    ) -> None:
        rows, length = buffers.rows, max(positions) + 1
        kv_heads, group = buffers.queries.shape[1:3]
        self._cache, self._buffers = cache, buffers
        self._where: tuple[Any, Any] = (first_place, positions[0])
        self._mask: Array | None = None
        if rows > 1:
            self._where = (buffers.places + first_place, np.asarray(positions))
            if min(positions) + 1 < length:
                hidden = np.arange(length) > self._where[1][:, None]
                self._mask = _make_mask(hidden)[:, None, None, None]
        self._scores = memory.get_array("scores", (rows, kv_heads, group, 1, length))
        kept = cache.data[:, first_place : first_place + rows, :, None, :length]
        self._keys, self._values = kept[:, :, :kv_heads].swapaxes(-1, -2), kept[:, :, kv_heads:]

    def write(self, layer: int) -> None:
        """Put the buffers' new keys and values into the cache."""
        new = self._buffers.new_keys_values
        place, position = self._where
        self._cache.data[layer][place, :, position] = new if self._buffers.rows > 1 else new[0]

    def mix(self, layer: int, scores_are_small: bool) -> None:
        """Set the buffers' `mixed` from their `queries`."""
        scores, buffers = self._scores, self._buffers
        np.matmul(buffers.queries, self._keys[layer], out=scores)
        if self._mask is not None:
            np.add(scores, self._mask, out=scores)
        _exponentiate(scores, scores_are_small)
        np.matmul(scores, self._values[layer], out=buffers.mixed)
        np.divide(buffers.mixed, np.add.reduce(scores, axis=-1, keepdims=True), out=buffers.mixed)


class ChunkAttention:
    """The queries of new ids in one place, which follow `start` positions, each attending up to its own."""

    def __init__(
        self, cache: KeyValueCache, place: int, start: int, buffers: PassBuffers, memory: ScratchArrays
    ) -> None:
        rows, end = buffers.rows, start + buffers.rows
        kv_heads, group, _, head_dim = buffers.queries.shape[1:]
        self._start, self._end, self._kv_heads, self._buffers = start, end, kv_heads, buffers
        self._kept = cache.data[:, place]
        self._future = memory.get_future_mask(rows)
        # Heads that share keys form one matrix product: (kv_heads, group * rows, …).
        self._scores = memory.get_array("scores", (kv_heads, group * rows, end))
        self._queries = memory.get_array("chunk queries", (kv_heads, group, rows, head_dim))
        self._mixed = memory.get_array("chunk mixed", (kv_heads, group * rows, head_dim))
        self._ones = np.ones((end, 1), np.float32)

    def write(self, layer: int) -> None:
        """Put the buffers' new keys and values into the cache."""
        self._kept[layer, :, self._start : self._end] = self._buffers.new_keys_values.swapaxes(0, 1)

    def mix(self, layer: int, scores_are_small: bool) -> None:
        """Set the buffers' `mixed` from their `queries`."""
        scores, queries, mixed, buffers = self._scores, self._queries, self._mixed, self._buffers
        kept = self._kept[layer, :, : self._end]
        queries[...] = buffers.queries[:, :, :, 0].transpose(1, 2, 0, 3)
        np.matmul(queries.reshape(mixed.shape), kept[: self._kv_heads].swapaxes(1, 2), out=scores)
        scores.reshape(*queries.shape[:3], -1)[..., self._start :] += self._future
        _exponentiate(scores, scores_are_small)
        np.matmul(scores, kept[self._kv_heads :], out=mixed)
        # A product with ones sums rows three times faster than a reduction.
        np.divide(mixed, np.matmul(scores, self._ones), out=mixed)
        buffers.mixed[:, :, :, 0] = mixed.reshape(queries.shape).transpose(2, 0, 1, 3)


def _exponentiate(scores: Array, are_small: bool) -> None:
    """exp(score), minus each row's maximum if it could overflow, in place."""
    if not are_small:
        np.subtract(scores, np.maximum.reduce(scores, axis=-1, keepdims=True), out=scores)
    np.exp(scores, out=scores)


def _make_mask(hidden: NDArray[np.bool_]) -> Array:
    """An additive mask that hides positions."""
    return np.where(hidden, np.float32(-np.inf), np.float32(0))
