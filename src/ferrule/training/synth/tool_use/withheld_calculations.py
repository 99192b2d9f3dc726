"""Calculations that were withheld: the answer asks about the call, and the user says yes, no, or what is right.

A calculation that is corrected was withheld with one number or sign of it wrong.
"""

import random
import re
from dataclasses import replace

from ferrule.training.synth.example import Turn
from ferrule.training.synth.noise import Piece, add_noise
from ferrule.training.synth.tool_use.exchanges import ask_withheld, say_no, say_yes
from ferrule.training.synth.tool_use.tool_replies import NOT_DONE
from ferrule.training.synth.wheel import pick
from ferrule.training.synth.words import number_fits

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SIGN = re.compile(r"(?<= )[-+*/](?= )")
_CORRECTIONS = (
    "no, {right}", "no, {right}", "no: {right}", "{right}", "I meant {right}", "no, I said {right}", "wrong, {right}",
    "{right}, please", "not that, {right}", "almost: {right}", "sorry, {right}", "no, call {right}", "make it {right}",
    "nearly, but {right}", "{right} instead", "it should be {right}", "no, that's wrong, {right}",
)  # fmt: skip
_NUMBER_CORRECTIONS = (
    "no, {new}, not {old}", "{new}, not {old}", "{new} instead of {old}", "not {old}, {new}",
    "the {old} should be {new}", "I meant {new}, not {old}", "almost, but {new} instead of {old}",
    "it's {new}, not {old}", "change {old} to {new}", "no, I said {new}, not {old}",
)  # fmt: skip


def withhold_calculation(rng: random.Random, turn: Turn, held_out: bool) -> tuple[Turn, ...] | None:
    """The turns in which the call of this one was withheld; None if it hasn't one call, or can't be corrected."""
    if len(turn.steps) != 1:
        return None
    call, form = turn.steps[0].call, rng.random()
    if form < 0.45:
        return ask_withheld(turn.user, call), replace(turn, user=say_yes(rng))
    if form < 0.65:
        return ask_withheld(turn.user, call), Turn(say_no(rng), (), NOT_DONE)
    mistaken = _mistake_number(rng, call, held_out) if rng.random() < 0.6 else _mistake_sign(rng, call)
    if mistaken is None:
        return None
    wrong, said = mistaken
    return ask_withheld(turn.user, wrong), replace(
        turn, user=add_noise(rng, [Piece(said, fixed=True, open_ended=True)], "chat")
    )


def _mistake_number(rng: random.Random, call: str, held_out: bool) -> tuple[str, str] | None:
    """The call with a digit of a number wrong, and a correction of it; None if none can be wrong plainly."""
    numbers = [found[0] for found in _NUMBER.finditer(call)]
    apart = [number for number in numbers if numbers.count(number) == 1]
    if '"' in call or not apart:
        return None
    right = pick(rng, apart)
    place = pick(rng, [place for place, letter in enumerate(right) if letter != "."])
    digit = pick(rng, [letter for letter in "123456789" if letter != right[place]])
    wrong = right[:place] + digit + right[place + 1 :]
    if wrong in numbers or not number_fits(wrong, held_out):
        return None
    mistaken = _NUMBER.sub(lambda found: wrong if found[0] == right else found[0], call)
    if rng.random() < 0.5:
        return mistaken, _say_call(rng, call)
    return mistaken, pick(rng, _NUMBER_CORRECTIONS).format(new=right, old=wrong)


def _mistake_sign(rng: random.Random, call: str) -> tuple[str, str] | None:
    """The call with one sign wrong, and a correction of it; None for one without signs."""
    signs = [] if '"' in call else list(_SIGN.finditer(call))
    if not signs:
        return None
    sign = pick(rng, signs)
    wrong = pick(rng, [other for other in "+-*/" if other != sign[0]])
    return call[: sign.start()] + wrong + call[sign.end() :], _say_call(rng, call)


def _say_call(rng: random.Random, call: str) -> str:
    right = call if rng.random() < 0.6 else call.replace(" ", "")
    return pick(rng, _CORRECTIONS).format(right=right)
