"""Draws numbers by the hints of a template (`int`, `money`, `int 2..9`, `decimal nonzero`).

A call contains a number as plain digits, a reply shows it grouped; `number_words` writes it like a user.
"""

import random
import re
from dataclasses import dataclass
from fractions import Fraction

from ferrule.training.synth.conditions import Value
from ferrule.training.synth.wheel import pick
from ferrule.training.synth.words import number_fits

HINT_KINDS = ("any", "int", "small", "medium", "decimal", "money", "percent", "square", "long")
MOST_GROUPED_DIGITS = 12
_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)\Z")


class HintError(ValueError):
    """An invalid hint."""


@dataclass(frozen=True, slots=True)
class Hint:
    """How a number is drawn; with `low` and `high`, from that range, including both ends."""

    kind: str = "any"
    low: float | None = None
    high: float | None = None
    nonzero: bool = False


def parse_hint(text: str) -> Hint:
    """Parse the hint in a section's header. Raises HintError."""
    kind, low, high, nonzero = "", None, None, False
    for token in text.replace(",", " ").split():
        bounds = _RANGE.match(token)
        if token in HINT_KINDS and not kind:
            kind = token
        elif token == "nonzero":
            nonzero = True
        elif bounds and low is None:
            low, high = float(bounds[1]), float(bounds[2])
            if low > high:
                raise HintError(f"the range {token!r} is empty")
        else:
            raise HintError(f"unknown hint {token!r}: {', '.join(HINT_KINDS)}, nonzero, or a range such as 2..9")
    if low is not None and not kind:
        kind = "int"
    return Hint(kind or "any", low, high, nonzero)


_COMMON_PERCENTAGES = (5, 10, 15, 20, 25, 30, 40, 50, 75, 8, 12, 18)
_TRIES = 60


@dataclass(frozen=True, slots=True)
class Number:
    """A drawn number. `call` is plain digits, possibly with a sign and a decimal point."""

    call: str

    @property
    def shown(self) -> str:
        """As in a reply: with thousands separators."""
        return group_thousands(self.call)

    @property
    def value(self) -> Value:
        """Its exact value, for the conditions of a section."""
        return Fraction(self.call) if "." in self.call else int(self.call)


def group_thousands(text: str) -> str:
    """A plain decimal number with commas between its thousands; the fraction is unchanged.

    More than twelve digits are not grouped: a model that reads bytes can copy them, but loses count of their groups.
    """
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, point, fraction = digits.partition(".")
    return f"{sign}{int(whole):,}{point}{fraction}" if 3 < len(whole) <= MOST_GROUPED_DIGITS else text


def draw_number(rng: random.Random, hint: Hint, *, held_out: bool = False, sayable: bool = False) -> Number:
    """A number according to the hint; with `sayable`, mostly one that people write in words."""
    text = "1"
    for _ in range(_TRIES):
        text = _draw(rng, hint, sayable)
        if hint.nonzero and not text.strip("-0."):
            continue
        if number_fits(text.lstrip("-"), held_out):
            break
    return Number(text)


def _draw(rng: random.Random, hint: Hint, sayable: bool) -> str:
    if hint.low is not None and hint.high is not None:
        return _draw_in_range(rng, hint.kind, hint.low, hint.high)
    if hint.kind == "any":
        return _draw_any(rng, sayable)
    if hint.kind == "int":
        return _draw_sayable(rng) if sayable else draw_whole_number(rng)
    if hint.kind == "small":
        return str(2 + int(rng.random() * 19))
    if hint.kind == "medium":
        low_end = sayable or rng.random() < 0.5
        return str(2 + int(rng.random() * (99 if low_end else 999)))
    if hint.kind == "decimal":
        return add_fraction(rng, str(int(10 ** (rng.random() * 4))))
    if hint.kind == "money":
        return _draw_money(rng)
    if hint.kind == "square":
        return _draw_square(rng)
    if hint.kind == "long":
        return _draw_long(rng)
    return _draw_percentage(rng)


def _draw_any(rng: random.Random, sayable: bool) -> str:
    text = _draw_sayable(rng) if sayable else draw_whole_number(rng)
    if len(text) < 10 and rng.random() < (0.1 if sayable else 0.2):
        text = add_fraction(rng, text if not sayable else text[:2])
    return "-" + text if rng.random() < 0.07 and text.strip("0.") else text


