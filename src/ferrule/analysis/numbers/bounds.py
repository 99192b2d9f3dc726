"""Bounds: which side of a number a sentence says a value to be on, as in "over 5", "p < 0.05" and "at most 12%"."""

from __future__ import annotations

import re
from typing import Final, Literal

Bound = Literal["", "<", "<=", ">", ">="]
"""What a value is said to be to a number."""
_BOUNDS: Final[dict[str, Bound]] = {
    **dict.fromkeys(("below", "nearly"), "<"),
    **dict.fromkeys(("most", "within", "under", "to", "at_most"), "<="),
    **dict.fromkeys(("above", "over"), ">"),
    **dict.fromkeys(("least", "upward", "plus", "from", "at_least"), ">="),
}
"""By the group of a pattern."""
_OPPOSITES: Final[dict[Bound, Bound]] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_NOT = r"(?P<not>(?:\b(?:not|never|no|neither|nor|without)|n['’]t)\s+(?:(?!only\b|just\b)[a-z]+\s+)?)?"
_LIMIT = r"(?:targets?|thresholds?|limits?|levels?|marks?|goals?|cut-?offs?|caps?|bars?|hurdles?)"
_GREATER = r"(?:great|high|larg|bigg|long|old|tall|heavi|wid|deep|thick|warm|hott)er"
_SMALLER = r"(?:less|fewer|(?:small|low|short|young|light|cheap|narrow|thinn|cold|cool)er)"
_MARKUP = r"[*_`]{0,3}"
_BEFORE = re.compile(
    rf"{_NOT}\b(?:"
    r"(?P<above>more\s+than|above|exceed(?:s|ed|ing)?|in\s+excess\s+of|beyond|north\s+of|surpass(?:es|ed|ing)?"
    rf"|tops|topp(?:ed|ing)|cross(?:es|ed|ing)?|{_GREATER}\s+than)"
    rf"|(?P<least>at\s+(?:the\s+)?(?:very\s+)?least|upwards?\s+of|(?:{_GREATER}|more)\s+than\s+or\s+equal\s+to"
    r"|(?:at|equal\s+to)\s+or\s+(?:above|over|(?:more|greater)\s+than))"
    rf"|(?P<below>under|below|{_SMALLER}\s+than)"
    rf"|(?P<most>at\s+(?:the\s+)?(?:very\s+)?most|up\s+to|{_SMALLER}\s+than\s+or\s+equal\s+to"
    r"|(?:at|equal\s+to)\s+or\s+(?:below|under|less\s+than))"
    r"|(?P<nearly>nearly|almost|short\s+of|shy\s+of|not\s+(?:even|quite)"
    r"|(?:(?:do|does|did)(?:\s+not|n['’]t)|never|fail(?:s|ed|ing)?\s+to)\s+reach(?:es|ed)?)"
    r"|(?P<over>over)|(?P<within>within))"
    rf"(?P<limit>\s+(?:the|an?|its|their|our)(?:\s+[a-z]+)?\s+{_LIMIT}\s+of|\s+(?:the|its|their|our))?"
    rf"(?:\s+an?)?{_MARKUP}\s+{_MARKUP}(?:±\s?)?[$€£¥₹]?$",
    re.IGNORECASE,
)
"""What says, before a number, on which side of it the value is; `limit`: "the target of", or an article."""
_LIMIT_AFTER = re.compile(rf"(?:[ ][A-Za-zµ]{{1,3}})?[ -]{_LIMIT}\b", re.IGNORECASE)
"""What follows a number after an article: "the 92% mark"; without it, "above the 92% of West" compares two values."""
_OVER = re.compile(
    r"(?:\b(?:is|are|was|were|be|been|being|has|have|had|having|with|just|well|slightly|far|little|bit|to|at|by|of|from"
    r"|for|now|still|all|mostly|sold|made|won|spent|paid|took|saw|got|grew|rose|fell|ran|went|goes|reach|costs?|takes?"
    r"|needs?|stays?|[a-z]+ed)\s+over\s+|[$€£¥₹])$",
    re.IGNORECASE,
)
"""What makes "over" a bound, and not the span of a statistic, as in "a mean of 21.9 over 681 flights"."""
_OVER_FIRST = re.compile(r"(?:^|[.!?:;(\n]\s*|[-*•]\s+)over\s+$", re.IGNORECASE)
_SPAN_AFTER = re.compile(
    r"(?:[ ][a-z-]+){1,3},|[ -](?:second|minute|hour|day|week|month|quarter|year|decade|season|run|fold)s?\b",
    re.IGNORECASE,
)
"""What follows a number after "over" at the beginning of a sentence where it is a span: "Over 681 flights, …"."""
_AFTER = re.compile(
    r"(?:(?:[ ][A-Za-zµ]{1,3})?[*_`]{1,3})?(?:"
    r"(?:[ ](?!more\b)[^\W\d_]+){0,2}[ ](?:or[ ](?:(?P<least>more|over|above|higher|greater|larger|longer|older|later)"
    r"|(?P<most>less|fewer|below|under|lower|smaller|shorter|younger|earlier))"
    r"|and[ ](?:(?P<upward>over|above|older|up(?![ ]to))|(?P<under>below|under|younger)))\b(?![ ](?:all|[$€£¥₹]?[0-9]))"
    r"|(?:[ ][^\W\d_]+)?[ ]at[ ](?:the[ ])?(?:very[ ])?(?:(?P<at_least>least)|(?P<at_most>most))\b(?![ ][0-9])"
    r"|(?P<plus>(?:[ ]?[A-Za-zµ]{1,3})?\+)(?![\w.])"
    r"|[ ]?(?:(?P<above><(?!=))|(?P<from><=|≤)|(?P<below>>(?!=))|(?P<to>>=|≥))[ ]?p\b)",
    re.IGNORECASE,
)
"""The same after a number: "6 or more", "65+", "0.05 > p"."""
_BETWEEN = re.compile(r"\bbetween\s+[$€£¥₹]?$", re.IGNORECASE)
_COMPARED = re.compile(
    r"(?:(?P<most><=|=<|≤|⩽|\\leq?|&lt;=|&le;)|(?P<below><|\\lt|&lt;)|(?P<least>>=|=>|≥|⩾|\\geq?|&gt;=|&ge;)"
    rf"|(?P<above>>|\\gt|&gt;)){_MARKUP}\s*{_MARKUP}[$€£¥₹]?$"
)
_P_VALUE = re.compile(
    r"\bp(?:[- ]?values?)?\b[^.;,()0-9]{0,24}(?:[0-9.]*[0-9](?:\s+for\s+\w+)?,?\s+"
    r"(?:(?:which|that|it|is|and|so|well|far|much|just|still|not|slightly)\s+)*"
    r"(?:above|below|under|over|exceeds|(?:less|more|smaller|greater|larger|lower|higher)\s+than)\b[a-z -]{0,30})?$",
    re.IGNORECASE,
)
"""What says that a number is one that a p-value is compared with; "p = 0.03, well below 0.05" gives the value, too."""

