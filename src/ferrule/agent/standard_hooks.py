"""The hooks of a pipeline's own options: limits, forced calls, lazy offers, callbacks, typed output, a full context."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ferrule.agent.hooks import Hooks
from ferrule.capabilities import Loss
from ferrule.conversation import Conversation
from ferrule.errors import ContextLengthError, SettingsError, ToolRequired

if TYPE_CHECKING:
    from ferrule.agent.hooks import RunState
    from ferrule.agent.options import RunLimits, RunOptions
    from ferrule.agent.output import OutputType
    from ferrule.agent.run import Run
    from ferrule.agent.tool_search import LazyTools
    from ferrule.tokens.truncation import ContextMeter, Truncation

_CALL_ONE = "Call one of your tools before you answer."


class LimitRun(Hooks):
    """Stops where the rounds, tokens or dollars of a run are used up."""

    def __init__(self, limits: RunLimits) -> None:
        self._limits = limits

    async def before_request(self, state: RunState) -> None:
        """Stop instead of asking."""
        limits, run = self._limits, state.run
        if limits.rounds is not None and state.rounds >= limits.rounds:
            state.stop("rounds")
        if limits.tokens is not None and run.usage.prompt_tokens + run.usage.sampled_tokens >= limits.tokens:
            state.stop("tokens")
        if limits.cost is not None and (run.cost or 0.0) >= limits.cost:
            state.stop("cost")


class ChooseTool(Hooks):
    """Asks for a call: `choice` for the first message, `force` until one was made."""

    def __init__(self, options: RunOptions, rounds: int | None) -> None:
        self._choice = options.choice
        self._force = options.force
        self._rounds = rounds

    async def before_request(self, state: RunState) -> None:
        """Tell a model that can be told."""
        if self._choice and not state.rounds:
            state.change_settings(choice=self._choice)
        elif self._force and not state.calls and "choice" in state.model.capabilities.settings:
            state.change_settings(choice="required")

    async def after_message(self, state: RunState) -> None:
        """Ask again where no call was made. Raises `ToolRequired` where the rounds are used up."""
        if not self._force or state.calls or state.open_calls or not state.is_whole:
            return
        if self._rounds is not None and state.rounds >= self._rounds:
            raise ToolRequired(f"{state.model.name} was asked {state.rounds} times and called no tool")
        state.say(_CALL_ONE)


class OfferLazily(Hooks):
    """Offers the tools that the model has found so far, and the one that finds them."""

    def __init__(self, lazy: LazyTools) -> None:
        self._lazy = lazy

    async def before_request(self, state: RunState) -> None:
        """Offer those; where a hook has set other tools, these are no longer searched."""
        if state.registry is self._lazy.registry:
            state.request.offered = self._lazy.select_offers(state.conversation)


class CallOnce(Hooks):
    """Calls the callback of `then` once the run has come so far: where `waits`, when its calls are answered."""

    def __init__(self, callback: Callable[[Any], Any], waits: bool) -> None:
        self._callback = callback
        self._waits = waits
        self._is_done = False

    async def after_message(self, state: RunState) -> None:
        """Put the conversation that the callback returns in the place of the run's."""
        if self._is_done or not state.is_whole or (self._waits and state.open_calls):
            return
        self._is_done = True
        await self.call(state)
        state.conversation = state.run.conversation

    async def call(self, state: RunState) -> None:
        """Call it."""
        replace_conversation(state.run, await call(self._callback, state.run), self._callback)


class ParseOutput(Hooks):
    """Asks for an answer of a type, and reads it; one that doesn't fit is sent back with what is wrong."""

    def __init__(self, output: OutputType) -> None:
        self._output = output
        self._retries = output.retries

    async def before_request(self, state: RunState) -> None:
        """Hold the model to the schema, or tell it of the schema where it can't be held to one."""
        if "output_schema" in state.model.capabilities.settings:
            state.change_settings(output_schema=self._output.schema)
        else:
            state.request.conversation = self._output.add_instructions(state.request.conversation)

    async def after_message(self, state: RunState) -> None:
        """Read the answer. Raises `OutputInvalid` where the model has tried often enough."""
        from ferrule.agent.output import OutputInvalid

        if state.open_calls or not state.is_whole:
            return
        try:
            state.run.output = self._output.parse(state.run.text)
        except OutputInvalid as problem:
            if not self._retries:
                raise
            self._retries -= 1
            state.say(str(problem))


