"""A conversation: messages of parts, immutable, in the shape that is standard in the field.

Every other module uses these types. `dialects/` and `models/` write a conversation for a model,
`formats/conversation_json.py` stores it as JSON.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from ferrule._util.foreign_names import make_getattr
from ferrule._util.quick_init import checked_init
from ferrule.errors import ConversationError
from ferrule.media import Audio as Audio  # noqa: PLC0414 - exported from here with the other parts
from ferrule.media import File as File  # noqa: PLC0414 - exported from here with the other parts
from ferrule.media import Image as Image  # noqa: PLC0414 - exported from here with the other parts
from ferrule.media import Reasoning as Reasoning  # noqa: PLC0414 - exported from here with the other parts
from ferrule.media import Text as Text  # noqa: PLC0414 - exported from here with the other parts
from ferrule.media import collect_items, describe_value
from ferrule.toolspec import COMMENT_NOTE as COMMENT_NOTE  # noqa: PLC0414 - exported from here with the other parts
from ferrule.toolspec import EDITED_NOTE as EDITED_NOTE  # noqa: PLC0414 - exported from here with the other parts
from ferrule.toolspec import MalformedCall as MalformedCall  # noqa: PLC0414 - exported from here with the other parts
from ferrule.toolspec import ResultStatus as ResultStatus  # noqa: PLC0414 - exported from here with the other parts
from ferrule.toolspec import ToolCall as ToolCall  # noqa: PLC0414 - exported from here with the other parts
from ferrule.toolspec import ToolOutput as ToolOutput  # noqa: PLC0414 - exported from here with the other parts
from ferrule.toolspec import ToolResult as ToolResult  # noqa: PLC0414 - exported from here with the other parts

Role = Literal["system", "user", "assistant", "tool"]
"""Whose message it is."""
StopReason = Literal["turn", "calls", "length", "context", "refusal", "cancelled", "error"]
"""Why a model stopped writing a message."""
Media: TypeAlias = Image | Audio | File
"""What a user shows besides text."""
Part: TypeAlias = Text | Image | Audio | File | Reasoning | ToolCall | MalformedCall | ToolResult
"""What messages are made of."""


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """The ids that an engine sampled for a message, including the stop token, with raw log-probabilities.

    `ids` and `logprobs` have equal lengths, and so has `sampling_logprobs`, the log-probabilities by which the ids were
    drawn: after temperature, top-k, top-p and constraint. `weights_versions` are the engine's versions of the weights,
    each with the number of ids in a row that were sampled with it. Both are empty in messages that were stored without
    them. It is valid only while the message's parts are those that were sampled.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    tokenizer_fingerprint: str
    dialect: str
    stop: StopReason
    sampling_logprobs: tuple[float, ...] = ()
    weights_versions: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ImageInput:
    """An image of a prompt, whose placeholders are the `length` ids from index `start` on.

    Kept prefixes are matched by the image's `hash` as well as by ids, since the placeholders of all images are alike.
    """

    image: Image
    start: int
    length: int


_PARTS = (Text, Image, Audio, File, Reasoning, ToolCall, MalformedCall, ToolResult)
_ROLES = frozenset(get_args(Role))


def _check_role(value: object) -> Role:
    raise ConversationError(f"a message's role is system, user, assistant or tool, not {describe_value(value)}")


def _collect_parts(value: object) -> tuple[Part, ...]:
    """The parts of a message: strings become `Text`. Raises `ConversationError`."""
    given = (value,) if isinstance(value, str) else collect_items(value, "a Message's parts")
    parts = tuple(Text(part) if isinstance(part, str) else part for part in given)
    for part in parts:
        if not isinstance(part, _PARTS):
            kinds = ", ".join(kind.__name__ for kind in _PARTS)
            raise ConversationError(f"a Message's parts are {kinds}, not {describe_value(part)}")
    return parts


