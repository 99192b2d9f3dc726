"""The `Engine` protocol: continues token ids, for many callers at once.

It has the shape of a serving engine, so that one can take its place. An engine is independent of tools, text and
conversations: it receives ids, how to sample and where to stop.
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
"""Why a generation ended: a stop id, `max_tokens`, a full context, or a consumer that left."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen.

    `temperature` 0 takes the most likely id, whatever the other settings. `top_k` keeps the k most likely ids, `top_p`
    the fewest ids whose probabilities sum to at least p (after temperature and `top_k`); None keeps all. `seed` starts
    a generator for this request alone; None takes a seed from the operating system. `max_tokens` counts only sampled
    tokens, including the stop token; None leaves the context as the only limit.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Sampled:
    """One sampled id. `logprob` is the raw log-softmax (natural logarithm) before temperature, top-k and top-p.

    `forced` is True if a constraint left only one legal id, or put this one there to close a call before its budget
    ends. `constrained_logprob` is the log-softmax among the ids that the constraint didn't refuse before this one was
    chosen, 0 where it is forced, and None where none was refused. `sampling_logprob` is its log-probability in the
    distribution that it was drawn from, after temperature, top-k, top-p and constraint: 0 at temperature 0, and where
    it is forced. With a guide, whose grammars are followed by trying ids, what wasn't tried counts as legal in it.
    `weights_version` counts the changes of the weights before it was sampled: `weights_changed`.
    """

    id: int
    logprob: float
    forced: bool = False
    constrained_logprob: float | None = None
    sampling_logprob: float = 0.0
    weights_version: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """The last item that a generation yields.

    `reason`: "stop" (the last sampled id is a stop id), "length" (`max_tokens`), "context" (prompt and sampled ids fill
    the context; a prompt that fills it samples nothing), "cancelled" (the engine was closed). `cached_tokens` is how
    many of `prompt_tokens` did not have to be computed.
    """

    reason: FinishReason
    prompt_tokens: int
    cached_tokens: int
    sampled_tokens: int


class Generation(Protocol):
    """What `generate` returns, an asynchronous iterator: lists of `Sampled`, then one `Finished`.

    Closing it, dropping it, or cancelling the task that waits for it releases its place at once.
    """

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> list[Sampled] | Finished: ...

    async def aclose(self) -> None:
        """Stop; nothing more is yielded. No effect once it has finished."""
        ...


class Engine(Protocol):
    """Continues token ids. Many generations run at once; each is independent of the others."""

    @property
    def context_length(self) -> int:
        """The maximum number of ids of a prompt and what is sampled after it."""
        ...

    @property
    def can_constrain(self) -> bool:
        """Whether `generate` takes a `constraint`."""
        ...

    def generate(
        self,
        ids: Sequence[int],
        *,
        sampling: Sampling,
        stop_ids: Collection[int],
        images: Sequence[ImageInput] = (),
        constraint: Grammar | None = None,
    ) -> Generation:
        """Sample after `ids` until a stop id, which is also yielded, or a limit; then yield one `Finished`.

        Tokens come in lists: those sampled since the consumer last asked. `images` are those with placeholders in
        `ids`, in order. With a `constraint` only ids that continue a text of the grammar are sampled; the engine
        compiles it. An argument that isn't supported raises
        `EngineError`, by name.
        """
        ...

    def weights_changed(self) -> None:
        """Tell that the model's weights were changed, which is to happen while no step is computed.

        What is kept of earlier generations is dropped, and what running ones have computed is computed anew, so that
        ids sampled from now on, with a `weights_version` higher by one, are sampled by the new weights alone.
        """
        ...

    async def aclose(self) -> None:
        """End running generations with reason "cancelled", and release the engine's resources."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


EngineFactory: TypeAlias = Callable[[Path], Engine]
"""Opens the checkpoint in a folder. Raises `EngineError` if it can't run it."""
