"""Draws words, phrases, letters, names and things; and decides which words are held out of training.

Real words come from the lists next to this file; made-up ones keep a model from relying on known spellings. A tenth of
all words is held out, by a hash of the text, whatever the seed.
"""

import random
import zlib
from functools import cache
from importlib.resources import files

from ferrule.training.synth.wheel import pick

TENTHS = 10
FEWEST_DIGITS = 4


def is_held_out(text: str) -> bool:
    """Whether a text belongs to the tenth that training never uses, ignoring case."""
    return zlib.crc32(text.lower().encode()) % TENTHS == 0


def number_fits(digits: str, held_out: bool) -> bool:
    """Whether a number may be drawn on this side of the split.

    Numbers with fewer than four digits are on both sides: there are too few of them to hold any out, and users' small
    numbers must be in training.
    """
    digits = digits.replace(".", "")
    return len(digits) < FEWEST_DIGITS or is_held_out(digits) is held_out


def split_words(text: str) -> tuple[str, ...]:
    """The words of a string, in order."""
    return tuple(text.split())


_ONSETS = split_words("b c d f g h j k l m n p r s t v w z br ch cl cr dr fl gr pl pr sh sl sn sp st th tr")
_VOWELS = split_words("a e i o u a e i o u ai ea ee io oo ou")
_CODAS = ["", "", "", *split_words("l m n r s t x ck ng nt rd sh st ll ss tt")]
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SMALL_WORDS = split_words(
    "a and are at but by can do for from go has he her his i in is it me my no not of on or our she so"
    " that the they this to up was we with you your"
)
_TRIES = 80


@cache
def _read_lines(file: str) -> tuple[str, ...]:
    text = (files("ferrule.training.synth") / file).read_text("utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


@cache
def list_real_words(held_out: bool) -> tuple[str, ...]:
    """The listed words on one side of the split."""
    return tuple(word for word in " ".join(_read_lines("words.txt")).split() if is_held_out(word) is held_out)


@cache
def list_names() -> tuple[str, ...]:
    """First names; both sides of the split use all of them."""
    return tuple(" ".join(_read_lines("names.txt")).split())


@cache
def list_things() -> tuple[tuple[str, str], ...]:
    """Countable things as (plural, singular); both sides of the split use all of them."""
    pairs = (line.partition(" / ") for line in _read_lines("things.txt"))
    return tuple((plural, singular) for plural, _, singular in pairs)


def draw_pseudo_word(rng: random.Random) -> str:
    """One to four syllables that look like a word."""
    syllables = 1 + int(rng.random() * 4)
    return "".join(pick(rng, _ONSETS) + pick(rng, _VOWELS) + pick(rng, _CODAS) for _ in range(syllables))


def draw_random_letters(rng: random.Random) -> str:
    """3 to 14 random letters."""
    return "".join(pick(rng, _LETTERS) for _ in range(3 + int(rng.random() * 12)))


def draw_low_entropy(rng: random.Random) -> str:
    """A string with very few different characters, such as `1111111110110` or `yyyylgyy`: these break copying."""
    alphabet = "0123456789" if rng.random() < 0.2 else _LETTERS
    few = [pick(rng, alphabet) for _ in range(1 + int(rng.random() * 3))]
    steady = rng.random() * 0.6 + 0.3
    length = 3 + int(rng.random() * (14 if rng.random() < 0.7 else 22))
    return "".join(few[0] if rng.random() < steady else pick(rng, few) for _ in range(length))


def _stretch_word(rng: random.Random, word: str) -> str:
    at = int(rng.random() * len(word))
    return word[:at] + word[at] * (2 + int(rng.random() * 4)) + word[at + 1 :]


def _decorate(rng: random.Random, word: str) -> str:
    form = rng.random()
    if form < 0.35:
        return word + str(int(10 ** (rng.random() * 3)))
    if form < 0.65:
        return f"{word}-{draw_pseudo_word(rng)}"
    if form < 0.85:
        return word + "'s"
    at = int(rng.random() * len(word))
    return word[:at] + str(int(rng.random() * 10)) + word[at:]


def draw_word(rng: random.Random, *, held_out: bool = False, letters_only: bool = False) -> str:
    """A word from this side of the split; with `letters_only`, consisting only of letters."""
    word = ""
    for _ in range(_TRIES):
        word = _draw_word(rng, held_out)
        if letters_only and not word.isalpha():
            continue
        if is_held_out(word) is held_out:
            break
    return word


def _draw_word(rng: random.Random, held_out: bool) -> str:
    form = rng.random()
    word = pick(rng, list_real_words(held_out))
    if form > 0.86:
        word = draw_low_entropy(rng)
    elif form > 0.76:
        word = draw_random_letters(rng)
    elif form > 0.58:
        word = draw_pseudo_word(rng)
    elif form > 0.55:
        word = _stretch_word(rng, word)
    elif form > 0.50:
        word = _decorate(rng, word)
    elif form > 0.47:
        word = pick(rng, list_names())
    case = rng.random()
    if case < 0.1:
        return word[0].upper() + word[1:]
    return word.upper() if case < 0.14 else word


def draw_phrase(rng: random.Random, *, held_out: bool = False) -> str:
    """Two to six words from this side of the split; sometimes with capitals or punctuation."""
    words = []
    for _ in range(2 + int(rng.random() * 5)):
        kind = rng.random()
        if kind < 0.3:
            word = pick(rng, _list_small_words(held_out))
        elif kind < 0.9:
            word = pick(rng, list_real_words(held_out))
        else:
            word = draw_word(rng, held_out=held_out)
        words.append(word)
    form = rng.random()
    if form < 0.1:
        words = [word[0].upper() + word[1:] for word in words]
    phrase = " ".join(words)
    if 0.1 < form < 0.25:
        phrase = phrase[0].upper() + phrase[1:]
    elif form > 0.97:
        phrase = phrase.upper()
    if rng.random() < 0.05:
        phrase += pick(rng, ".!?")
    return phrase


@cache
def _list_small_words(held_out: bool) -> tuple[str, ...]:
    return tuple(word for word in _SMALL_WORDS if is_held_out(word) is held_out)


def draw_letter(rng: random.Random, text: str) -> str:
    """A letter to look for in `text`: usually one that occurs in it."""
    if text and rng.random() < 0.86:
        char = pick(rng, text)
        if char.isalnum():
            return char
    return pick(rng, _LETTERS)


def count_call(text: str, letter: str) -> str:
    """The expression that counts a letter in a text, ignoring case.

    Both cases are counted if both occur, otherwise the one that occurs, otherwise the lower case.
    """
    lower, upper = letter.lower(), letter.upper()
    if lower != upper and upper in text:
        if lower in text:
            return f'"{text}".count("{lower}") + "{text}".count("{upper}")'
        return f'"{text}".count("{upper}")'
    return f'"{text}".count("{lower}")'


def quote(rng: random.Random, text: str, *, chance: float) -> str:
    """The text in quotes of some kind, or without quotes."""
    if rng.random() >= chance:
        return text
    form = rng.random()
    if form < 0.45 or "'" in text:
        return f'"{text}"'
    if form < 0.8:
        return f"'{text}'"
    if form < 0.88:
        return f"“{text}”"
    if form < 0.92:
        return f"‘{text}’"
    return f"«{text}»" if form < 0.94 else f"`{text}`"
