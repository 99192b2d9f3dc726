"""Which tool does which kind of task: the table of the fourth seed, and what follows from it for a query."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from ferrule.analysis.settings import KNOWLEDGE, NEWS, PYTHON, REASONING


@dataclass(frozen=True, slots=True)
class Route:
    """A kind of task, the tool that is best for it, and why."""

    task_type: str
    tool: str
    why: str


ROUTES = (
    Route("Factual research", KNOWLEDGE, "Taps into training data"),
    Route("Historical context", KNOWLEDGE, "Broad background information"),
    Route("Logical analysis", REASONING, "Step-by-step deduction"),
    Route("Comparing options", REASONING, "Evaluating trade-offs"),
    Route("Statistical calculations", PYTHON, "Precise computation"),
    Route("Data analysis", PYTHON, "Can process structured data"),
    Route("Mathematical modeling", PYTHON, "Implements algorithms"),
    Route("Argument evaluation", REASONING, "Logical structure analysis"),
)
"""The seed's table "Tool Selection by Task Type", word for word."""

LABELS = {"reasoning": REASONING, "knowledge": KNOWLEDGE, "python": PYTHON, "news": NEWS}
"""The names by which the seed shows its tools."""

_CUES: dict[str, str] = {
    PYTHON: r"""
        calculat\w* comput\w* statistic\w* (?:t-?|chi-?squared?|anova|significance\s)tests? significan\w* regress\w*
        correlat\w* averages? means? medians? variances? (?:standard\s)?deviations? percentiles? quantiles?
        distributions? histograms? sums? totals? counts? per group group\w* aggregat\w* pivot\w* simulat\w* monte\scarlo
        optimi[sz]\w* solv\w* integrals? derivatives? forecast\w* clusters? plots? charts? columns? rows? datasets?
        tables? time\sseries probabilit\w* how\smany how\smuch interest matri\w+ algorithm\s(?:to|that|for)
    """,
    REASONING: r"""
        logic\w* consisten\w* cause-and-effect cause causal\w* implications? assum\w* compar\w* strengths? weaknesses?
        trade-?offs? evaluat\w* argu\w* valid\w* deduc\w* infer\w* hypothes\w* decision decide should approaches
        contradict\w* fallac\w* premises? conclusions? reason\w* pros cons
    """,
    KNOWLEDGE: r"""
        principles? history historical\w* evolution regulat\w* frameworks? govern\w* explain\w* describ\w* definition
        defin\w* background concepts? overview origins? literature what\s(?:is|are)\s(?:the|a|an) who\s(?:was|is|were)
        when\sdid factors? laws? standards? terminology
    """,
    NEWS: r"news latest recent\w* current\sevents? today yesterday this\sweek headlines? breaking",
}
_PATTERNS = {tool: re.compile(rf"\b(?:{'|'.join(cues.split())})\b", re.IGNORECASE) for tool, cues in _CUES.items()}
_TIES = (REASONING, KNOWLEDGE, PYTHON, NEWS)
"""Which tool is taken where two fit a query equally well."""


def resolve_tool(named: str, query: str, tools: Collection[str]) -> str:
    """The tool of a task as a model names it: a tool, the seed's name of one, or a kind of task in the table.

    Without a name, it is the one that fits the query best. A name that is none of these is returned as it is, so that
    validation can say so.
    """
    name = named.strip()
    if name in tools:
        return name
    if not name:
        return choose_tool(query, tools)
    plain = name.lower()
    by_kind = {route.task_type.lower(): route.tool for route in ROUTES}
    found = LABELS.get(plain.removesuffix(" tool")) or by_kind.get(plain)
    return found if found is not None and found in tools else name


def choose_tool(query: str, tools: Collection[str]) -> str:
    """The tool that fits a query best by its words, among those that are there."""
    scores = {tool: len(_PATTERNS[tool].findall(query)) for tool in _TIES if tool in tools}
    if not scores:
        return next(iter(tools), "")
    return max(scores, key=lambda tool: scores[tool])


def describe_routes(tools: Collection[str]) -> str:
    """The table as lines for a model, for the tools that are there."""
    return "\n".join(f"- {route.task_type}: {route.tool} ({route.why})" for route in ROUTES if route.tool in tools)
