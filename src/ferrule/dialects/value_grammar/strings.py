"""Strings that fit all of several schemas: any text, that of a pattern, or that of a format.

Formats are regular expressions: of each, texts that every checker takes, though not all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from ferrule.dialects.grammar import Grammar
from ferrule.dialects.value_grammar.any_values import make_string
from ferrule.dialects.value_grammar.patterns import PatternUnsupported, read_pattern
from ferrule.dialects.value_grammar.schema_parts import LoweringContext, Parts, SchemaPart
from ferrule.dialects.value_grammar.terms import Unsatisfiable, join
from ferrule.dialects.value_grammar.text_shapes import begin_differently, fit_length, write_shape

_SHORT = 64
_WAYS = 64
"""The ways to share out a length of at most `_SHORT` characters among the parts of a pattern."""
_NUMBER_FORMATS = frozenset({"int32", "int64", "float", "double"})
"""The formats of numbers, which mean nothing for a string."""
_LEAP_DAY = r"[1-9]\d(?:0[48]|[2468][048]|[13579][26])-02-29"
_DATE = (
    r"(?:[1-9]\d{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    rf"|02-(?:0[1-9]|1\d|2[0-8]))|{_LEAP_DAY})"
)
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
_TIME = rf"{_CLOCK}:[0-5]\d(?:\.\d{{1,6}})?(?:Z|[+-]{_CLOCK})"
_DAYS = r"(?:\d{1,4}Y(?:\d{1,4}M(?:\d{1,4}D)?)?|\d{1,4}M(?:\d{1,4}D)?|\d{1,4}D)"
_HOURS = r"T(?:\d{1,4}H(?:\d{1,4}M(?:\d{1,4}S)?)?|\d{1,4}M(?:\d{1,4}S)?|\d{1,4}S)"
_LABEL = r"[A-Za-z0-9]{1,20}(?:-[A-Za-z0-9]{1,20}){0,2}"
_HOST = rf"(?:{_LABEL}\.){{1,3}}[A-Za-z]{{2,20}}"
_EMAIL = rf"[A-Za-z0-9_+-]{{1,20}}(?:\.[A-Za-z0-9_+-]{{1,20}}){{0,2}}@{_HOST}"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rf"(?:{_OCTET}\.){{3}}{_OCTET}"
_GROUP = r"[0-9A-Fa-f]{1,4}"
_GROUPS = rf"(?:{_GROUP}(?::{_GROUP}){{0,2}})?"
_IPV6 = rf"(?:(?:{_GROUP}:){{7}}{_GROUP}|{_GROUPS}::{_GROUPS})"
_HEX = "[0-9A-Fa-f]"
_IN_PATH = rf"(?:[A-Za-z0-9._~!$&'()*,;+=:@-]|%{_HEX}{{2}})"
_PATH = rf"(?:/{_IN_PATH}*)*"
_QUERY = rf"(?:\?(?:{_IN_PATH}|[/?])*)?(?:#(?:{_IN_PATH}|[/?])*)?"
_URI = (
    rf"(?:[a-z][a-z0-9+-]{{1,19}}://(?:{_HOST}|localhost|{_IPV4})(?::[1-9]\d{{0,3}})?{_PATH}{_QUERY}"
    rf"|(?:urn:[a-z][a-z0-9-]{{1,20}}|mailto|tel):{_IN_PATH}+)"
)
_REFERENCE = rf"(?:{_URI}|/(?:{_IN_PATH}+{_PATH})?{_QUERY})"
_POINTER = r"(?:/(?:[^/~]|~[01])*)*"

FORMATS: Mapping[str, tuple[str, int]] = {
    "date": (_DATE, 10),
    "time": (_TIME, 21),
    "date-time": (f"{_DATE}T{_TIME}", 32),
    "duration": (rf"P(?:\d{{1,4}}W|{_DAYS}(?:{_HOURS})?|{_HOURS})", 64),
    "email": (_EMAIL, 254),
    "idn-email": (_EMAIL, 254),
    "hostname": (_HOST, 253),
    "idn-hostname": (_HOST, 253),
    "ipv4": (_IPV4, 15),
    "ipv6": (_IPV6, 39),
    "uuid": (rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}", 36),
    "uri": (_URI, 2_048),
    "uri-reference": (_REFERENCE, 2_048),
    "iri": (_URI, 2_048),
    "iri-reference": (_REFERENCE, 2_048),
    "json-pointer": (_POINTER, 1_024),
    "relative-json-pointer": (rf"(?:0|[1-9]\d{{0,3}})(?:#|{_POINTER})", 1_024),
}
"""The expression of each format, of a whole text, and the most characters that a text of it has."""


def lower_string(parts: Parts, context: LoweringContext) -> Grammar:
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


def _list_patterns(parts: Parts) -> Iterator[tuple[SchemaPart, str, str]]:
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
