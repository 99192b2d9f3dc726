"""What engines with a scheduler share: they check each request's arguments, and pass it on."""

from __future__ import annotations

import asyncio
import math
import weakref
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ferrule._util.async_closing import AsyncClosing
from ferrule.conversation import ImageInput
from ferrule.engines.batch_decoder import BatchDecoder
from ferrule.engines.constraint_compiler import ConstraintCompiler
from ferrule.engines.delivery import TokenChannel, TokenStream
from ferrule.engines.prefixes import Ids
from ferrule.engines.protocol import Finished, Sampling
from ferrule.engines.running_batch import GenerationRequest
from ferrule.engines.sampling import TokenSampler
from ferrule.engines.scheduler import Scheduler
from ferrule.errors import EngineError

if TYPE_CHECKING:
    from ferrule.dialects.grammar import Grammar


class BatchingEngine(AsyncClosing):
    """An `Engine` over a decoder: `vocabulary_size` ids, contexts of up to `context_length` of them.

    `memory` limits, in bytes, what running conversations and kept prefixes take together, `prefix_bytes` the latter
    alone.
    """

    def __init__(
        self,
        decoder: BatchDecoder,
        *,
        vocabulary_size: int,
        context_length: int,
        max_batch: int,
        memory: int,
        prefix_bytes: int,
        constraints: ConstraintCompiler | None,
    ) -> None:
        if max_batch < 1:
            raise EngineError(f"max_batch {max_batch} is not 1 or more")
        if prefix_bytes < 0:
            raise EngineError(f"prefix_bytes {prefix_bytes} is not 0 or more")
        self.context_length = context_length
        self._decoder = decoder
        self._vocabulary_size = vocabulary_size
        self._memory = memory
        self._constraints = constraints
        self._scheduler = Scheduler(decoder, max_batch, memory, prefix_bytes)
        # The step thread references only the scheduler, so an engine that is dropped unclosed still ends it.
        weakref.finalize(self, self._scheduler.close)

    def generate(
        self,
        ids: Sequence[int],
        *,
        sampling: Sampling,
        stop_ids: Collection[int],
        images: Sequence[ImageInput] = (),
        constraint: Grammar | None = None,
    ) -> TokenStream:
        """See `Engine.generate`. Checks its arguments at once, and starts on first read.

        Keys and values are kept afterwards and found again by ids, so a prompt that extends an earlier one costs only
        its new ids.
        """
        if images:
            raise EngineError("images: this engine runs text models only")
        if constraint is not None and self._constraints is None:
            raise EngineError("constraint: this engine was opened without a vocabulary, and knows only ids")
        _check_sampling(sampling)
        prompt = self._check_prompt(ids)
        if len(prompt) >= self.context_length:
            return _refuse_full_context(len(prompt))
        request = self._make_request(prompt, TokenSampler(sampling), stop_ids)
        if constraint is not None and self._constraints is not None:
            budget = len(request.ids) - len(prompt)
            request.chooser.constraint = self._constraints.compile(constraint, tuple(stop_ids), budget)

        def start() -> TokenChannel:
            self._scheduler.submit(request)
            return request.channel

        return TokenStream(start, lambda: self._scheduler.cancel(request))

    def weights_changed(self) -> None:
        """See `Engine.weights_changed`."""
        self._scheduler.change_weights(lambda: None)

    @property
    def can_constrain(self) -> bool:
        """Whether it knows what its ids mean, and llguidance is installed where that is needed."""
        return self._constraints is not None and self._constraints.is_available

    @property
    def occupied(self) -> int:
        """The number of generations that have a place in the batch or wait for one."""
        return self._scheduler.occupied

    async def aclose(self) -> None:
        """End running generations with reason "cancelled", stop the step thread, and release the caches."""
        thread = self._scheduler.close()
        if thread is not None:
            await asyncio.to_thread(thread.join)

    def _check_prompt(self, ids: Sequence[int]) -> Ids:
        prompt = np.asarray(ids)
        if prompt.ndim != 1 or not prompt.size or prompt.dtype.kind not in "iu":
            raise EngineError("ids: a prompt is a flat, non-empty sequence of integers")
        if prompt.min() < 0 or prompt.max() >= self._vocabulary_size:
            outside = next(int(i) for i in prompt if not 0 <= i < self._vocabulary_size)
            raise EngineError(f"ids: {outside} is outside the vocabulary of {self._vocabulary_size}")
        return prompt.astype(np.int64)

    def _make_request(self, prompt: Ids, chooser: TokenSampler, stop_ids: Collection[int]) -> GenerationRequest:
        limit, max_tokens = self.context_length, chooser.sampling.max_tokens
        is_short = max_tokens is not None and len(prompt) + max_tokens <= limit
        if is_short and max_tokens is not None:
            limit = len(prompt) + max_tokens
        limit = self._check_memory(limit, len(prompt) + 1 if max_tokens is None else limit)
        room = np.zeros(limit, np.int64)
        room[: len(prompt)] = prompt
        return GenerationRequest(
            ids=room,
            prompt_tokens=len(prompt),
            chooser=chooser,
            stop_ids=frozenset(stop_ids),
            is_full_at="length" if is_short else "context",
            channel=TokenChannel(),
            length=len(prompt),
        )

    def _check_memory(self, limit: int, least: int) -> int:
        """How many of `limit` positions fit into the memory, if at least `least` do. Raises `EngineError` if not."""
        needed = self._decoder.measure([least])
        if needed > self._memory:
            raise EngineError(
                f"kv_memory: {least} ids need {needed:,} bytes of keys and values, of which there are {self._memory:,}"
            )
        while self._decoder.measure([limit]) > self._memory:
            limit = max(least, limit - 1 - limit // 64)
        return limit


def _check_sampling(sampling: Sampling) -> None:
    """Raise `EngineError` naming an invalid setting."""
    if not (math.isfinite(sampling.temperature) and sampling.temperature >= 0):
        raise EngineError(f"temperature: {sampling.temperature} is not a number from 0 up")
    if sampling.top_k is not None and sampling.top_k < 1:
        raise EngineError(f"top_k: {sampling.top_k} is not 1 or more")
    if sampling.top_p is not None and not 0 < sampling.top_p <= 1:
        raise EngineError(f"top_p: {sampling.top_p} is not above 0 and at most 1")
    if sampling.seed is not None and sampling.seed < 0:
        raise EngineError(f"seed: {sampling.seed} is not 0 or more")
    if sampling.max_tokens is not None and sampling.max_tokens < 1:
        raise EngineError(f"max_tokens: {sampling.max_tokens} is not 1 or more")


def _refuse_full_context(prompt_tokens: int) -> TokenStream:
    channel = TokenChannel()
    channel.put(Finished("context", prompt_tokens, cached_tokens=0, sampled_tokens=0))
    return TokenStream(lambda: channel, lambda: None)
