"""Google's Gemma, whose calls have their own small typed syntax.

Calls are read by `notations/typed_syntax.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_REASONING, Family
from ferrule.dialects.framing.turns import ImageMarkers, Turns
from ferrule.dialects.notations.typed_syntax import TypedOffer, TypedSyntax
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import WrappedResults

_GEMMA = TypedSyntax("<|tool_call>", "<tool_call|>", '<|"|>', sorts_keys=True)

# Compared with the five revisions of Gemma 4's template, and DiffusionGemma's, that TRL 1.16 bundles. The results are
# in the model's own turn, whose calls end with the results' first token.
_GEMMA_FRAMES = Turns(
    user=("<|turn>user\n", "<turn|>\n"),
    assistant="<|turn>model\n",
    end="<turn|>",
    calls_end="<|tool_response>",
    after="\n",
    results=("", ""),
    system=("<|turn>system\n", "<turn|>\n"),
    begin="<bos>",
    resumes=("", ""),
    image=ImageMarkers("<|image|>"),
    forbidden_tokens=("<|turn>",),
    rewrites_history=True,
)

GEMMA_4 = Family(
    name="gemma4",
    models="Gemma 4",
    syntax=_GEMMA,
    message=MessageMarkers(
        Thinking("<|channel>", "<channel|>", after_open="thought\n", after_close=""),
        # The channel's opener is included: one that directly follows another begins no reasoning.
        turn_markers=("<|channel>", "<|turn>", "<turn|>", "<eos>"),
        result=("<|tool_response>", "<tool_response|>"),
    ),
    results=WrappedResults('<|tool_response>response:{name}{value:<|"|>', '<|"|>}<tool_response|>', between=""),
    offer=TypedOffer(_GEMMA, "<|tool>", "<tool|>"),
    turns=_GEMMA_FRAMES,
    other_turns=(("diffusion_gemma", replace(_GEMMA_FRAMES, resumes=None)),),
)

# The template's second revision, and the interleaved one that llama.cpp has: results in turns of their own.
GEMMA_4_TOOL_TURNS = replace(
    GEMMA_4,
    name="gemma4_tool_turns",
    models="Gemma 4 with a template whose results are turns",
    message=replace(
        GEMMA_4.message,
        thinking=Thinking("<|channel>", "<channel|>", after_open="thought\n", before_close="", after_close=""),
    ),
    results=WrappedResults("", ""),
    turns=replace(
        _GEMMA_FRAMES,
        calls_end=None,
        results=("<|turn>tool\n", "<turn|>\n"),
        resumes=None,
        each_result=True,
        image=ImageMarkers("<|image|>", "\n\n", "\n\n"),
    ),
    other_turns=(),
)

_FUNCTION_GEMMA = TypedSyntax("<start_function_call>", "<end_function_call>", "<escape>")

FUNCTION_GEMMA = Family(
    name="functiongemma",
    models="FunctionGemma",
    syntax=_FUNCTION_GEMMA,
    message=MessageMarkers(
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
        # The first token of the results, which are in the model's own turn.
        calls_end="<start_function_response>",
        after="\n",
        results=("", ""),
        system=("<start_of_turn>developer\n", "<end_of_turn>\n"),
        begin="<bos>",
        resumes=("", ""),
        stops=("<eos>",),
        forbidden_tokens=("<start_of_turn>",),
    ),
    losses=frozenset({NO_IDS, NO_IMAGES, NO_REASONING}),
)

FAMILIES = (
    GEMMA_4,
    GEMMA_4_TOOL_TURNS,
    FUNCTION_GEMMA,
)
