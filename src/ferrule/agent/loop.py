"""The loop between a model and its tools: asks, answers the calls, asks again, until the model is done.

There is one loop, `AgentLoop.converse`. Chat, rollouts and every front run it, and steer it by hooks (`hooks.py`).
`execution/` runs a call, `models/` writes a message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule.agent.hooks import Hooks, ModelRequest, RunState, RunStopped, list_own_methods
from ferrule.agent.interrupted_calls import STOPPED, list_interrupted
from ferrule.agent.model_checks import check_question
from ferrule.agent.run import OfferRecord, Run
from ferrule.capabilities import Loss
from ferrule.conversation import Conversation, MalformedCall, Text, ToolCall, ToolResult, assistant, tool_message
from ferrule.errors import SettingsError, StreamBroken
from ferrule.events import (
    NO_USAGE,
    Event,
    LossesReported,
    MessageFinished,
    ResultReady,
    TextDelta,
    ToolProgress,
    ToolStarted,
)
from ferrule.execution import Decision, Journal, Pending, make_cancelled_result
from ferrule.execution.error_results import make_not_run_result
from ferrule.tools.scope import CallScope

if TYPE_CHECKING:
    from ferrule.agent.instrumentation import RunListener
    from ferrule.models.protocol import ModelSettings

_ATTEMPTS = 3
_FIRST_PAUSE = 0.5
"""The most seconds before an answer that broke off is requested again; twice that before the next one."""
_BROKE_OFF = LossesReported((Loss("call", "the answer broke off in the middle of a call; the model is asked again"),))
_REPETITIONS = 3
"""From this many identical calls with identical results on, a note tells the model."""


class AgentLoop:
    """The loop of one run. `state.conversation` is valid after each step, whatever ends the run."""

    __slots__ = (
        "_after_message", "_after_results", "_before_request", "_decisions", "_journal", "_listener", "_settings",
        "_streamed", "_workspace", "state",
    )  # fmt: skip

    def __init__(
        self,
        state: RunState,
        hooks: Sequence[Hooks],
        *,
        decisions: Mapping[str, Decision] | None = None,
        listener: RunListener | None = None,
    ) -> None:
        self.state = state
        self._before_request: list[Callable[[RunState], Awaitable[None]]] = []
        self._after_message: list[Callable[[RunState], Awaitable[None]]] = []
        self._after_results: list[Callable[[RunState], Awaitable[None]]] = []
        for hook in hooks:
            before_request, after_message, after_results = list_own_methods(type(hook))
            if before_request:
                self._before_request.append(hook.before_request)
            if after_message:
                self._after_message.append(hook.after_message)
            if after_results:
                self._after_results.append(hook.after_results)
        self._settings: ModelSettings = state.request.settings
        self._journal: Journal | None = state.options.journal
        self._workspace: Path | None = state.options.workspace
        self._streamed: list[str] = []
        """The text of a message that isn't finished."""
        if decisions:
            # A call that is answered by now may be among them: a program may keep its decisions from pause to pause.
            made = {call.id for message in state.conversation.messages for call in message.calls}
            for call_id in decisions:
                if call_id not in made:
                    known = ", ".join(call.id for call in state.open_calls) or "none"
                    raise SettingsError(f"there is no call {call_id!r} to decide on; open are: {known}")
        self._decisions = decisions
        self._listener = listener
        if state.open_calls:
            self._answer_interrupted()

    async def converse(self) -> None:
        """Run the loop. Raises `RunStopped` when a limit, a hook, a pause or an incomplete message ends the run."""
        state = self.state
        if not state.open_calls:
            await self._ask()
        while True:
            await self._call_hooks_after_message()
            if not state.asks_again:
                if not state.open_calls:
                    return
                await self._answer_calls()
                for after_results in self._after_results:
                    await after_results(state)
                if state.handed_over is not None:
                    await self._take_over(state.handed_over)
                    continue
            await self._ask()

    async def _ask(self) -> None:
        """Have the model write one message.

        An answer that breaks off in the middle of a call is a failure of the provider, not a call to answer: the
        request is repeated after a pause, up to `_ATTEMPTS` times in all. Raises `StreamBroken` if every attempt broke
        off.
        """
        state = self.state
        for attempt in range(_ATTEMPTS):
            if attempt:
                from random import random

                await asyncio.sleep(random() * _FIRST_PAUSE * 2 ** (attempt - 1))
            state.request = ModelRequest(state.run.conversation, state.offered, self._settings)
            for before_request in self._before_request:
                await before_request(state)
            if not state.rounds:
                check_question(state.request.conversation)
            state.rounds += 1
            if state.parent is not None:
                state.parent.count_nested(rounds=1)
            request = state.request
            state.run._request = (request.conversation, request.offered, state.model.capabilities)
            finished = await self._request(request)
            state.stop_reason = "error" if finished is None else finished.stop
            if state.stop_reason != "error" or finished is None or not finished.message.is_cut_off:
                return
        raise StreamBroken(f"{state.model.name}: the answer broke off in the middle of a call, {_ATTEMPTS} times")

    async def _take_over(self, other: Run) -> None:
        """Make the answer of the agent that took over the conversation this run's own answer."""
        state = self.state
        message = assistant(other.text)
        state.handed_over, state.stop_reason = None, "turn"
        state.run.conversation = state.run.conversation.add(message)
        await state.put(TextDelta(other.text))
        await state.put(MessageFinished(message, NO_USAGE, "turn"))

    async def _call_hooks_after_message(self) -> None:
        """Call the hooks until one asks the model again. Raises `RunStopped` for an incomplete message."""
        state = self.state
        state.asks_again = False
        for after_message in self._after_message:
            await after_message(state)
            if state.asks_again:
                return
        if not state.is_complete:
            raise RunStopped(state.stop_reason)

    async def _request(self, request: ModelRequest) -> MessageFinished | None:
        """Send one request and pass on its events; returns the one that finished the message."""
        state, listener = self.state, self._listener
        feed, finished = state.feed, None
        streamed = self._streamed = []
        self._record_offer(request)
        if listener is not None:
            listener.on_request(state.model, request)
        events = state.model.stream(request.conversation, request.offered, request.settings)
        try:  # not `aclosing`: entering and leaving it would cost as much as the request itself
            async for event in events:
                passed_on: Event = event
                # Not `isinstance`, which costs more than these comparisons.
                if type(event) is TextDelta:
                    streamed.append(event.text)
                elif type(event) is MessageFinished:
                    finished = event
                    self._streamed = []
                    passed_on = self._add_message(event)
                elif type(event) is LossesReported:
                    await state.report_losses(event.losses)
                    continue
                if feed is not None:
                    await feed.put(passed_on)
        except BaseException as error:
            if listener is not None:
                listener.on_failure(error)
            raise
        finally:
            await events.aclose()
        if listener is not None:
            listener.on_message(finished)
        return finished

    def _record_offer(self, request: ModelRequest) -> None:
        run = self.state.run
        if run.offers and run.offers[-1].tools is request.offered:
            return
        tools = tuple(request.offered)
        if not run.offers or run.offers[-1].tools != tools:
            run.offers += (OfferRecord(len(run.conversation.messages), tools),)

    def _add_message(self, finished: MessageFinished) -> Event:
        """Record what the model wrote; returns the event to pass on."""
        state, message = self.state, finished.message
        run = state.run
        run.add_usage(finished.usage)
        if state.parent is not None:
            state.parent.count_nested(usage=finished.usage)
        if finished.stop == "error" and message.is_cut_off:
            run.add_losses(_BROKE_OFF.losses)
            return _BROKE_OFF
        # An empty turn is a message too if ids were sampled for it.
        if message.parts or message.sampled:
            run.conversation = run.conversation.add(message)
            run.record_generation(finished)
            state.open_calls = message.calls
        return finished

    async def _answer_calls(self) -> None:
        """Answer the open calls, in order. Raises `RunStopped` if some wait for a decision or exceed the limit."""
        state, executor = self.state, self.state.executor
        calls = state.open_calls
        left_out: Sequence[ToolCall | MalformedCall] = ()
        most = state.find_call_limit()
        if most is not None:
            calls, left_out = calls[: most[0]], calls[most[0] :]
        state.calls += len(calls)  # before they run: sub-agents among them count towards the same limit
        if state.parent is not None:
            state.parent.count_nested(calls=len(calls))
        ready: list[ToolResult] = []
        started: set[str] = set()
        is_watched = state.feed is not None or self._listener is not None
        on_result = partial(self._pass_on_result, ready) if is_watched else ready.append
        emit: Callable[[ToolProgress], None] = _ignore if state.feed is None else state.feed.put_soon
        scope = CallScope(None, state.run.conversation, None, executor.blobs, emit, self._workspace, state)
        try:
            answers = await executor.run_all(
                calls,
                scope,
                decisions=self._decisions,
                on_start=partial(self._pass_on_start, started),
                on_result=on_result,
            )
        except (Exception, asyncio.CancelledError):
            by_call = {result.call_id: result for result in ready}
            self._add_results([by_call.get(call.id) or _answer_stopped(call, started) for call in calls], calls)
            raise
        self._decisions = None
        results = [answer for answer in answers if not isinstance(answer, Pending)]
        self._add_results(results, calls)
        if len(results) < len(answers):
            state.run.pending = tuple(answer for answer in answers if isinstance(answer, Pending))
            raise RunStopped("paused")
        if most is not None and left_out:
            reason = f"the limit of {most[1]} calls was reached"
            self._add_results([make_not_run_result(call, reason) for call in left_out], left_out)
            raise RunStopped("calls")

    def _pass_on_start(self, started: set[str], event: ToolStarted) -> None:
        """Remember and report that a call runs."""
        started.add(event.call.id)
        if self.state.feed is not None:
            self.state.feed.add(event)

    def _pass_on_result(self, ready: list[ToolResult], result: ToolResult) -> None:
        """Report the result of one call; others of its message may still be running."""
        ready.append(result)
        if self._listener is not None:
            self._listener.on_result(result)
        if self.state.feed is not None:
            self.state.feed.add(ResultReady(result))

    def _add_results(self, results: Sequence[ToolResult], calls: Sequence[ToolCall | MalformedCall]) -> None:
        """Record results, with a note on a call that keeps being repeated."""
        state = self.state
        conversation = state.run.conversation
        results = _note_repetitions(conversation, calls, results)
        state.run.conversation = conversation.add(*map(tool_message, results))
        state.open_calls = state.open_calls[len(results) :]

    def _answer_interrupted(self) -> None:
        """Answer calls that an earlier process started and never finished: their outcome is unknown."""
        for call, answered in list_interrupted(self.state.open_calls, self._journal):
            self._add_results([answered], [call])

    def keep_partial_text(self) -> None:
        """Record the text of a message that the model didn't get to finish."""
        text, self._streamed = "".join(self._streamed), []
        if text:
            self.state.run.conversation = self.state.run.conversation.add(assistant(text))

    def skip_open_calls(self) -> None:
        """Answer the open calls as not run, so that the conversation is valid: none of them was started."""
        calls = self.state.open_calls
        self._add_results([make_not_run_result(call, STOPPED) for call in calls], calls)