_ROUGHLY = r"(?:(?:about|around|roughly|nearly|some)\s+)?[$€£¥₹]?"
_DIRECTION = re.compile(
    r"\b(?:(?P<rise>gr[eo]wn?|grows|r[io]ses?|risen|increase[ds]?|climb(?:s|ed)?|jump(?:s|ed)?|surged?|soar(?:s|ed)?)"
    r"|f[ea]ll(?:s|en)?|drop(?:s|ped)?|decline[ds]?|decrease[ds]?|shr[aiu]nk|plunged?|slump(?:s|ed)?)"
    rf"(?:\s+(?:[a-z]+ly|again|further|back))?(?:\s+(?:in|at|for|by)\s+(?:the\s+)?\w+)?\s+from\s+{_ROUGHLY}$",
    re.IGNORECASE,
)
"""A verb and what it changed from; in "an increase in staff cut it from 12 to 9", both are of another verb."""
_TO = re.compile(
    r"\s?(?P<unit>[^\W\d_]+)??(?:\s+(?:in|during|at)\s+[\w ]{1,20}?)?\s+to\s+" + _ROUGHLY,
    re.IGNORECASE,
)
_NO_DIRECTION = re.compile(
    r"\b(?:not|never|no|neither|nor|without|ranks?|ranking|ranked|places?|positions?)\b|n['’]t\b", re.IGNORECASE
)
"""A clause that denies a change, or in which a rise is to a smaller number."""


