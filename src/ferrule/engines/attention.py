"""Attention over the cache: one new id for each of many conversations, or many new ids for one.

Both exponentiate scores without dividing, mix the values, and divide the mix, which is smaller than the scores. They
differ only in how they read keys; projections and norms are in `decoder`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ferrule.engines.config import DecoderConfig
from ferrule.engines.kv_cache import KeyValueCache
from ferrule.engines.safetensors import Array


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