def note_repetition(conversation: Conversation, call: ToolCall | MalformedCall, result: ToolResult) -> ToolResult:
    """Add a note for the model to the result of a call that keeps being repeated with the same result.

    The note depends on the conversation alone, so that training data has the same text.
    """
    if not isinstance(call, ToolCall):
        return result
    times = 1 + _count_repetitions(conversation, call, result)
    if times < _REPETITIONS:
        return result
    note = f"[This is call {times} of {call.name} with the same arguments and the same result: try something else.]"
    return replace(result, content=(*result.content, Text(note)))


def add_ready_results(conversation: Conversation, ready: Mapping[str, ToolResult]) -> Conversation:
    """Add the results, by call id, of calls whose message isn't fully answered, up to the first call without one.

    They are those that the loop will add.
    """
    calls, results = [], []
    for call in conversation.pending:
        if call.id not in ready:
            break
        calls.append(call)
        results.append(ready[call.id])
    return conversation.add(*map(tool_message, _note_repetitions(conversation, calls, results)))


def _note_repetitions(
    conversation: Conversation, calls: Sequence[ToolCall | MalformedCall], results: Sequence[ToolResult]
) -> Sequence[ToolResult]:
    if len(conversation.messages) <= _REPETITIONS:  # each repetition is at least a message
        return results
    return [note_repetition(conversation, call, one) for call, one in zip(calls, results, strict=False)]


def _count_repetitions(conversation: Conversation, call: ToolCall, result: ToolResult) -> int:
    """Count the earlier identical calls, back to the first that had another result."""
    results = {m.result.call_id: m.result for m in conversation.messages if m.role == "tool"}
    times = 0
    for message in reversed(conversation.messages):
        for earlier in reversed(message.calls):
            if not isinstance(earlier, ToolCall) or (earlier.name, earlier.arguments) != (call.name, call.arguments):
                continue
            known = results.get(earlier.id)
            if known is None:
                continue
            if known.status != result.status or known.content[: len(result.content)] != result.content:
                return times
            times += 1
    return times


def _answer_stopped(call: ToolCall | MalformedCall, started: Collection[str]) -> ToolResult:
    """Answer a call that has no result because the run was stopped."""
    return make_cancelled_result(call) if call.id in started else make_not_run_result(call, STOPPED)


def _ignore(_progress: ToolProgress) -> None:
    """Drop progress that nobody reads."""
