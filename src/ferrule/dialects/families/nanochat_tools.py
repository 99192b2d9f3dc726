"""Nanochat's frame with any tools: the model in this package.

    <|bos|><|tools_start|>calculator
    get_weather(city: str, days: int = 1)  # Weather forecast for a city.<|tools_end|><|user_start|>Is it raining in
    Oslo?<|user_end|><|assistant_start|><|python_start|>get_weather(city="Oslo")<|python_end|>…

An offer is a signature for each tool, one a line, between two control tokens of its own. Without one, or with the
calculator alone, a conversation is nanochat's. A call is Python: an expression is the calculator's, `name(key=value)`
that tool's. What steers the calls of so small a model stands in `embedded/`.

Calls are read by `notations/expression.py`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from ferrule.capabilities import Capabilities, Loss
from ferrule.conversation import Conversation, ToolCall
from ferrule.dialects.families.nanochat import (
    CONTROL_TOKENS,
    EXPRESSIONS,
    FORBIDDEN_TOKENS,
    MESSAGE,
    OUTPUT_END,
    OUTPUT_START,
    PYTHON_START,
    Nanochat,
)
from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_PARALLEL, NO_REASONING, Family
from ferrule.dialects.grammar import Grammar, note_unenforced
from ferrule.dialects.notations.expression import ExpressionOrCallSyntax
from ferrule.dialects.segments import Content, Control, Layout, Segment
from ferrule.dialects.signatures import list_left_out, write_signature
from ferrule.dialects.wording import WrappedResults
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec

TOOLS_START, TOOLS_END = "<|tools_start|>", "<|tools_end|>"
MOST_TOOLS = 8
_SYNTAX = ExpressionOrCallSyntax(EXPRESSIONS)


@dataclass(frozen=True, slots=True)
class SignatureOffer:
    """Signatures between the markers of an offer; the calculator is its name alone, and needs no offer by itself."""

    def write(self, tools: Sequence[ToolSpec]) -> str:
        """The block. Raises `DialectError` for more than eight tools, or one that has no signature."""
        text = self.write_lines(tools)
        return f"{TOOLS_START}{text}{TOOLS_END}" if text else ""

    def write_lines(self, tools: Sequence[ToolSpec]) -> str:
        """The lines between the markers. Raises as `write` does."""
        if len(tools) > MOST_TOOLS:
            among = ", the calculator among them," if any(map(is_calculator, tools)) else ""
            raise DialectError(f"{len(tools)} tools{among} are offered: this model takes at most {MOST_TOOLS} at once")
        if _needs_no_offer(tools):
            return ""
        return "\n".join(spec.name if is_calculator(spec) else write_signature(spec) for spec in tools)


_OFFER = SignatureOffer()


class NanochatTools(Nanochat):
    """The dialect: nanochat's, with an offer and calls of any tool."""

    name = "nanochat-tools"
    markers: tuple[str, ...] = (*CONTROL_TOKENS, TOOLS_START, TOOLS_END)
    forbidden_tokens: tuple[str, ...] = (*FORBIDDEN_TOKENS, TOOLS_START, TOOLS_END)

    def __init__(self) -> None:
        super().__init__()
        self.capabilities = Capabilities(system=False, parallel_calls=False)

    @property
    def family(self) -> Family:
        """The family whose markers a message has."""
        return NANOCHAT_TOOLS

    @property
    def syntax(self) -> ExpressionOrCallSyntax:
        """How calls are read."""
        return _SYNTAX

    def offer(self, tools: Sequence[ToolSpec]) -> str:
        """The block of signatures, with its markers. Raises `DialectError` for tools that it can't offer."""
        return _OFFER.write(tools)

    def write_offer(self, tools: Sequence[ToolSpec]) -> tuple[Segment, ...]:
        """The signatures between their control tokens; nothing for the calculator alone."""
        lines = _OFFER.write_lines(tools)
        return (Control(TOOLS_START), Content(lines), Control(TOOLS_END)) if lines else ()

    def layout(self, conversation: Conversation, tools: Sequence[ToolSpec] = ()) -> Layout:
        """All messages as segments; the parameters that a signature has no place for are losses."""
        layout = super().layout(conversation, tools)
        return replace(layout, losses=(*layout.losses, *_list_losses(tools)))

    def describe_call(self, spec: ToolSpec) -> Grammar:
        """What a call of a tool can be, between the markers. Raises `DialectError` for a tool without a signature."""
        # Only needed where output is constrained.
        from ferrule.dialects.call_grammar import choose_fitting_literals, find_lost_limits, make_call_grammar

        if is_calculator(spec):
            return super().describe_call(spec)
        return note_unenforced(make_call_grammar(spec, choose_fitting_literals(spec)), find_lost_limits(spec))

    def write_call(self, call: ToolCall) -> str:
        """The text of a call between the markers. Raises `DialectError` for arguments that aren't a JSON object."""
        return _SYNTAX.write_call(call)


def find_frame(control: Container[str]) -> str | None:
    """The dialect of a tokenizer with nanochat's control tokens, with or without those of an offer; None without."""
    if PYTHON_START not in control:
        return None
    return NanochatTools.name if TOOLS_START in control else Nanochat.name


def _list_losses(tools: Sequence[ToolSpec]) -> Iterator[Loss]:
    for spec in () if _needs_no_offer(tools) else tools:
        if left_out := list_left_out(spec):
            yield Loss(
                "tool",
                f"{spec.name} is offered without {', '.join(left_out)}: a signature has no place for what they take",
            )


def _needs_no_offer(tools: Sequence[ToolSpec]) -> bool:
    """Whether a conversation with these tools is nanochat's own."""
    return all(map(is_calculator, tools))


def is_calculator(spec: ToolSpec) -> bool:
    """Whether its calls are expressions; another tool of that name is offered and called by its signature."""
    return spec.name == EXPRESSIONS.tool and list(spec.parameters.get("properties", ())) == [EXPRESSIONS.parameter]


NANOCHAT_TOOLS = Family(
    name="nanochat-tools",
    models="the model in this package, with any tools",
    syntax=_SYNTAX,
    message=MESSAGE,
    results=WrappedResults(OUTPUT_START, OUTPUT_END, between=""),
    offer=_OFFER,
    losses=frozenset({NO_IDS, NO_IMAGES, NO_REASONING, NO_PARALLEL}),
    make_dialect=NanochatTools,
)

FAMILIES = (NANOCHAT_TOOLS,)