@checked_init(
    role=("role in _ROLES", _check_role),
    parts=("parts.__class__ is tuple and (not parts or parts[0].__class__ in _PARTS)", _collect_parts),
)
@dataclass(frozen=True, slots=True)
class Message:
    """One message. A tool message holds exactly one `ToolResult`.

    `extra`, by provider, contains what must be sent back to it verbatim (signatures, native ids), and under `ferrule`
    what it knows of the message itself.
    """

    role: Role
    parts: tuple[Part, ...]
    sampled: SampledTokens | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    if not TYPE_CHECKING:
        __getattr__ = make_getattr({"content": "message.text, or message.parts", "tool_calls": "message.calls"})

    def __str__(self) -> str:
        """The message for people to read; its calls without their results."""
        return str(Conversation((self,), _NO_TIME))

    def with_parts(self, parts: Iterable[Part]) -> Message:
        """The same message with other parts, and without `sampled`, which no longer applies."""
        return Message(self.role, tuple(parts), None, self.extra)

    @property
    def text(self) -> str:
        """The text parts, concatenated."""
        return "".join([part.text for part in self.parts if isinstance(part, Text)])

    @property
    def calls(self) -> tuple[ToolCall | MalformedCall, ...]:
        """The calls of this message in the order written, including malformed ones."""
        # Not `isinstance`, which takes longer: every step of the loop needs this.
        return tuple([part for part in self.parts if type(part) is ToolCall or type(part) is MalformedCall])

    @property
    def is_trained(self) -> bool:
        """Whether training may teach it: not what a program wrote in the model's place (see `mark_untrained`)."""
        return self.extra.get("ferrule", {}).get("trained") is not False

    def mark_untrained(self) -> Message:
        """The same message, which wasn't sampled and isn't to be learnt: no training data trains its tokens."""
        own = {**self.extra.get("ferrule", {}), "trained": False}
        return Message(self.role, self.parts, None, {**self.extra, "ferrule": own})

    @property
    def is_cut_off(self) -> bool:
        """Whether it ends inside a call."""
        return any(isinstance(call, MalformedCall) and call.kind == "truncated" for call in self.calls)

    @property
    def result(self) -> ToolResult:
        """The result of a tool message. Raises `ConversationError` for any other message."""
        for part in self.parts:
            if isinstance(part, ToolResult):
                return part
        raise ConversationError(f"a {self.role} message holds no tool result")


def system(text: str) -> Message:
    """A system message with one text."""
    return Message("system", (Text(text),))


