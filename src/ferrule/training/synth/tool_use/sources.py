"""Draws the texts of arguments: cities, names, e-mail addresses, dates, sentences, and strings of odd shapes.

A tenth of all texts is held out, by a hash, as with words. Anything that people pass to tools occurs here: codes,
paths, addresses, quoted sentences, letters that aren't ASCII.
"""

import random
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from ferrule.training.synth.wheel import pick
from ferrule.training.synth.words import (
    draw_low_entropy,
    draw_phrase,
    draw_pseudo_word,
    draw_random_letters,
    is_held_out,
    list_names,
    list_real_words,
    split_words,
)

_TRIES = 60
_FEWEST_TO_SPLIT = 12
_MONTHS = split_words("January February March April May June July August September October November December")
_SCRIPTS = (
    "naïve", "café", "señor", "Ærø", "żółw", "Ñandú", "日本", "東京駅", "привет", "Москва", "Ωmega", "π", "€uro", "año",
    "façade", "Übung", "smörgås", "crêpe", "한국", "שלום", "مرحبا", "5°C", "½ cup", "👍", "🎉 party", "x²",
)  # fmt: skip
_OPEN = frozenset({"topic", "title", "text", "word", "folder", "file", "product", "username", "id"})
"""Sources whose texts can be anything at all."""


@cache
def read_lists() -> dict[str, tuple[str, ...]]:
    """The lists of `values.txt` by name."""
    lines = (files("ferrule.training.synth.tool_use") / "values.txt").read_text("utf-8").splitlines()
    pairs = (line.partition(": ") for line in lines if line and not line.startswith("#"))
    return {name: tuple(entry.strip() for entry in entries.split(";")) for name, _, entries in pairs}


@cache
def split_list(entries: tuple[str, ...], held_out: bool) -> tuple[str, ...]:
    """The entries on one side of the split; a short list is on both sides, since there is too little to hold out."""
    if len(entries) < _FEWEST_TO_SPLIT:
        return entries
    return tuple(entry for entry in entries if is_held_out(entry) is held_out) or entries


def draw_text(rng: random.Random, source: str | tuple[str, ...], *, held_out: bool = False) -> str:
    """A text of a source, or of the list of its own that a template gives."""
    if isinstance(source, tuple):
        return pick(rng, split_list(source, held_out))
    drawer = draw_odd if source in _OPEN and rng.random() < 0.12 else _DRAWERS.get(source)
    if drawer is None:
        return pick(rng, split_list(read_lists()[source], held_out))
    text = ""
    for _ in range(_TRIES):
        text = drawer(rng)
        if is_held_out(text) is held_out:
            break
    return text


def draw_odd(rng: random.Random) -> str:
    """A string that can't be guessed: a code, repeated letters, other scripts, signs, a quoted phrase."""
    form = rng.random()
    if form < 0.2:
        return _draw_code(rng)
    if form < 0.35:
        return draw_low_entropy(rng)
    if form < 0.5:
        return draw_random_letters(rng)
    if form < 0.62:
        return pick(rng, _SCRIPTS)
    if form < 0.72:
        return f"{draw_pseudo_word(rng)} {draw_pseudo_word(rng)}"
    if form < 0.8:
        return f"{draw_pseudo_word(rng)}{pick(rng, '_-./+&@#:')}{draw_pseudo_word(rng)}"
    if form < 0.9:
        return draw_phrase(rng)
    if form < 0.95:
        return _digits(rng, 4 + int(rng.random() * 20))
    return "".join(word.capitalize() for word in (draw_pseudo_word(rng), pick(rng, list_real_words(False))))


def _digits(rng: random.Random, count: int) -> str:
    return "".join(str(int(rng.random() * 10)) for _ in range(count))


def _letters(rng: random.Random, count: int) -> str:
    return "".join(pick(rng, "ABCDEFGHJKLMNPRSTUVWXYZ") for _ in range(count))


