"""The hooks behind a pipeline's options: forced calls, lazy offers, callbacks, typed output, a full context."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ferrule.agent.hooks import Hooks
from ferrule.agent.run import Compaction
from ferrule.capabilities import Loss
from ferrule.conversation import Conversation, system
from ferrule.errors import ContextLengthError, SettingsError, ToolRequired
from ferrule.events import ContextCompacted

if TYPE_CHECKING:
    from ferrule.agent.hooks import RunState
    from ferrule.agent.options import RunOptions
    from ferrule.agent.output import OutputType
    from ferrule.agent.run import Run
    from ferrule.agent.tool_search import LazyTools
    from ferrule.tokens.truncation import Truncation

_CALL_ONE = "Call one of your tools before you answer."


class SystemText(Hooks):
    """Adds a system text that a function of the run's state returns, before each request. See `Pipeline.system`."""

    def __init__(self, make: Callable[[RunState], str | Awaitable[str]]) -> None:
        self._make = make

    async def before_request(self, state: RunState) -> None:
        """Add the text to the recorded system messages. Raises `SettingsError` if it isn't a text."""
        text = await call(self._make, state)
        if not isinstance(text, str):
            name = getattr(self._make, "__qualname__", repr(self._make))
            raise SettingsError(f"{name}, given to system(), must return a text, not {type(text).__name__}")
        if not text:
            return
        conversation = state.request.conversation
        head = next((at for at, one in enumerate(conversation.messages) if one.role != "system"), len(conversation))
        # One message, since not every model takes two.
        before = "\n\n".join([*(message.text for message in conversation.messages[:head]), text])
        messages = (system(before), *conversation.messages[head:])
        state.request.conversation = Conversation(messages, conversation.now)


class ChooseTool(Hooks):
    """Requires a call: `choice` applies to the first message, `force` until a call was made."""

    def __init__(self, options: RunOptions, rounds: int | None) -> None:
        self._choice = options.choice
        self._force = options.force
        self._rounds = rounds

    async def before_request(self, state: RunState) -> None:
        """Set `choice`, where the model supports it."""
        if self._choice and not state.rounds:
            state.change_settings(choice=self._choice)
        elif self._force and not state.calls and "choice" in state.model.capabilities.settings:
            state.change_settings(choice="required")

    async def after_message(self, state: RunState) -> None:
        """Ask again if no call was made. Raises `ToolRequired` when the rounds are used up."""
        if not self._force or state.calls or state.open_calls or not state.is_complete:
            return
        if self._rounds is not None and state.rounds >= self._rounds:
            raise ToolRequired(f"{state.model.name} was asked {state.rounds} times and called no tool")
        state.say(_CALL_ONE)


class OfferLazily(Hooks):
    """Offers the tools that the model has found so far, and the one that finds them."""

    def __init__(self, lazy: LazyTools) -> None:
        self._lazy = lazy

    async def before_request(self, state: RunState) -> None:
        """Offer these tools, unless a hook has replaced the run's tools."""
        if state.registry is self._lazy.registry:
            state.request.offered = self._lazy.select_offers(state.conversation)


class CallOnce(Hooks):
    """Calls the callback of `then` when the run reaches its step; with `waits`, after the calls are answered."""

    def __init__(self, callback: Callable[[Any], Any], waits: bool) -> None:
        self._callback = callback
        self._waits = waits
        self._is_done = False

    async def after_message(self, state: RunState) -> None:
        """Replace the run's conversation by the one that the callback returns."""
        if self._is_done or not state.is_complete or (self._waits and state.open_calls):
            return
        self._is_done = True
        await self.call(state)
        state.conversation = state.run.conversation

    async def call(self, state: RunState) -> None:
        """Call the callback."""
        replace_conversation(state.run, await call(self._callback, state.run), self._callback)


class ParseOutput(Hooks):
    """Asks for an answer of a type and parses it; one that doesn't fit is sent back with what is wrong."""

    def __init__(self, output: OutputType) -> None:
        self._output = output
        self._retries = output.retries

    async def before_request(self, state: RunState) -> None:
        """Have the model constrained to the schema, or state it in the prompt of one that takes none."""
        if self._output.is_plain:
            return
        if "output_schema" in state.model.capabilities.settings:
            state.change_settings(output_schema=self._output.schema)
            return
        from ferrule.models.answer_schema import state_schema

        request = state.request
        request.conversation = state_schema(request.conversation, self._output.schema, bool(request.offered))

    async def after_message(self, state: RunState) -> None:
        """Parse the answer. Raises `OutputInvalid` when no retries are left."""
        from ferrule.errors import OutputInvalid

        if state.open_calls or not state.is_complete:
            return
        try:
            state.run.output = self._output.parse(state.run.text)
        except OutputInvalid as problem:
            if not self._retries:
                raise
            self._retries -= 1
            state.say(str(problem))


