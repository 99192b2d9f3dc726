"""The `Engine` protocol: continues token ids, for many callers at once.

It has the shape of a serving engine, so that one can be put in its place. An engine knows no tools, no text and no
conversations: it is given ids, how to sample and where to stop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, Self, TypeAlias

from ferrule.conversation import ImageInput

if TYPE_CHECKING:
    from ferrule.dialects.grammar import Grammar

FinishReason = Literal["stop", "length", "context", "cancelled"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen.

    `temperature` 0 takes the most likely id, whatever the rest says. `top_k` keeps the k most likely ids, `top_p`
    the fewest ids whose probabilities sum to at least p (after temperature and `top_k`); None keeps all. `seed`
    starts a generator of this request's own; None takes one from the operating system. `max_tokens` counts
    sampled tokens only, the stop token included; None leaves only the context as a limit.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Sampled:
    """One sampled id. `logprob` is the raw log-softmax (natural logarithm) before temperature, top-k and top-p.

    `forced` is True where a constraint left one legal id only.
    """

    id: int
    logprob: float
    forced: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """The last thing that a generation yields.

    `reason`: "stop" (the last sampled id is a stop id), "length" (`max_tokens`), "context" (prompt and sampled ids
    fill the context; a prompt that fills it samples nothing), "cancelled" (the engine was closed meanwhile).
    `cached_tokens` is how many of `prompt_tokens` were not computed again.
    """

    reason: FinishReason
    prompt_tokens: int
    cached_tokens: int
    sampled_tokens: int


class Generation(Protocol):
    """What `generate` returns, an asynchronous iterator: lists of `Sampled`, then one `Finished`.

    Closing it, dropping it, or cancelling the task that waits for it gives its place up at once.
    """

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> list[Sampled] | Finished: ...

    async def aclose(self) -> None:
        """Stop; nothing more is yielded. Harmless when it has finished."""
        ...


class Engine(Protocol):
    """Continues token ids. Many generations run at once; each is independent of the others."""

    @property
    def context_length(self) -> int:
        """The most ids that a prompt and what is sampled after it can have together."""
        ...

    def generate(
        self,
        ids: Sequence[int],
        *,
        sampling: Sampling,
        stop_ids: Collection[int],
        images: Sequence[ImageInput] = (),
        constraint: Grammar | None = None,
        cache_key: str | None = None,
    ) -> Generation:
        """Sample after `ids` until a stop id, which is yielded too, or a limit; then yield one `Finished`.

        Tokens come in lists: those that were sampled since the consumer last asked. `images` are those whose
        placeholders `ids` holds, in order. Under a `constraint` only ids that continue a text of the grammar are
        sampled; the engine compiles it. `cache_key` names the conversation whose prefix this is. An argument that
        can't be honoured raises `EngineError`, by name.
        """
        ...

    async def aclose(self) -> None:
        """End running generations with reason "cancelled", and free what the engine holds."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


EngineFactory: TypeAlias = Callable[[Path], Engine]
"""Opens the checkpoint in a folder. Raises `EngineError` for one that it can't run."""