def _draw_code(rng: random.Random) -> str:
    form = rng.random()
    if form < 0.35:
        return f"{_letters(rng, 1 + int(rng.random() * 3))}-{_digits(rng, 2 + int(rng.random() * 4))}"
    if form < 0.5:
        return f"{_letters(rng, 2)}{_digits(rng, 2 + int(rng.random() * 5))}"
    if form < 0.62:
        return f"#{_digits(rng, 2 + int(rng.random() * 4))}"
    if form < 0.72:
        return f"{2015 + int(rng.random() * 15)}-{_digits(rng, 3)}"
    if form < 0.82:
        return "".join(pick(rng, "0123456789abcdef") for _ in range(6 + int(rng.random() * 6)))
    if form < 0.92:
        return f"{draw_pseudo_word(rng)}_{_digits(rng, 1 + int(rng.random() * 3))}"
    return f"{_letters(rng, 3)}-{_digits(rng, 2)}-{_letters(rng, 1)}{_digits(rng, 1)}"


def _draw_person(rng: random.Random) -> str:
    return pick(rng, list_names())


def _draw_full_name(rng: random.Random) -> str:
    return f"{_draw_person(rng)} {pick(rng, read_lists()['surname'])}"


def _draw_username(rng: random.Random) -> str:
    name = _draw_person(rng).lower() if rng.random() < 0.6 else draw_pseudo_word(rng)
    form = rng.random()
    if form < 0.3:
        return name + _digits(rng, 1 + int(rng.random() * 3))
    if form < 0.5:
        return f"{name}_{pick(rng, list_real_words(False))}"
    if form < 0.65:
        return f"@{name}"
    return f"{name}.{pick(rng, read_lists()['surname']).lower().replace(' ', '')}" if form < 0.8 else name


def _draw_email(rng: random.Random) -> str:
    name = _draw_person(rng).lower()
    form = rng.random()
    if form < 0.3:
        surname = pick(rng, read_lists()["surname"]).lower()
        name = f"{name}.{''.join(char for char in surname if char.isascii() and char.isalpha())}"
    elif form < 0.5:
        name = draw_pseudo_word(rng) + _digits(rng, 2)
    elif form < 0.6:
        name = pick(rng, ("info", "sales", "support", "office", "billing", "jobs", "hello", "team", "no-reply"))
    return f"{name}@{pick(rng, read_lists()['domain_name'])}"


def _draw_phone(rng: random.Random) -> str:
    form = rng.random()
    if form < 0.4:
        return f"+{1 + int(rng.random() * 98)} {_digits(rng, 3)} {_digits(rng, 6)}"
    if form < 0.7:
        return f"0{_digits(rng, 3)} {_digits(rng, 5 + int(rng.random() * 3))}"
    return f"{_digits(rng, 3)}-{_digits(rng, 3)}-{_digits(rng, 4)}" if form < 0.85 else _digits(rng, 9)


def _draw_url(rng: random.Random) -> str:
    address = pick(rng, read_lists()["domain_name"])
    path = "" if rng.random() < 0.35 else f"/{draw_pseudo_word(rng)}"
    if path and rng.random() < 0.3:
        path += f"/{_digits(rng, 3)}" if rng.random() < 0.5 else f"?q={draw_pseudo_word(rng)}"
    return pick(rng, ("https://", "https://", "http://", "www.", "")) + address + path


def _draw_file(rng: random.Random) -> str:
    lists = read_lists()
    stem = pick(rng, lists["file_stem"]) if rng.random() < 0.7 else draw_pseudo_word(rng)
    if rng.random() < 0.3:
        stem += pick(rng, ("_", "-", "")) + _digits(rng, 1 + int(rng.random() * 4))
    return f"{stem}.{pick(rng, lists['extension'])}"


def _draw_folder(rng: random.Random) -> str:
    lists = read_lists()
    name = pick(rng, lists["folder_name"])
    form = rng.random()
    if form < 0.4:
        return name
    if form < 0.6:
        return f"/home/{_draw_person(rng).lower()}/{name}"
    return f"{name}/{pick(rng, lists['folder_name'])}" if form < 0.8 else f"~/{name}"


def _draw_path(rng: random.Random) -> str:
    form = rng.random()
    if form < 0.1:
        return f"C:\\{pick(rng, read_lists()['folder_name'])}\\{_draw_file(rng)}"
    return f"{_draw_folder(rng)}/{_draw_file(rng)}"


