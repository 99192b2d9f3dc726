"""What users add to any phrasing: greetings and thanks, careless casing, typos, careless punctuation.

It changes only the words of the phrasing, never the content of a slot, which the answer has to copy.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from ferrule.training.synth.wheel import pick
from ferrule.training.synth.words import split_words

OPENERS = (
    "hey", "hi", "hello", "hi there", "hey there", "ok", "okay", "ok so", "so", "please", "pls", "plz", "um", "uh",
    "right", "well", "now", "and", "also", "next", "then", "quick question", "quick one", "one more", "another one",
    "just curious", "excuse me", "sorry", "hmm", "alright", "question", "good morning", "good evening", "oh", "yo",
    "thanks", "great", "cool", "all right", "by the way", "real quick", "one more thing",
)  # fmt: skip
ASKING = (
    "can you tell me", "could you tell me", "tell me", "please tell me", "do you know", "any idea", "i need to know",
    "i want to know", "i'd like to know", "i wonder", "let me know", "would you mind telling me", "remind me",
)  # fmt: skip
REQUESTING = (
    "can you", "could you", "would you", "can you please", "could you please", "will you", "i need you to",
    "i want you to", "i'd like you to", "kindly", "just", "go ahead and", "please", "help me",
)  # fmt: skip
SUFFIXES = (
    "please", "pls", "plz", "thanks", "thank you", "thx", "ty", "cheers", "if you can", "for me", "quickly", "asap",
    "thanks in advance", "thanks a lot", "will you", "would you", "ok", "real quick",
)  # fmt: skip
_WONDERING = ("what", "how", "whats", "what's", "which")
_VERBS = frozenset(
    split_words(
        "add subtract multiply divide compute calculate work find count reverse spell tell give solve take evaluate"
        " figure sum double halve square write flip turn check measure raise deduct determine show"
    )
)
_NEIGHBOURS = dict(
    zip(
        "qwertyuiopasdfghjklzxcvbnm",
        "wertyuiopoasdfghjkkzxcvbnn",
        strict=False,
    )
)
_CALM_KINDS = frozenset({"chat", "refusal"})


@dataclass(slots=True)
class Piece:
    """A piece of a request: words of the phrasing, or (`fixed`) the content of a slot.

    `open_ended` marks a bare word or phrase: the text after it must not read as part of it. `is_last` marks one that
    nothing may follow: a sentence without quotes, whose own punctuation counts.
    """

    text: str
    fixed: bool = False
    open_ended: bool = False
    is_last: bool = False


def add_noise(rng: random.Random, pieces: list[Piece], kind: str) -> str:
    """The request from these pieces, with a user's carelessness added."""
    casing = rng.random()
    _open_with(rng, pieces, kind)
    if rng.random() < 0.1:
        _misspell(rng, pieces)
        if rng.random() < 0.25:
            _misspell(rng, pieces)
    if casing < 0.3:
        drops_apostrophes = rng.random() < 0.4
        _recase(pieces, str.lower)
        if drops_apostrophes:
            _recase(pieces, lambda text: text if text.startswith("'") else text.replace("'", ""))
    elif casing < 0.32:
        _recase(pieces, str.upper)
    elif casing < 0.62 and not pieces[0].fixed:
        text = pieces[0].text
        pieces[0].text = text[:1].upper() + text[1:]
    elif casing > 0.96:
        _recase(pieces, lambda text: text.replace("'", "’"))
    if not pieces[-1].is_last:
        _close(rng, pieces, kind)
    joined = " ".join("".join(piece.text for piece in pieces).split())
    return joined.replace(" ?", "?") if " ?" in joined and casing < 0.98 else joined


def _recase(pieces: list[Piece], change: Callable[[str], str]) -> None:
    for piece in pieces:
        if not piece.fixed:
            piece.text = change(piece.text)


def _open_with(rng: random.Random, pieces: list[Piece], kind: str) -> None:
    if rng.random() > (0.06 if kind == "chat" else 0.22):
        return
    frame = pieces[0]
    first = "" if frame.fixed else frame.text.split(" ", 1)[0].lower()
    choices: tuple[str, ...] = OPENERS
    if kind not in _CALM_KINDS and rng.random() < 0.6:
        if first in _WONDERING:
            choices = ASKING
        elif first in _VERBS:
            choices = REQUESTING
    opener = pick(rng, choices)
    if choices is OPENERS:
        joint = rng.random()
        opener += (
            ", " if joint < 0.45 else " " if joint < 0.8 else ": " if joint < 0.86 else " - " if joint < 0.9 else "! "
        )
    else:
        opener += " "
    if not frame.fixed and first not in ("i", "i'm", "i've", "i'd", "i'll"):
        frame.text = frame.text[:1].lower() + frame.text[1:]
    pieces.insert(0, Piece(opener))


def _misspell(rng: random.Random, pieces: list[Piece]) -> None:
    frame = [piece for piece in pieces if not piece.fixed and len(piece.text) > 3]
    if not frame:
        return
    piece = pick(rng, frame)
    words = piece.text.split(" ")
    places = [place for place, word in enumerate(words) if len(word) > 3 and word.isalpha()]
    if places:
        place = pick(rng, places)
        words[place] = _make_typo(rng, words[place])
        piece.text = " ".join(words)


def _make_typo(rng: random.Random, word: str) -> str:
    at = 1 + int(rng.random() * (len(word) - 2))
    form = rng.random()
    if form < 0.3:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if form < 0.6:
        return word[:at] + word[at + 1 :]
    if form < 0.85:
        return word[:at] + word[at] + word[at:]
    return word[:at] + _NEIGHBOURS.get(word[at], word[at]) + word[at + 1 :]


def _close(rng: random.Random, pieces: list[Piece], kind: str) -> None:
    last = pieces[-1]
    mark = last.text[-1:] if not last.fixed and last.text[-1:] in ("?", ".", "!") else ""
    if mark:
        last.text = last.text[:-1]
        if not last.text:
            pieces.pop()
            last = pieces[-1] if pieces else Piece("")
    form = rng.random()
    if mark and form < 0.3:
        mark = ""
    elif mark and form < 0.36:
        mark = pick(rng, ("??", "?!", "...", "!!", " ?", ".", "!"))
    elif not mark and form < 0.16:
        mark = "?" if form < 0.1 else "."
    suffix = ""
    if kind != "chat" and rng.random() < 0.1:
        suffix = pick(rng, SUFFIXES)
        if mark and rng.random() < 0.4:
            mark, suffix = "", f"{mark} {suffix[:1].upper()}{suffix[1:]}{'.' if rng.random() < 0.3 else ''}"
        elif last.open_ended or rng.random() < 0.5:
            suffix = ", " + suffix
        else:
            suffix = " " + suffix
    if suffix or mark:
        pieces.append(Piece(suffix + mark))
