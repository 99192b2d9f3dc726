"""The traces of a rollout: the prompts and sampled ids, exactly as the engine saw them.

Each generation is a prompt and the ids sampled after it. As long as each prompt extends everything before it, the
generations form one `Trace`. Otherwise, because a chat template rewrites earlier turns, tools were added, or the
conversation was shortened, a new `Trace` begins. Each sampled id is trained in exactly one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.conversation import ImageInput, SampledTokens
from ferrule.tokens.render import Trace


class Rollout:
    """Collects the generations of a run, in order."""

    __slots__ = ("_ids", "_images", "_logprobs", "_traces")

    def __init__(self) -> None:
        self._traces: list[Trace] = []
        self._ids: list[int] = []
        self._logprobs: list[float | None] = []
        self._images: tuple[ImageInput, ...] = ()

    def add(self, prompt: Sequence[int], sampled: SampledTokens, images: tuple[ImageInput, ...] = ()) -> None:
        """Add one generation: the ids and images given to the engine, and the ids that it sampled after them."""
        known = len(self._ids)
        if list(prompt[:known]) != self._ids or images[: len(self._images)] != self._images:
            self._traces.append(self._trace())
            self._ids, self._logprobs, known = [], [], 0
        self._images = images
        given = prompt[known:]
        self._ids += given
        self._logprobs += (None,) * len(given)
        self._ids += sampled.ids
        self._logprobs += sampled.logprobs

    def traces(self) -> tuple[Trace, ...]:
        """The traces added so far. `mask` is 1 for sampled ids; each trace ends with one."""
        return (*self._traces, self._trace()) if self._ids else tuple(self._traces)

    def _trace(self) -> Trace:
        logprobs = tuple(self._logprobs)
        mask = tuple(int(logprob is not None) for logprob in logprobs)
        return Trace(tuple(self._ids), mask, logprobs, self._images)