def read_direction(text: str, first: tuple[int, int], second: tuple[int, int]) -> int:
    """Read how a sentence says that one number became another: 1 for "rose from 5 to 7", -1 for "fell", else 0.

    Where the two numbers have units, these have to be the same word.
    """
    before, joined = text[max(0, first[0] - 80) : first[0]], _TO.fullmatch(text, first[1], second[0])
    verb = _DIRECTION.search(before)
    if not joined or not verb:
        return 0
    unit = joined["unit"]
    if unit and not re.match(rf"\s?{unit}\b", text[second[1] : second[1] + 40], re.IGNORECASE):
        return 0
    if _NO_DIRECTION.search(before) or _NO_DIRECTION.search(text[second[1] : second[1] + 40]):
        return 0
    return 1 if verb["rise"] else -1


def read_bound(text: str, start: int, end: int, *, has_unit: bool) -> tuple[Bound, bool]:
    """Read the bound that the words around a number say, and whether they are words, after which digits may be cut.

    With a unit, such as a percent sign, "over" is a bound and no span, and "within" one and no rounded quantile.
    """
    before = text[max(0, start - 60) : start]
    if compared := _COMPARED.search(before):
        return _BOUNDS[compared.lastgroup or ""], False
    found = _BEFORE.search(before)
    if found and found["limit"] and not found["limit"].endswith(" of") and not _LIMIT_AFTER.match(text, end):
        found = None
    if found and not has_unit and (found["within"] or (found["over"] and not found["not"])):
        found = found if found["over"] and _is_over(text, before, end) else None
    if found:
        group = next(name for name in ("above", "least", "below", "most", "nearly", "over", "within") if found[name])
        bound = _BOUNDS[group]
        return _OPPOSITES[bound] if found["not"] and group != "nearly" else bound, True
    after = _AFTER.match(text, end)
    return (_BOUNDS[after.lastgroup or ""] if after else ""), False


def _is_over(text: str, before: str, end: int) -> bool:
    """Whether "over" before a number without a unit is a bound, and no span."""
    is_first = _OVER_FIRST.search(before) is not None and not _SPAN_AFTER.match(text, end)
    return is_first or _OVER.search(before) is not None


def is_of_p_value(text: str, start: int, end: int) -> bool:
    """Whether a number is one that a p-value is compared with."""
    return (
        bool(_P_VALUE.search(text[max(0, start - 80) : start])) or re.match(r" ?[<>≤≥]=? ?p\b", text[end:]) is not None
    )


def are_limits(text: str, first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Whether two numbers, by their offsets, are those of "between 5 and 10"."""
    is_joined = re.fullmatch(r"\s+and\s+[$€£¥₹]?", text[first[1] : second[0]])
    return is_joined is not None and _BETWEEN.search(text[max(0, first[0] - 20) : first[0]]) is not None


def is_on_side(value: float, bound: Bound, limit: float) -> bool:
    """Whether a value is on the side of a limit that a bound names."""
    if is_equal(value, limit):
        return bound.endswith("=")
    return (value < limit) == bound.startswith("<")


def is_equal(one: float, other: float) -> bool:
    """Whether two numbers are the same but for the last digits of a float."""
    return abs(one - other) <= 1e-9 * max(abs(one), abs(other))
