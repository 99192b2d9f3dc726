"""Gemma's families, whose calls have a small syntax of their own."""

from __future__ import annotations

from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_REASONING, Family, WrappedResults
from ferrule.dialects.message_reader import Prose, Thinking
from ferrule.dialects.notations.typed_syntax import TypedOffer, TypedSyntax
from ferrule.dialects.turns import Turns

_GEMMA = TypedSyntax("<|tool_call>", "<tool_call|>", '<|"|>')
_FUNCTION_GEMMA = TypedSyntax("<start_function_call>", "<end_function_call>", "<escape>")

GEMMA_4 = Family(
    name="gemma4",
    models="Gemma 4",
    syntax=_GEMMA,
    prose=Prose(
        Thinking("<|channel>", "<channel|>", after_open="thought\n", before_close="", after_close=""),
        # The channel's opener is here too: one that follows another directly is no reasoning.
        turn_markers=("<|channel>", "<|turn>", "<turn|>", "<eos>"),
        result=("<|tool_response>", "<tool_response|>"),
    ),
    results=WrappedResults("", ""),
    offer=TypedOffer(_GEMMA, "<|tool>", "<tool|>"),
    turns=Turns(
        user=("<|turn>user\n", "<turn|>\n"),
        assistant="<|turn>model\n",
        end="<turn|>",
        after="\n",
        results=("<|turn>tool\n", "<turn|>\n"),
        system=("<|turn>system\n", "<turn|>\n"),
        begin="<bos>",
        each_result=True,
        strays=("<|turn>",),
        rewrites_history=True,
    ),
)

FUNCTION_GEMMA = Family(
    name="functiongemma",
    models="FunctionGemma",
    syntax=_FUNCTION_GEMMA,
    prose=Prose(
        turn_markers=("<start_of_turn>", "<end_of_turn>", "<eos>"),
        result=("<start_function_response>", "<end_function_response>"),
    ),
    results=WrappedResults(
        "<start_function_response>response:{name}{value:<escape>", "<escape>}<end_function_response>", between=""
    ),
    offer=TypedOffer(_FUNCTION_GEMMA, "<start_function_declaration>", "<end_function_declaration>"),
    turns=Turns(
        user=("<start_of_turn>user\n", "<end_of_turn>\n"),
        assistant="<start_of_turn>model\n",
        end="<end_of_turn>",
        # The first token of the results, which stand in the model's own turn.
        calls_end="<start_function_response>",
        after="\n",
        results=("", ""),
        system=("<start_of_turn>developer\n", "<end_of_turn>\n"),
        begin="<bos>",
        resumes=("", ""),
        stops=("<eos>",),
        strays=("<start_of_turn>",),
    ),
    losses=frozenset({NO_IDS, NO_IMAGES, NO_REASONING}),
)

FAMILIES = (GEMMA_4, FUNCTION_GEMMA)
