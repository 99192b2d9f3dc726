"""Runs Qwen 3 and Llama checkpoints with numpy alone, for many conversations at once.

Designed for models of a few million parameters; larger ones run at the speed of float32 on a CPU.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from ferrule.engines.batching_engine import BatchingEngine
from ferrule.engines.config import DecoderConfig, read_config
from ferrule.engines.constraint_compiler import ConstraintCompiler
from ferrule.engines.constraints import Vocabulary
from ferrule.engines.decoder import TransformerDecoder
from ferrule.engines.kv_cache import KeyValueCache
from ferrule.engines.prefixes import KeptState, Prefix
from ferrule.engines.sampling import TokenSampler, sample_ids
from ferrule.engines.weights import Array, DecoderWeights, fold_weights, read_safetensors
from ferrule.errors import EngineError


class NumpyEngine(BatchingEngine):
    """An `Engine` over a config and its tensors, by Hugging Face's names.

    `max_batch` conversations are computed at once, more wait; `prefix_bytes` limits what is kept between turns.
    `context_length` may be shorter than the config's. `vocabulary`, as a tokenizer has it, is what a constraint needs;
    if the engine `tries_ids`, no llguidance either (see `GrammarMatcher`).
    Raises `EngineError` for weights that don't match the config.
    """

    def __init__(
        self,
        config: DecoderConfig,
        weights: Mapping[str, ArrayLike],
        *,
        max_batch: int = 32,
        prefix_bytes: int = 256 * 2**20,
        context_length: int | None = None,
        vocabulary: Vocabulary | None = None,
        tries_ids: bool = False,
    ) -> None:
        if context_length is not None and not 1 <= context_length <= config.context_length:
            raise EngineError(f"context_length {context_length} is not between 1 and {config.context_length}")
        self.config = config
        self._numpy_decoder = _NumpyBatchDecoder(
            config, weights, config.vocab_size if vocabulary is None else vocabulary.vocabulary_size
        )
        super().__init__(
            self._numpy_decoder,
            vocabulary_size=config.vocab_size,
            context_length=context_length or config.context_length,
            max_batch=max_batch,
            memory=sys.maxsize,
            prefix_bytes=prefix_bytes,
            constraints=None if vocabulary is None else ConstraintCompiler(vocabulary, tries_ids=tries_ids),
        )

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        max_batch: int = 32,
        prefix_bytes: int = 256 * 2**20,
        context_length: int | None = None,
        vocabulary: Vocabulary | None = None,
        tries_ids: bool = False,
    ) -> Self:
        """Load the checkpoint in a folder with `config.json` and `model.safetensors`."""
        config = read_config(Path(folder) / "config.json")
        weights = read_safetensors(Path(folder) / "model.safetensors")
        return cls(
            config,
            weights,
            max_batch=max_batch,
            prefix_bytes=prefix_bytes,
            context_length=context_length,
            vocabulary=vocabulary,
            tries_ids=tries_ids,
        )

    def weights_changed(self, weights: Mapping[str, ArrayLike] | None = None) -> None:
        """See `Engine.weights_changed`. The engine computes with a converted copy, so it takes all of the new `weights`
        by Hugging Face's names, as anything that numpy can read as float32.

        Raises `EngineError` naming one that is missing or unusable; the engine then goes on with those that it has.
        """
        folded = None if weights is None else fold_weights(self.config, weights)
        self._scheduler.change_weights(lambda: self._numpy_decoder.set_weights(folded))


class _NumpyBatchDecoder:
    """The `BatchDecoder` of numpy: a decoder and its cache."""

    chunk = 256
    """More ids at once would waste work above the diagonal."""
    can_crop = True

    def __init__(self, config: DecoderConfig, weights: Mapping[str, ArrayLike], vocabulary_size: int) -> None:
        self._vocabulary_size = vocabulary_size
        self._decoder = TransformerDecoder(config, fold_weights(config, weights))
        self._cache = KeyValueCache(config)
        self._position_bytes = 2 * config.layers * config.kv_heads * config.head_dim * np.dtype(np.float32).itemsize

    def set_weights(self, weights: DecoderWeights | None) -> None:
        """Compute with other weights from now on; None for the same."""
        if weights is not None:
            self._decoder = TransformerDecoder(self._decoder.config, weights)

    @property
    def allocated(self) -> int:
        return self._cache.data.nbytes

    def computing(self) -> AbstractContextManager[Any]:
        return np.errstate(all="ignore")  # overflows are visible in the logits, which `sample_ids` checks

    def measure(self, capacities: Sequence[int]) -> int:
        return len(capacities) * max(capacities, default=0) * self._position_bytes

    def fits(self, capacities: Sequence[int]) -> bool:
        _, places, _, capacity, _ = self._cache.data.shape
        return bool(len(capacities) <= places and max(capacities, default=0) <= capacity)

    def reserve(self, capacities: Sequence[int], lengths: Sequence[int], limit: int) -> None:  # noqa: ARG002 - no limit
        self._cache.reserve(len(capacities), max(capacities, default=0), lengths)

    def decode(self, ids: Sequence[int], positions: Sequence[int]) -> Array:
        return self._decoder.decode(self._cache, ids, positions)

    def extend(self, place: int, ids: Sequence[int], start: int, wants_logits: bool) -> Array | None:
        return self._decoder.extend(self._cache, place, ids, start, wants_logits)

    def copy(self, source: int, target: int, length: int) -> None:
        self._cache.move(source, target, length)

    def save(self, place: int, length: int, extended: Prefix | None = None) -> Array:
        keys_values = self._cache.view(place, length)
        layers, heads, _, head_dim = keys_values.shape
        if extended is not None and cast(Array, extended.state).shape[2] >= length:
            kept, known = cast(Array, extended.state), len(extended.ids)
        else:
            # A quarter more than needed, for the next turn: memory that is not touched yet takes no space.
            kept, known = np.empty((layers, heads, length + length // 4, head_dim), np.float32), 0
        kept[:, :, known:length] = keys_values[:, :, known:]
        return kept

    def restore(self, place: int, state: KeptState, length: int) -> None:
        self._cache.restore(place, cast(Array, state), length)

    def clear(self) -> None:
        self._cache.clear()

    def describe_failure(self, error: BaseException) -> str:
        if isinstance(error, MemoryError):
            return f"out of memory: {error}; set a smaller max_batch or context_length"
        return str(error) or repr(error)

    def sample(self, logits: Array, choosers: Sequence[TokenSampler]) -> tuple[list[int], list[float]]:
        return sample_ids(logits, choosers, self._vocabulary_size)
