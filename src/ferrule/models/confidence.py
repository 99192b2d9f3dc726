"""How likely a local model found each call that it wrote: from the log-probabilities of the call's tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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


@dataclass(slots=True)
class _CallSpan:
    """The characters of a call in its message, to the end of the message without an `end`."""

    start: int
    end: int | None = None
    name: str = ""


class CallSpans:
    """Finds which characters of a message belong to its calls, by the events of its reader."""

    __slots__ = ("_spans", "_start")

    def __init__(self) -> None:
        self._start = 0
        self._spans: list[_CallSpan] = []

    def add(self, events: Iterable[ReaderEvent]) -> None:
        """Add events in order. Markers before a call are part of it, and those after the last one, too."""
        for event in events:
            if event.span is None:
                continue
            if isinstance(event, TextDelta | ReasoningDelta):
                self._end_last(event.span[0])
                self._start = event.span[1]
            elif isinstance(event, CallFinished | CallMalformed):
                self._end_last(self._start)
                name = event.call.name if isinstance(event, CallFinished) else ""
                self._spans.append(_CallSpan(self._start, name=name))
                self._start = event.span[1]

    def _end_last(self, end: int) -> None:
        if self._spans and self._spans[-1].end is None:
            self._spans[-1].end = end

    def compute_confidences(
        self, ids: Sequence[int], logprobs: Sequence[float], tokenizer: Tokenizer, *, with_names: bool = True
    ) -> tuple[float, ...]:
        """The confidence in each call, in order, of a message of these sampled ids.

        Without `with_names`, the name of the tool doesn't count. Where a grammar has chosen among the tools, it tells
        little: on the open lists, a threshold that withholds one in 50 of the right answers withholds 40 of 257 wrong
        ones without the names, and 21 with them.
        """
        if not self._spans:
            return ()
        detokenizer, ends, text = Detokenizer(tokenizer), [], ""
        for token in ids:
            text += "".join(piece for piece, _ in detokenizer.feed((token,)))
            ends.append(len(text))
        return tuple(_compute_one(span, text, ends, logprobs, with_names) for span in self._spans)


def _compute_one(span: _CallSpan, text: str, ends: Sequence[int], logprobs: Sequence[float], with_names: bool) -> float:
    end = len(text) if span.end is None else span.end
    name = -1 if with_names or not span.name else text.find(span.name, span.start, end)
    left_out = range(name + 1, name + len(span.name) + 1) if name >= 0 else range(0)
    return compute_confidence(
        [one for one, at in zip(logprobs, ends, strict=True) if span.start < at <= end and at not in left_out]
    )