class ShortenContext(Hooks):
    """Drops the oldest turns of a conversation that is too long for its model, and has the model asked again.

    What was dropped is recorded: the conversation begins later, its first question says in `extra["ferrule"]` how much
    was dropped, and a loss of the run tells it. A conversation of one turn can't be shortened: the run then stops.
    """

    async def before_request(self, state: RunState) -> None:
        """Shorten what is known not to fit. It is counted only where it has more characters than the context tokens."""
        if len(state.run.conversation.messages) <= 2:
            return
        meter = _find_meter(state.model)
        if meter is None or not _may_overflow(state, meter.context_length):
            return
        if meter.count_tokens(state.conversation, state.request.offered) >= meter.context_length:
            await self._shorten(state, state.conversation)

    async def after_message(self, state: RunState) -> None:
        """Shorten where the model had no room left; what it had begun to write is dropped."""
        if state.stop_reason == "context":
            conversation = state.conversation
            if conversation.messages and conversation.messages[-1].role == "assistant":
                conversation = replace(conversation, messages=conversation.messages[:-1])
            await self._shorten(state, conversation)

    async def _shorten(self, state: RunState, conversation: Conversation) -> None:
        shortened = self._drop_turns(state, conversation)
        if shortened is None or not shortened.dropped:
            return
        state.conversation = _record(shortened)
        await state.report_losses((Loss("turns", shortened.summary),))

    def _drop_turns(self, state: RunState, conversation: Conversation) -> Truncation | None:
        """The conversation with a quarter of the context free, or else as much as whole turns allow."""
        from ferrule.tokens.truncation import Truncation, drop_oldest_turns, split_turns

        meter = _find_meter(state.model)
        if meter is None:  # without counting, half of the turns are dropped, and more if that isn't enough
            head, turns = split_turns(conversation)
            half = len(turns) // 2
            kept = [message for turn in turns[half:] for message in turn]
            dropped = tuple(message for turn in turns[:half] for message in turn)
            return Truncation(replace(conversation, messages=(*head, *kept)), dropped)
        for limit in (meter.context_length * 3 // 4, meter.context_length - 1):
            try:
                return drop_oldest_turns(
                    conversation, lambda one: meter.count_tokens(one, state.request.offered), limit=limit
                )
            except ContextLengthError:
                continue
        return None


def _find_meter(model: Any) -> ContextMeter | None:
    return model if hasattr(model, "count_tokens") else None


def _may_overflow(state: RunState, context_length: int) -> bool:
    size = 0
    for message in state.conversation.messages:
        size += len(message.result.text if message.role == "tool" else message.text)
        if size >= context_length:
            return True
    return False


def _record(shortened: Truncation) -> Conversation:
    """The conversation, whose first question says how many messages were dropped before it, over all."""
    messages = list(shortened.conversation.messages)
    at = next(place for place, message in enumerate(messages) if message.role == "user")
    first = messages[at]
    earlier = sum(message.extra.get("ferrule", {}).get("dropped_messages", 0) for message in shortened.dropped)
    record = {**first.extra.get("ferrule", {}), "dropped_messages": earlier + len(shortened.dropped)}
    messages[at] = replace(first, extra={**first.extra, "ferrule": record})
    return replace(shortened.conversation, messages=tuple(messages))


async def call(callback: Callable[[Any], Any], given: Any) -> Any:
    """What a callback returns, awaited where it is async."""
    found = callback(given)
    return await found if inspect.isawaitable(found) else found


def replace_conversation(run: Run, found: Any, callback: Callable[..., Any]) -> None:
    """Put what a callback returned, unless it is None, in the place of the run's conversation.

    Raises `SettingsError` for another type than `Conversation`, `ConversationError` for an invalid conversation.
    """
    if found is None or found is run:
        return
    if not isinstance(found, Conversation):
        name = getattr(callback, "__qualname__", repr(callback))
        raise SettingsError(f"the callback {name} must return a Conversation or None, not {type(found).__name__}")
    found.check()
    run.conversation = found
