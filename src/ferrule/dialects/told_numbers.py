"""The numbers that a text tells, in digits and in English words, for calls whose numbers are copied like their texts.

A small model knows which number is meant more often than it writes all of its digits. Each number is found in every
way in which it might be meant: "2,300" is 2300, but also 2 and 300.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

from ferrule.arithmetic.english_numbers import ORDINALS, TENS, UNITS
from ferrule.dialects.grammar import Grammar, GrammarChoice, LiteralText

_DIGITS = re.compile(r"\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+")
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
_SCALED = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(_SCALES)})\b")
_IMPLIED = (
    "0 1 2 3 4 5 6 7 8 9 10 11 12 14 15 18 20 21 24 25 28 30 31 36 40 45 48 50 52 60 72 75 80 90 100 120 150 168 180 "
    "200 240 250 300 336 360 365 400 480 500 600 720 800 900 1000 1440 3600"
)
"""Numbers that other words stand for: "both" is 2, "a week" 7 days or 168 hours."""
_IMPLYING = "both couple day fortnight hour month once pair twice week weekend year"
_NUMBER_WORDS = frozenset((*_VALUES, *_SCALES, *_IMPLYING.split()))
_LONGEST = 12
"""Words that may say one number together."""


def make_number_grammar(numbers: Iterable[Decimal], *, is_whole: bool) -> Grammar:
    """One of these numbers, with either sign, or a short one that other words may stand for."""
    offered = {*numbers, *map(Decimal, _IMPLIED.split())}
    written = sorted({text for value in offered for text in _write(value, is_whole)})
    return GrammarChoice(tuple(LiteralText(f"{sign}{text}") for text in written for sign in ("", "-")))


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
    return len(_DIGITS.findall(lowered)) + sum(word in _NUMBER_WORDS for word in _WORD.findall(lowered))


def find_told_numbers(text: str) -> set[Decimal]:
    """The numbers of a text without their signs: `3.5k` is 3500 and 3.5, `twenty-two` is 22, 20 and 2."""
    lowered = text.lower()
    found: set[Decimal] = set()
    for match in _DIGITS.finditer(lowered):
        found |= {Decimal(match[0].replace(",", "")), *map(Decimal, re.findall(r"\d+", match[0]))}
    for number, scale in _SCALED.findall(lowered):
        found.add(Decimal(number) * _SCALES[scale])
    words = _WORD.findall(lowered)
    for start in range(len(words)):
        found |= set(_read_words(words[start : start + _LONGEST]))
    return found


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
