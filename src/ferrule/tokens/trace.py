"""A conversation as token ids, with what is trained and what was sampled: what training sees of it."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.conversation import Image


@dataclass(frozen=True, slots=True)
class Trace:
    """Four aligned sequences of equal length; `images` are those whose placeholders `ids` holds, in order.

    `mask` is 1 where a token was sampled, or is meant to be; `logprobs` is the raw natural-log probability of a
    token that was sampled and None elsewhere.
    """

    ids: tuple[int, ...]
    mask: tuple[int, ...]
    logprobs: tuple[float | None, ...]
    images: tuple[Image, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)
