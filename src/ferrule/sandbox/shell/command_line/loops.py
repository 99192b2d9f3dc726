"""What the variable of a `for` loop may stand for, where that is certain: literal words, or a pattern in quotes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ferrule.sandbox.shell.command_line.syntax import Word

__all__ = ["expand_variables", "find_loop_values"]

_MAX_WORDS = 32
_LITERAL = re.compile(r"[\w./+@:,%=-]+", re.ASCII)
# A dot that an option or the end of a command follows is the folder of a `find`.
_CHANGING = re.compile(rb"(?:^|[\s;&|({])(?:\.[ \t]+[^-\s|;&)]|(?:source|eval)\s)")
_USE = re.compile(rb'(")?\$(?:\{(\w+)\}|(\w+))(?(1)")')


def find_loop_values(data: bytes, name: str, words: Sequence[Word]) -> tuple[Word, ...]:
    """The words that the variable `name` of a loop over `words` stands for in its body; empty if that isn't certain.

    Nothing else in the command line may mention the variable, except to use its value.
    """
    if not words or len(words) > _MAX_WORDS or _CHANGING.search(data):
        return ()
    mentions = re.findall(rb"(\$\{?|for[ \t]+)?\b" + name.encode() + rb"\b", data)
    if b"" in mentions or sum(mention.startswith(b"for") for mention in mentions) != 1:
        return ()
    literal = all(word.text is not None and _LITERAL.fullmatch(word.text) for word in words)
    patterns = all(word.text is not None or (word.has_pattern and not word.has_tilde) for word in words)
    return tuple(words) if literal or patterns else ()


def expand_variables(
    data: bytes, words: Sequence[Word], variables: Mapping[str, tuple[Word, ...]]
) -> Iterator[tuple[Word, ...]]:
    """Yield the words of a command with each value of the variables; unchanged where too many, or not certain."""
    used: dict[str, tuple[Word, ...]] = {}
    places: dict[int, str] = {}
    for place, word in enumerate(words):
        found = _USE.fullmatch(data, word.start, word.end) if word.text is None and place else None
        name = (found[2] or found[3]).decode() if found else ""
        values = variables.get(name, ())
        # Without quotes, the shell splits the names that a pattern matches, and a part of one may lead anywhere.
        if found and values and (found[1] or all(value.is_single or _is_literal(value) for value in values)):
            places[place], used[name] = name, values
    combinations = 1
    for values in used.values():
        combinations *= len(values)
    if not places or combinations > _MAX_WORDS:
        yield tuple(words)
        return
    for chosen in itertools.product(*used.values()):
        value = dict(zip(used, chosen, strict=True))
        yield tuple(
            replace(value[places[place]], start=word.start, end=word.end) if place in places else word
            for place, word in enumerate(words)
        )


def _is_literal(word: Word) -> bool:
    return word.text is not None and _LITERAL.fullmatch(word.text) is not None
