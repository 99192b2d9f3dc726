"""nanochat: nine control tokens, one tool, and results in the turn that called it.

    <|bos|><|user_start|>What is 12 * 34?<|user_end|><|assistant_start|><|python_start|>12 * 34<|python_end|>
    <|output_start|>408<|output_end|>12 × 34 is 408.<|assistant_end|>

The token stream, and which tokens are trained, are nanochat's own. In addition the terminator is trained, and output
markers that the model writes itself are read as a malformed call: a made-up result is never a result.

Calls are read by `notations/expression.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ferrule.capabilities import Capabilities, Loss, adapt
from ferrule.conversation import Conversation, MalformedCall, Message, Reasoning, ToolCall, ToolResult
from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_REASONING, Family
from ferrule.dialects.grammar import Grammar, GrammarSequence, MarkerText
from ferrule.dialects.message_writer import write_parts
from ferrule.dialects.notations.expression import ExpressionSyntax, make_expression_grammar
from ferrule.dialects.reader.calls import Calls
from ferrule.dialects.reader.message import MessageMarkers, MessageReader, ReadableSyntax
from ferrule.dialects.segments import Content, Control, Layout, SampledIds, Segment, TextSegment, mask_segments
from ferrule.dialects.wording import JsonOffer, WrappedResults
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec

BOS = "<|bos|>"
USER_START, USER_END = "<|user_start|>", "<|user_end|>"
ASSISTANT_START, ASSISTANT_END = "<|assistant_start|>", "<|assistant_end|>"
PYTHON_START, PYTHON_END = "<|python_start|>", "<|python_end|>"
OUTPUT_START, OUTPUT_END = "<|output_start|>", "<|output_end|>"
CONTROL_TOKENS = (
    BOS,
    USER_START,
    USER_END,
    ASSISTANT_START,
    ASSISTANT_END,
    PYTHON_START,
    PYTHON_END,
    OUTPUT_START,
    OUTPUT_END,
)

STOPS = (ASSISTANT_END, PYTHON_END)
FORBIDDEN_TOKENS = (OUTPUT_START, OUTPUT_END, BOS, USER_START, USER_END, ASSISTANT_START)

_OTHERS = tuple(token for token in CONTROL_TOKENS if token not in (PYTHON_START, PYTHON_END))

EXPRESSIONS = ExpressionSyntax(PYTHON_START, PYTHON_END, others=_OTHERS)

MESSAGE = MessageMarkers(turn_markers=tuple(t for t in _OTHERS if "output" not in t), result=(OUTPUT_START, OUTPUT_END))


class Nanochat:
    """The dialect. An expression between the python markers is a call of `tool` with the argument `parameter`."""

    name = "nanochat"
    markers: tuple[str, ...] = CONTROL_TOKENS
    forbidden_tokens: tuple[str, ...] = FORBIDDEN_TOKENS
    rewrites_history = False

    def __init__(self, tool: str = "calculator", parameter: str = "expression") -> None:
        self.tool = tool
        self.parameter = parameter
        self._expressions = replace(EXPRESSIONS, tool=tool, parameter=parameter)
        self.capabilities = Capabilities(tools=(tool,), system=False, parallel_calls=False)

    @property
    def family(self) -> Family:
        """The family whose markers a message has."""
        return NANOCHAT

    @property
    def syntax(self) -> ReadableSyntax:
        """How calls are read."""
        return self._expressions

    def offer(self, tools: Sequence[ToolSpec]) -> str:
        """Nothing is written: the one tool is known from training. Raises `DialectError` for any other tool."""
        for spec in tools:
            if spec.name != self.tool:
                raise DialectError(
                    f"the {self.name} dialect supports only the tool {self.tool!r} and can't offer {spec.name!r}"
                )
        return ""

    def call(self, call: ToolCall) -> str:
        """`<|python_start|>expression<|python_end|>`."""
        return f"{PYTHON_START}{self.write_call(call)}{PYTHON_END}"

    def write_call(self, call: ToolCall) -> str:
        """The text of a call between the markers. Raises `DialectError` for a call that can't be written."""
        return self._expressions.get_expression(call)

    def write_offer(self, tools: Sequence[ToolSpec]) -> tuple[Segment, ...]:
        """The segments before the first message that offer the tools: none here."""
        self.offer(tools)
        return ()

    def result(self, result: ToolResult) -> tuple[str, list[Loss]]:
        """`<|output_start|>text<|output_end|>`; markers in the text are turned into visible plain text."""
        text, losses = _neutralise(result.text, self.markers)
        return f"{OUTPUT_START}{text}{OUTPUT_END}", losses

    def layout(self, conversation: Conversation, tools: Sequence[ToolSpec] = ()) -> Layout:
        """All messages as segments; an assistant's turn stays open across its calls until it ends in text."""
        fitted, losses = adapt(conversation, self.capabilities)
        segments: list[Segment] = [Control(BOS), *self.write_offer(tools)]
        turn_open = False
        system_text = ""
        for message in fitted.messages:
            if message.role == "system":
                # nanochat has no system turn: as in its own rendering, the text is put before the user's.
                system_text += message.text + "\n\n"
                continue
            if message.role == "user":
                if turn_open:
                    segments.append(Control(ASSISTANT_END))
                    turn_open = False
                if system_text:
                    losses.append(Loss("system", "written at the start of the user message that follows it"))
                segments.extend((Control(USER_START), Content(system_text + message.text), Control(USER_END)))
                system_text = ""
                continue
            if not turn_open:
                segments.append(Control(ASSISTANT_START))
                turn_open = True
            segments.extend(self._write_message(message, losses))
            turn_open = not _is_turn_end(message)
        if system_text:
            losses.append(Loss("system", "not written: no user message follows it"))
        prompt = () if turn_open else (Control(ASSISTANT_START),)
        return Layout(tuple(segments), prompt, STOPS, self.forbidden_tokens, tuple(losses), control_tokens=self.markers)

    def _write_message(self, message: Message, losses: list[Loss]) -> Iterator[Segment]:
        """Write one assistant or tool message, inside an open turn."""
        if message.role == "tool":
            yield from (Control(OUTPUT_START), Content(message.result.text), Control(OUTPUT_END))
            return
        if message.sampled is not None and message.sampled.dialect == self.name:
            closer = ASSISTANT_END if _is_turn_end(message) else PYTHON_END if _is_cut_off(message) else ""
            yield SampledIds(message.sampled.ids, message.sampled.logprobs, closer, message.sampled.sampling_logprobs)
            return
        written = list(write_parts(self.family, message.parts, self._write_calls))
        if _is_turn_end(message):
            written.append(Control(ASSISTANT_END, trained=True))
        yield from written if message.is_trained else mask_segments(written)
        losses += [Loss("reasoning", "nanochat has no place for it") for p in message.parts if isinstance(p, Reasoning)]

    def _write_calls(self, calls: Sequence[ToolCall]) -> Iterator[TextSegment]:
        for call in calls:
            yield Control(PYTHON_START, trained=True)
            yield Content(self.write_call(call), trained=True)
            yield Control(PYTHON_END, trained=True)

    def grammar(self, tools: Sequence[ToolSpec], choice: str | None, *, opens: str = "") -> Grammar | None:
        """What a message can be: see `Dialect.grammar`."""
        from ferrule.dialects.message_grammar import make_message_grammar  # only needed where output is constrained

        self.offer(tools)
        return make_message_grammar(self.family, tools, choice, opens=opens, describe=self._describe_marked_call)

    def _describe_marked_call(self, spec: ToolSpec) -> Grammar:
        return GrammarSequence((MarkerText(PYTHON_START), self.describe_call(spec), MarkerText(PYTHON_END)))

    def describe_call(self, spec: ToolSpec) -> Grammar:  # noqa: ARG002 - there is one
        """What a call of a tool can be, between the markers."""
        return make_expression_grammar()

    def reader(
        self,
        tools: Sequence[ToolSpec] = (),
        *,
        first_call: int = 1,
        opens: str = "",  # noqa: ARG002 - no opening of a turn changes how it is read
        spelled_out: Collection[str] = (),
    ) -> MessageReader:
        """A reader for the assistant's text up to the end of its turn or of a call.

        Raises `DialectError` if a marker is spelled out: this dialect needs a token for each of them.
        """
        self.offer(tools)
        if spelled_out:
            raise DialectError(f"the {self.name} dialect needs a control token for {', '.join(sorted(spelled_out))}")
        return MessageReader(self.syntax, self.family.message, Calls(tools, first_call))


