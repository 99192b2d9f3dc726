"""The traces of a rollout: what a model was given and what it sampled, as the engine had it.

Each generation is a prompt and the ids that were sampled after it. As long as a prompt extends all that came before it,
the generations are one `Trace`. Where it doesn't, because a chat template writes earlier turns otherwise, tools were
added, or the conversation was shortened, a new `Trace` begins. Each sampled id is trained in exactly one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.conversation import SampledTokens
from ferrule.tokens.render import Trace


class Rollout:
    """Collects the generations of a run, in order."""

    __slots__ = ("_ids", "_logprobs", "_traces")

    def __init__(self) -> None:
        self._traces: list[Trace] = []
        self._ids: list[int] = []
        self._logprobs: list[float | None] = []

    def add(self, prompt: Sequence[int], sampled: SampledTokens) -> None:
        """Add one generation: the ids that the engine was given, and those that it sampled after them."""
        known = len(self._ids)
        if len(prompt) < known or list(prompt[:known]) != self._ids:
            self._traces.append(self._trace())
            self._ids, self._logprobs, known = [], [], 0
        given = prompt[known:]
        self._ids += given
        self._logprobs += (None,) * len(given)
        self._ids += sampled.ids
        self._logprobs += sampled.logprobs

    def traces(self) -> tuple[Trace, ...]:
        """What was added so far. `mask` is 1 for what was sampled; each trace ends with a sampled id."""
        return (*self._traces, self._trace()) if self._ids else tuple(self._traces)

    def _trace(self) -> Trace:
        logprobs = tuple(self._logprobs)
        return Trace(tuple(self._ids), tuple(int(logprob is not None) for logprob in logprobs), logprobs)
