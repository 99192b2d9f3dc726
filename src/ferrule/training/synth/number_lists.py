"""Lists of two to six numbers: as in a call, as a user writes them, as a reply shows them."""

import random
from dataclasses import dataclass

from ferrule._util.word_lists import show_list
from ferrule.training.synth.number_words import write_number
from ferrule.training.synth.numbers import Hint, Number, draw_number
from ferrule.training.synth.wheel import pick

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
    return NumberList(tuple(numbers), _write_as_user(rng, numbers))


def _write_as_user(rng: random.Random, numbers: list[Number]) -> str:
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
