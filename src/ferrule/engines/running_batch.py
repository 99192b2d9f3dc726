"""The conversations that are being computed, their places, and what they leave behind for later turns.

Used by the step thread alone. Memory is accounted here: places and kept prefixes share one limit, and what is kept
gives way to what runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.engines.batch_decoder import BatchDecoder
from ferrule.engines.delivery import TokenChannel, TokenMailbox
from ferrule.engines.prefixes import Ids, PrefixStore, common_prefix
from ferrule.engines.protocol import Finished, FinishReason
from ferrule.engines.sampling import TokenSampler

# Positions for which a conversation that is admitted finds room beyond those it has: without them, it might lose its
# place in the next step.
HEADROOM = 32


@dataclass(slots=True, eq=False)
class GenerationRequest:
    """One generation. `ids[:length]` are its prompt and the sampled ids, `ids[:computed]` are in its place."""

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
    admission: int = 0

    def make_finished(self, reason: FinishReason) -> Finished:
        """The end of the generation, for its consumer."""
        return Finished(reason, self.prompt_tokens, self.cached, self.length - self.prompt_tokens)

    @property
    def is_decoding(self) -> bool:
        """Whether only its last id remains to be fed, which a step does for all such requests together."""
        return self.length - self.computed == 1


class RunningBatch:
    """`rows[i]` has place i of the decoder; at most the last one is still having its prompt computed, so the others
    are a slice.

    What the last conversation to end has computed rests in place 0 until another needs the place, so that a next turn
    continues there without a copy. This is only the case while there are no rows. It is stored after a pause, or when
    another conversation comes sooner.

    `memory` limits places and prefixes together, in bytes; `prefix_bytes` the prefixes alone.
    """

    def __init__(self, decoder: BatchDecoder, memory: int, prefix_bytes: int) -> None:
        self.decoder = decoder
        self.rows: list[GenerationRequest] = []
        self.prefixes = PrefixStore(prefix_bytes, can_crop=decoder.can_crop)
        self.is_resting_kept = False
        self._resting: Ids | None = None
        self._memory = memory
        self._prefix_bytes = prefix_bytes
        self._admissions = 0

    @property
    def is_prompt_open(self) -> bool:
        """Whether the last row has new ids of a prompt left to compute."""
        return bool(self.rows) and not self.rows[-1].is_decoding

    @property
    def is_resting(self) -> bool:
        """Whether there is something in place 0 that isn't stored yet."""
        return self._resting is not None and not self.is_resting_kept

    def admit(self, request: GenerationRequest) -> bool:
        """Give a request the next place, with the longest known prefix; False if there is no room for it now."""
        # The last id is always fed again: the next token is sampled from its logits.
        wanted = request.ids[: request.length - 1]
        known = self._adopt(wanted)
        if not self._reserve([*self.rows, request], [row.computed for row in self.rows] + [known], HEADROOM):
            return False
        request.computed = known or self._copy_known(wanted)
        if request.length == request.prompt_tokens:
            request.cached = request.computed
        self._admissions += 1
        request.admission = self._admissions
        self.rows.append(request)
        return True

    def make_room(self) -> list[GenerationRequest]:
        """Make room for the next position of every row; returns rows that had to give up their places for that, the
        last admitted first."""
        evicted = []
        while not self._reserve(self.rows, [row.computed for row in self.rows]):
            evicted.append(self._evict())
        return evicted

    def evict_all(self) -> list[GenerationRequest]:
        """Take the places of all rows, and forget what is kept: nothing that was computed is used again."""
        evicted = sorted(self.rows, key=lambda row: -row.admission)
        for request in evicted:
            request.computed = 0
        self.clear()
        self.prefixes.clear()
        return evicted

    def remove(self, requests: Sequence[GenerationRequest]) -> None:
        """Store the prefixes of requests that end, and close the gaps that they leave."""
        for request in requests:
            self._keep(request)
            self._drop(request)

    def save(self, request: GenerationRequest) -> None:
        """Store what a row has computed up to now."""
        self._save(self.rows.index(request), request.ids[: request.computed])

    def keep_resting(self) -> None:
        """Copy what rests to the store, which knows whether it already has it."""
        if self._resting is not None:
            self._save(0, self._resting)
            self.is_resting_kept = True

    def clear(self) -> None:
        """Empty all places, and release their memory."""
        self.rows.clear()
        self._resting, self.is_resting_kept = None, False
        self.decoder.clear()
        self._limit_prefixes(0)

    def _adopt(self, prompt: Ids) -> int:
        """How much of what rests in place 0 the prompt can continue: 0 if nothing rests, or more of it is stored.

        If the prompt branches off before its end, what would be overwritten is stored first.
        """
        resting = self._resting
        if resting is None:
            return 0
        shared = common_prefix(resting, prompt)
        kept, _ = self.prefixes.find(prompt)
        if shared < len(resting) or kept > shared:
            self.keep_resting()
        self._resting, self.is_resting_kept = None, False
        return shared if shared >= kept else 0

    def _copy_known(self, prompt: Ids) -> int:
        """Copy the longest stored or running prefix to the next free place; returns its length."""
        place = len(self.rows)
        kept, prefix = self.prefixes.find(prompt)
        if self.decoder.can_crop:
            running = [common_prefix(row.ids[: row.computed], prompt) for row in self.rows]
            best_running = max(running, default=0)
            if best_running > kept:
                self.decoder.copy(running.index(best_running), place, best_running)
                return best_running
        if prefix is not None:
            self.decoder.restore(place, prefix.state, kept)
        return kept

    def _reserve(self, rows: Sequence[GenerationRequest], lengths: Sequence[int], headroom: int = 0) -> bool:
        """Make room for the rows, and drop prefixes for it if need be; False if there is not enough even so."""
        capacities = [min(row.length + headroom, len(row.ids)) for row in rows]
        if self.decoder.fits(capacities):
            return True
        needed = self.decoder.measure(capacities)
        if needed > self._memory:
            return False
        self._limit_prefixes(needed)
        self.decoder.reserve(capacities, lengths, self._memory - self.prefixes.size)
        self._limit_prefixes(self.decoder.allocated)
        return True

    def _limit_prefixes(self, allocated: int) -> None:
        """Leave to what is kept the memory that places don't take."""
        self.prefixes.set_limit(min(self._prefix_bytes, self._memory - allocated))

    def _shrink(self) -> None:
        """Give back what places don't need any more, if that is the larger part."""
        lengths = [row.computed for row in self.rows] or [0 if self._resting is None else len(self._resting)]
        capacities = [row.length for row in self.rows] or lengths
        needed = self.decoder.measure(capacities)
        if needed <= self.decoder.allocated // 2:
            self.decoder.reserve(capacities, lengths, needed)
            self._limit_prefixes(self.decoder.allocated)

    def _evict(self) -> GenerationRequest:
        """Take the place of the row that was admitted last, without keeping what it has computed."""
        request = max(self.rows, key=lambda row: row.admission)
        self._drop(request)
        request.computed = 0
        return request

    def _keep(self, request: GenerationRequest) -> None:
        """Let what a row has computed rest in its place if it is the only row, or store it."""
        if not request.computed:
            return
        # What can't be cropped doesn't rest: the next turn would use up what others may begin with.
        is_alone = len(self.rows) == 1 and self.decoder.can_crop
        if is_alone and self._prefix_bytes >= self.decoder.measure([request.computed]):
            self._resting = request.ids[: request.computed].copy()
        else:
            self.save(request)

    def _drop(self, request: GenerationRequest) -> None:
        """Close the gap with the last decoding row, so that one whose prompt is being computed stays last."""
        place = self.rows.index(request)
        if place < len(self.rows) - 1 and self.is_prompt_open:
            self._refill(place, len(self.rows) - 2)
            place = len(self.rows) - 2
        self._refill(place, len(self.rows) - 1)
        self.rows.pop()

    def _refill(self, place: int, source: int) -> None:
        if source != place:
            self.decoder.copy(source, place, self.rows[source].computed)
            self.rows[place] = self.rows[source]

    def _save(self, place: int, ids: Ids) -> None:
        size = self.decoder.measure([len(ids)])
        # Saved states may have room for more, and an entry that would be dropped for this one is worth the copy.
        if self.prefixes.size + 2 * size > self._memory - self.decoder.allocated:
            self._shrink()
        self.prefixes.add(ids, size, lambda extended: self.decoder.save(place, len(ids), extended))
