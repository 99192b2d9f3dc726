"""Compacts a conversation that outgrows its model: what is left out is summarized, and stays in the run's record.

    pipeline.hook(CompactContext(limit=50_000, summarizer="model"))

Without this hook, the oldest turns of a full context are dropped (`standard_hooks.ShortenContext`).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ferrule._util.frame_tags import ANGLE, choose_tag
from ferrule.agent.hooks import Hooks
from ferrule.agent.plain_summary import cut_middle, describe_messages, list_refusals, summarize_plainly
from ferrule.agent.run import Compaction
from ferrule.capabilities import Loss
from ferrule.conversation import Conversation, Message, Text
from ferrule.errors import FerruleError, SettingsError
from ferrule.events import ContextCompacted

if TYPE_CHECKING:
    from ferrule.agent.hooks import RunState
    from ferrule.agent.pipeline import Pipeline
    from ferrule.agent.run import OutputT, Run
    from ferrule.models.protocol import Model

LimitFinder: TypeAlias = "Callable[[Model], Awaitable[int | None]]"
"""Finds the most tokens of a conversation with a model; None if that isn't known."""
DescribeDropped: TypeAlias = Callable[[Sequence[Message]], str]
"""Describes, for the summary, what it must not lose of the messages that are left out."""

_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_MEDIUM = 1_000
_LONGEST = 200_000
_OPENS, _CLOSES = "[Summary of the earlier conversation, which was left out:\n", "]\n\n"
_FRAMED = re.compile(r"<(summary(?:-\d+)?)>\n(.*)\n</\1>", re.DOTALL)
_INSTRUCTIONS = (
    "Summarize the conversation below for the assistant, who goes on with it and won't see it. Keep what the user "
    "asked for, every decision and its reason, what was refused, names, numbers, paths, and what is still to be done. "
    "Write only the summary.\n\n"
)


