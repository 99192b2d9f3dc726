"""The forms in which texts write numbers and dates, found by a sample of a column. Runs in the sandbox.

Each form has an SQL condition, so that all rows can be checked, and an SQL expression of the value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from .sql import quote_text

CURRENCY = "[$€£¥₹₩₽₺₴]|USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|KRW|TRY"
SPACES = " \u00a0\u202f"
SIGN = "[+−-]?"
MOST = 0.8
"""The share of a sample that has a form, if the others are misfits."""
TIME = r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?"
MICROSECONDS = 6
"""Digits of a second that a time has; more need another type."""
ZONE = r" ?(?:Z|[+-]\d\d(?::?\d\d)?)"
DATE = re.compile(
    rf"(?P<a>\d{{1,4}})(?P<mark>[-/.])(?P<b>\d{{1,2}})(?P=mark)(?P<c>\d{{1,4}})"
    rf"(?:[T ](?P<time>{TIME})(?P<half> ?[AaPp][Mm])?(?P<zone>{ZONE})?)?"
)
NAMED_DATE = re.compile(r"\d{1,2}(?P<mark>[- ])[A-Za-z]{3,9}(?P=mark)\d{4}|[A-Za-z]{3,9} \d{1,2}(?P<comma>,?) \d{4}")
NUMBER = re.compile(
    rf"(?P<open>\(?){SIGN} ?(?P<before>{CURRENCY}|) ?{SIGN}(?P<digits>\d[\d.,'’{SPACES}]*\d|\d|\.\d+)"
    rf"[{SPACES}]?(?P<after>%|{CURRENCY}|)(?P<minus> ?[-−]|)\)?"
)
_SPACED = rf"\d{{1,3}}(?:[{SPACES}'’]\d{{3}})+"
_COMMA_IS_DECIMAL = re.compile(
    rf"0,\d+|\d+,(?:\d{{1,2}}|\d{{4,}})|(?:{_SPACED}|\d{{1,3}}(?:\.\d{{3}})+),\d+|\d{{1,3}}(?:\.\d{{3}}){{2,}}"
)
_DOT_IS_DECIMAL = re.compile(
    rf"\d*\.(?:\d{{1,2}}|\d{{4,}})|0\.\d+|(?:{_SPACED}|\d{{1,3}}(?:,\d{{3}})+)\.\d+|\d{{1,3}}(?:,\d{{3}}){{2,}}"
)


class Form:
    """A way of writing numbers or dates."""

    def __init__(self, what: str, condition: str, value: str, note: str = "") -> None:
        self.what, self.condition, self.value, self.note = what, condition, value, note
        """`{0}` is the column, trimmed. Without a value, the column stays text, as the note says."""
        self.decimal: str | None = None
        """What stands before decimals, if the numbers themselves show it."""
        self.needs_decimal = False
        """Whether its commas or points are read by what other columns show."""
        self.may_be_codes = False
        """Whether values that all have the same length are codes, such as 123 45."""

    @property
    def is_number(self) -> bool:
        """Is the value to be cast to a number?"""
        return self.what.startswith("numbers")


_OPEN = r"[1-9][0-9]{0,2}[.,][0-9]{3}"
"""A number that may be of thousands, or with three decimals."""


def _match(pattern: str) -> str:
    return f"regexp_full_match({{0}}, {quote_text(pattern).replace('{', '{{').replace('}', '}}')})"


def find_date_forms(sample: Sequence[str]) -> list[Form]:
    """Return the forms that a column of dates may have: two if the day or the month may be first."""
    found = [match for value in sample if (match := DATE.fullmatch(value))]
    if len(found) >= MOST * len(sample):
        shapes = Counter((len(match["a"]) == 4, match["mark"]) for match in found)
        [(usual, _)] = shapes.most_common(1)
        found = [match for match in found if (len(match["a"]) == 4, match["mark"]) == usual]
        first = found[0]
        if len(first["a"]) == 4:
            return [_make_year_first(found)]
        if any(len(match["c"]) == 4 for match in found):
            return _make_ordered(first)
        short = _match(r"\d{1,2}[-/.]\d{1,2}[-/.]\d{1,2}( .*)?")
        return [Form("dates", short, "", "may be dates with years of two digits, in any order")]
    named = [match for value in sample if (match := NAMED_DATE.fullmatch(value))]
    if named and len(named) >= MOST * len(sample):
        mark, comma = named[0]["mark"], named[0]["comma"]
        orders = [f"%d{mark}{{}}{mark}%Y" if mark else f"{{}} %d{comma} %Y"]
        patterns = [order.format(month) for order in orders for month in ("%b", "%B")]
        parsed = f"coalesce({', '.join(f'try_strptime({{0}}, {quote_text(one)})' for one in patterns)})"
        return [Form("dates", f"{parsed} IS NOT NULL", f"{parsed}::DATE")]
    return []


def _make_year_first(found: Sequence[re.Match[str]]) -> Form:
    mark = re.escape(found[0]["mark"])
    day = rf"\d{{4}}{mark}\d{{1,2}}{mark}\d{{1,2}}"
    if not any(match["time"] for match in found):
        return Form("dates", f"{_match(day)} AND TRY_CAST({{0}} AS DATE) IS NOT NULL", "CAST({0} AS DATE)")
    digits = max(len((match["time"] or "").partition(".")[2]) for match in found)
    kind = "TIMESTAMP" if digits <= MICROSECONDS else "TIMESTAMP_NS"
    kind = "TIMESTAMPTZ" if any(match["zone"] for match in found) else kind
    time = TIME.replace(r"\.\d+", rf"\.\d{{1,{9 if kind == 'TIMESTAMP_NS' else MICROSECONDS}}}")
    pattern = rf"{day}[T ]{time}{ZONE}" if kind == "TIMESTAMPTZ" else rf"{day}(?:[T ]{time})?"
    cast = "replace({0}, ' Z', 'Z')" if kind == "TIMESTAMPTZ" else "{0}"
    condition = f"{_match(pattern)} AND TRY_CAST({cast} AS {kind}) IS NOT NULL"
    what = "times with an offset from UTC" if kind == "TIMESTAMPTZ" else "dates with a time"
    offsets = sorted({match["zone"].strip() for match in found if match["zone"]} - {"Z", "+00", "+0000", "+00:00"})
    note = f"times are in UTC; the file has them with offsets such as {offsets[0]}" if offsets else ""
    return Form(what, condition, f"CAST({cast} AS {kind})", note)


def _make_ordered(first: re.Match[str]) -> list[Form]:
    mark, time = first["mark"], ""
    if first["time"]:
        seconds = ":%S" if first["time"].count(":") == 2 else ""
        half = first["half"]
        time = f" %{'I' if half else 'H'}:%M{seconds}" + (" %p" if half and half[0] == " " else "%p" if half else "")
    forms = []
    for order, note in ((f"%d{mark}%m", "the day first"), (f"%m{mark}%d", "the month first")):
        parsed = f"try_strptime({{0}}, {quote_text(f'{order}{mark}%Y{time}')})"
        value = parsed if time else f"{parsed}::DATE"
        forms.append(Form("dates", f"{parsed} IS NOT NULL", value, f"dates are read with {note}"))
    return forms[:1] if mark == "." else forms  # with dots, the day is first wherever dates are written so


def find_number_form(sample: Sequence[str], decimal: str | None) -> Form | None:
    """Return the form that a column of numbers may have. `decimal`: of the file's other columns; None: not known."""
    found = [match for value in sample if (match := NUMBER.fullmatch(value))]
    # Of a few values, one misfit is more than a fifth.
    if not found or len(found) < min(MOST * len(sample), max(3, len(sample) - 1)):
        return None
    digits = [match["digits"] for match in found]
    own = find_decimal(digits)
    point = own or decimal
    marks = {mark for text in digits for mark in re.sub(r"\d", "", text)}
    if point is None and marks & {",", "."}:
        form = _make_number(found, "", "", is_open=True)
        form.value, form.note = "", "may have a comma or a point before decimals or between thousands"
    elif len(marks - {point}) > 1:
        return None
    else:
        form = _make_number(found, point or "", "".join(marks - {point}))
    form.decimal = own
    form.needs_decimal = own is None and bool(marks & {",", "."})
    form.may_be_codes = bool(marks) and marks <= set(SPACES)
    return form


