"""Draws the values of arguments, and writes them as a user does: digits or words, quotes or none, lists."""

import random
from dataclasses import dataclass

from ferrule.training.synth.number_words import write_number
from ferrule.training.synth.numbers import Number
from ferrule.training.synth.tool_use.offers import KEY, show_value
from ferrule.training.synth.tool_use.sources import draw_number_text, draw_text
from ferrule.training.synth.tool_use.templates import Scalar, TemplateParameter, Value
from ferrule.training.synth.wheel import pick
from ferrule.training.synth.words import number_fits, quote

_TRIES = 40
_QUOTES = "\"'“‘«`"
_QUOTED_SHARE = {"text": 0.4, "title": 0.3, "topic": 0.12, "word": 0.15, "product": 0.05, "folder": 0.08, "file": 0.05}
_CASED = frozenset(
    {"city", "country", "person", "full_name", "day", "language", "food", "company", "title", "currency"}
)
_UNQUOTED_ENDS = (" ", ",", ".", "!", "?", ";", ":")


@dataclass(frozen=True, slots=True)
class SaidValue:
    """A value as a user writes it. `is_open` marks a text whose end only its last character shows."""

    text: str
    is_open: bool = False
    is_sentence: bool = False


def draw_value(
    rng: random.Random, parameter: TemplateParameter, *, held_out: bool = False, unlike: Value = None
) -> Value:
    """A value of a parameter, if possible neither its default nor `unlike`."""
    value: Value = None
    for _ in range(4):
        value = _draw_value(rng, parameter, held_out)
        if value not in (parameter.default, unlike):
            break
    return value


def _draw_value(rng: random.Random, parameter: TemplateParameter, held_out: bool) -> Value:
    if not parameter.type.is_list:
        return _draw_scalar(rng, parameter, held_out)
    values: list[Scalar] = []
    wanted = pick(rng, (1, 2, 2, 2, 3, 3, 4))
    for _ in range(wanted * 2):
        value = _draw_scalar(rng, parameter, held_out)
        if value not in values:
            values.append(value)
        if len(values) == wanted:
            break
    return values


def _draw_scalar(rng: random.Random, parameter: TemplateParameter, held_out: bool) -> Scalar:
    type_ = parameter.type
    if type_.options:
        return pick(rng, type_.options)
    if type_.scalar == "str":
        return _draw_string(rng, parameter.source or "word", held_out)
    text = ""
    for _ in range(_TRIES):
        text = draw_number_text(rng, parameter.low, parameter.high, parameter.decimals)
        if number_fits(text.lstrip("-"), held_out):
            break
    return float(text) if "." in text else int(text)


def _draw_string(rng: random.Random, source: str | tuple[str, ...], held_out: bool) -> str:
    text = draw_text(rng, source, held_out=held_out)
    if isinstance(source, tuple) or source in _CASED:
        form = rng.random()
        if form < 0.07:
            return text.lower()
        if form < 0.09:
            return text.upper()
    return text


def say_value(
    rng: random.Random,
    parameter: TemplateParameter,
    value: Value,
    *,
    before: str = "",
    after: str = "",
    is_clear: bool = False,
) -> SaidValue:
    """A value between the characters `before` and `after`; with `is_clear` in quotes where its end isn't plain."""
    if not isinstance(value, list):
        return _say_scalar(rng, parameter, value, before, after, is_clear)
    said = [_say_scalar(rng, parameter, entry, "", "", is_clear).text for entry in value]
    said = [
        entry if "," not in text and " and " not in text else f'"{text}"'
        for entry, text in zip(said, map(str, value), strict=True)
    ]
    if len(said) == 1:
        return SaidValue(said[0])
    form = rng.random()
    if form < 0.3:
        return SaidValue(", ".join(said))
    joint = " and " if form < 0.8 else ", and " if form < 0.9 and len(said) > 2 else " & "
    return SaidValue(", ".join(said[:-1]) + joint + said[-1])


def _say_scalar(
    rng: random.Random, parameter: TemplateParameter, value: Value, before: str, after: str, is_clear: bool
) -> SaidValue:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if _is_number_of_something(parameter):
            return SaidValue(str(value))
        return SaidValue(write_number(rng, Number(str(value)), before=before, after=after))
    if not isinstance(value, str):
        return SaidValue(show_value(value))
    if parameter.type.options:
        said = value.replace("_", " ") if rng.random() < 0.6 else value
        return SaidValue(said.capitalize() if rng.random() < 0.08 else said)
    if before != "" and before in _QUOTES:
        return SaidValue(value)
    said = _quote(rng, parameter.source, value, is_clear)
    is_bare = said == value
    return SaidValue(said, is_bare, is_bare and parameter.source == "text")


def _is_number_of_something(parameter: TemplateParameter) -> bool:
    """Whether a number is a name: a year, or the number of an invoice. Nobody groups its digits."""
    return parameter.name == KEY or (parameter.low >= 1000 and parameter.high <= 2200)


def _quote(rng: random.Random, source: str | tuple[str, ...] | None, value: str, is_clear: bool) -> str:
    chance = _QUOTED_SHARE.get(source, 0.02) if isinstance(source, str) else 0.05
    if chance > 0.02 and not value.isascii():
        chance = 0.4
    if (is_clear and source in ("text", "title")) or (value[-1] in _UNQUOTED_ENDS and source != "text"):
        chance = 1.0
    if '"' in value:
        return value if "'" in value or rng.random() > chance else f"'{value}'"
    return quote(rng, value, chance=chance)