class ShortenContext(Hooks):
    """Drops the oldest turns of a conversation that is too long for its model, and asks the model again.

    This is recorded: `extra["ferrule"]` of the conversation's first question counts the dropped messages, and the run
    reports a loss. A conversation of one turn can't be shortened: the run then stops.
    """

    only_incomplete = True

    async def before_request(self, state: RunState) -> None:
        """Shorten what leaves less than an eighth of the context. Tokens are counted only of long texts."""
        meter = state.meter
        if meter is None or len(state.run.conversation.messages) <= 2:
            return
        if not _may_overflow(state, meter.context_length * 7 // 8):
            return
        # What the model is to write needs room too.
        if meter.count_tokens(state.conversation, state.request.offered) >= meter.context_length * 7 // 8:
            await self._shorten(state, state.conversation)

    async def after_message(self, state: RunState) -> None:
        """Shorten if the model ran out of context; the part that it had written is dropped."""
        if state.stop_reason == "context":
            conversation = state.conversation
            if conversation.messages and conversation.messages[-1].role == "assistant":
                conversation = replace(conversation, messages=conversation.messages[:-1])
            await self._shorten(state, conversation)

    async def _shorten(self, state: RunState, conversation: Conversation) -> None:
        shortened = self._drop_turns(state, conversation)
        if shortened is None or not shortened.dropped:
            return
        state.run.compactions += (Compaction(shortened.dropped, ""),)
        state.conversation = _record(shortened)
        await state.put(ContextCompacted(len(shortened.dropped), ""))
        await state.report_losses((Loss("turns", shortened.summary),))

    def _drop_turns(self, state: RunState, conversation: Conversation) -> Truncation | None:
        """Drop turns until a quarter of the context is free, or all but the last turn if that alone takes more."""
        from ferrule.tokens.truncation import drop_oldest_turns, split_turns

        meter = state.meter
        if meter is None:  # tokens can't be counted: drop half of the turns, and again if that isn't enough
            return _keep_turns(conversation, len(split_turns(conversation)[1]) // 2)

        def count_tokens(one: Conversation) -> int:
            return meter.count_tokens(one, state.request.offered)

        try:
            return drop_oldest_turns(conversation, count_tokens, limit=meter.context_length * 3 // 4)
        except ContextLengthError:
            last = _keep_turns(conversation, -1)
        return last if count_tokens(last.conversation) < meter.context_length else None


def _keep_turns(conversation: Conversation, first: int) -> Truncation:
    """Drop the turns before the one at index `first`."""
    from ferrule.tokens.truncation import Truncation, split_turns

    head, turns = split_turns(conversation)
    kept = [message for turn in turns[first:] for message in turn]
    return Truncation(
        replace(conversation, messages=(*head, *kept)), tuple(message for turn in turns[:first] for message in turn)
    )


def _may_overflow(state: RunState, limit: int) -> bool:
    size = 0
    for message in state.conversation.messages:
        size += len(message.result.text if message.role == "tool" else message.text)
        if size >= limit:
            return True
    return False


def _record(shortened: Truncation) -> Conversation:
    """Record in the first question how many messages were dropped before it in all."""
    messages = list(shortened.conversation.messages)
    at = next(place for place, message in enumerate(messages) if message.role == "user")
    first = messages[at]
    earlier = sum(message.extra.get("ferrule", {}).get("dropped_messages", 0) for message in shortened.dropped)
    record = {**first.extra.get("ferrule", {}), "dropped_messages": earlier + len(shortened.dropped)}
    messages[at] = replace(first, extra={**first.extra, "ferrule": record})
    return replace(shortened.conversation, messages=tuple(messages))


async def call(callback: Callable[[Any], Any], given: Any) -> Any:
    """Call a callback, and await what it returns if it is async."""
    found = callback(given)
    return await found if inspect.isawaitable(found) else found


def replace_conversation(run: Run, found: Any, callback: Callable[..., Any]) -> None:
    """Replace the run's conversation by what a callback returned, unless that is None.

    Raises `SettingsError` for a type other than `Conversation`, `ConversationError` for an invalid conversation.
    """
    if found is None or found is run:
        return
    if not isinstance(found, Conversation):
        name = getattr(callback, "__qualname__", repr(callback))
        raise SettingsError(f"the callback {name} must return a Conversation or None, not {type(found).__name__}")
    found.check()
    run.conversation = found
