"""`knowledge_retriever`: what a model knows from its training data, which the result says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from ferrule.analysis.asking import Asker
from ferrule.analysis.settings import KNOWLEDGE, AnalysisSettings
from ferrule.analysis.tools.attempts import ask_for_tool
from ferrule.conversation import ToolOutput
from ferrule.tools.decorator import Tool
from ferrule.tools.scope import CallScope

DESCRIPTION = (
    "Recalls what the model knows from its training data: history, background, definitions, facts, expertise "
    "of a field. It looks nothing up and knows nothing recent."
)
INSTRUCTIONS = """\
You recall what you know about one task from your training data. You can't look anything up.
- summary: the answer to the task.
- facts: each by itself, with its certainty (high, medium or low) and the field that it is from.
- definitions: the terms that a reader needs.
- uncertain: what you aren't sure of, or what may have changed since your training data ended.
- known_until: until when your training data go, as far as you know; otherwise leave it empty.
- confidence in the summary from 0 to 1.
Say that you don't know rather than guess. Give a figure only if you are sure of it, with its year."""

SOURCE = "From the model's training data, not from live sources"
"""How the text of every result begins."""


class KnownFact(BaseModel):
    """One fact."""

    statement: str
    certainty: Literal["high", "medium", "low"]
    field: str = ""


class Definition(BaseModel):
    """A term, and what it means."""

    term: str
    meaning: str


class KnowledgeResult(BaseModel):
    """What a model knows about a task."""

    summary: str = Field(min_length=1)
    facts: list[KnownFact] = Field(default_factory=list)
    definitions: list[Definition] = Field(default_factory=list)
    uncertain: list[str] = Field(default_factory=list)
    known_until: str = ""
    confidence: Annotated[float, Field(ge=0, le=1)]


def make_knowledge_tool(asker: Asker, settings: AnalysisSettings) -> Tool[..., Any]:
    """The tool `knowledge_retriever`, asking the models of an analysis."""

    async def knowledge_retriever(query: Annotated[str, "What to recall"], scope: CallScope) -> ToolOutput:
        found = await ask_for_tool(
            asker, settings, KNOWLEDGE, INSTRUCTIONS, query, KnowledgeResult, settings.deep_knowledge_temperature, scope
        )
        return ToolOutput("\n".join(_write(found)), {"source": "training data", **found.model_dump(mode="json")})

    return Tool.from_callable(
        knowledge_retriever, name=KNOWLEDGE, description=DESCRIPTION, read_only=True, idempotent=False
    )


def _write(found: KnowledgeResult) -> Iterator[str]:
    until = f" (until {found.known_until})" if found.known_until else ""
    yield f"{SOURCE}{until}: {found.summary} (confidence {found.confidence:g})"
    for fact in found.facts:
        yield f"- {fact.statement} [certainty {fact.certainty}{', ' + fact.field if fact.field else ''}]"
    yield from (f"Term: {one.term}: {one.meaning}" for one in found.definitions)
    yield from (f"Uncertain: {one}" for one in found.uncertain)
