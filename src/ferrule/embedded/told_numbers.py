"""The numbers that a text tells, in digits and in English words, for calls whose numbers are copied like their texts.

A small model knows which number is meant more often than it writes all of its digits. A numeral is one number, whole:
2,300 is neither 2 nor 300, and a time or a date is none. Words may say several: "twenty-two" is 22, 20 and 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

from ferrule.arithmetic.english_numbers import ORDINALS, TENS, UNITS
from ferrule.dialects.grammar import Grammar, make_text_choice

_DATE = re.compile(r"(?<!\d)\d{1,4}([-/])\d{1,2}\1\d{1,4}(?!\d)")
_NUMERAL = re.compile(
    r"(?<![^\W\d]|[.:])(?:(?<=\d)(?<!\b0)x|(?<!\d))(?!0x)"  # nothing that begins in a word, save for 30x40
    r"(\d{1,3}(?: \d{3})+(?![\d.,:])|(?:\d[\d.,:]*)?\d|\.\d+)(e[+-]?\d{1,2}(?!\w))?(?![a-wyz]+\d|e[+-]\d)"
)
_PLAIN = re.compile(r"\d*\.?\d+")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_WITH_DECIMAL_COMMA = re.compile(r"(?:\d+|\d{1,3}(?:\.\d{3})+),\d+|\d{1,3}(?:\.\d{3}){2,}")
_LISTED = re.compile(r"\d+(?:,\d+){2,}")
_WORD = re.compile(r"[a-z]+")
_VALUES = {
    **{word: Decimal(value) for word, value in (UNITS | TENS | ORDINALS).items()},
    "half": Decimal("0.5"),
    "quarter": Decimal("0.25"),
}
_SCALES = {
    "dozen": 12,
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "k": 10**3,
    "m": 10**6,
    "bn": 10**9,
}
_NEGATIVE = re.compile(
    r"(?<![\w)-])[-\u2212\u2013]\.?\d|\b(?:minus|negative|below|under|less|down|back|lower|reduc|decreas)",
    re.IGNORECASE,
)
_SCALED = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(_SCALES)})\b")
_IMPLIED = {
    "both couple pair twice double weekend": "2",
    "once single": "1",
    "triple thrice": "3",
    "quarter": "15",
    "half": "30",
    "hour": "1 60",
    "day": "1 24",
    "week": "1 7",
    "fortnight": "14",
    "month": "1 30 31",
    "year": "1 12 365",
    "full all maximum max": "100 10 5",
    "no none nothing without off out mute close closed shut": "0",
}
"""Numbers that other words stand for, by these: "both" is 2, "a week" 7 days."""
_IMPLIED_BY = {word: [*map(Decimal, values.split())] for words, values in _IMPLIED.items() for word in words.split()}
_IMPLYING = "both couple day fortnight hour month once pair twice week weekend year"
_NUMBER_WORDS = frozenset((*_VALUES, *_SCALES, *_IMPLYING.split()))
_LONGEST = 12
"""Words that may say one number together."""


def make_number_grammar(numbers: Iterable[Decimal], *, is_whole: bool, is_signed: bool = True) -> Grammar | None:
    """One of these numbers, if `is_signed` with either sign; None if there is none."""
    written = {text for value in numbers for text in _write(value, is_whole)}
    signs = ("", "-") if is_signed else ("",)
    return make_text_choice(f"{sign}{text}" for text in written for sign in signs) if written else None


def tells_negative_number(text: str) -> bool:
    """Whether one of a text's numbers may be below zero."""
    return _NEGATIVE.search(text) is not None


def _write(value: Decimal, is_whole: bool) -> Iterator[str]:
    digits = format(value, "f")
    if "." in digits:
        digits = digits.rstrip("0").removesuffix(".")
    if "." not in digits or not is_whole:
        yield digits
    if "." not in digits and not is_whole:
        yield f"{digits}.0"


def count_told_numbers(text: str) -> int:
    """How many numbers a text tells at most, with words that imply one: `two days` has two, `a week` one."""
    lowered = text.lower()
    return sum(1 for _ in _find_numerals(lowered)) + sum(word in _NUMBER_WORDS for word in _WORD.findall(lowered))


def find_told_numbers(text: str) -> set[Decimal]:
    """The numbers of a text without their signs, and those that its words stand for: `3.5k` is 3500 and 3.5."""
    lowered = text.lower()
    found = set[Decimal]().union(*_find_numerals(lowered))
    for number, scale in _SCALED.findall(lowered):
        found.add(Decimal(number) * _SCALES[scale])
    words = _WORD.findall(lowered)
    for start, word in enumerate(words):
        found |= {*_read_words(words[start : start + _LONGEST]), *_IMPLIED_BY.get(word.removesuffix("s"), ())}
    return found


def _find_numerals(text: str) -> Iterator[set[Decimal]]:
    """Each numeral of a text as what it may be: `100 200` is one number or two."""
    for match in _NUMERAL.finditer(_DATE.sub(" ", text)):
        numeral, exponent = match.groups(default="")
        if _LISTED.fullmatch(numeral):
            yield from ({Decimal(one)} for one in numeral.split(","))
        elif found := {Decimal(one + exponent) for one in _read_numeral(numeral)}:
            yield found


def _read_numeral(numeral: str) -> list[str]:
    if " " in numeral:
        groups = numeral.split(" ")
        is_one = any(group[0] == "0" for group in groups[1:])
        return ["".join(groups), *([] if is_one else groups)]
    if _PLAIN.fullmatch(numeral):
        return [numeral]
    if _GROUPED.fullmatch(numeral):
        return [numeral.replace(",", "")]
    if _WITH_DECIMAL_COMMA.fullmatch(numeral):
        return [numeral.replace(".", "").replace(",", ".")]
    return []


def _read_words(words: list[str]) -> Iterator[Decimal]:
    """The number that the first words say, and those that fewer of them say."""
    total, current, is_number = Decimal(0), Decimal(0), False
    for place, word in enumerate(words):
        if word in _VALUES:
            current += _VALUES[word]
        elif word in _SCALES and len(word) > 2:
            scale = _SCALES[word]
            current = (current or Decimal(1)) * scale
            if scale > 100:
                total, current = total + current, Decimal(0)
        elif word in ("and", "a", "an", "of") and (is_number or place == 0):
            continue
        elif word == "point" and is_number:
            yield from _read_decimals(total + current, words[place + 1 :])
            return
        else:
            return
        is_number = True
        yield total + current


def _read_decimals(whole: Decimal, words: list[str]) -> Iterator[Decimal]:
    """The numbers that a whole one and the digits after "point" say."""
    digits = ""
    for word in words:
        value = _VALUES.get(word, Decimal(10))
        if value not in range(10):
            return
        digits += str(value)
        yield whole + Decimal(f"0.{digits}")
