"""What the scheduler needs of a model: logits for a batch of conversations, and a place for what each has computed.

Conversations have places, numbered from 0 without gaps. What a place holds (keys and values, or a state) is the
decoder's own, and so is the type of its logits, which only its `sample` reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ferrule.engines.prefixes import KeptState, Prefix
from ferrule.engines.sampling import TokenSampler


class BatchDecoder(Protocol):
    """Computes in one thread. `capacities` are the positions that each place needs room for, `lengths` those in use."""

    @property
    def chunk(self) -> int:
        """How many new ids of a prompt one step computes: more would delay the other conversations for longer."""
        ...

    @property
    def can_crop(self) -> bool:
        """Whether the beginning of what a place holds can be used without the rest."""
        ...

    @property
    def allocated(self) -> int:
        """The bytes that the places take now."""
        ...

    def computing(self) -> AbstractContextManager[Any]:
        """Entered by the thread that computes, for as long as it does."""
        ...

    def measure(self, capacities: Sequence[int]) -> int:
        """The least bytes that places of these capacities take; for one place, also the size of its saved state."""
        ...

    def fits(self, capacities: Sequence[int]) -> bool:
        """Whether there is room for such places without allocating."""
        ...

    def reserve(self, capacities: Sequence[int], lengths: Sequence[int], limit: int) -> None:
        """Make room for such places, keeping the first `lengths[i]` positions of place i.

        May allocate more than it must, for growth, up to `limit` bytes.
        """
        ...

    def decode(self, ids: Sequence[int], positions: Sequence[int]) -> Any:
        """Feed one id to each of the places 0 to n-1 at its position; returns n rows of logits."""
        ...

    def extend(self, place: int, ids: Sequence[int], start: int, wants_logits: bool) -> Any | None:
        """Feed new ids of one place, which has `start` positions; returns a row of logits, or None if not wanted."""
        ...

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` positions of one place to another: all of them, unless `can_crop`."""
        ...

    def save(self, place: int, length: int, extended: Prefix | None = None) -> KeptState:
        """A copy of the `length` positions of a place; may reuse the state of a prefix that it extends."""
        ...

    def restore(self, place: int, state: KeptState, length: int) -> None:
        """Write the first `length` positions of a saved state to a place."""
        ...

    def clear(self) -> None:
        """Release the memory of all places."""
        ...

    def describe_failure(self, error: BaseException) -> str:
        """What a consumer should know of an error that was raised while computing."""
        ...

    def sample(self, logits: Any, choosers: Sequence[TokenSampler]) -> tuple[list[int], list[float]]:
        """An id for each row of logits, and its log-softmax before temperature, top-k and top-p."""
        ...
