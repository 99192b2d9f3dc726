"""Writes numbers as people do: mostly as digits, grouped, in words, `3k`, `2.5 million`, `a dozen`."""

import random

from ferrule.arithmetic.english_numbers import ORDINALS, TENS, UNITS
from ferrule.training.synth.numbers import Number, group_thousands

_ONES = tuple(UNITS)
_TENS = ("zero", "ten", *TENS)
_SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand"))
_DOZENS = {6: "half a dozen", 12: "a dozen", 24: "two dozen", 36: "three dozen"}
_ORDINALS = tuple(ORDINALS)
_LETTERS = {"thousand": "k", "million": "m", "billion": "bn"}

NUMBER_WORDS = frozenset((*_ONES, *_TENS, *(name for _, name in _SCALES), "hundred", "dozen"))


def write_in_words(number: int, *, joiner: str = " and ", hyphen: str = "-") -> str:
    """An integer from 0 on in English words; `joiner` follows the hundreds."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _TENS[tens] + (hyphen + _ONES[ones] if ones else "")
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        words = f"{_ONES[hundreds]} hundred"
        return words + (joiner + write_in_words(rest, joiner=joiner, hyphen=hyphen) if rest else "")
    for scale, name in _SCALES:
        if number >= scale:
            lead, rest = divmod(number, scale)
            words = f"{write_in_words(lead, joiner=joiner, hyphen=hyphen)} {name}"
            link = joiner if rest < 100 else " "
            return words + (link + write_in_words(rest, joiner=joiner, hyphen=hyphen) if rest else "")
    raise AssertionError("every number from 1,000 has a scale")


def write_ordinal(number: int, *, in_words: bool = False) -> str:
    """`3rd`; with `in_words`, `third` up to the twentieth."""
    if in_words and 0 < number <= len(_ORDINALS):
        return _ORDINALS[number - 1]
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def write_number(
    rng: random.Random, number: Number, *, before: str = "", after: str = "", sayable: bool = False
) -> str:
    """The number as a user might write it between the characters `before` and `after` (or an empty string).

    With `sayable` the user prefers words. Next to an operator or a currency sign it stays in digits.
    """
    text = number.call
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    beside_digits = before == "," or after == ","
    if before in "$€£" and before:
        scaled = None if sign or after == "%" else _write_scaled(rng, digits)
        return scaled if scaled and rng.random() < 0.2 else _write_digits(rng, text, beside_digits)
    symbolic = (before and before in "#*/^+-=(×÷.") or (after and after in "%*/^+-=)×÷°")
    if symbolic and not (sayable and after == ")"):
        return _write_digits(rng, text, beside_digits)
    words = _write_words(rng, digits, sayable) if rng.random() < (0.85 if sayable else 0.12) else None
    if not sign:
        return words or _write_digits(rng, digits, beside_digits)
    form = rng.random()
    if form < 0.5 and words is None:
        return _write_digits(rng, text, beside_digits)
    spoken = words or _write_digits(rng, digits, beside_digits)
    return ("negative " if form < 0.8 else "minus ") + spoken


def _write_digits(rng: random.Random, text: str, beside_comma: bool) -> str:
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    form = rng.random()
    if len(digits.partition(".")[0]) > 3 and form < 0.22 and not beside_comma:
        return sign + group_thousands(digits)
    if digits.startswith("0.") and form < 0.1:
        return sign + digits[1:]
    if sign and form > 0.95:
        return "−" + digits
    return text


def _write_scaled(rng: random.Random, digits: str) -> str | None:
    """`3k`, `2.5 million`: only if few digits are left over."""
    if "." in digits:
        return None
    value = int(digits)
    for scale, name in _SCALES:
        if value >= scale:
            if value * 100 % scale:
                return None
            lead, hundredths = divmod(value * 100 // scale, 100)
            amount = f"{lead}.{hundredths:02}".rstrip("0").rstrip(".")
            if len(amount) > 4:
                return None
            letter = _LETTERS.get(name)
            if letter and rng.random() < 0.5:
                return amount + (letter.upper() if rng.random() < 0.25 else letter)
            return f"{amount} {name}"
    return None


def _write_words(rng: random.Random, digits: str, sayable: bool) -> str | None:
    """Words for the number, or None if few people would use them."""
    if "." in digits:
        whole, _, fraction = digits.partition(".")
        if len(digits) > 5:
            return None
        lead = "" if whole == "0" and rng.random() < 0.4 else write_in_words(int(whole)) + " "
        return f"{lead}point " + " ".join(_ONES[int(digit)] for digit in fraction)
    value = int(digits)
    if value in _DOZENS and rng.random() < 0.15:
        return _DOZENS[value]
    if value >= 1000 and rng.random() < 0.4:
        scaled = _write_scaled(rng, digits)
        if scaled:
            return scaled
    significant = len(digits.rstrip("0"))
    if value > 100 and significant > 2 and not (sayable and len(digits) < 5):
        return None
    if 1000 < value < 10_000 and value % 100 == 0 and value % 1000 and rng.random() < 0.4:
        return write_in_words(value // 100) + " hundred"
    words = write_in_words(
        value, joiner=" and " if rng.random() < 0.5 else " ", hyphen="-" if rng.random() < 0.75 else " "
    )
    if words.startswith("one ") and rng.random() < 0.5 and value in (100, 1000, 10**6, 10**9):
        return "a" + words[3:]
    return words
