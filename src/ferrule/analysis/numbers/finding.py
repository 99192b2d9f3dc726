"""Finds the numbers in a text: how each is written, the values that it may stand for, and how exactly it says them.

Matching them to outputs is left to `matching`. A digit in a name (`x2`, `float64`, `COVID-19`) is no number, and
neither are the words one to ten by themselves ("two regions"), which count what the sentence itself lists.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypedDict

from ferrule.analysis.numbers import patterns
from ferrule.analysis.numbers.bounds import Bound, is_of_p_value, read_bound
from ferrule.analysis.numbers.patterns import SPACES, read_days
from ferrule.analysis.numbers.units import Unit, read_unit

Role = Literal["quantity", "year", "ordinal"]
LARGEST: Final = sys.float_info.max
"""What the value of a number with more digits than a float can hold is set to; its digits are compared instead."""
_SMALLEST: Final = sys.float_info.min


class _Qualification(TypedDict, total=False):
    is_rough: bool
    bound: Bound
    is_of_p_value: bool


@dataclass(frozen=True, slots=True)
class FoundNumber:
    """A number as it stands in a text. Offsets are in characters."""

    start: int
    end: int
    text: str
    value: float
    """What the digits say, with the scale and without the percent sign: 12.3 for "12.3%", 1200000 for "1.2M"."""
    last_digit: float
    """The size of one in the last digit shown: 0.1 for "12.3%", 100000 for "1.2M"."""
    percent: float = 0.0
    """What the value is to be multiplied with where a percent sign or its like follows: 0.01, or 0."""
    role: Role = "quantity"
    is_rough: bool = False
    """Whether "about" or the like stands before it, so that its final zeros may be rounded ones."""
    bound: Bound = ""
    """What the value is said to be to it: "<" for "less than 5", "p < 0.001" and "nearly 5"."""
    is_of_p_value: bool = False
    """Whether it is one that a p-value is compared with."""
    unit: Unit | None = None
    """The unit of measurement that follows."""
    days: frozenset[str] = frozenset()
    """The days that a full date may stand for, as ISO 8601 has them: several if month and day can be exchanged."""
    is_in_parentheses: bool = False
    """Whether it is "($1,270)", which accountants write for a minus, and others to add an amount."""


def find_numbers(text: str, *, is_output: bool = False) -> list[FoundNumber]:
    """All numbers of a text in its order, without overlaps.

    In the output of a program, commas and spaces stand between numbers: there, "12,5" and "1 234 567" aren't one. In
    an answer, "12,5" is one unless a "12.5" stands elsewhere.
    """
    text = text if text.isascii() else patterns.OTHER_DIGIT.sub(_write_ascii, text)
    decimal_comma = not is_output and re.search(r"[0-9]\.[0-9](?![0-9]{2}[.,][0-9])", text) is None
    if not is_output:
        text = patterns.SPACED.sub(_join_groups, text)
    found: list[FoundNumber] = []
    taken = bytearray(len(text))
    for name in patterns.NAME.finditer(text):
        taken[name.start() : name.end()] = b"\1" * (name.end() - name.start())
    for finder in (_find_dates, _find_ordinals, _find_years, _find_powers, _find_fractions):
        for number in finder(text):
            if not any(taken[number.start : number.end]):
                taken[number.start : number.end] = b"\1" * (number.end - number.start)
                found.append(number)
    found.extend(_find_quantities(text, taken, decimal_comma=decimal_comma))
    found.extend(number for number in _find_spelled(text) if not any(taken[number.start : number.end]))
    return sorted(map(_limit_size, found), key=lambda number: number.start)


def _limit_size(number: FoundNumber) -> FoundNumber:
    """The number with a finite value, and a last digit that it can be divided by, however many digits it has."""
    value, last_digit = (max(-LARGEST, min(LARGEST, one)) for one in (number.value, number.last_digit))
    if (value, last_digit) == (number.value, number.last_digit) and last_digit >= _SMALLEST:
        return number
    return replace(number, value=value, last_digit=max(_SMALLEST, last_digit))


def _write_ascii(match: re.Match[str]) -> str:
    """A digit or a separator of another script in ASCII, in one character, so that offsets stay."""
    return patterns.OTHER_SEPARATORS.get(match[0]) or str(unicodedata.decimal(match[0], match[0]))


def _join_groups(match: re.Match[str]) -> str:
    """Groups of digits as one number; "Table 3 412" is the number of a table, and a count."""
    is_label = match[0].count(" ") == 1 and patterns.LABEL_BEFORE.search(match.string[: match.start()][-20:])
    return match[0] if is_label else match[0].replace(" ", SPACES[0])


def _find_dates(text: str) -> Iterator[FoundNumber]:
    for match in patterns.DATE.finditer(text):
        year = match["iso"] or match["after"] or match["last"] or match["numeric"] or "0"
        days = frozenset(day[:10] for day in read_days(match))
        yield FoundNumber(match.start(), match.end(), match[0], float(year), 1, role="year", days=days)


def _find_ordinals(text: str) -> Iterator[FoundNumber]:
    for match in patterns.ORDINAL.finditer(text):
        digits = re.sub(r"[^0-9]", "", match[0])
        yield FoundNumber(match.start(), match.end(), match[0], float(digits), 1, role="ordinal")
    # "(1)" by itself is as often a count in parentheses as the number of an item.
    is_enumerated = "(1)" in text and "(2)" in text
    for pattern in (
        patterns.LABELLED,
        patterns.LABELLED_TOGETHER,
        patterns.LIST_ITEM,
        *([patterns.ENUMERATED] if is_enumerated else []),
    ):
        for match in pattern.finditer(text):
            group = "number" if match["number"] else "dotted"
            yield FoundNumber(*match.span(group), match[group], float(match[group]), 1, role="ordinal")


def _find_years(text: str) -> Iterator[FoundNumber]:
    for match in patterns.YEAR.finditer(text):
        before = text[max(0, match.start() - 30) : match.start()]
        counted = patterns.COUNTED.match(text, match.end()) and not patterns.IN_YEAR.search(before)
        is_count = counted or patterns.NO_YEAR_BEFORE.search(before) or patterns.NO_YEAR_AFTER.match(text, match.end())
        if not (match["year"] and is_count):
            digits = match["year"] or match["decade"] or re.sub(r"[^0-9]", "", match[0])[:4]
            yield FoundNumber(match.start(), match.end(), match[0], float(digits), 1, role="year")


def _find_powers(text: str) -> Iterator[FoundNumber]:
    """Powers of ten that stand alone: 10^-5."""
    for match in patterns.POWER.finditer(text):
        if not re.search(r"[0-9]\s?(?:[×x*·]|\\times)\s?$", text[max(0, match.start() - 10) : match.start()]):
            power = 10.0 ** _read_exponent(match["exponent"] or match["raised"])
            bound = _qualify(text, *match.span(), has_unit=False)
            yield FoundNumber(match.start(), match.end(), match[0], power, power, **bound)


def _find_fractions(text: str) -> Iterator[FoundNumber]:
    """Numbers such as 3½ and 2/3, which stand for what rounds to them with one decimal and two."""
    for match in patterns.VULGAR.finditer(text):
        if not re.search(r"[\d.,][.,\u00a0 ]?$", text[max(0, match.start() - 2) : match.start()]):
            value = float(match["whole"] or 0) + unicodedata.numeric(match["sign"])
            yield _read_fraction(text, match, value, 0.1)
    for match in patterns.FRACTION.finditer(text):
        top, bottom = int(match["top"]), int(match["bottom"])
        if top < bottom and (match["of"] or bottom <= 4 or top == 1 or bottom in patterns.HALVED):
            yield _read_fraction(text, match, top / bottom, 0.01)


def _read_fraction(text: str, match: re.Match[str], value: float, last_digit: float) -> FoundNumber:
    start, end = match.span()
    following = patterns.SUFFIX.match(text, end)
    suffix = following.groupdict() if following else {}
    end = following.end() if following else end
    scale, percent = _read_suffix(suffix)
    if re.search(rf"(?:^|[\s(])[{patterns.MINUS}]$", text[max(0, start - 2) : start]):
        start, value = start - 1, -value
    return FoundNumber(
        start,
        end,
        text[start:end],
        value * scale,
        last_digit * scale,
        percent=percent,
        unit=read_unit(text, end),
        **_qualify(text, start, end, has_unit=bool(percent)),
    )


def _find_quantities(text: str, taken: bytearray, *, decimal_comma: bool) -> Iterator[FoundNumber]:
    at = 0
    while match := patterns.NUMBER.search(text, at):
        at = match.end("digits")
        if any(taken[match.start("digits") : at]) or _is_in_name(text, match):
            continue
        number = _read_quantity(text, match, decimal_comma=decimal_comma)
        at = max(at, number.end)
        taken[number.start : number.end] = b"\1" * (number.end - number.start)
        yield number


def _is_in_name(text: str, match: re.Match[str]) -> bool:
    start = match.start("inner") if match["inner"] else match.start("digits")
    before, after = text[max(0, start - 2) : start], text[match.end("digits") : match.end("digits") + 40]
    if not match["currency"] and re.search(r"[^\W0-9]$|[A-Za-z][-‑]$|\w\.$|_$", before):
        # "x2" is the name of a variable, and "x2.5" a factor.
        return not (re.search(r"(?:^|\W)[x×]$", before) and "." in match["digits"])
    return not match["exponent"] and re.match(r"[A-Za-z]+[0-9]|[DG]\b|_", after) is not None


def _read_quantity(text: str, match: re.Match[str], *, decimal_comma: bool) -> FoundNumber:
    digits, end, suffix = match["digits"], match.end(), match.groupdict()
    decimals = re.compile(r",[0-9]+(?!,?[0-9])").match(text, match.end("digits"))
    if decimals and digits.isdigit() and (digits == "0" or (decimal_comma and len(decimals[0]) <= 3)):
        following = patterns.SUFFIX.match(text, decimals.end())
        digits, end = digits + decimals[0], following.end() if following else decimals.end()
        suffix = following.groupdict() if following else {}
    if end == match.end("digits") and (to := patterns.RANGE.match(text, end)):
        suffix = to.groupdict()
    unit = read_unit(text, end)
    if unit is None and (to := patterns.RANGE_TO.match(text, end)):
        unit = read_unit(text, to.end())
    if ratio := patterns.RATIO.match(text, end):
        end = ratio.end()
    value, last_digit = _read_digits(digits)
    scale, percent = _read_suffix(suffix)
    if scale == 1.0 and match["currency"] and re.match(r"[mb](?!\w)", text[end : end + 2]):
        # "$5m" is money, and "5m" a length.
        scale, end = patterns.SCALES[text[end].upper()], end + 1
    if match["exponent"]:
        scale *= 10.0 ** _read_exponent(match["exponent"])
    start, is_negative = _read_sign(text, match)
    if enclosed := patterns.ENCLOSED_AMOUNT.match(text, match.start("digits") - 2):
        start, end, is_negative = enclosed.start(), enclosed.end(), True
    return FoundNumber(
        start,
        end,
        text[start:end],
        (-value if is_negative else value) * scale,
        last_digit * scale,
        percent=percent,
        unit=unit,
        is_in_parentheses=bool(match["currency"]) and text[max(0, start - 1) : start] + text[end : end + 1] == "()",
        **_qualify(text, start, end, has_unit=bool(percent or match["currency"])),
    )


def _read_suffix(suffix: Mapping[str, str | None]) -> tuple[float, float]:
    """What a number is multiplied with by "million" or "k", and the size of one percent or basis point after it."""
    written = suffix.get("scale") or suffix.get("letter") or suffix.get("million")
    percent = suffix.get("sign_percent") or suffix.get("percent")
    return patterns.SCALES[written] if written else 1.0, patterns.PERCENTS[percent] if percent else 0.0


def _read_sign(text: str, match: re.Match[str]) -> tuple[int, bool]:
    """Where the number begins, and whether a minus stands before it: no dash, and no hyphen of a range or a word."""
    start = match.start("currency") if match["currency"] else match.start("digits")
    group = "inner" if match["inner"] else "minus"
    sign, at = match[group], match.start(group)
    before = text[max(0, at - 3) : max(0, at)]
    if not sign or sign[0] == "+":
        return start, False
    is_apart = not before or before[-1] in " \t\n([{=:,;<>~≈≤≥|*_/\"'`→$€£¥₹" + SPACES
    is_dash = sign.endswith(" ") or (sign == "–" and re.search(r"[0-9%]\s$", before) is not None)
    if is_apart and not is_dash:
        return min(start, match.start(group)), True
    return start, False


def _read_digits(digits: str) -> tuple[float, float]:
    """The value of digits with separators, and the size of one in the last digit."""
    if patterns.DECIMAL_COMMA.fullmatch(digits):
        whole, _, decimals = digits.rpartition(",")
    elif digits.count(".") > 1:
        whole, decimals = digits, ""
    else:
        whole, _, decimals = digits.partition(".")
    whole = re.sub(r"[^0-9]", "", whole)
    return float(f"{whole or '0'}.{decimals or '0'}"), float(f"1e-{len(decimals)}")


def _read_exponent(written: str) -> int:
    """The exponent in "e-05", "× 10^-5", "×10⁻⁵" or "-5", at most 300 in size, so that a float can hold it."""
    plain = re.sub("[−–]", "-", unicodedata.normalize("NFKC", written))
    _, _, last = re.sub(r"\^\{?|\*\*\{?|[eE]|[×x·]\s?10", "^", plain).rpartition("^")
    return max(-300, min(300, int(last.rstrip("}"))))


def _qualify(text: str, start: int, end: int, *, has_unit: bool) -> _Qualification:
    """What the words around a number say of it: that it is rough, or a bound."""
    bound, is_rough = read_bound(text, start, end, has_unit=has_unit)
    if bound:
        return {"bound": bound, "is_rough": is_rough, "is_of_p_value": is_of_p_value(text, start, end)}
    return {"is_rough": patterns.ROUGH.search(text[max(0, start - 24) : start]) is not None}


def _find_spelled(text: str) -> Iterator[FoundNumber]:
    for match in patterns.SPELLED.finditer(text):
        parts = {name: (part or "").strip(" -").lower() for name, part in match.groupdict().items()}
        value = patterns.TENS.get(parts["tens"], 0) + patterns.WORDS.get(parts["digit"] or parts["small"], 0)
        if value <= 10 and not (parts["hundred"] or parts["scale"] or parts["percent"]):
            continue
        scale = (100.0 if parts["hundred"] else 1.0) * patterns.SCALES.get(parts["scale"], 1.0)
        percent = patterns.PERCENTS.get(parts["percent"], 0.0)
        bound = _qualify(text, *match.span(), has_unit=bool(percent))
        yield FoundNumber(match.start(), match.end(), match[0], value * scale, scale, percent, **bound)
