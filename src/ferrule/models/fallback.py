"""A model that falls back to others if the first fails."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import AsyncExitStack, aclosing
from fnmatch import fnmatchcase
from functools import reduce

from ferrule.capabilities import Capabilities
from ferrule.conversation import Conversation
from ferrule.errors import Overloaded, ProviderError
from ferrule.events import Event, LossesReported, MessageFinished
from ferrule.models.gateway.retries import FailureKind
from ferrule.models.protocol import Model, ModelSettings
from ferrule.toolspec import ToolSpec

logger = logging.getLogger(__name__)

DEFAULT_KINDS: Collection[FailureKind] = ("overloaded", "failed", "bad")
"""The kinds of failure after which another model is used by default. A refused key should be noticed."""


class FallbackModel:
    """Uses the first model for each message, and the next if it failed before any part of its message arrived.

    The kinds of failure are those of `RequestFailure`, by HTTP status: those in `on` lead to a fallback; a conversation
    that is too long for a model is a `bad` request. `last_used` is the model that wrote the last message, and each
    fallback is logged as a warning. A model that can't be used at all (no key, an unknown setting) is a mistake, not a
    failure.
    """

    def __init__(self, first: Model, *others: Model, on: Collection[FailureKind] = DEFAULT_KINDS) -> None:
        self.models = (first, *others)
        self.on = frozenset(on)
        self.name = ", else ".join(model.name for model in self.models)
        self.last_used: Model | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What all of them support: a conversation that fits these fits every model."""
        return reduce(_intersect, (model.capabilities for model in self.models))

    async def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        """See `Model.stream`. Raises `ProviderError`, with each model's error, if all of them failed."""
        failures: list[tuple[Model, ProviderError | Overloaded]] = []
        for model in self.models:
            if failures:
                logger.warning("falling back to %s from %s: %s", model.name, failures[-1][0].name, failures[-1][1])
            begun = False
            try:
                async with aclosing(model.stream(conversation, tools, settings)) as events:
                    async for event in events:
                        if not begun and model is not self.models[-1] and self._is_refused_as_too_long(event):
                            raise ProviderError(f"{model.name}: the conversation exceeds the model's context", 400)
                        if not begun and not isinstance(event, LossesReported):
                            begun = True
                            self.last_used = model
                        yield event
                return
            except (ProviderError, Overloaded) as error:
                if begun or _classify_error(error) not in self.on:
                    raise
                failures.append((model, error))
        raise _summarize_failures(failures)

    def _is_refused_as_too_long(self, event: Event) -> bool:
        is_refused = isinstance(event, MessageFinished) and event.stop == "context" and not event.message.parts
        return is_refused and "bad" in self.on

    async def aclose(self) -> None:
        """Close all of them, even if closing one fails."""
        async with AsyncExitStack() as stack:
            for model in self.models:
                stack.push_async_callback(model.aclose)


def _classify_error(error: ProviderError | Overloaded) -> FailureKind:
    if isinstance(error, Overloaded):
        return "overloaded"
    status = error.status
    if status in (401, 403):
        return "refused"
    if status in (429, 503, 529):
        return "overloaded"
    # An error without an error status: the request was wrong, or the server is not such a provider.
    return "failed" if status is None or status >= 500 else "bad"


def _summarize_failures(failures: Sequence[tuple[Model, ProviderError | Overloaded]]) -> ProviderError:
    last = failures[-1][1]
    said = "; ".join(f"{model.name}: {error}" for model, error in failures)
    error = ProviderError(f"all {len(failures)} models failed: {said}", getattr(last, "status", None))
    error.__cause__ = last
    return error


def _intersect(one: Capabilities, other: Capabilities) -> Capabilities:
    return Capabilities(
        tools=_intersect_tools(one.tools, other.tools),
        system=one.system and other.system,
        parallel_calls=one.parallel_calls and other.parallel_calls,
        text_beside_calls=one.text_beside_calls and other.text_beside_calls,
        reasoning=one.reasoning and other.reasoning,
        ids=one.ids and other.ids,
        user_images=one.user_images and other.user_images,
        image_results=one.image_results and other.image_results,
        malformed_calls=one.malformed_calls and other.malformed_calls,
        native_tools=one.native_tools and other.native_tools,
        tools_optional=one.tools_optional and other.tools_optional,
        settings=one.settings & other.settings,
        user_media=_intersect_media(one.user_media, other.user_media),
        largest_file=min(one.largest_file, other.largest_file),
    )


def _intersect_media(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """The media types, or patterns of them, that both have."""
    found = [kind for kind in one if any(fnmatchcase(kind, pattern) for pattern in other)]
    found += [kind for kind in other if any(fnmatchcase(kind, pattern) for pattern in one)]
    return tuple(dict.fromkeys(found))


def _intersect_tools(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if one is None or other is None:
        return other if one is None else one
    return tuple(name for name in one if name in other)
