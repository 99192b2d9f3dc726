"""The forward pass of Qwen 3 and Llama in numpy, float32: ids in, logits out.

A step of a small model costs mostly the calls into numpy, so it makes few of them, into buffers made once for each
batch size. A step over many conversations (`decode`) pads attention to the longest of them; new ids of one
conversation (`extend`) are one chunk. Threads are the BLAS library's own: set OPENBLAS_NUM_THREADS before numpy is
imported; one is fastest for a model of a few million parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ferrule.engines.cache import KeyValueCache
from ferrule.engines.config import DecoderConfig
from ferrule.engines.safetensors import Array
from ferrule.engines.weights import DecoderWeights, LayerWeights

Attention = Callable[[int, LayerWeights], None]


class Decoder:
    """Runs the weights over a cache. Not safe to call from two threads at once: buffers are reused."""

    def __init__(self, config: DecoderConfig, weights: DecoderWeights) -> None:
        self.config = config
        self._weights = weights
        self._rotations = _rotations(config, 0)
        self._buffers = lru_cache(maxsize=64)(lambda rows: _Buffers(config, rows))
        self._scores = self._logits = np.empty(0, np.float32)

    def decode(self, cache: KeyValueCache, ids: Sequence[int], positions: Sequence[int]) -> Array:
        """Feed one id to each of the places 0 to n-1 at its position; the logits (n, vocabulary) after each.

        The result is a buffer that the next call overwrites.
        """
        rows, length = len(ids), max(positions) + 1
        buffers: _Buffers = self._buffers(rows)
        self._begin(buffers, cache, ids, np.asarray(positions))
        where: tuple[Any, Any] = (0, positions[0])
        mask = None
        if rows > 1:
            where = (buffers.places, np.asarray(positions))
            if min(positions) + 1 < length:
                mask = _mask(np.arange(length) > where[1][:, None])[:, None, None, None]
        scores = self._score_buffer((rows, *buffers.queries.shape[1:4], length))
        keys, values = self._keys_and_values(cache, slice(rows), length)

        def attend(index: int, layer: LayerWeights) -> None:
            written = buffers.new_keys_values if rows > 1 else buffers.new_keys_values[0]
            cache.data[index][where[0], :, where[1]] = written
            np.matmul(buffers.queries, keys[index], out=scores)
            if mask is not None:
                np.add(scores, mask, out=scores)
            totals = _exponentials(scores, layer.scores_are_small)
            np.matmul(scores, values[index], out=buffers.mixed)
            np.divide(buffers.mixed, totals, out=buffers.mixed)

        self._run_layers(buffers, attend)
        return self._read_out(buffers)

    def extend(self, cache: KeyValueCache, place: int, ids: Sequence[int], start: int, logits: bool) -> Array | None:
        """Feed new ids of one place, which holds `start` positions; the logits (1, vocabulary) after the last.

        Without `logits` (a chunk that others follow) the vocabulary is not computed.
        """
        config, rows, end = self.config, len(ids), start + len(ids)
        buffers = _Buffers(config, rows)
        self._begin(buffers, cache, ids, np.arange(start, end))
        group = config.heads // config.kv_heads
        by_head = (config.kv_heads, group, rows)
        scores = self._score_buffer((*by_head, end))
        flat_scores = scores.reshape(config.kv_heads, group * rows, end)
        future = _mask(~np.tri(rows, dtype=bool))
        queries = np.empty((*by_head, config.head_dim), np.float32)
        mixed = np.empty((config.kv_heads, group * rows, config.head_dim), np.float32)

        def attend(index: int, layer: LayerWeights) -> None:
            kept = cache.data[index, place]
            kept[:, start:end] = buffers.new_keys_values.swapaxes(0, 1)
            queries[...] = buffers.queries[:, :, :, 0].transpose(1, 2, 0, 3)
            keys = kept[: config.kv_heads, :end].swapaxes(1, 2)
            np.matmul(queries.reshape(*mixed.shape), keys, out=flat_scores)
            scores[..., start:] += future
            totals = _exponentials(flat_scores, layer.scores_are_small)
            np.matmul(flat_scores, kept[config.kv_heads :, :end], out=mixed)
            np.divide(mixed, totals, out=mixed)
            buffers.mixed[:, :, :, 0] = mixed.reshape(queries.shape).transpose(2, 0, 1, 3)

        self._run_layers(buffers, attend)
        return self._read_out(buffers.last_row()) if logits else None

    def _begin(self, buffers: _Buffers, cache: KeyValueCache, ids: Sequence[int], positions: NDArray[Any]) -> None:
        capacity = cache.data.shape[3]
        if len(self._rotations) < capacity:
            self._rotations = _rotations(self.config, capacity)
        np.take(self._weights.embedding, ids, axis=0, out=buffers.hidden, mode="clip")
        np.take(self._rotations, positions, axis=0, out=buffers.rotations[:, 0], mode="clip")

    def _run_layers(self, buffers: _Buffers, attend: Attention) -> None:
        hidden, normed, projected = buffers.hidden, buffers.normed, buffers.projected
        for index, layer in enumerate(self._weights.layers):
            self._normalise(buffers)
            np.matmul(normed, layer.qkv, out=buffers.qkv)
            self._place_heads(buffers, layer)
            attend(index, layer)
            np.matmul(buffers.mixed_flat, layer.out, out=projected)
            np.add(hidden, projected, out=hidden)
            self._normalise(buffers)
            np.matmul(normed, layer.gate_up, out=buffers.gate_up)
            gate, opened = buffers.gate, buffers.opened
            np.tanh(gate, out=opened)
            np.add(opened, 1.0, out=opened)
            np.multiply(opened, gate, out=opened)
            np.multiply(opened, buffers.up, out=opened)
            np.matmul(opened, layer.down, out=projected)
            np.add(hidden, projected, out=hidden)

    def _normalise(self, buffers: _Buffers) -> None:
        config = self.config
        squares = np.vecdot(buffers.hidden, buffers.hidden, out=buffers.squares)
        np.add(squares, config.norm_epsilon * config.hidden_size, out=squares)
        np.sqrt(squares, out=squares)
        np.divide(buffers.hidden, buffers.squares_column, out=buffers.normed)

    def _place_heads(self, buffers: _Buffers, layer: LayerWeights) -> None:
        """Normalise each query and key where the model does, and turn it by its position."""
        heads = buffers.queries_keys
        if layer.head_norm is not None:
            squares = np.vecdot(heads, heads, out=buffers.head_squares)
            np.add(squares, self.config.norm_epsilon * self.config.head_dim, out=squares)
            np.sqrt(squares, out=squares)
            np.divide(heads, buffers.head_squares_column, out=heads)
            np.multiply(heads, layer.head_norm, out=heads)
        np.multiply(buffers.pairs, buffers.rotations, out=buffers.pairs)

    def _read_out(self, buffers: _Buffers) -> Array:
        """The logits of every row, in one buffer for all batch sizes: vocabularies can be large."""
        self._normalise(buffers)
        rows, vocabulary = len(buffers.hidden), self.config.vocab_size
        if self._logits.size < rows * vocabulary:
            self._logits = np.empty(rows * vocabulary, np.float32)
        logits = self._logits[: rows * vocabulary].reshape(rows, vocabulary)
        return np.matmul(buffers.normed, self._weights.head, out=logits)

    def _score_buffer(self, shape: tuple[int, ...]) -> Array:
        size = math.prod(shape)
        if self._scores.size < size:
            self._scores = np.empty(size * 2, np.float32)
        return self._scores[:size].reshape(shape)

    def _keys_and_values(self, cache: KeyValueCache, places: slice, length: int) -> tuple[Array, Array]:
        """Views for all layers: keys (…, 1, head_dim, length) and values (…, 1, length, head_dim)."""
        kept = cache.data[:, places, :, None, :length]
        kv_heads = self.config.kv_heads
        return kept[:, :, :kv_heads].swapaxes(-1, -2), kept[:, :, kv_heads:]


class _Buffers:
    """The intermediate arrays of a pass over `rows` ids, and the views of them that a layer needs."""

    def __init__(self, config: DecoderConfig, rows: int) -> None:
        head_dim, kv_heads = config.head_dim, config.kv_heads
        rotated = config.heads + kv_heads
        group = config.heads // kv_heads

        def empty(*shape: int) -> Array:
            return np.empty((rows, *shape), np.float32)

        self._config = config
        self.places = np.arange(rows)
        self.hidden, self.normed, self.projected = (empty(config.hidden_size) for _ in range(3))
        self.squares, self.head_squares = empty(), empty(rotated)
        self.squares_column, self.head_squares_column = self.squares[:, None], self.head_squares[:, :, None]
        self.rotations = np.empty((rows, 1, head_dim // 2), np.complex64)
        self.qkv = empty((rotated + kv_heads) * head_dim)
        heads = self.qkv.reshape(rows, rotated + kv_heads, head_dim)
        self.queries_keys = heads[:, :rotated]
        self.pairs = self.queries_keys.view(np.complex64)
        # One row a head, so that attention is a matrix-vector product: BLAS is twice as fast at it as at three rows.
        self.queries = heads[:, : config.heads].reshape(rows, kv_heads, group, 1, head_dim)
        self.new_keys_values = heads[:, config.heads :]
        self.mixed_flat = empty(config.heads * head_dim)
        self.mixed = self.mixed_flat.reshape(self.queries.shape)
        self.gate_up = empty(2 * config.intermediate_size)
        self.gate = self.gate_up[:, : config.intermediate_size]
        self.up = self.gate_up[:, config.intermediate_size :]
        self.opened = empty(config.intermediate_size)

    def last_row(self) -> _Buffers:
        """Buffers for the last row alone, with its hidden state."""
        single = _Buffers(self._config, 1)
        single.hidden[...] = self.hidden[-1:]
        return single


def _exponentials(scores: Array, are_small: bool) -> Array:
    """Turn scores into their exponentials in place; the sums, to divide by after the mixing."""
    if not are_small:
        np.subtract(scores, np.maximum.reduce(scores, axis=-1, keepdims=True), out=scores)
    np.exp(scores, out=scores)
    return np.add.reduce(scores, axis=-1, keepdims=True)


def _mask(hidden: NDArray[np.bool_]) -> Array:
    return np.where(hidden, np.float32(-np.inf), np.float32(0))


def _rotations(config: DecoderConfig, positions: int) -> NDArray[np.complex64]:
    """Unit complex numbers (positions, head_dim / 2), in float32 as transformers computes them."""
    exponents = np.arange(0, config.head_dim, 2, dtype=np.float32) / np.float32(config.head_dim)
    frequencies = np.float32(1) / np.float32(config.rope_theta) ** exponents
    angles = np.arange(positions, dtype=np.float32)[:, None] * frequencies
    return (np.cos(angles) + 1j * np.sin(angles)).astype(np.complex64)
