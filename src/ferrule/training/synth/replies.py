"""Writes calls and replies: fields filled in, results grouped, `1 times` turned into `once`."""

import re
from collections.abc import Mapping

from ferrule.training.synth.grammar import Field, Fields
from ferrule.training.synth.number_words import write_ordinal
from ferrule.training.synth.numbers import group_thousands
from ferrule.training.synth.words import split_words

_NUMBER = re.compile(r"-?\d+(\.\d+)?\Z")
_UNITS = frozenset(
    split_words(
        "letters characters words spaces times days weeks months years hours minutes seconds dollars euros pounds cents"
        " miles kilometres kilometers metres meters people pieces items points degrees vowels digits symbols places"
        " groups rows boxes bags packs pages kilograms grams litres liters feet inches copies slices"
    )
)
_IRREGULAR = {"people": "person", "feet": "foot", "inches": "inch", "boxes": "box", "copies": "copy"}
_ONE_OF = re.compile(r"(?<![\d.,-])1 (\w+)")


def write_call(fields: Fields, calls: Mapping[str, str]) -> str:
    """The expression of a call; a negative base of a power is put in parentheses."""
    written = []
    for place, piece in enumerate(fields):
        if isinstance(piece, str):
            written.append(piece)
            continue
        value = calls[_find_key(piece, calls)]
        after = fields[place + 1] if place + 1 < len(fields) else ""
        is_base = isinstance(after, str) and after.lstrip().startswith("**")
        written.append(f"({value})" if is_base and value.startswith("-") else value)
    return "".join(written)


def _find_key(piece: Field, values: Mapping[str, str]) -> str:
    """A list has values for each of its formats, any other slot has one."""
    key = f"{piece.name}:{piece.form}"
    return key if key in values else piece.name


def write_reply(fields: Fields, shown: Mapping[str, str], results: Mapping[str, str], *, raw: bool) -> str:
    """The reply of a turn with the `results` of its calls by field; with `raw` (texts) these are not grouped."""
    written = []
    counts_one = False
    for piece in fields:
        if isinstance(piece, str):
            written.append(piece)
            continue
        is_result = piece.name in results
        value = results[piece.name] if is_result else shown[_find_key(piece, shown)]
        value = value.removeprefix("-") if piece.form == "size" else value
        counts_one |= value == "1"
        if is_result and not raw:
            value = show_number(value, piece)
        elif piece.form == "money":
            value = _format_money(value)
        elif piece.form == "th":
            value = write_ordinal(int(value))
        written.append(value)
    text = "".join(written)
    return _use_singular(text) if counts_one and not raw else text


def show_number(value: str, piece: Field | None = None) -> str:
    """A result as in a reply: grouped if it is a plain number."""
    if not _NUMBER.match(value):
        return value
    text = group_thousands(value)
    return _format_money(text) if piece and piece.form == "money" else text


def is_number(text: str) -> bool:
    """Whether a result is a plain decimal number."""
    return _NUMBER.match(text) is not None


def _format_money(text: str) -> str:
    whole, point, fraction = text.partition(".")
    return f"{whole}.{fraction}0" if point and len(fraction) == 1 else text


def _use_singular(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        word = match[1]
        if word == "times":
            return "once"
        if word not in _UNITS:
            return match[0]
        return "1 " + _IRREGULAR.get(word, word[:-1])

    text = _ONE_OF.sub(replace, text)
    return text.replace("There are 1 ", "There is 1 ").replace("there are 1 ", "there is 1 ")