def _is_turn_end(message: Message) -> bool:
    """Whether the turn ends here: the message ends in no call, or the model itself ended the turn."""
    if message.role != "assistant":
        return False
    last = message.parts[-1] if message.parts else None
    if message.sampled is not None and isinstance(last, MalformedCall) and last.kind == "unclosed":
        # The model ended its turn inside the call; the result opens the next turn.
        return True
    return not isinstance(last, ToolCall | MalformedCall)


def _is_cut_off(message: Message) -> bool:
    last = message.parts[-1] if message.parts else None
    return isinstance(last, MalformedCall) and last.kind == "truncated"


def _neutralise(text: str, markers: Sequence[str]) -> tuple[str, list[Loss]]:
    """`text` with nanochat's markers broken by a visible space: `<| bos|>`. Needed in text mode only, not for ids."""
    losses = []
    for marker in markers:
        if marker in text:
            text = text.replace(marker, marker.replace("<|", "<| ", 1))
            losses.append(Loss("marker", f"{marker} in a result, written as plain text"))
    return text, losses


NANOCHAT = Family(
    name="nanochat",
    models="nanochat, and the model in this package",
    syntax=EXPRESSIONS,
    message=MESSAGE,
    results=WrappedResults(OUTPUT_START, OUTPUT_END, between=""),
    offer=JsonOffer(""),
    losses=frozenset({NO_IDS, NO_IMAGES, NO_REASONING}),
    one_tool=("calculator", "expression"),
    make_dialect=Nanochat,
)

FAMILIES = (NANOCHAT,)
