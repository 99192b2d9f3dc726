"""One run of a pipeline: asks the model, answers its calls, and counts what is spent.

The loop over these two is in `pipeline.py`; what a call goes through is `execution/`'s business, how a message is
written `models/`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ferrule.conversation import Conversation, MalformedCall, ToolCall, ToolResult, tool_message, user
from ferrule.errors import ToolRequired
from ferrule.events import Event, LossesReported, MessageFinished, ResultReady, ToolProgress
from ferrule.execution import Decision, Executor, FileJournal, Pending, cancelled_result, interrupted_result
from ferrule.execution.journal import interrupted
from ferrule.execution.words import failed
from ferrule.feed import Feed
from ferrule.registry import BoundRegistry
from ferrule.runs.lazy import lazily
from ferrule.runs.listening import Listener
from ferrule.runs.output import Output, OutputInvalid
from ferrule.runs.repeats import NOTICED, with_notice
from ferrule.runs.run import Run
from ferrule.runs.terms import Limits, Terms
from ferrule.scope import CallScope
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.models.protocol import Model, ModelSettings

_CALL_ONE = "Call one of your tools before you answer."
_GOES_ON = ("turn", "calls")


class Stop(Exception):  # noqa: N818 - an end that was reached, not an error
    """The run ends here; `reason` is what `Run.stopped` says of it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Conditions(Protocol):
    """What a run goes by: a pipeline."""

    @property
    def terms(self) -> Terms: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def settings(self) -> ModelSettings: ...
    @property
    def output(self) -> Output | None: ...