def draw_whole_number(rng: random.Random, most_digits: int = 12) -> str:
    """An integer of 1 to `most_digits` digits; short ones are more frequent, as in practice."""
    drawn = rng.random()
    reach = 3 if drawn < 0.35 else 7 if drawn < 0.75 else most_digits
    length = 1 + int(rng.random() * min(reach, most_digits))
    form = rng.random()
    if form < 0.05:
        return (str(1 + int(rng.random() * 9)) * length)[:length]
    if form < 0.11 and length > 1:
        lead = str(1 + int(rng.random() * (9 if rng.random() < 0.5 else 99)))
        return (lead + "0" * length)[:length]
    if form < 0.14:
        pair = str(10 + int(rng.random() * 90))
        return (pair * length)[:length]
    low = 10 ** (length - 1) if length > 1 or rng.random() < 0.95 else 0
    return str(low + int(rng.random() * (10**length - low)))


def add_fraction(rng: random.Random, whole: str) -> str:
    """The integer with one to four decimals added."""
    places = 1 + int(rng.random() * (2 if rng.random() < 0.75 else 4))
    fraction = f"{int(rng.random() * 10**places):0{places}}"
    if fraction.endswith("0") and rng.random() < 0.8:
        fraction = fraction[:-1] + str(1 + int(rng.random() * 9))
    if rng.random() < 0.06:
        whole = "0"
    return f"{whole}.{fraction}"


def _draw_sayable(rng: random.Random) -> str:
    form = rng.random()
    if form < 0.55:
        return str(int(rng.random() * 21))
    if form < 0.78:
        return str(20 + int(rng.random() * 80))
    if form < 0.86:
        return str(100 + int(rng.random() * 900))
    lead = 1 + int(rng.random() * (9 if rng.random() < 0.6 else 99))
    return str(lead * 10 ** (2, 3, 3, 6, 6, 9)[int(rng.random() * 6)])


def _draw_money(rng: random.Random) -> str:
    form = rng.random()
    whole = int(10 ** (rng.random() * 3)) if form < 0.85 else int(10 ** (3 + rng.random() * 3))
    if form > 0.93:
        whole -= whole % 100
    return str(whole) if rng.random() < 0.5 else f"{whole}.{int(rng.random() * 100):02}"


def _draw_square(rng: random.Random) -> str:
    """Mostly a number with an exact square root, a quarter of the time any number."""
    form = rng.random()
    if form < 0.25:
        return str(2 + int(10 ** (rng.random() * 4)))
    if form < 0.32:
        tenths = 2 + int(rng.random() * 98)
        hundredths = f"{tenths * tenths:03}"
        return f"{hundredths[:-2]}.{hundredths[-2:]}".rstrip("0").rstrip(".")
    root = 1 + int(rng.random() * 20) if form < 0.65 else 1 + int(10 ** (rng.random() * 4))
    return str(root * root)


def _draw_long(rng: random.Random) -> str:
    """10 to 24 digits, half of the time very few different ones: these break copying and counting."""
    length = 10 + int(rng.random() * 15)
    if rng.random() < 0.5:
        return str(10 ** (length - 1) + int(rng.random() * 9 * 10 ** (length - 1)))
    few = [str(int(rng.random() * 10)) for _ in range(1 + int(rng.random() * 3))]
    steady = rng.random() * 0.6 + 0.3
    digits = "".join(few[0] if rng.random() < steady else pick(rng, few) for _ in range(length))
    return digits.lstrip("0") or "1" + digits[1:]


def _draw_percentage(rng: random.Random) -> str:
    form = rng.random()
    if form < 0.45:
        return str(pick(rng, _COMMON_PERCENTAGES))
    if form < 0.86:
        return str(1 + int(rng.random() * 100))
    whole = int(rng.random() * 100)
    fraction = "5" if rng.random() < 0.5 else ("25", "75", str(1 + int(rng.random() * 9)))[int(rng.random() * 3)]
    return f"{whole}.{fraction}"


def _draw_in_range(rng: random.Random, kind: str, low: float, high: float) -> str:
    if kind in ("decimal", "money", "percent"):
        places = 2 if kind == "money" else 1 + int(rng.random() * 2)
        if kind != "decimal" and rng.random() < 0.5:
            places = 0
        scale = 10**places
        steps = int(low * scale) + int(rng.random() * (int(high * scale) - int(low * scale) + 1))
        if places == 0:
            return str(steps)
        sign = "-" if steps < 0 else ""
        return f"{sign}{abs(steps) // scale}.{abs(steps) % scale:0{places}}"
    first = int(low)
    return str(first + int(rng.random() * (int(high) - first + 1)))
