"""How likely a local model found each call that it wrote: from the log-probabilities of the call's tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp

from ferrule.events import CallFinished, CallMalformed, ReaderEvent, ReasoningDelta, TextDelta
from ferrule.tokens.tokenizer import Detokenizer, Tokenizer


def compute_confidence(logprobs: Sequence[float]) -> float:
    """The confidence in a call, between 0 and 1: the probability of the whole call, the product of its tokens'.

    Measured on the first embedded model and the open list about the calculator, where a threshold withholds one in 50
    of the right calls: with the product it withholds 53 of 142 wrong ones, with the smallest probability 28, with the
    geometric mean 34 (the areas under the curve are 0.834, 0.812 and 0.816).
    """
    return min(1.0, exp(sum(logprobs)))


class CallSpans:
    """Finds which characters of a message belong to its calls, by the events of its reader."""

    __slots__ = ("_spans", "_start")

    def __init__(self) -> None:
        self._start = 0
        self._spans: list[tuple[int, int | None]] = []

    def add(self, events: Iterable[ReaderEvent]) -> None:
        """Add events in order. Markers before a call are part of it, and those after the last one, too."""
        for event in events:
            if event.span is None:
                continue
            if isinstance(event, TextDelta | ReasoningDelta):
                if self._spans and self._spans[-1][1] is None:
                    self._spans[-1] = (self._spans[-1][0], event.span[0])
                self._start = event.span[1]
            elif isinstance(event, CallFinished | CallMalformed):
                if self._spans and self._spans[-1][1] is None:
                    self._spans[-1] = (self._spans[-1][0], self._start)
                self._spans.append((self._start, None))
                self._start = event.span[1]

    def compute_confidences(
        self, ids: Sequence[int], logprobs: Sequence[float], tokenizer: Tokenizer
    ) -> tuple[float, ...]:
        """The confidence in each call, in order, of a message of these sampled ids."""
        if not self._spans:
            return ()
        detokenizer, ends, length = Detokenizer(tokenizer), [], 0
        for token in ids:
            length += sum(len(text) for text, _ in detokenizer.feed((token,)))
            ends.append(length)
        return tuple(
            compute_confidence(
                [one for one, at in zip(logprobs, ends, strict=True) if start < at and (end is None or at <= end)]
            )
            for start, end in self._spans
        )