class Exchange:
    """What one run needs while it goes on. `run.conversation` is valid after each step, whatever ends it."""

    __slots__ = (
        "_called", "_decisions", "_executor", "_lazy", "_limits", "_listener", "_model", "_offered", "_output",
        "_rounds", "_settings", "_terms", "open_calls", "run", "watcher",
    )  # fmt: skip

    def __init__(
        self,
        conditions: Conditions,
        model: Model,
        registry: BoundRegistry,
        run: Run,
        watcher: Feed[Event] | None,
        decisions: Mapping[str, Decision] | None,
        listener: Listener | None = None,
    ) -> None:
        self._listener = listener
        self._terms = terms = conditions.terms
        self._limits = conditions.limits
        self._settings = conditions.settings
        self._output = conditions.output
        self._model = model
        self._lazy = lazily(registry, terms.lazy, terms.choice, model.capabilities.tools)
        self._executor = Executor(
            registry if self._lazy is None else self._lazy.registry,
            policy=terms.policy,
            approver=terms.approver,
            journal=terms.journal if listener is None else listener.journal(terms.journal),
            blobs=terms.blobs,
            on_ask=terms.on_ask,
        )
        self._offered = registry.specs
        self._decisions = decisions
        self._rounds = 0
        self._called = 0
        self.run = run
        self.watcher = watcher
        self.open_calls: tuple[ToolCall | MalformedCall, ...] = run.conversation.pending
        """The calls without an answer: kept, since the loop asks for them at every step."""
        if self.open_calls:
            self._answer_interrupted()

    # What the loop does.

    async def ask(self) -> None:
        """Have the model write one message. Raises `Stop` where it is enough, or the message is not whole."""
        self._check_spent()
        self._rounds += 1
        watcher, stop = self.watcher, "error"
        shown, offered, settings = self._shown(), self._offered_now(), self._settings_now()
        listener, finished = self._listener, None
        if listener is not None:
            listener.asks(shown, offered, settings)
        events = self._model.stream(shown, offered, settings)
        try:  # and not aclosing, whose way in and out costs as much as asking
            async for event in events:
                # Not by isinstance, which for the many events that are neither costs more than both of these.
                if type(event) is MessageFinished:
                    finished, stop = event, event.stop
                    self._take(event)
                elif type(event) is LossesReported:
                    await self._take_losses(event)
                    continue
                if watcher is not None:
                    await watcher.put(event)
        except BaseException as error:
            if listener is not None:
                listener.failed(error)
            raise
        finally:
            await events.aclose()
        if listener is not None:
            listener.wrote(finished)
        if stop not in _GOES_ON:
            raise Stop(stop)

    def _take(self, finished: MessageFinished) -> None:
        run, message = self.run, finished.message
        run.usage = run.usage + finished.usage
        # A turn that the model ended at once is a message too: its ids were sampled.
        if message.parts or message.sampled:
            run.conversation = run.conversation.add(message)
            self.open_calls = message.calls

    async def _take_losses(self, reported: LossesReported) -> None:
        """Pass on what the model didn't tell in an earlier round."""
        new = self.run.take_losses(reported.losses)
        if new and self.watcher is not None:
            await self.watcher.put(LossesReported(new))

    async def answer(self) -> None:
        """Answer the open calls, in their order. Raises `Stop` where some wait for a decision or may not run."""
        run, watcher, executor = self.run, self.watcher, self._executor
        calls, left_out = self._within_limit(self.open_calls)
        ready: list[ToolResult] = []
        is_heard = watcher is not None or self._listener is not None
        on_result = partial(self._tell, ready) if is_heard else ready.append
        emit: Callable[[ToolProgress], None] = _unheard if watcher is None else watcher.put_soon
        scope = CallScope(conversation=run.conversation, blobs=executor.blobs, emit=emit)
        try:
            answers = await executor.run_all(calls, scope, decisions=self._decisions, on_result=on_result)
        except asyncio.CancelledError:
            by_call = {result.call_id: result for result in ready}
            self._add([by_call.get(call.id) or cancelled_result(call) for call in calls], calls)
            raise
        self._decisions = None
        self._called += len(calls)
        results = [answer for answer in answers if not isinstance(answer, Pending)]
        self._add(results, calls)
        if len(results) < len(answers):
            run.pending = tuple(answer for answer in answers if isinstance(answer, Pending))
            raise Stop("paused")
        if left_out:
            reason = f"not run: the limit of {self._limits.calls} calls was reached"
            self._add([_failed(call, reason) for call in left_out], left_out)
            raise Stop("calls")

    def _tell(self, ready: list[ToolResult], result: ToolResult) -> None:
        """A call has its result, though others of its message may still run."""
        ready.append(result)
        if self._listener is not None:
            self._listener.answered(result)
        if self.watcher is not None:
            self.watcher.add(ResultReady(result))

    def _add(self, results: Sequence[ToolResult], calls: Sequence[ToolCall | MalformedCall]) -> None:
        """Add results, with a note where a call was made again and again."""
        conversation = self.run.conversation
        if len(conversation.messages) > NOTICED:  # each repetition is at least a message
            results = [with_notice(conversation, call, result) for call, result in zip(calls, results, strict=False)]
        self.run.conversation = conversation.add(*map(tool_message, results))
        self.open_calls = self.open_calls[len(results) :]

    def say(self, text: str) -> None:
        """Add a user's message of the pipeline's own."""
        self.run.conversation = self.run.conversation.add(user(text))

    def _answer_interrupted(self) -> None:
        """Answer calls that an earlier process began and did not end: nobody knows what they did."""
        journal = self._terms.journal
        if not isinstance(journal, FileJournal):
            return
        # Arguments are scrubbed in a journal, so the id and the tool must do. Where another conversation's call has
        # both, this one is not run, which the model can mend.
        begun = {(entry.call_id, entry.tool): entry for entry in interrupted(journal.path)}
        for call in self.open_calls:
            entry = begun.get((call.id, call.name)) if isinstance(call, ToolCall) else None
            if entry is None:
                return
            self._add([interrupted_result(call)], [call])
            journal.record("finished", entry.key, {"call": entry.call_id, "tool": entry.tool, "status": "interrupted"})

    def cancel_open(self) -> None:
        """Answer what is open as cancelled, so that the conversation is valid."""
        self._add([cancelled_result(call) for call in self.open_calls], self.open_calls)

    def replaced(self) -> None:
        """A callback has put another conversation in the place of the run's."""
        self.open_calls = self.run.conversation.pending

    def lacks_call(self) -> bool:
        """Whether a call was to be made, and was not; the model is then told, as often as it may be asked."""
        terms = self._terms
        if not terms.force or self._called or self.open_calls:
            return False
        if self._rounds >= terms.max_rounds:
            raise ToolRequired(f"{self._model.name} was asked {self._rounds} times and called no tool")
        self.say(_CALL_ONE)
        return True

    def lacks_output(self) -> bool:
        """Whether the answer is not of the type that is wanted; the model is then told what is wrong with it."""
        output = self._output
        if output is None:
            return False
        try:
            self.run.output = output.parse(self.run.text)
        except OutputInvalid as problem:
            if output.retries == 0:
                raise
            self._output = Output(output.kind, output.retries - 1)
            self.say(str(problem))
            return True
        return False

    # What the model is asked.

    def _shown(self) -> Conversation:
        """The conversation, with the wanted output told where the model can't be held to it."""
        shown = self.run.conversation
        if self._output is not None and not self._knows("output_schema"):
            return self._output.instructed(shown)
        return shown

    def _offered_now(self) -> Sequence[ToolSpec]:
        return self._offered if self._lazy is None else self._lazy.offered(self.run.conversation)

    def _settings_now(self) -> ModelSettings:
        """The settings, with what holds until a call was made, and the wanted output where the model knows it."""
        terms = self._terms
        if self._output is None and not terms.choice and not terms.force:
            return self._settings
        changes: dict[str, object] = {}
        if terms.choice and self._rounds == 1:
            changes["choice"] = terms.choice
        elif terms.force and not self._called and self._knows("choice"):
            changes["choice"] = "required"
        if self._output is not None and self._knows("output_schema"):
            changes["output_schema"] = self._output.schema
        return self._settings.model_copy(update=changes) if changes else self._settings

    def _knows(self, setting: str) -> bool:
        return setting in self._model.capabilities.settings

    def _within_limit(
        self, calls: tuple[ToolCall | MalformedCall, ...]
    ) -> tuple[Sequence[ToolCall | MalformedCall], Sequence[ToolCall | MalformedCall]]:
        limit = self._limits.calls
        if limit is None:
            return calls, ()
        room = max(0, limit - self._called)
        return calls[:room], calls[room:]

    def _check_spent(self) -> None:
        limits, run = self._limits, self.run
        if self._rounds >= self._terms.max_rounds:
            raise Stop("rounds")
        if limits.tokens is not None and run.usage.prompt_tokens + run.usage.sampled_tokens >= limits.tokens:
            raise Stop("tokens")
        if limits.cost is not None and (run.cost or 0.0) >= limits.cost:
            raise Stop("cost")


def _failed(call: ToolCall | MalformedCall, reason: str) -> ToolResult:
    return failed(call.id, call.name if isinstance(call, ToolCall) else "", "cancelled", reason)


def _unheard(_progress: ToolProgress) -> None:
    """Nobody watches."""
