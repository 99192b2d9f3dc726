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

_BEGINNINGS: dict[str, str] = {
    PYTHON: r"""
        calculate compute count sum total average plot chart draw visuali[sz]e simulate fit regress forecast predict
        cluster classify group aggregate pivot tabulate join merge sort filter convert solve optimi[sz]e minimi[sz]e
        maximi[sz]e integrate differentiate normali[sz]e standardi[sz]e test\s(?:whether|if|for) find\soutliers
        perform run decompose estimate clean extract fill remove impute deduplicate
        how\s(?:many|much|often|long|strongly) (?:what|which)\s(?:share|percentage|proportion|fraction|number|percent)
        what\s(?:is|was|are|were)\s(?:the\s)?(?:average|mean|median|sum|total|number|share|standard|correlation|difference)
        (?:list|find|show|get|select)\s(?:all\s|the\s|every\s)?(?:rows?|records?|columns?|duplicates|values|root|zeros?)
        (?:which|what)\s\w+(?:\s\w+)?\s(?:has|have|had|sold|earned|spent)\sthe
    """,
    REASONING: r"""
        should decide judge weigh critique criticise recommend argue assess evaluate interpret infer deduce conclude
        reason think work\sout justify propose advise why what\s(?:could|might|would|should) does\sit
        is\s(?:it|the|this) are\s(?:the|these) explain\swhy draw\s(?:a\s)?conclusions? if given\sthat suppose
    """,
    KNOWLEDGE: r"""
        who whose when where name list describe explain define outline recall summari[sz]e tell\sme (?:give|provide)
        collect\sfacts look\sup find\sout research retrieve state in\swhich what\scauses identify
        how\s(?:do|does|did|is|are|was|were) what\s(?:do|does|did|was|were) which\scountr\w+
        what\s\w+\s(?:apply|applies|exist|govern|are|is|were|was)
    """,
    NEWS: r"what\shappened",
}
"""How a query begins says most about what is asked: it counts twice."""

_CUES: dict[str, str] = {
    PYTHON: r"""
        calculat\w* comput\w* statistic\w* (?:t-?|chi-?squared?|anova|significance\s)tests? significan\w* regress\w*
        correlat\w* averages? means? medians? variances? (?:standard\s)?deviations? percentiles? quantiles? quartiles?
        distributions? histograms? sums? totals? counts? per group group\w* aggregat\w* pivot\w* simulat\w*
        monte\scarlo optimi[sz]\w* solv\w* integrals? derivatives? forecast\w* clusters? plots? charts? columns? rows?
        datasets? tables? time\sseries probabilit\w* how\smany how\smuch interest matri\w+ algorithm\s(?:to|that|for)
        outliers? equations? percentages? proportions? ratios? rank highest lowest fewest the\smost the\sleast largest
        year-(?:over|on)-year month-(?:over|on)-month growth\srates? moving p-?values? confidence\sintervals?
        coefficients? residuals? duplicates? monthly weekly missing\s(?:values?|data|entries|rows|cells)
        (?:by|per|each|every)\s(?:day|week|month|quarter|year|region|country|city)
        (?:by|per|each|every)\s(?:state|team|department|category|product|customer|group|store|supplier|type|class|gender|age)
        anova chi-squared? trend season\w* scatter revenue sales turnover invoices? orders? amounts? quarterly daily
        show get determine numeric q[1-4] figures? loan tax discount(?:ed)? \d[\d,.]*\s?% \d{1,3}(?:,\d{3})+ payments?
        \d[\d,.]*\s?[-+*/^=×÷]\s?\d \w\^\d random\w*
    """,
    REASONING: r"""
        logic\w* consisten\w* cause-and-effect causes? caused causal\w* implications? assum\w* compar\w* strengths?
        weaknesses? trade-?offs? evaluat\w* argu\w* valid\w* deduc\w* infer\w* hypothes\w* decision decide should
        approaches contradict\w* fallac\w* premises? conclusions? conclude reason\w* pros cons claims? evidence
        plausib\w* justif\w* consequences? explanations? (?:best|better)\s(?:option|choice|fits?) options?
        alternatives? risks? recommend\w* t\d+ findings? challenge\w* counter-?\w*arg\w* counterexamples? prioriti\w*
        robust compatible proof puzzle reconcil\w* convinc\w* attribut\w* mean(?:s|ing)?\sfor implies imply follows?
        follow\sfrom might could whether\sthe
    """,
    KNOWLEDGE: r"""
        principles? history historical\w* evolution regulat\w* frameworks? govern\w* explain\w* describ\w* definition
        defin\w* background concepts? overview origins? literature what which who\s(?:was|is|were) when\sdid factors?
        laws? standards? terminology facts? typical\w* usual\w* benchmarks? acronym stands?\sfor capital\sof
        population\sof founded invented discovered introduced treaty century worldwide
        (?:in|since|after|before)\s1\d{3} countries known\sabout life\scycle meaning\sof industry\snorms?
        best\spractices? work\?
    """,
    NEWS: r"news latest recent\w* current\sevents? today yesterday this\sweek headlines? breaking",
}


def _compile(cues: str, beginning: str = "") -> re.Pattern[str]:
    # A cue may begin or end with a sign, where \b is no boundary.
    return re.compile(rf"{beginning}(?<!\w)(?:{'|'.join(cues.split())})(?!\w)", re.IGNORECASE)


_PATTERNS = {tool: _compile(cues) for tool, cues in _CUES.items()}
_FIRST_WORDS = {tool: _compile(cues, r"\A\W*") for tool, cues in _BEGINNINGS.items()}
_TIES = (REASONING, PYTHON, KNOWLEDGE, NEWS)
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
    scores = {
        tool: len(_PATTERNS[tool].findall(query)) + 2 * bool(_FIRST_WORDS[tool].match(query))
        for tool in _TIES
        if tool in tools
    }
    if not scores:
        return next(iter(tools), "")
    return max(scores, key=lambda tool: scores[tool])


def describe_routes(tools: Collection[str]) -> str:
    """The table as lines for a model, for the tools that are there."""
    return "\n".join(f"- {route.task_type}: {route.tool} ({route.why})" for route in ROUTES if route.tool in tools)
