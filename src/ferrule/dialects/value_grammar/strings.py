"""Strings that fit all of several schemas."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ferrule.dialects.grammar import Grammar
from ferrule.dialects.value_grammar.any_values import make_string
from ferrule.dialects.value_grammar.formats import FORMATS
from ferrule.dialects.value_grammar.limits import Unsatisfiable
from ferrule.dialects.value_grammar.parts import Context, Part, Parts
from ferrule.dialects.value_grammar.patterns import PatternUnsupported, read_pattern
from ferrule.dialects.value_grammar.terms import join
from ferrule.dialects.value_grammar.text_shapes import begin_differently, fit_length, write_shape

_SHORT = 64
_WAYS = 64
"""The ways to share out a length of at most `_SHORT` characters among the parts of a pattern."""
_NUMBER_FORMATS = frozenset({"int32", "int64", "float", "double"})
"""The formats of numbers, which mean nothing for a string."""


def lower_string(parts: Parts, context: Context) -> Grammar:
    """A string: of the first pattern or format for which there are texts that are long enough. Raises
    `Unsatisfiable`."""
    minimum = max((int(part.schema.get("minLength", 0)) for part in parts), default=0)
    bounds = [int(part.schema["maxLength"]) for part in parts if "maxLength" in part.schema]
    maximum = min(bounds, default=max(context.limits.string_characters, minimum))
    if minimum > maximum:
        raise Unsatisfiable(f"{parts[0].place or 'the schema'}: at least {minimum} characters, at most {maximum}")
    found: Grammar | None = None
    enforced: tuple[str, str] | None = None
    for part, word, text in _list_patterns(parts):
        if (word, text) == enforced:
            continue
        try:
            if found is not None:
                raise PatternUnsupported(f"only {enforced and enforced[0]} {enforced and enforced[1]!r} is")
            found, enforced = _make_text(word, text, minimum, maximum, context.is_python), (word, text)
        except PatternUnsupported as reason:
            context.note_loss(part, word, str(reason))
        except Unsatisfiable as error:
            raise Unsatisfiable(f"{part.place or 'the schema'}: {error}") from None
    return found or make_string(minimum, maximum, context.is_python)


def _list_patterns(parts: Parts) -> Iterator[tuple[Part, str, str]]:
    """The patterns, and after them the formats, each with its part and keyword."""
    for word in ("pattern", "format"):
        for part in parts:
            text = part.schema.get(word)
            if isinstance(text, str) and text not in _NUMBER_FORMATS:
                yield part, word, text


@lru_cache(1024)
def _make_text(word: str, text: str, minimum: int, maximum: int, is_python: bool) -> Grammar:
    """A string of a pattern or format. Raises `PatternUnsupported`, or `Unsatisfiable` if no text of the pattern has so
    many characters."""
    if word == "format":
        if text not in FORMATS:
            raise PatternUnsupported(f"{text!r} isn't a known format")
        expression, longest = FORMATS[text]
        shape = read_pattern(f"^(?:{expression})$")
        maximum = min(maximum, longest)
    else:
        shape = read_pattern(text)
        if shape.least > maximum or shape.most < minimum:
            raise Unsatisfiable(f"no text of {text!r} has {minimum} to {maximum} characters")
    # The shorter a text has to be, the more it matters which of its parts is long.
    fitting = fit_length(shape, minimum, maximum, _WAYS if maximum <= _SHORT else 1)
    if fitting is None:
        raise PatternUnsupported(f"no text of it with {minimum} to {maximum} characters is found")
    return join('"', write_shape(fitting, is_python), '"')


@lru_cache(1024)
def make_pattern_key(pattern: str, maximum: int, is_python: bool) -> Grammar:
    """A string that a pattern is found in, of at most `maximum` characters unless it is longer by nature. Raises
    `PatternUnsupported`."""
    shape = read_pattern(pattern)
    fitting = fit_length(shape, 0, max(maximum, shape.least))
    if fitting is None:
        raise PatternUnsupported("no text of it that is short enough is found")
    return join('"', write_shape(fitting, is_python), '"')


def exclude_each_other(pattern: str, other: str) -> bool:
    """Whether it is plain that no text has both patterns. Raises `PatternUnsupported`."""
    return begin_differently(read_pattern(pattern), read_pattern(other))