def find_decimal(digits: Iterable[str]) -> str | None:
    """Return what stands before decimals, if numbers show it."""
    comma = dot = False
    for text in digits:
        comma = comma or _COMMA_IS_DECIMAL.fullmatch(text) is not None
        dot = dot or _DOT_IS_DECIMAL.fullmatch(text) is not None
    return None if comma == dot else "," if comma else "."


def _make_number(found: Sequence[re.Match[str]], point: str, mark: str, *, is_open: bool = False) -> Form:
    """Make the form of numbers with these marks, of whole ones if no point is known; `is_open`: with either mark."""
    before = max((match["before"] for match in found), key=len)
    after = max((match["after"] for match in found), key=len)
    whole = rf"[1-9][0-9]{{0,2}}({re.escape(mark)}[0-9]{{3}})+|0|[1-9][0-9]*" if mark else "0|[1-9][0-9]*"
    core = rf"({whole}|{_OPEN})" if is_open else rf"({whole})"
    if point:
        core = rf"(({whole})({re.escape(point)}[0-9]+)?|{re.escape(point)}[0-9]+)"
    lead = rf"{re.escape(before)} ?" if before else ""
    trail = rf"[{SPACES}]?{re.escape(after)}" if after else ""
    pattern = rf"{SIGN} ?{lead}{SIGN}{core}{trail}"
    with_brackets = any(match["open"] for match in found)
    if with_brackets:
        pattern = rf"{pattern}|\({lead}{core}{trail}\)"
    with_minus_last = any(match["minus"] for match in found)
    if with_minus_last:
        pattern = rf"{pattern}|{lead}{core}{trail} ?[-−]"
    kept = f"regexp_replace({{0}}, {quote_text(f'[^0-9{point}]')}, '', 'g')"
    kept = f"replace({kept}, ',', '.')" if point == "," else kept
    negative = "regexp_matches({0}, '^[(]|[-−]')"
    value = f"CASE WHEN {negative} THEN '-' ELSE '' END || {kept}"
    parts = ["with a decimal comma"] if point == "," else []
    parts += [f"with {_NAMES.get(mark, 'spaces')} between thousands"] if mark else []
    parts += [f"in {before or after}"] if (before or after) not in {"", "%"} else []
    parts += ["in percent (12 % is 12)"] if after == "%" else []
    parts += ["in parentheses where they are negative"] if with_brackets else []
    parts += ["with the minus sign last where they are negative"] if with_minus_last else []
    what = f"numbers with {before or after}" if before or after else "numbers"
    return Form(what, _match(pattern), value, f"numbers {', '.join(parts)}" if parts else "")


_NAMES = {",": "commas", ".": "points", "'": "apostrophes", "’": "apostrophes"}
