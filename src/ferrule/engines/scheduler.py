"""The step loop: continuous batching of all conversations, in its own thread.

Each step admits waiting requests while there is room, computes one chunk of new prompt ids, then one token for every
conversation whose prompt is complete: a conversation that starts, ends or is cancelled never delays the others for
longer. `running_batch` knows who has which place, the decoder computes and chooses, `delivery` returns tokens to the
event loops.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from traceback import clear_frames
from typing import Any
from weakref import WeakSet

from ferrule.engines.batch_decoder import BatchDecoder
from ferrule.engines.delivery import Item, TokenMailbox
from ferrule.engines.protocol import Sampled
from ferrule.engines.running_batch import GenerationRequest, RunningBatch
from ferrule.errors import EngineError

# Seconds without work after which what the last conversation left in its place is stored: a request from another
# conversation then needn't wait for that copy. Long enough that a turn which follows a quick tool's result, and goes on
# in that place, doesn't meet the copy.
PAUSE = 0.02
REASON = 500
"""Characters of an error that consumers are shown: a model's may list all of its weights. Its cause has the rest."""
EXIT_LIMIT = 10.0
"""Seconds that leaving Python waits at most for the current step. Ended in the middle of one, a thread of torch's
aborts the process."""


class Scheduler:
    """Requests in, tokens out. `submit`, `cancel` and `change_weights` are called from other threads, everything else
    in the step thread.

    Requests wait in order of arrival while there are `max_batch` others, or no memory for one more. If the
    conversations that are running need more memory than there is, the last admitted waits again, and is computed anew.
    """

    def __init__(self, decoder: BatchDecoder, max_batch: int, memory: int, prefix_bytes: int) -> None:
        self._decoder = decoder
        self._max_batch = max_batch
        self._batch = RunningBatch(decoder, memory, prefix_bytes)
        self._changed = threading.Condition()
        self._waiting: deque[GenerationRequest] = deque()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._mailboxes: dict[asyncio.AbstractEventLoop, TokenMailbox] = {}
        self._weight_changes: deque[tuple[Callable[[], None], Future[None]]] = deque()
        self._weights_version = 0

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
            self._wake()

    def cancel(self, request: GenerationRequest) -> None:
        """Release the request's place before the next step; nothing more is delivered."""
        with self._changed:
            request.is_cancelled = True
            self._changed.notify()

    def change_weights(self, change: Callable[[], None]) -> Future[None]:
        """Have `change` called before the next step; nothing that was computed before it is used after it.

        The future is done once `change` was called, and has the error that it raised. Of a closed engine it has an
        `EngineError`, and `change` is not called. The step thread itself can't wait for it.
        """
        done: Future[None] = Future()
        with self._changed:
            if self._is_closing:
                done.set_exception(EngineError("the engine is closed"))
            else:
                self._weight_changes.append((change, done))
                self._wake()
        return done

    @property
    def is_step_thread(self) -> bool:
        """Whether the caller runs in the step thread."""
        return threading.current_thread() is self._thread

    def close(self) -> threading.Thread | None:
        """End all requests with reason "cancelled"; returns the thread that is about to end, if one was started."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
            return self._thread

    @property
    def occupied(self) -> int:
        """The number of requests that have a place or wait for one."""
        return len(self._batch.rows) + len(self._waiting)

    def _wake(self) -> None:
        if self._thread is None:
            # A daemon: leaving Python waits for the current step, and for no token after it.
            self._thread = threading.Thread(target=self._run, name="ferrule-engine", daemon=True)
            self._thread.start()
            _STARTED.add(self)
        self._changed.notify()

    def _run(self) -> None:
        with self._decoder.computing():
            while self._has_work():
                try:
                    self._step()
                except BaseException as error:  # noqa: BLE001 - whatever it is, every consumer must receive it
                    self._fail(error)
        self._end_all(lambda request: request.make_finished("cancelled"))
        self._batch.prefixes.clear()
        for _, done in self._weight_changes:  # the engine is closed, so there will be no more of them
            done.set_exception(EngineError("the engine was closed before the weights were changed"))

    def _has_work(self) -> bool:
        """Sleep until there is work; False when the thread should end."""
        pause = PAUSE if self._batch.is_resting else None
        with self._changed:
            self._changed.wait_for(
                lambda: self._waiting or self._batch.rows or self._weight_changes or self._is_closing, pause
            )
            return not self._is_closing

    def _step(self) -> None:
        self._apply_weight_changes()
        self._drop_cancelled()
        batch = self._batch
        if not (batch.rows or self._waiting):
            batch.keep_resting()
            return
        budget = self._decoder.chunk
        while budget > 0 and (batch.is_prompt_open or self._admit()):
            budget -= self._extend(batch.rows[-1], budget)
        self._wait_again(batch.make_room())
        decoding = [request for request in batch.rows if request.is_decoding]
        if decoding:
            ids = [int(request.ids[request.computed]) for request in decoding]
            logits = self._decoder.decode(ids, [request.computed for request in decoding])
            for request in decoding:
                request.computed += 1
            self._emit(decoding, logits)

    def _apply_weight_changes(self) -> None:
        """Running generations are computed anew: what they sample from now on is what these weights alone give.

        That holds for a change that fails too, since it may have changed some of them.
        """
        if self._weight_changes:
            self._wait_again(self._batch.evict_all())
        while self._weight_changes:
            change, done = self._weight_changes.popleft()
            self._weights_version += 1
            try:
                change()
            except BaseException as error:  # noqa: BLE001 - whatever it is, who asked for the change must receive it
                done.set_exception(error)
            else:
                done.set_result(None)

    def _wait_again(self, evicted: Sequence[GenerationRequest]) -> None:
        with self._changed:
            self._waiting.extendleft(evicted)

    def _drop_cancelled(self) -> None:
        with self._changed:
            if any(request.is_cancelled for request in self._waiting):
                self._waiting = deque(request for request in self._waiting if not request.is_cancelled)
        self._batch.remove([request for request in self._batch.rows if request.is_cancelled])

    def _admit(self) -> bool:
        """Give the next waiting request a place; False if there is none, or no room for it."""
        if len(self._batch.rows) >= self._max_batch:
            return False
        with self._changed:
            if not self._waiting:
                return False
            request = self._waiting[0]
        if not self._batch.admit(request):
            if self._batch.rows:
                return False
            raise EngineError(f"a conversation of {request.length} ids doesn't fit into the memory for keys and values")
        with self._changed:
            self._waiting.popleft()
        return True

    def _extend(self, request: GenerationRequest, budget: int) -> int:
        """Compute at most `budget` of a prompt's new ids, and sample after its last; returns how many they were."""
        if request.is_decoding:
            return 0
        can_crop, start = self._decoder.can_crop, request.computed
        # What can't be cropped is stored before the last id, which is always fed again, and then fed in the next step.
        end = min(request.length - (not can_crop), start + budget)
        ids, is_last = request.ids[start:end].tolist(), end == request.length
        logits = self._decoder.extend(len(self._batch.rows) - 1, ids, start, is_last)
        request.computed = end
        if logits is not None:
            self._emit([request], logits)
        elif end == request.length - 1 and not can_crop:
            self._batch.save(request)
        return end - start

    def _emit(self, requests: Sequence[GenerationRequest], logits: Any) -> None:
        """Sample for each request, deliver, and remove those that are done."""
        ids, logprobs = self._decoder.sample(logits, [request.chooser for request in requests])
        done = []
        for request, sampled, logprob in zip(requests, ids, logprobs, strict=True):
            if request.chooser.failure is not None:
                self._post(request, request.chooser.failure)
                done.append(request)
                continue
            request.ids[request.length] = sampled
            request.length += 1
            chooser = request.chooser
            self._post(
                request,
                Sampled(
                    sampled,
                    logprob,
                    chooser.is_forced,
                    chooser.constrained_logprob,
                    chooser.sampling_logprob,
                    self._weights_version,
                ),
            )
            if sampled in request.stop_ids:
                self._post(request, request.make_finished("stop"))
            elif request.length == len(request.ids):
                self._post(request, request.make_finished(request.is_full_at))
            else:
                continue
            done.append(request)
        self._send(requests)
        self._batch.remove(done)

    def _post(self, request: GenerationRequest, item: Item) -> None:
        if request.mailbox is not None and not request.is_cancelled:
            request.mailbox.post(request.channel, item)

    def _send(self, requests: Sequence[GenerationRequest]) -> None:
        unreachable = {box for box in {request.mailbox for request in requests} if box and not box.send()}
        for request in requests:
            if request.mailbox in unreachable:
                request.is_cancelled = True

    def _fail(self, error: BaseException) -> None:
        """Tell every consumer, and start over: the places may contain half a step."""
        reason = " ".join(f"the engine failed: {self._decoder.describe_failure(error)}".split())
        if len(reason) > REASON:
            reason = f"{reason[:REASON]} …"
        # What the failed step was computing would otherwise live as long as the error.
        clear_frames(error.__traceback__)

        def make_error(request: GenerationRequest) -> EngineError:  # noqa: ARG001 - each consumer raises its own
            failure = EngineError(reason)
            failure.__cause__ = error
            return failure

        self._end_all(make_error)
        self._batch.prefixes.clear()

    def _end_all(self, end: Callable[[GenerationRequest], Item]) -> None:
        with self._changed:
            requests = [*self._batch.rows, *self._waiting]
            self._waiting.clear()
        for request in requests:
            self._post(request, end(request))
        self._send(requests)
        self._batch.clear()


_STARTED: WeakSet[Scheduler] = WeakSet()


@atexit.register
def _end_threads() -> None:
    threads = [scheduler.close() for scheduler in list(_STARTED)]
    end = time.monotonic() + EXIT_LIMIT
    for thread in threads:
        if thread is not None:
            thread.join(max(0.0, end - time.monotonic()))