class CompactContext(Hooks):
    """Replaces the older part of a conversation by a summary once it has more than `limit` tokens.

    `limit` None is three quarters of the context of a model that counts tokens; with any other model, its context must
    be full; a function finds the limit for the model that is asked. Tokens that the model doesn't count are those that
    its provider counted in the last request of the run, and 4 characters each for the rest. The system text, the
    question of the current turn, the last `keep` messages of user or assistant with the results of their calls, and
    calls without a result stay. `summarizer` is `plain` (what was said and called, each cut short; users' words and
    refused calls first), `model` (the run's own model writes it), or a pipeline that writes it, whose usage counts in
    the run; refused calls are added. If a model fails, the plain summary is used. What `describe` says of the messages
    that are left out is added to either.

    The summary stands before the first question that stays; `Run.compactions` keeps what was left out, and the event
    `ContextCompacted` reports it. Raises `SettingsError`.
    """

    comes_first = True

    def __init__(
        self,
        limit: int | LimitFinder | None = None,
        *,
        summarizer: Literal["plain", "model"] | Pipeline[Any] = "plain",
        keep: int = 4,
        describe: DescribeDropped | None = None,
    ) -> None:
        for name, value in (("limit", None if callable(limit) else limit), ("keep", keep)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise SettingsError(f"{name} of CompactContext must be a whole number of at least 1, not {value!r}")
        if summarizer not in ("plain", "model") and not hasattr(summarizer, "chat"):
            raise SettingsError(f"summarizer must be 'plain', 'model' or a pipeline, not {summarizer!r}")
        self._limit = limit
        self._summarizer = summarizer
        self._keep = keep
        self._describe = describe

    async def before_request(self, state: RunState) -> None:
        """Compact a conversation that is longer than the limit."""
        meter = _TokenCounter(state)
        limit = await self._limit(state.model) if callable(self._limit) else self._limit
        limit = limit or meter.default_limit
        if limit is not None and meter.exceeds(state.conversation, limit):
            await self.compact(state, state.conversation, limit // 2)

    async def after_message(self, state: RunState) -> None:
        """Compact if the context is full; the part that the model had written is dropped."""
        if state.stop_reason != "context":
            return
        conversation = state.conversation
        if conversation.messages and conversation.messages[-1].role == "assistant":
            conversation = replace(conversation, messages=conversation.messages[:-1])
        await self.compact(state, conversation, _TokenCounter(state).count(conversation) // 2)

    async def compact(self, state: RunState, conversation: Conversation, most: int) -> None:
        """Compact the run's conversation to `most` tokens, or to as few as possible; what may not go stays."""
        cut = _find_cut(conversation, self._keep, most, _TokenCounter(state))
        if cut is None:
            return
        summary = await self._summarize(state, cut)
        state.run.compactions += (Compaction(cut.dropped, summary),)
        state.conversation = cut.join(summary)
        await state.put(ContextCompacted(len(cut.dropped), summary))

    async def _summarize(self, state: RunState, cut: _Cut) -> str:
        earlier, dropped = _separate_summaries(cut)
        described = "" if self._describe is None else self._describe(cut.dropped)
        if self._summarizer != "plain":
            try:
                written = await self._ask_model(state, dropped, earlier)
            except FerruleError as error:
                await state.report_losses((Loss("turns", f"no model could summarize the conversation: {error}"),))
            else:
                return "\n".join(filter(None, (written, *list_refusals(earlier, dropped, written), described)))
        return "\n".join(filter(None, (*summarize_plainly(earlier, dropped), described)))

    async def _ask_model(self, state: RunState, dropped: Sequence[Message], earlier: str) -> str:
        """Have a model write the summary, under the limits of the run. Raises `FerruleError`."""
        from ferrule.agent.pipeline import Pipeline
        from ferrule.agent.sub_agents import run_nested

        pipeline = self._summarizer if isinstance(self._summarizer, Pipeline) else Pipeline(state.model)
        said = cut_middle("\n".join([earlier, *describe_messages(dropped)]).strip(), _LONGEST)
        run = await run_nested(pipeline.chat(_INSTRUCTIONS + said), state, "", "summary", None)
        if run.stopped != "done" or not run.text.strip():
            raise SettingsError(f"{run.model} stopped with {run.stopped!r} and wrote no summary")
        return run.text.strip()


class _CompactOnce(Hooks):
    """Compacts the conversation as far as possible, and stops the run before its model is asked."""

    comes_first = True

    def __init__(self, compaction: CompactContext) -> None:
        self._compaction = compaction

    async def before_request(self, state: RunState) -> None:
        await self._compaction.compact(state, state.conversation, 0)
        state.stop("compacted")


def is_summary(text: str) -> bool:
    """Whether a text of a conversation is the summary of what was left out."""
    return text.startswith(_OPENS)


async def compact_conversation(pipeline: Pipeline[OutputT]) -> Run[OutputT]:
    """Compact the pipeline's conversation now, by its own `CompactContext`; only a summary is asked for.

    `Run.compactions` is empty if nothing may be left out. Raises `SettingsError` if the pipeline has no such hook.
    """
    for one in pipeline.hooks:
        if isinstance(one, CompactContext):
            return await replace(pipeline, hooks=(_CompactOnce(one),)).run()
    raise SettingsError("the pipeline doesn't compact conversations; add hook(CompactContext())")


class _TokenCounter:
    """Counts the tokens of a conversation with the tools of the next request: by the model, or estimated."""

    def __init__(self, state: RunState) -> None:
        self._model: Any = state.model if hasattr(state.model, "count_tokens") else None
        self._offered = state.request.offered
        self._counted = state.run.last_request

    @property
    def default_limit(self) -> int | None:
        return None if self._model is None else self._model.context_length * 3 // 4

    def exceeds(self, conversation: Conversation, limit: int) -> bool:
        """Whether it has more tokens; they are counted only if it has more characters: a token has at least one."""
        is_long = self._counted is not None or _count_characters(conversation.messages) > limit
        return is_long and self.count(conversation) > limit

    def count(self, conversation: Conversation) -> int:
        if self._model is not None:
            return int(self._model.count_tokens(conversation, self._offered))
        if self._counted is not None:
            sent, tokens = self._counted
            if sent.messages and conversation.messages[: len(sent.messages)] == sent.messages:
                return tokens + _estimate(conversation.messages[len(sent.messages) :])
        return _estimate(conversation.messages)


def _estimate(messages: Sequence[Message]) -> int:
    return _count_characters(messages) // _CHARACTERS_PER_TOKEN


def _count_characters(messages: Sequence[Message]) -> int:
    count = 0
    for message in messages:
        for part in message.result.content if message.role == "tool" else message.parts:
            text = getattr(part, "text", None) or getattr(part, "arguments", None) or getattr(part, "raw", None)
            count += len(text) if isinstance(text, str) else _TOKENS_PER_MEDIUM * _CHARACTERS_PER_TOKEN
    return count


@dataclass(frozen=True, slots=True)
class _Cut:
    """A conversation in three parts: what stays before, what is dropped, and what stays after, from a question on."""

    conversation: Conversation
    head: tuple[Message, ...]
    dropped: tuple[Message, ...]
    kept: tuple[Message, ...]

    def join(self, summary: str = "") -> Conversation:
        """The conversation without what was dropped; the summary stands in the first question, and is recorded there.

        A message of its own would be a second one of the user in a row, which many templates refuse.
        """
        first = self.kept[0]
        record = first.extra.get("ferrule", {})
        dropped = sum(one.extra.get("ferrule", {}).get("dropped_messages", 0) for one in (*self.dropped, first))
        record = {**record, "dropped_messages": dropped + len(self.dropped), "summary": True}
        parts = first.parts[1:] if _has_summary(first) else first.parts
        # It quotes results, in which nothing may look like the user's question after it.
        tag = choose_tag("summary", summary, ANGLE)
        text = Text(f"{_OPENS}<{tag}>\n{summary}\n</{tag}>{_CLOSES}")
        question = Message("user", (text, *parts), None, {**first.extra, "ferrule": record})
        return replace(self.conversation, messages=(*self.head, question, *self.kept[1:]))


def _has_summary(message: Message) -> bool:
    return bool(message.extra.get("ferrule", {}).get("summary"))


def _separate_summaries(cut: _Cut) -> tuple[str, list[Message]]:
    """Return the earlier summaries, of messages that are dropped now and of the first that stays, and the messages
    that are dropped without them."""
    earlier: list[str] = []
    dropped: list[Message] = []
    for message in (*cut.dropped, cut.kept[0]):
        if _has_summary(message) and isinstance(message.parts[0], Text):
            text = message.parts[0].text.removeprefix(_OPENS).removesuffix(_CLOSES)
            framed = _FRAMED.fullmatch(text)
            earlier.append(text if framed is None else framed[2])
            message = replace(message, parts=message.parts[1:])  # noqa: PLW2901
        dropped.append(message)
    return "\n".join(earlier), dropped[:-1]


def _find_cut(conversation: Conversation, keep: int, most: int, counter: _TokenCounter) -> _Cut | None:
    """Find the cut that drops the fewest messages and leaves at most `most` tokens, or else drops the most that may go.

    None if nothing may go. A call is never parted from its result.
    """
    messages = conversation.messages
    start = next((at for at, one in enumerate(messages) if one.role != "system"), len(messages))
    begins = [at for at, one in enumerate(messages) if at > start and one.role in ("user", "assistant")]
    cuts = [_cut_before(conversation, start, at) for at in begins[: max(0, len(begins) - keep + 1)]]
    found = [cut for cut in cuts if cut is not None and any(one.role != "system" for one in cut.dropped)]
    if not found:
        return None
    first, last = 0, len(found) - 1  # the later the cut, the fewer tokens stay
    while first < last:
        middle = (first + last) // 2
        if counter.count(found[middle].join()) <= most:
            last = middle
        else:
            first = middle + 1
    return found[first]


def _cut_before(conversation: Conversation, start: int, at: int) -> _Cut | None:
    """Cut before the message at index `at`; the question of its turn stays. None if there is no question."""
    messages = conversation.messages
    asked = next((place for place in range(at, start - 1, -1) if messages[place].role == "user"), None)
    if asked is None:
        return None
    before = [one for place, one in enumerate(messages[start:at], start) if place != asked]
    dropped = tuple(one for one in before if one.role != "system")
    head = (*messages[:start], *(one for one in before if one.role == "system"))
    return _Cut(conversation, head, dropped, (messages[asked], *messages[max(at, asked + 1) :]))
