"""Draws expressions and lists of two to six numbers: as in a call, as a user writes them, as a reply shows them."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ferrule._util.word_lists import show_list
from ferrule.training.synth.number_words import write_number
from ferrule.training.synth.numbers import Hint, Number, add_fraction, draw_number, draw_whole_number, group_thousands
from ferrule.training.synth.wheel import pick
from ferrule.training.synth.words import number_fits

_SHARES = (("+", 0.28), ("-", 0.22), ("*", 0.26), ("/", 0.15), ("**", 0.05), ("%", 0.02), ("//", 0.02))
# The maximum number of digits of an operand, by the number of operands: keeps results short enough to copy.
_MOST_DIGITS = {2: 12, 3: 8, 4: 5, 5: 4}
_TIMES = (("*", 0.55), ("×", 0.15), ("x", 0.22), ("·", 0.03), ("X", 0.05))
_DIVIDED = (("/", 0.72), ("÷", 0.25), (":", 0.03))
_POWER = (("^", 0.6), ("**", 0.4))
_OPERATORS = frozenset(name for name, _ in _SHARES)


@dataclass(frozen=True, slots=True)
class Expression:
    """A drawn expression: `call` is Python with single spaces around binary operators."""

    call: str
    said: str
    shown: str


def draw_expression(rng: random.Random, *, held_out: bool = False) -> Expression:
    """An expression of two to five operands, sometimes with parentheses."""
    tokens = _draw_tokens(rng, held_out)
    spoken = [_say_number(rng, token) for token in tokens] if rng.random() < 0.15 else tokens
    return Expression(_join(tokens, " "), _write_as_user(rng, spoken), _write_for_reply(tokens))


def _draw_weighted(rng: random.Random, shares: tuple[tuple[str, float], ...]) -> str:
    left = rng.random()
    for name, share in shares:
        left -= share
        if left < 0:
            return name
    return shares[0][0]


def _draw_tokens(rng: random.Random, held_out: bool) -> list[str]:
    size = rng.random()
    count = 2 if size < 0.5 else 3 if size < 0.78 else 4 if size < 0.92 else 5
    operators: list[str] = []
    for _ in range(count - 1):
        operator = _draw_weighted(rng, _SHARES)
        # A power of a power, or of a long number, has more digits than anyone would ask for.
        operators.append("*" if operator == "**" and "**" in operators else operator)
    tokens: list[list[str]] = []
    for place in range(count):
        before = operators[place - 1] if place else ""
        after = operators[place] if place < count - 1 else ""
        tokens.append(_draw_operand(rng, before, after, _MOST_DIGITS[count], held_out))
    _parenthesise(rng, tokens, operators)
    flat = tokens[0]
    for operator, operand in zip(operators, tokens[1:], strict=True):
        flat = [*flat, operator, *operand]
    return flat


def _draw_operand(rng: random.Random, before: str, after: str, most_digits: int, held_out: bool) -> list[str]:
    if before == "**":
        return [str(2 + int(rng.random() * 4))]
    number = ""
    for _ in range(60):
        number = draw_whole_number(rng, 3 if after == "**" else most_digits)
        if after != "**" and len(number) < 7 and rng.random() < 0.18:
            number = add_fraction(rng, number)
        if before in ("/", "%", "//") and not number.strip("0."):
            continue
        if number_fits(number, held_out):
            break
    if rng.random() > 0.05 or after == "**":
        return [number]
    return ["-" + number] if not before or rng.random() < 0.5 else ["(", "-" + number, ")"]


def _parenthesise(rng: random.Random, tokens: list[list[str]], operators: list[str]) -> None:
    spans = 0 if len(tokens) == 2 else int(rng.random() < 0.65) + int(rng.random() < 0.2)
    taken: set[int] = set()
    for _ in range(spans):
        first = int(rng.random() * (len(tokens) - 1))
        last = min(len(tokens) - 1, first + 1 + int(rng.random() * (len(tokens) - 2)))
        cut_by_power = (first and operators[first - 1] == "**") or (last < len(tokens) - 1 and operators[last] == "**")
        if last - first == len(tokens) - 1 or cut_by_power or taken & set(range(first, last + 1)):
            continue
        taken |= set(range(first, last + 1))
        tokens[first] = ["(", *tokens[first]]
        tokens[last] = [*tokens[last], ")"]


def _join(tokens: list[str], space: str) -> str:
    return "".join(f"{space}{token}{space}" if token in _OPERATORS else token for token in tokens)


def _say_number(rng: random.Random, token: str) -> str:
    if token[-1].isdigit() and "," not in token:
        return group_thousands(token) if rng.random() < 0.8 else token
    return token


def _write_as_user(rng: random.Random, tokens: list[str]) -> str:
    symbols = {
        "*": _draw_weighted(rng, _TIMES),
        "/": _draw_weighted(rng, _DIVIDED),
        "**": _draw_weighted(rng, _POWER),
        "-": "−" if rng.random() < 0.03 else "-",
    }
    spacing = rng.random()
    pieces: list[str] = []
    for place, token in enumerate(tokens):
        if token not in _OPERATORS:
            pieces.append(token)
            continue
        before_group = tokens[place + 1] == "("
        if token == "*" and before_group and spacing > 0.95:
            continue
        space = " " if spacing < 0.55 or (spacing > 0.9 and rng.random() < 0.5) else ""
        pieces.append(f"{space}{symbols.get(token, token)}{space}")
    return "".join(pieces)


def _write_for_reply(tokens: list[str]) -> str:
    shown = {"*": " × ", "/": " ÷ ", "**": "^"}
    return "".join(
        shown.get(token, f" {token} ")
        if token in _OPERATORS
        else group_thousands(token)
        if token[-1].isdigit()
        else token
        for token in tokens
    )


_LENGTHS = (2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 6)
_MIXED_HINTS = (Hint("small"), Hint("medium"), Hint("medium"), Hint("int"), Hint("decimal", 0.5, 60), Hint("money"))
_NEGATIVE = 0.04


@dataclass(frozen=True, slots=True)
class NumberList:
    """Numbers in the order in which the user writes them; `said` is how."""

    numbers: tuple[Number, ...]
    said: str

    def write_calls(self, name: str) -> dict[str, str]:
        """What `{name}` and its formats stand for in a call."""
        plain = [number.call for number in self.numbers]
        return {name: " + ".join(plain), f"{name}:product": " * ".join(plain), f"{name}:count": str(len(plain))}

    def write_shown(self, name: str) -> dict[str, str]:
        """What `{name}` and its formats stand for in a reply."""
        shown = [number.shown for number in self.numbers]
        return {name: show_list(shown), f"{name}:sum": " + ".join(shown), f"{name}:product": " × ".join(shown)}


def draw_list(rng: random.Random, hint: Hint | None, *, held_out: bool = False) -> NumberList:
    """A list whose numbers are alike: all after one hint, of the section or drawn."""
    length = pick(rng, _LENGTHS)
    chosen = hint or pick(rng, _MIXED_HINTS)
    numbers = []
    for _ in range(length):
        number = draw_number(rng, chosen, held_out=held_out)
        is_negative = hint is None and rng.random() < _NEGATIVE and number.call.strip("0.")
        numbers.append(Number("-" + number.call) if is_negative else number)
    return NumberList(tuple(numbers), _write_list_as_user(rng, numbers))


def _write_list_as_user(rng: random.Random, numbers: list[Number]) -> str:
    in_words = rng.random() < 0.12
    form = rng.random()
    has_commas = form < 0.88
    # A comma before or after a number keeps its own thousands ungrouped.
    beside = "," if has_commas else " "
    said = [
        write_number(rng, number, sayable=True) if in_words else _write_plain(rng, number, beside) for number in numbers
    ]
    if form < 0.38:
        return show_list(said)
    if form < 0.5 and len(said) > 2:
        return f"{', '.join(said[:-1])}, and {said[-1]}"
    if has_commas:
        # "899,890,273" would be one number.
        looks_grouped = any(len(text) == 3 for text in said[1:])
        return (", " if form < 0.83 or in_words or looks_grouped else ",").join(said)
    return (" and " if form < 0.96 or in_words else " ").join(said)


def _write_plain(rng: random.Random, number: Number, beside: str) -> str:
    return number.call if beside == "," or len(number.call) < 6 else write_number(rng, number, after=beside)
