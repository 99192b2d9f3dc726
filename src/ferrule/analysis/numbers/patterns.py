"""How numbers, years and ordinals are written in English text and in the output of programs, as regular expressions.

Written dates are read as days, so that two can be compared however they are written.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from ferrule.arithmetic import english_numbers

MINUS = "-−–‑﹣－"
SPACES = "\u00a0\u2009\u202f"
"""The spaces that stand within numbers; an ordinary space stands between two of them."""
OTHER_SEPARATORS = {"．": ".", "，": ",", "％": "%", "٫": ".", "٬": ",", "٪": "%"}
OTHER_DIGIT = re.compile(r"(?![0-9])\d|(?<=\d)[．，٫٬](?=\d)|(?<=\d)[％٪]")
"""Decimal digits of other scripts, and the separators between them: full-width and Arabic ones."""
SCALES = {
    **dict.fromkeys(("k", "K", "thousand"), 1e3),
    **dict.fromkeys(("M", "MM", "mn", "mln", "Mio", "million"), 1e6),
    **dict.fromkeys(("B", "bn", "Bn", "BN", "billion"), 1e9),
    **dict.fromkeys(("T", "tn", "trillion"), 1e12),
}
PERCENTS = {
    **dict.fromkeys(("%", "percent", "per cent", "pct", "pp", "percentage point", "percentage points"), 1e-2),
    "‰": 1e-3,
    **dict.fromkeys(("bps", "basis point", "basis points"), 1e-4),
}
WORDS = {word: value for word, value in english_numbers.UNITS.items() if value}
TENS = english_numbers.TENS
_ONES = [word for word, value in WORDS.items() if value < 10]

_DIGITS = rf"""
    [0-9]{{1,3}}(?:[.'’ʼ{SPACES}][0-9]{{3}}){{1,99}},[0-9]+            # 1.234,56
  | [0-9]{{1,3}}(?:\.[0-9]{{3}}){{2,99}}(?![0-9.])                   # 1.234.567
  | [1-9][0-9]{{0,2}}(?P<comma>[,'’ʼ_{SPACES}])[0-9]{{3}}(?:(?P=comma)[0-9]{{3}}){{0,999}}(?![0-9])(?:\.[0-9]+)?
  | [1-9][0-9]?(?:,[0-9]{{2}}){{1,99}},[0-9]{{3}}(?![0-9])(?:\.[0-9]+)?     # 12,34,567
  | [0-9]+\.[0-9]+ | (?<!\.)\.[0-9]+                               # of "16..91", 91
  | [0-9]+
"""
_EXPONENT = r"""
    [eE][-+−]?[0-9]{1,3}(?![0-9A-Za-z])
  | \s?(?:[×x*·]|\\times)\s?10(?:\^|\*\*)\{?[-−–+]?[0-9]{1,3}\}?
  | \s?[×x·]\s?10[⁺⁻]?[⁰¹²³⁴-⁹]+
"""
_LONG_SCALES = "thousand|million|Mio|billion|trillion|bn|Bn|BN|mn|mln|tn"
_PERCENT_WORDS = "percentage[ ]points?|basis[ ]points?|percent|per[ ]cent|pct|pp|bps"
_SUFFIX = rf"""
    [ {SPACES}-]?(?P<scale>(?:{_LONG_SCALES})\b)
  | (?P<letter>(?:MM|[kKMBT])(?![A-Za-z0-9]))
  | [ {SPACES}]?(?P<million>M(?![A-Za-z0-9]))
  | [ {SPACES}]?(?P<sign_percent>[%‰])
  | [ {SPACES}-]?(?P<percent>(?:{_PERCENT_WORDS})\b)
"""
SUFFIX = re.compile(_SUFFIX, re.VERBOSE)
NUMBER = re.compile(
    rf"(?P<minus>[{MINUS}+][ ]?)?(?P<currency>[$€£¥₹][ ]?)?(?P<inner>[{MINUS}])?"
    rf"(?P<digits>{_DIGITS})(?P<exponent>{_EXPONENT})?(?:{_SUFFIX})?",
    re.VERBOSE,
)
RANGE = re.compile(rf"(?:[{MINUS}—]|\ to\ |\ and\ )[$€£¥₹]?(?:{_DIGITS})(?:{_SUFFIX})", re.VERBOSE)
"""What makes the first number of "5–10%" or "1.2 to 1.5 million" one with the suffix of the last."""
RANGE_TO = re.compile(rf"(?:[{MINUS}—]|\ (?:to|and|or)\ )(?:{_DIGITS})", re.VERBOSE)
POWER = re.compile(r"(?<![\w.])10(?:\^\{?(?P<exponent>[-−–+]?[0-9]{1,3})\}?|(?P<raised>[⁺⁻]?[⁰¹²³⁴-⁹]+))")
SPELLED = re.compile(
    rf"\b(?:(?P<tens>{'|'.join(TENS)})(?:[- ](?P<digit>{'|'.join(_ONES)}))?|(?P<small>{'|'.join(WORDS)}))"
    r"(?P<hundred>[- ]hundred)?(?:[- ](?:(?P<scale>thousand|million|billion|trillion)"
    rf"|(?P<percent>{_PERCENT_WORDS})))?\b",
    re.IGNORECASE,
)
DECIMAL_COMMA = re.compile(rf"[0-9]{{1,3}}(?:[.'’ʼ{SPACES}][0-9]{{3}})+,[0-9]+|[0-9]+,[0-9]{{1,2}}|0,[0-9]+")
"""Digits whose comma stands before decimals."""

VULGAR = re.compile(r"(?:(?P<whole>[0-9]{1,6})[ \u2009\u202f]?)?(?P<sign>[¼½¾⅐-⅞])")
FRACTION = re.compile(
    r"(?<![\d.,/:$€£])(?P<top>[1-9][0-9]?)/(?P<bottom>[2-9]|1[0-2]|16|20|24|32|64|100)(?![\d.,]*[\d/])"
    r"(?=(?P<of>[ ]of\b)?)"
)
"""Two numbers with a slash between them: a fraction before "of", or if it is a half, thirds or quarters."""
HALVED = (8, 16, 32, 64)
"""Below these, as in parts of an inch, any number makes a fraction; below 5 or 10, it may be a count or a rating."""
ENCLOSED_AMOUNT = re.compile(rf"[$€£¥₹]\((?:{_DIGITS})(?:[kKMBT]|MM)?\)", re.VERBOSE)
"""A minus as accountants write it: $(1,270)."""
RATIO = re.compile(r":1(?!\.?[0-9:])")
SPACED = re.compile(r"(?<![\w.,:/%])(?<![\d)\]%] )[1-9][0-9]{0,2}(?: [0-9]{3})+(?![.,]?[0-9]| [0-9]|[A-Za-z:/-])")
"""Groups of three digits with ordinary spaces between them, in prose: not in a row of numbers, as a table has."""

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
DATE = re.compile(
    rf"""(?<![\w.,-])(?:
        (?P<iso>[12][0-9]{{3}})-[01][0-9](?:-[0-3][0-9](?:[T ][0-2][0-9]:[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?)?)?
      | [0-3]?[0-9](?:st|nd|rd|th)?\ (?:of\ )?{_MONTH}(?:,?\ (?P<after>[12][0-9]{{3}}))?(?![a-z])
      | {_MONTH}\ [0-3]?[0-9](?:st|nd|rd|th)?(?:,\ (?P<last>[12][0-9]{{3}})|(?![\w%]|[.,][0-9]))
      | [0-3]?[0-9](?P<mark>[/.])[0-3]?[0-9](?P=mark)(?P<numeric>[12][0-9]{{3}})
      | [0-2]?[0-9]:[0-5][0-9](?::[0-5][0-9])?
    )(?![\w-]*[0-9])""",
    re.VERBOSE,
)
YEAR = re.compile(
    r"(?<![\w.,/$€£'’])(?:FY[ -]?(?:[12][0-9]{3}|[0-9]{2})|(?P<decade>[12][0-9]{2}0)s"
    r"|(?P<year>1[5-9][0-9]{2}|2[01][0-9]{2}))(?:[/–-][0-9]{2})?(?![\w%]|[.,'’][0-9])"
    r"|(?<![\w.,])[0-9]{1,4}(?=(?:[ ]?[–-][ ]?[0-9]{1,4})?[ ](?:BCE?|CE)\b)|(?<=AD )[0-9]{1,4}\b(?![.,][0-9])"
)
NO_YEAR_BEFORE = re.compile(
    r"(?:[=<>≈~+×*]|\bn\s*[=:])\s*$|(?<![\w)])[-−]$"
    r"|\b(?:sold|sells?|bought|shipped|counted|produced|delivered|received|processed|totall?ed|totals?|averaged)\s+$"
)
NO_YEAR_AFTER = re.compile(rf"[ {SPACES}-]?(?:{_LONG_SCALES}|{_PERCENT_WORDS}|[%€£$])")
IN_YEAR = re.compile(r"\b(?:in|since|during|until|of|for|by)\s+$", re.IGNORECASE)
COUNTED = re.compile(
    r"\s+(?:[a-z]+\s+)?(?:rows?|customers?|units?|people|persons?|patients?|observations?|samples?|records?|orders|users?"
    r"|items?|cases|times|households?|employees|companies|students?|passengers?|houses|homes|cars?|entries|transactions"
    r"|visits|votes|hours?|days|minutes|seconds|dollars?|euros?|pounds?|points?|draws?|iterations?|resamples?"
    r"|permutations?|simulations?|participants?|respondents?|subjects?|tickets?|calls?|deaths|births|accidents|km|kg|m"
    r"|ms|miles|degrees|of\s+the|of\s+[0-9])\b"
)
"""What follows a count and no year: "2000 customers", also where the count has the digits of a year."""

ORDINAL = re.compile(
    r"(?<![\w.,])[0-9]{1,3}(?:,[0-9]{3})*(?:st|nd|rd|th)\b|(?<![A-Za-z0-9])[QHWT][1-9][0-9]?(?![0-9A-Za-z]|\.[0-9])"
    r"|(?<=#)[0-9]+\b|(?<=\[)[0-9]{1,2}(?=\](?!\())"
)
NAME = re.compile(
    r"(?<![\w.])(?![0-9]{1,3}(?:\.[0-9]{3})+(?![0-9.])|[0-3]?[0-9]\.[0-3]?[0-9]\.[12][0-9]{3}(?!\.?[0-9]))"
    r"v?[0-9]+\.[0-9]+\.[0-9]+(?:\.[0-9]+)*(?![0-9])"
    r"|\b(?:S&P|FTSE|Nasdaq|NASDAQ|Russell|Fortune|Global|ISO|RFC|COVID|PM)[ -](?:IEC[ ])?[0-9][0-9.]*"
    r"|\b(?:[Pp]ython|pandas|numpy|scipy|scikit-learn|statsmodels|[Vv]ersion)[ ][0-9]+(?:\.[0-9]+)+"
)
"""Digits that belong to a name: versions, indices, standards."""
_LABELS = (
    "steps?|tasks?|tables?|figures?|figs?\\.|phases?|parts?|sections?|chapters?|rounds?|stages?|weeks?|days?|months?"
    "|quarters?|groups?|clusters?|segments?|models?|class|rank(?:ed)?|number|nos?\\.|versions?|hypothes[ie]s|options?|top"
    "|level|questions?|items?|lines?|equation|scenarios?|plan|run|store|experiments?|component|pages?"
)
_UNIT_NEXT = r"[ ]?(?:m?s|min|h|hours?|minutes?|seconds?|days?|km|kg)\b"
LABELLED = re.compile(
    rf"\b(?:{_LABELS})[ \u00a0](?P<number>[1-9][0-9]{{0,2}})(?![0-9]*[%,.]?[0-9])(?![%\w]|{_UNIT_NEXT})"
    r"|\b(?:sections?|tables?|figures?|chapters?)[ ](?P<dotted>[0-9]+\.[0-9]+)",
    re.IGNORECASE,
)
LABELLED_TOGETHER = re.compile(
    rf"\b(?=[a-z]+s[ ])(?:{_LABELS})[ ][1-9][0-9]{{0,2}}(?:,[ ][1-9][0-9]{{0,2}})*,?(?:[ ](?:and|or|to)[ ]|[–-])"
    rf"(?P<number>[1-9][0-9]{{0,2}})(?![0-9]*[%,.]?[0-9])(?![%\w]|{_UNIT_NEXT})",
    re.IGNORECASE,
)
"""The last of several: "steps 3 and 5"."""
LABEL_BEFORE = re.compile(rf"\b(?:{_LABELS}|{_MONTH})[ ]$", re.IGNORECASE)
LIST_ITEM = re.compile(r"^[ \t>#*_-]*(?P<number>[0-9]{1,3})[.)](?=[ \t*_])", re.MULTILINE)
ENUMERATED = re.compile(r"\((?P<number>[0-9]{1,2})\)(?= [A-Za-z])")

ROUGH = re.compile(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|circa|some|close to)|[~≈≃])\s*[$€£¥₹]?$", re.IGNORECASE
)
EXACTLY = re.compile(r"\b(?:exactly|precisely)\s+[$€£¥₹]?$", re.IGNORECASE)
DECREASE = re.compile(
    r"\b(?:fell|fall(?:s|en|ing)?|drop(?:s|ped|ping)?|declin(?:e|ed|es|ing)|decreas(?:e|ed|es|ing)|lower(?:ed|s|ing)?|less"
    r"|loss(?:es)?|lost|los(?:e|es|ing)|fewer|down|below|under|behind|reduc(?:e|ed|es|tion|ing)|negative(?:ly)?|minus|shr[aiu]nk(?:s|ing)?|short|underestimat(?:e[sd]?|ing)"
    r"|shortfall|deficit|cut|cheaper|smaller|worse|slower|decay(?:s|ed)?|slump(?:ed)?|plung(?:e|ed)|lag(?:s|ged)?|colder"
    r"|shorter|earl(?:y|ier)|sooner|ahead|weaker|poorer|younger|outflow|contract(?:ed|ion)|slid|slip(?:ped)?|gap|differ(?:s|ence|ed)?)\b",
    re.IGNORECASE,
)
"""Words that say what a minus sign says: "fell by 12%" is what the output writes as -12%."""
COST = re.compile(
    r"\b(?:cost(?:s|ing)?|COGS|opex|capex|expenses?|expenditures?|spen[dt]|spending|loss(?:es)?|deficits?|pa(?:y|id|ys))\b",
    re.IGNORECASE,
)
"""Words for amounts that go out: an output may write them below zero, and a sentence without a minus."""
_ADVERB = r"(?:[ ]+(?:[a-z]+ly|further|again|only|just))?"
_ABOUT = r"(?:about|around|nearly|almost|over|some|roughly|approximately|more[ ]than|less[ ]than|~|≈)"
_CHANGE = (
    rf"{_ADVERB}(?:[ ]+by)?(?:[ ]+(?:an?[ ]+)?{_ABOUT})?[ ]*[$€£¥₹]?$"
    rf"|\b(?:{{nouns}})[ ]+(?:of|by)(?:[ ]+{_ABOUT})?[ ]*[$€£¥₹]?$"
)
RISE_BEFORE = re.compile(
    r"\b(?:grew|grows?|grown|rose|rises?|risen|increased|increases|climbed|gained|(?:is|are|was|were|went) up)"
    + _CHANGE.format(nouns="growth|rise|increase"),
    re.IGNORECASE,
)
FALL_BEFORE = re.compile(
    r"\b(?:fell|falls?|fallen|dropped|drops|declined|declines|decreased|decreases|shrank|(?:is|are|was|were|went) down)"
    + _CHANGE.format(nouns="drop|fall|decline|decrease"),
    re.IGNORECASE,
)
"""Verbs and nouns of a change right before its size: "fell by 4.2%", "an increase of $300"; not "fell to 60%"."""
FALL_IN_CLAUSE = re.compile(
    r"\b(?:fell|falls?|dropped|drops|declined|declines|decreased|decreases|shrank|lost)\b[^.;:,0-9]{0,40}"
    r"(?<!to )(?<!from )(?<!at )(?<!of )(?<!below )(?<!above )(?<!under )(?<!over )[$€£¥₹(]*$",
    re.IGNORECASE,
)
"""The same verbs somewhere before a number, which may be a change or another number: "fell in Q3 (4.2%)"."""
RISE = re.compile(r"\b(?:gr[eo]w\w*|r[io]se\w*|rising|increas\w+|climb\w*|gain\w*|up)\b", re.IGNORECASE)
CHANGED = re.compile(r"\b(?:change|growth|diff|difference|delta|yoy|mom|qoq|increase|rise|gain)(?:\b|_)", re.IGNORECASE)
"""What says that the numbers of a line are changes, with their sign."""
WORSE = re.compile(r"\b(?:loss(?:es)?|deficits?|debts?|shortfalls?|gaps?)\b", re.IGNORECASE)
"""What grows as its number falls."""
SHARE = re.compile(
    r"%|‰|\b(?:pct|percent\w*|per[ ]cent|pp|bps|shares?|rates?|ratios?|proportions?|fractions?|growth|grew|changes?"
    r"|margins?|increases?|decreases?|declines?|drops?|discounts?|churn|conversion|accuracy|probability|relative|yoy|mom)\b",
    re.IGNORECASE,
)
"""What says that a whole number of an output may be a percentage, and no count."""
OF_ONE = re.compile(
    r"\b(?:shares?|proportions?|fractions?|probability|accuracy|precision|recall|ratios?)\b", re.IGNORECASE
)
OF_HUNDRED = re.compile(r"%|\b(?:pct|percent\w*|per[ ]cent|pp|perc)\b", re.IGNORECASE)
"""What says that a number below one is a fraction, and that it may be a percentage nevertheless."""
UNITS = (
    (
        re.compile(
            r"\b(?:in|values in) (?:\w+ )?thousands\b|\bthousands of (?:usd|eur|dollars|euros|\$|€)|\b(?:in )?000s\b"
        ),
        1e3,
    ),
    (re.compile(r"\b(?:in|values in) (?:\w+ )?millions\b|\bmillions of (?:usd|eur|dollars|euros|\$|€)"), 1e6),
)
"""What says, in lower case, that the numbers of a source count thousands or millions."""
EXACT = re.compile(r"[- ]?(?:confidence|CI\b|credible|prediction interval|significance|quantile|percentile|level)")
"""What follows a number that is chosen and never rounded: a 95% confidence interval."""


_DAYS: Final = ("%d %B %Y", "%d %b %Y", "%B %d %Y", "%b %d %Y", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%m.%d.%Y")


def find_days(text: str) -> Iterator[str]:
    """The dates of a text, as ISO 8601 has them; both days of one that may be read in two ways."""
    for match in DATE.finditer(text):
        yield from read_days(match)


def read_days(match: re.Match[str]) -> Iterator[str]:
    """The days that a match of `DATE` may stand for; none for a time, or a day without a year."""
    if match["iso"]:
        yield match[0]
        return
    plain = re.sub(r"(?<=[0-9])(?:st|nd|rd|th)\b|\bof\b|[,]|(?<=[a-z])\.", " ", match[0])
    for form in _DAYS:
        with suppress(ValueError):
            yield datetime.datetime.strptime(" ".join(plain.split()), form).date().isoformat()  # noqa: DTZ007
