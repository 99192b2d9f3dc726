"""The loop between a model and its tools: asks, answers the calls, asks again, until the model is done.

There is one loop, `AgentLoop.converse`. Chat, rollouts and every front run it, and steer it by hooks (`hooks.py`).
`execution/` runs a call, `models/` writes a message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from ferrule.agent.hooks import HookMethods, ModelRequest, RunState, RunStopped
from ferrule.agent.model_checks import check_question, make_request_error
from ferrule.agent.repetitions import FEWEST_NOTED, Repetitions
from ferrule.agent.run import Run
from ferrule.capabilities import Loss
from ferrule.conversation import Conversation, MalformedCall, Message, ToolCall, ToolResult, assistant, tool_message
from ferrule.errors import SettingsError, StreamBroken, choose_advice
from ferrule.events import (
    NO_USAGE,
    Event,
    LossesReported,
    MessageFinished,
    ResultReady,
    TextDelta,
    ToolProgress,
)
from ferrule.execution import CallWatch, Decision, Pending, make_cancelled_result
from ferrule.execution.decisions import check_decisions
from ferrule.execution.error_results import make_not_run_result
from ferrule.execution.interrupted_calls import STOPPED, find_begun, insert_interrupted
from ferrule.execution.journal import InterruptedCall
from ferrule.tools.scope import CallScope

if TYPE_CHECKING:
    from ferrule.agent.hooks import RunListener

_ATTEMPTS = 3
_FIRST_PAUSE = 0.5
"""The most seconds before an answer that broke off is requested again; twice that before the next one."""
_BROKE_OFF = LossesReported((Loss("call", "the answer broke off in the middle of a call; the model is asked again"),))
_NO_CALLS = "no tool may be called in this message; answer without one"
MOST_CALLS = 128
"""How many calls of one answer are run. A model that makes more repeats itself, and would hold up everything else."""


class AgentLoop:
    """The loop of one run. `state.conversation` is valid after each step, whatever ends the run."""

    __slots__ = ("_begun", "_decisions", "_hooks", "_listener", "_stop_detail", "_streamed", "state", "unasked")

    def __init__(
        self,
        state: RunState,
        hooks: HookMethods,
        *,
        decisions: Mapping[str, Decision] | None = None,
        listener: RunListener | None = None,
    ) -> None:
        self.state = state
        self._hooks = hooks
        self._streamed: list[str] = []
        """The text of a message that isn't finished."""
        self._stop_detail = ""
        if decisions:
            # A call that is answered by now may be among them: a program may keep its decisions from pause to pause.
            check_decisions(decisions)
            made = {call.id for message in state.conversation.messages for call in message.calls}
            for call_id in decisions:
                if call_id not in made:
                    known = ", ".join(call.id for call in state.open_calls) or "none"
                    raise SettingsError(f"there is no call {call_id!r} to decide on; open are: {known}")
        self._decisions = decisions
        self._listener = listener
        self.unasked: list[str] = []
        """Why calls were denied that nobody could be asked about."""
        self._begun: Mapping[str, InterruptedCall] = {}
        """The open calls, by id, that an earlier process started and never finished: their outcome is unknown."""
        if state.open_calls:
            self._begun = find_begun(state.open_calls, state.options.journal)
            if self._begun:
                self._answer_first_interrupted()

    async def converse(self) -> None:
        """Run the loop. Raises `RunStopped` when a limit, a hook, a pause or an incomplete message ends the run."""
        state = self.state
        if not state.open_calls:
            await self._ask()
        while True:
            state.asks_again = False
            is_complete = state.is_complete
            for after_message in self._hooks.after_message if is_complete else self._hooks.after_incomplete:
                await after_message(state)
                if state.asks_again:
                    break
            else:
                if not is_complete:
                    raise RunStopped(state.stop_reason, self._stop_detail)
                if not state.open_calls:
                    return
                if state.rounds and state.request.settings.choice == "none":
                    await self._refuse_calls(state.open_calls)
                else:
                    await self._answer_calls()
                for after_results in self._hooks.after_results:
                    await after_results(state)
                if state.handed_over is not None:
                    await self._take_over(state.handed_over)
                    continue
            await self._ask()

    async def _ask(self, attempt: int = 1) -> None:
        """Have the model write one message.

        An answer that breaks off in the middle of a call is a failure of the provider, not a call to answer: the
        request is repeated after a pause, up to `_ATTEMPTS` times in all. Raises `StreamBroken` if every attempt broke
        off.
        """
        state = self.state
        state.check_limits()
        state.request = ModelRequest(state.run.conversation, state.offered, state.settings)
        for before_request in self._hooks.before_request:
            await before_request(state)
            shown, settings = state.request.conversation, state.request.settings
            if not (isinstance(shown, Conversation) and isinstance(settings, type(state.settings))):
                raise make_request_error(before_request, state.request)
        if not state.rounds:
            check_question(state.request.conversation)
        state.rounds += 1
        if state.parent is not None:
            state.parent.count_nested(rounds=1)
        finished = await self._request(state.request)
        state.stop_reason = reason = "error" if finished is None else finished.stop
        if reason == "error" and finished is not None and finished.message.is_cut_off:
            if attempt == _ATTEMPTS:
                raise StreamBroken(f"{state.model.name}: the answer broke off in the middle of a call, {attempt} times")
            from random import random

            await asyncio.sleep(random() * _FIRST_PAUSE * 2 ** (attempt - 1))
            await self._ask(attempt + 1)

    async def _take_over(self, other: Run) -> None:
        """Make the answer of the agent that took over the conversation this run's own answer."""
        state = self.state
        message = assistant(other.text)
        state.handed_over, state.stop_reason = None, "turn"
        state.run.conversation = state.run.conversation.add(message)
        await state.put(TextDelta(other.text))
        await state.put(MessageFinished(message, NO_USAGE, "turn"))

    async def _request(self, request: ModelRequest) -> MessageFinished | None:
        """Send one request and pass on its events; returns the one that finished the message."""
        state, listener = self.state, self._listener
        feed, finished = state.feed, None
        streamed = self._streamed = []
        state.run.record_request(request.conversation, request.offered, state.model.capabilities)
        if listener is not None:
            listener.on_request(state.model, request)
        events = state.model.stream(request.conversation, request.offered, request.settings)
        try:
            async for event in events:
                # Not `isinstance`, which costs more than these comparisons.
                if type(event) is TextDelta:
                    streamed.append(event.text)
                elif type(event) is MessageFinished:
                    finished = event
                    self._streamed = []
                    self._stop_detail = event.detail
                    event = self._add_message(event)  # noqa: PLW2901 - what is passed on
                elif type(event) is LossesReported:
                    await state.report_losses(event.losses)
                    continue
                if feed is not None:
                    await feed.put(event)
        except BaseException as error:  # a stream that was read to its end is closed
            await events.aclose()
            if listener is not None:
                listener.on_failure(error)
            raise
        if listener is not None:
            listener.on_message(finished)
        return finished

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
            if message.sampled is not None:
                run.record_generation(finished)
            state.open_calls = message.calls
        return finished

    async def _answer_calls(self) -> None:
        """Answer the open calls, in order. Raises `RunStopped` if some wait for a decision or exceed the limit."""
        state, executor = self.state, self.state.executor
        calls, room, limit = state.open_calls, 1, None
        if type(calls[-1]) is MalformedCall:
            self._check_cut_calls()
        if len(calls) > 1 or state.limits.calls is not None or state.parent is not None:
            room, limit = self._claim_room()
        calls, left_out = calls[:room], calls[room:]
        state.calls += len(calls)  # before they run: sub-agents among them count towards the same limit
        ready: list[ToolResult] = []
        watch = CallWatch(None, ready.append, set(self._begun), unasked=self.unasked)
        emit: Callable[[ToolProgress], None] = _ignore
        if state.feed is not None or self._listener is not None:
            watch.on_result = partial(self._pass_on_result, ready)
        if state.feed is not None:
            watch.on_start, emit = state.feed.add, state.feed.put_soon
        scope = CallScope(None, state.run.conversation, None, executor.blobs, emit, state.options.workspace, state)
        try:
            to_run = [call for call in calls if call.id not in self._begun] if self._begun else calls
            if len(to_run) == 1 and self._decisions is None:  # by far the most common case
                answers = [await executor.run(to_run[0], scope, None, watch)]
            else:
                watch.is_serial = await self._must_run_serially(calls)
                answers = await executor.run_all(to_run, scope, decisions=self._decisions, watch=watch)
        except (Exception, asyncio.CancelledError):
            by_call = {result.call_id: result for result in ready}
            self._add_results([by_call.get(call.id) or _answer_stopped(call, watch.started) for call in calls], calls)
            raise
        self._decisions = None
        if self._begun:
            answers = insert_interrupted(calls, answers, self._begun, state.options.journal)
            self._begun = {}
        results = [answer for answer in answers if type(answer) is not Pending]
        self._add_results(results, calls)
        if len(results) < len(answers):
            state.run.pending = tuple(answer for answer in answers if isinstance(answer, Pending))
            raise RunStopped("paused")
        if left_out:
            await self._leave_out(left_out, limit)

    def _check_cut_calls(self) -> None:
        """Raise `RunStopped` if the last two answers broke off inside a call: a third would, too.

        Where the connection is lost inside a call, it isn't answered; so the cause is the limit of tokens.
        """
        written = (one for one in reversed(self.state.run.conversation.messages) if one.role == "assistant")
        last = [one.calls[-1:] for one in islice(written, 2)]
        if len(last) == 2 and all(calls and _is_cut(calls[0]) for calls in last):
            larger = choose_advice("with_(max_tokens=…)", "--max-tokens")
            raise RunStopped("length", f"two answers reached max_tokens inside a call; give a larger one by {larger}")

    async def _must_run_serially(self, calls: Sequence[ToolCall | MalformedCall]) -> bool:
        """Whether the model was to make one call at a time, which not every server ensures."""
        state = self.state
        settings = state.request.settings if state.rounds else state.settings
        if settings.parallel_calls is not False or len(calls) == 1:
            return False
        text = f"{_list_names(calls)}: called together despite parallel_calls=False, and run one after the other"
        await state.report_losses((Loss("call", text),))
        return True

    async def _refuse_calls(self, calls: Sequence[ToolCall | MalformedCall]) -> None:
        """Answer calls of a message that was to have none as not run: not every server ensures that."""
        self._add_results([make_not_run_result(call, _NO_CALLS) for call in calls], calls)
        text = f"{_list_names(calls)}: called despite choice='none', and not run"
        await self.state.report_losses((Loss("call", text),))

    def _claim_room(self) -> tuple[int, int | None]:
        """Return how many of the open calls may run, and the limit of calls that says so, if it does.

        They are counted in the run above.
        """
        state = self.state
        room = 1 if len(state.open_calls) == 1 else max(0, MOST_CALLS - _count_answered(state.run.conversation))
        most = state.find_call_limit()
        limit = None
        if most is not None and most[0] <= room:
            room, limit = most
        if state.parent is not None:
            state.parent.count_nested(calls=min(room, len(state.open_calls)))
        return room, limit

    async def _leave_out(self, calls: Sequence[ToolCall | MalformedCall], limit: int | None) -> None:
        """Answer calls as not run. Raises `RunStopped` if the run has reached its limit of calls."""
        reason = f"only the first {MOST_CALLS} calls of an answer are run; make this one again if it is still needed"
        if limit is not None:
            reason = f"the limit of {limit} calls was reached"
        self._add_results([make_not_run_result(call, reason) for call in calls], calls)
        if limit is not None:
            raise RunStopped("calls")
        made = _count_answered(self.state.run.conversation)
        text = f"the model made {made:,} calls in one answer; the first {MOST_CALLS} were run, the others were not"
        await self.state.report_losses((Loss("call", text),))

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
        if len(conversation.messages) > FEWEST_NOTED:  # each repetition is at least a message
            repetitions = Repetitions(conversation)
            results = [repetitions.note(call, one) for call, one in zip(calls, results, strict=False)]
        state.run.conversation = conversation.add(*map(tool_message, results))
        state.open_calls = state.open_calls[len(results) :]

    def _answer_first_interrupted(self) -> None:
        """Answer the begun calls before the first that is to be run, so that hooks see them answered."""
        first = list(takewhile(lambda call: call.id in self._begun, self.state.open_calls))
        answers = insert_interrupted(first, (), self._begun, self.state.options.journal)
        self._add_results([one for one in answers if isinstance(one, ToolResult)], first)

    def keep_partial_text(self) -> None:
        """Record the text of a message that the model didn't get to finish."""
        text, self._streamed = "".join(self._streamed), []
        if text:
            self.state.run.conversation = self.state.run.conversation.add(assistant(text))

    def skip_open_calls(self) -> None:
        """Answer the open calls, so that the conversation is valid: none of them was started in this run."""
        calls = self.state.open_calls
        self._add_results([_answer_stopped(call, self._begun) for call in calls], calls)


