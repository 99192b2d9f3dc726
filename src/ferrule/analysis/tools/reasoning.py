"""`logic_kernel`: step-by-step reasoning by a model, with what it considered as structured data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, Field

from ferrule.analysis.asking import Asker
from ferrule.analysis.settings import REASONING, AnalysisSettings
from ferrule.analysis.tools.attempts import ask_for_tool
from ferrule.conversation import ToolOutput
from ferrule.tools.decorator import Tool
from ferrule.tools.scope import CallScope

DESCRIPTION = (
    "Reasons step by step: deduction, competing hypotheses, causes and effects, arguments, trade-offs, decisions. It "
    "computes nothing and knows only what it is given."
)
INSTRUCTIONS = """\
You reason step by step about one task. Work only with what the task and the results of earlier tasks say.
- steps: each a statement, and what it follows from.
- hypotheses: where several explanations are possible, each with what supports it, what speaks against it, and how
  likely it is from 0 to 1.
- causal_chain: where causes matter, each link as cause, effect and mechanism.
- arguments: where arguments are judged, whether the conclusion follows from the premises, and why.
- conclusion, and your confidence in it from 0 to 1; limitations: what would change it.
Leave a list empty where it doesn't apply. Use no number that you weren't given, and compute none."""

Share = Annotated[float, Field(ge=0, le=1)]


class ReasoningStep(BaseModel):
    """One step."""

    statement: str
    follows_from: str = ""
    """The result, assumption or earlier step that it rests on."""


class Hypothesis(BaseModel):
    """One of several explanations."""

    statement: str
    support: list[str] = Field(default_factory=list)
    against: list[str] = Field(default_factory=list)
    likelihood: Share


class CausalLink(BaseModel):
    """A cause and its effect."""

    cause: str
    effect: str
    mechanism: str = ""


class ArgumentReview(BaseModel):
    """Whether an argument is valid."""

    argument: str
    is_valid: bool
    why: str


class ReasoningResult(BaseModel):
    """What a reasoning task found."""

    conclusion: str = Field(min_length=1)
    steps: list[ReasoningStep] = Field(min_length=1)
    hypotheses: list[Hypothesis] = Field(default_factory=list)
    causal_chain: list[CausalLink] = Field(default_factory=list)
    arguments: list[ArgumentReview] = Field(default_factory=list)
    confidence: Share
    limitations: list[str] = Field(default_factory=list)


def make_reasoning_tool(asker: Asker, settings: AnalysisSettings) -> Tool[..., Any]:
    """The tool `logic_kernel`, asking the models of an analysis."""

    async def logic_kernel(query: Annotated[str, "What to reason about"], scope: CallScope) -> ToolOutput:
        found = await ask_for_tool(
            asker, settings, REASONING, INSTRUCTIONS, query, ReasoningResult, settings.reasoning_temperature, scope
        )
        return ToolOutput("\n".join(_write(found)), found.model_dump(mode="json"))

    return Tool.from_callable(logic_kernel, name=REASONING, description=DESCRIPTION, read_only=True, idempotent=False)


def _write(found: ReasoningResult) -> Iterator[str]:
    yield f"Conclusion: {found.conclusion} (confidence {found.confidence:g})"
    for number, step in enumerate(found.steps, 1):
        yield f"{number}. {step.statement}" + (f" [from: {step.follows_from}]" if step.follows_from else "")
    for one in sorted(found.hypotheses, key=lambda hypothesis: -hypothesis.likelihood):
        yield f"Hypothesis ({one.likelihood:g}): {one.statement}"
        yield from (f"  for: {reason}" for reason in one.support)
        yield from (f"  against: {reason}" for reason in one.against)
    for link in found.causal_chain:
        yield f"Cause: {link.cause} → {link.effect}" + (f" ({link.mechanism})" if link.mechanism else "")
    for review in found.arguments:
        yield f"Argument ({'valid' if review.is_valid else 'not valid'}): {review.argument}: {review.why}"
    yield from (f"Limitation: {one}" for one in found.limitations)
