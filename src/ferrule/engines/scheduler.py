"""The step loop: continuous batching of all conversations, in its own thread.

Each step admits waiting requests while there is room, computes one chunk of new prompt ids, then one token for every
conversation whose prompt is complete: a conversation that starts, ends or is cancelled never delays the others for
longer. `decoder` computes, `sampling` chooses, `delivery` returns tokens to the event loops.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ferrule.engines.decoder import TransformerDecoder
from ferrule.engines.delivery import Item, TokenChannel, TokenMailbox
from ferrule.engines.kv_cache import Ids, KeyValueCache, Prefix, PrefixStore, common_prefix
from ferrule.engines.protocol import Finished, FinishReason, Sampled
from ferrule.engines.sampling import TokenSampler, sample_ids
from ferrule.engines.weights import Array
from ferrule.errors import EngineError

# New prompt ids in one step: more would waste work above the diagonal, and delay the others for longer.
CHUNK = 256
# Seconds without work after which what the last conversation left in its place is stored: a request from another
# conversation then needn't wait for that copy. Long enough that a turn which follows a quick tool's result, and goes on
# in that place, doesn't meet the copy.
PAUSE = 0.02


@dataclass(slots=True, eq=False)
class GenerationRequest:
    """One generation. `ids[:length]` are its prompt and the sampled ids, `ids[:computed]` are in the cache."""

    ids: Ids
    prompt_tokens: int
    chooser: TokenSampler
    stop_ids: frozenset[int]
    is_full_at: FinishReason
    channel: TokenChannel
    length: int = 0
    computed: int = 0
    cached: int = 0
    mailbox: TokenMailbox | None = None
    is_cancelled: bool = False

    def make_finished(self, reason: FinishReason) -> Finished:
        """The end of the generation, for its consumer."""
        return Finished(reason, self.prompt_tokens, self.cached, self.length - self.prompt_tokens)

    @property
    def is_decoding(self) -> bool:
        """Whether only its last id remains to be fed, which a step does for all such requests together."""
        return self.length - self.computed == 1


class Scheduler:
    """Requests in, tokens out. `submit` and `cancel` are called from event loops, everything else in the step thread.

    Requests beyond `max_batch` wait in order of arrival. `_rows[i]` has place i of the cache; at most the last one is
    still having its prompt computed, so the others are a slice.

    The cache of the last conversation to end rests in place 0 until another needs the place, so that a next turn
    continues there without a copy. This is only the case while there are no rows. It is stored after a pause, or when
    another conversation comes sooner.
    """

    def __init__(self, decoder: TransformerDecoder, max_batch: int, prefixes: PrefixStore) -> None:
        self._decoder = decoder
        self._max_batch = max_batch
        self._prefixes = prefixes
        self._cache = KeyValueCache(decoder.config)
        self._resting: Prefix | None = None
        self._is_resting_kept = False
        self._changed = threading.Condition()
        self._waiting: deque[GenerationRequest] = deque()
        self._rows: list[GenerationRequest] = []
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._mailboxes: dict[asyncio.AbstractEventLoop, TokenMailbox] = {}

    def submit(self, request: GenerationRequest) -> None:
        """Queue a request of the running event loop. Raises `EngineError` once closed."""
        loop = asyncio.get_running_loop()
        with self._changed:
            if self._is_closing:
                raise EngineError("the engine is closed")
            if loop not in self._mailboxes:
                self._mailboxes = {old: box for old, box in self._mailboxes.items() if not old.is_closed()}
                self._mailboxes[loop] = TokenMailbox(loop)
            request.mailbox = self._mailboxes[loop]
            self._waiting.append(request)
            if self._thread is None:
                # A daemon: leaving Python never waits for a token.
                self._thread = threading.Thread(target=self._run, name="ferrule-engine", daemon=True)
                self._thread.start()
            self._changed.notify()

    def cancel(self, request: GenerationRequest) -> None:
        """Release the request's place before the next step; nothing more is delivered."""
        with self._changed:
            request.is_cancelled = True
            self._changed.notify()

    def close(self) -> threading.Thread | None:
        """End all requests with reason "cancelled"; returns the thread that is about to end, if one was started."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
            return self._thread

    @property
    def occupied(self) -> int:
        """The number of requests that have a place or wait for one."""
        return len(self._rows) + len(self._waiting)

    def _run(self) -> None:
        with np.errstate(all="ignore"):  # overflows are visible in the logits, which `sample_ids` checks
            while self._has_work():
                try:
                    self._step()
                except Exception as error:  # noqa: BLE001 - whatever the error, every consumer must receive it
                    self._fail(error)
        self._end_all(lambda request: request.make_finished("cancelled"))
        self._prefixes.clear()
        self._clear_places()

    def _has_work(self) -> bool:
        """Sleep until there is work; False when the thread should end."""
        pause = None if self._resting is None or self._is_resting_kept else PAUSE
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._rows or self._is_closing, pause)
            return not self._is_closing

    def _step(self) -> None:
        self._drop_cancelled()
        if not (self._rows or self._waiting):
            self._keep_resting()
            return
        budget = CHUNK
        while budget > 0 and (self._is_prompt_open() or self._admit()):
            budget -= self._extend(self._rows[-1], budget)
        decoding = [request for request in self._rows if request.is_decoding]
        if decoding:
            ids = [int(request.ids[request.computed]) for request in decoding]
            positions = [request.computed for request in decoding]
            self._reserve(len(self._rows), max(positions) + 1)
            logits = self._decoder.decode(self._cache, ids, positions)
            for request in decoding:
                request.computed += 1
            self._emit(decoding, logits)

    def _is_prompt_open(self) -> bool:
        return bool(self._rows) and not self._rows[-1].is_decoding

    def _drop_cancelled(self) -> None:
        with self._changed:
            if any(request.is_cancelled for request in self._waiting):
                self._waiting = deque(request for request in self._waiting if not request.is_cancelled)
        self._remove([request for request in self._rows if request.is_cancelled])

    def _admit(self) -> bool:
        """Give the next waiting request a place, with the longest known prefix; False if there is none."""
        if len(self._rows) >= self._max_batch:
            return False
        with self._changed:
            if not self._waiting:
                return False
            request = self._waiting.popleft()
        # The last id is always fed again: the first token is sampled from its logits.
        prompt = request.ids[: request.prompt_tokens - 1]
        request.computed = request.cached = self._adopt(prompt) or self._copy_known(prompt)
        self._rows.append(request)
        return True

    def _adopt(self, prompt: Ids) -> int:
        """How much of the cache resting in place 0 the prompt can continue: 0 if nothing rests, or more of it is
        stored.

        If the prompt branches off before its end, what would be overwritten is stored first.
        """
        resting = self._resting
        if resting is None:
            return 0
        shared = common_prefix(resting.ids, prompt)
        kept, _ = self._prefixes.find(prompt)
        if shared < len(resting.ids) or kept > shared:
            self._keep_resting()
        self._resting, self._is_resting_kept = None, False
        return shared if shared >= kept else 0

    def _copy_known(self, prompt: Ids) -> int:
        """Copy the longest stored or running prefix to the next free place; returns its length."""
        place = len(self._rows)
        kept, prefix = self._prefixes.find(prompt)
        running = [common_prefix(row.ids[: row.computed], prompt) for row in self._rows]
        best_running = max(running, default=0)
        self._reserve(place + 1, max(kept, best_running))
        if best_running > kept:
            self._cache.move(running.index(best_running), place, best_running)
            return best_running
        if prefix is not None:
            self._cache.restore(place, prefix.keys_values, kept)
        return kept

    def _reserve(self, places: int, capacity: int) -> None:
        self._cache.reserve(places, capacity, [row.computed for row in self._rows])

    def _extend(self, request: GenerationRequest, budget: int) -> int:
        """Compute at most `budget` of a prompt's new ids, and sample after its last; returns how many they were."""
        if request.is_decoding:
            return 0
        start, end = request.computed, min(request.length, request.computed + budget)
        is_last = end == request.length
        self._reserve(len(self._rows), end)
        logits = self._decoder.extend(self._cache, len(self._rows) - 1, request.ids[start:end].tolist(), start, is_last)
        request.computed = end
        if logits is not None:
            self._emit([request], logits)
        return end - start

    def _emit(self, requests: Sequence[GenerationRequest], logits: Array) -> None:
        """Sample for each request, deliver, and remove those that are done."""
        ids, logprobs = sample_ids(logits, [request.chooser for request in requests])
        done = []
        for request, sampled, logprob in zip(requests, ids, logprobs, strict=True):
            if request.chooser.failure is not None:
                self._post(request, request.chooser.failure)
                done.append(request)
                continue
            request.ids[request.length] = sampled
            request.length += 1
            chooser = request.chooser
            self._post(request, Sampled(sampled, logprob, chooser.is_forced, chooser.constrained_logprob))
            if sampled in request.stop_ids:
                self._post(request, request.make_finished("stop"))
            elif request.length == len(request.ids):
                self._post(request, request.make_finished(request.is_full_at))
            else:
                continue
            done.append(request)
        self._send(requests)
        self._remove(done)

    def _post(self, request: GenerationRequest, item: Item) -> None:
        if request.mailbox is not None and not request.is_cancelled:
            request.mailbox.post(request.channel, item)

    def _send(self, requests: Sequence[GenerationRequest]) -> None:
        unreachable = {box for box in {request.mailbox for request in requests} if box and not box.send()}
        for request in requests:
            if request.mailbox in unreachable:
                request.is_cancelled = True

    def _remove(self, requests: Sequence[GenerationRequest]) -> None:
        """Store the prefixes of requests that end, and close the gaps that they leave."""
        for request in requests:
            self._keep(request)
            # The last decoding row fills the gap, so that one whose prompt is being computed stays last.
            place = self._rows.index(request)
            if place < len(self._rows) - 1 and self._is_prompt_open():
                self._refill(place, len(self._rows) - 2)
                place = len(self._rows) - 2
            self._refill(place, len(self._rows) - 1)
            self._rows.pop()

    def _refill(self, place: int, source: int) -> None:
        if source != place:
            self._cache.move(source, place, self._rows[source].computed)
            self._rows[place] = self._rows[source]

    def _keep(self, request: GenerationRequest) -> None:
        if not request.computed:
            return
        ids = request.ids[: request.computed]
        keys_values = self._cache.view(self._rows.index(request), request.computed)
        if len(self._rows) == 1 and self._prefixes.takes(keys_values):
            self._resting = Prefix(ids.copy(), keys_values)
        else:
            self._prefixes.add(ids, keys_values)

    def _keep_resting(self) -> None:
        """Copy the resting cache to the store, which knows whether it already has it."""
        if self._resting is not None:
            self._prefixes.add(self._resting.ids, self._resting.keys_values)
            self._is_resting_kept = True

    def _clear_places(self) -> None:
        self._resting, self._is_resting_kept = None, False
        self._cache.clear()

    def _fail(self, error: Exception) -> None:
        """Tell every consumer, and start over: the cache may contain half a step."""
        reason = f"the engine failed: {error}" if str(error) else f"the engine failed: {error!r}"
        self._clear_places()

        def make_error(request: GenerationRequest) -> EngineError:  # noqa: ARG001 - each consumer raises its own
            failure = EngineError(reason)
            failure.__cause__ = error
            return failure

        self._end_all(make_error)

    def _end_all(self, end: Callable[[GenerationRequest], Item]) -> None:
        with self._changed:
            requests = [*self._rows, *self._waiting]
            self._rows = []
            self._waiting.clear()
        for request in requests:
            self._post(request, end(request))
        self._send(requests)