@dataclass(slots=True)
class ReadyResults:
    """The results, so far, of calls whose message isn't fully answered."""

    by_call: dict[str, ToolResult] = field(default_factory=dict)
    conversation: Conversation | None = None
    """The one that ends with these calls, and what follows from it: found once."""
    calls: Sequence[ToolCall | MalformedCall] = ()
    repetitions: Repetitions | None = None
    added: list[Message] = field(default_factory=list)

    def add(self, conversation: Conversation, result: ToolResult) -> Conversation:
        """Return the conversation with the results up to the first call without one: those that the loop will add."""
        if conversation is not self.conversation:
            self.conversation, self.calls, self.added = conversation, conversation.pending, []
            self.repetitions = Repetitions(conversation) if len(conversation) > FEWEST_NOTED else None
        self.by_call[result.call_id] = result
        for call in islice(self.calls, len(self.added), None):
            ready = self.by_call.get(call.id)
            if ready is None:
                break
            self.added.append(tool_message(ready if self.repetitions is None else self.repetitions.note(call, ready)))
        return conversation.add(*self.added)


def _is_cut(call: ToolCall | MalformedCall) -> bool:
    """Whether a message ended inside this call."""
    return isinstance(call, MalformedCall) and call.kind == "truncated"


def _list_names(calls: Iterable[ToolCall | MalformedCall]) -> str:
    """The names of the called tools, each once; a call that can't be read by its beginning."""
    return ", ".join(dict.fromkeys(call.name if isinstance(call, ToolCall) else call.raw[:80] for call in calls))


def _count_answered(conversation: Conversation) -> int:
    """Count the results that a conversation ends with."""
    return sum(1 for _ in takewhile(lambda message: message.role == "tool", reversed(conversation.messages)))


def _answer_stopped(call: ToolCall | MalformedCall, started: Collection[str]) -> ToolResult:
    """Answer a call that has no result because the run was stopped."""
    return make_cancelled_result(call) if call.id in started else make_not_run_result(call, STOPPED)


def _ignore(_progress: ToolProgress) -> None:
    """Drop progress that nobody reads."""