def _draw_date(rng: random.Random) -> str:
    day, month = 1 + int(rng.random() * 28), int(rng.random() * 12)
    form = rng.random()
    if form < 0.45:
        return f"{2018 + int(rng.random() * 14)}-{month + 1:02}-{day:02}"
    name = _MONTHS[month] if form < 0.8 else _MONTHS[month][:3]
    return f"{day} {name}" if rng.random() < 0.6 else f"{name} {day}"


def _draw_time(rng: random.Random) -> str:
    hour, minute = int(rng.random() * 24), pick(rng, ("00", "15", "30", "45", "05", "20", "50"))
    form = rng.random()
    if form < 0.5:
        return f"{hour:02}:{minute}" if rng.random() < 0.6 else f"{hour}:{minute}"
    half = pick(rng, ("am", "pm", " am", " pm"))
    return f"{1 + hour % 12}{half}" if form < 0.75 else f"{1 + hour % 12}:{minute}{half}" if form < 0.92 else "noon"


def _draw_topic(rng: random.Random) -> str:
    if rng.random() < 0.6:
        return pick(rng, read_lists()["topic"])
    words = list_real_words(False)
    return pick(rng, words) if rng.random() < 0.5 else f"{pick(rng, words)} {pick(rng, words)}"


def _draw_title(rng: random.Random) -> str:
    lists = read_lists()
    adjective, thing = pick(rng, lists["adjective"]), pick(rng, lists["thing"])
    form = rng.random()
    if form < 0.3:
        title = f"the {adjective} {thing}"
    elif form < 0.5:
        title = f"{adjective} {thing}"
    elif form < 0.65:
        title = f"the {thing} and the {pick(rng, lists['thing'])}"
    elif form < 0.8:
        title = f"{thing} of {pick(rng, lists['city'])}"
    else:
        title = (
            f"a {thing} in {pick(rng, lists['thing'])} {_digits(rng, 1)}" if form < 0.85 else f"my {adjective} {thing}"
        )
    return _capitalise(title) if rng.random() < 0.75 else title


def _capitalise(title: str) -> str:
    small = ("of", "and", "the", "a", "in")
    words = title.split(" ")
    return " ".join(
        word if place and word in small else word[:1].upper() + word[1:] for place, word in enumerate(words)
    )


def _draw_sentence(rng: random.Random) -> str:
    form = rng.random()
    text = pick(rng, read_lists()["sentence"])
    if form < 0.2:
        text = draw_phrase(rng)
    elif form < 0.3:
        text = f"{text}, {_draw_person(rng)}"
    elif form < 0.4:
        text = f"{_draw_person(rng)} is in {pick(rng, read_lists()['city'])} until {_draw_date(rng)}"
    if rng.random() < 0.25:
        text = text[:1].lower() + text[1:]
    return text + (pick(rng, ".!?") if rng.random() < 0.12 and text[-1].isalnum() else "")


def _draw_word(rng: random.Random) -> str:
    return pick(rng, list_real_words(False)) if rng.random() < 0.75 else draw_pseudo_word(rng)


def _draw_street(rng: random.Random) -> str:
    street = pick(rng, read_lists()["street"])
    if rng.random() < 0.4:
        return street
    number = 1 + int(rng.random() * 150)
    return f"{number} {street}" if rng.random() < 0.7 else f"{street} {number}"


_DRAWERS: dict[str, Callable[[random.Random], str]] = {
    "person": _draw_person,
    "full_name": _draw_full_name,
    "email": _draw_email,
    "phone": _draw_phone,
    "url": _draw_url,
    "path": _draw_path,
    "file": _draw_file,
    "folder": _draw_folder,
    "date": _draw_date,
    "time": _draw_time,
    "word": _draw_word,
    "topic": _draw_topic,
    "title": _draw_title,
    "text": _draw_sentence,
    "id": _draw_code,
    "street": _draw_street,
    "username": _draw_username,
}


def draw_number_text(rng: random.Random, low: float, high: float, decimals: int) -> str:
    """Digits of a number from a range, both ends included; small numbers are likelier in a wide range."""
    scale = 10**decimals
    first, last = round(low * scale), round(high * scale)
    span = last - first
    if span > 200 and low >= 0 and rng.random() < 0.5:
        span = max(20, span // int(10 ** (1 + rng.random() * 2)))
    number = first + int(rng.random() * (span + 1))
    if not decimals:
        return str(number)
    text = f"{number / scale:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