def user(*parts: str | Text | Media) -> Message:
    """A user message; strings become `Text` parts. Raises `ConversationError` for what a user can't say or show."""
    for part in parts:
        if not isinstance(part, str | Text | Media):
            raise ConversationError(
                f"a user message takes strings, Text, Image, Audio and File, not {describe_value(part)}"
            )
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def assistant(*parts: str | Part) -> Message:
    """An assistant message; strings become `Text` parts."""
    return Message("assistant", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def iterate_images(messages: Iterable[Message]) -> Iterator[Image]:
    """Yield the images of messages and of the results in them, in order."""
    for message in messages:
        for part in message.result.content if message.role == "tool" else message.parts:
            if isinstance(part, Image):
                yield part


def tool_message(result: ToolResult) -> Message:
    """The tool message for one result."""
    return Message("tool", (result,))


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


_NO_TIME = datetime.min.replace(tzinfo=UTC)


def _get_time() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _collect_messages(value: object) -> tuple[Message, ...]:
    """The messages of a conversation. Raises `ConversationError` for anything else, such as dicts."""
    if isinstance(value, str | Message):
        raise ConversationError(
            f"a Conversation takes messages, as in Conversation((user(…),)), not {describe_value(value)}"
        )
    messages = collect_items(value, "the messages of a Conversation")
    for message in messages:
        if not isinstance(message, Message):
            raise ConversationError(_describe_wrong_message(message, "a Conversation takes messages"))
    return messages


def _describe_wrong_message(value: object, what: str) -> str:
    if isinstance(value, Mapping):
        return (
            f"{what}, not the dict {_shorten(value)}; ferrule.formats.detection.load reads messages of other libraries"
        )
    hint = f"; for a question: user({_shorten(value)})" if isinstance(value, str) else ""
    return f"{what}, not {describe_value(value)}{hint}"


@checked_init(
    messages=(
        "messages.__class__ is tuple and (not messages or messages[-1].__class__ is Message)",
        _collect_messages,
    )
)
@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages, and `now`: the time for templates and tools, fixed on creation."""

    messages: tuple[Message, ...] = ()
    now: datetime = field(default_factory=_get_time)

    def __len__(self) -> int:
        return len(self.messages)

    def __str__(self) -> str:
        """The conversation for people to read: a line for each message, and one for each call with its result."""
        from ferrule.transcript import render_text

        return render_text(self)

    def _repr_html_(self) -> str:
        from ferrule.transcript import render_html

        return render_html(self)

    def _repr_markdown_(self) -> str:
        from ferrule.transcript import render_markdown

        return render_markdown(self)

    def add(self, *messages: Message) -> Conversation:
        """This conversation with more messages at its end. Raises `ConversationError` for anything but messages."""
        for message in messages:
            if message.__class__ is not Message:
                raise ConversationError(_describe_wrong_message(message, "add() takes messages"))
        # Without `__init__`, which would check the messages again: the loop adds one at each of its steps.
        extended = object.__new__(Conversation)
        _set_messages(extended, self.messages + messages)
        _set_now(extended, self.now)
        return extended

    @property
    def pending(self) -> tuple[ToolCall | MalformedCall, ...]:
        """Calls without a result, in order: a paused conversation ends with these."""
        calls: list[ToolCall | MalformedCall] = []
        answered: set[str] = set()
        for message in self.messages:
            if message.role == "assistant":
                calls += message.calls
            elif message.role == "tool":
                answered.add(message.result.call_id)
        return tuple([call for call in calls if call.id not in answered]) if calls else ()

    @property
    def request(self) -> str:
        """The text of the user's last message; empty without one."""
        return next((message.text for message in reversed(self.messages) if message.role == "user"), "")

    @property
    def next_call_number(self) -> int:
        """A number for the next call's id, the same on every run: that of no call, also where turns were dropped."""
        ids = [call.id for message in self.messages if message.role == "assistant" for call in message.calls]
        numbers = [int(one[5:]) for one in ids if one.startswith("call_") and one[5:].isdecimal() and len(one) < 15]
        return 1 + max(len(ids), *numbers, 0)

    def check(self) -> None:
        """Raise `ConversationError` unless each result answers an earlier call, once, and in call order."""
        expected: deque[str] = deque()
        seen: set[str] = set()
        for position, message in enumerate(self.messages):
            where = f"message {position} ({message.role})"
            if message.role == "tool":
                if len(message.parts) != 1:
                    raise ConversationError(f"{where}: a tool message holds exactly one result")
                _check_answer(expected, message.result.call_id, where)
                expected.popleft()
                continue
            if expected and message.role == "assistant":
                raise ConversationError(f"{where}: the call {expected[0]!r} before it has no result; add one")
            for call in message.calls:
                if message.role != "assistant":
                    raise ConversationError(f"{where}: only an assistant message can hold a call")
                if call.id in seen:
                    raise ConversationError(f"{where}: the call id {call.id!r} was used before; ids must differ")
                seen.add(call.id)
                expected.append(call.id)


_set_messages, _set_now = (vars(Conversation)[name].__set__ for name in ("messages", "now"))


def _check_answer(expected: Collection[str], call_id: str, where: str) -> None:
    first = next(iter(expected), None)
    if call_id == first:
        return
    if call_id not in expected:
        raise ConversationError(f"{where}: the result for {call_id!r} answers no open call; remove it or fix its id")
    raise ConversationError(f"{where}: results must keep call order: {first!r} is answered first")
