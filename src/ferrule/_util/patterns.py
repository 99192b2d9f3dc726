"""Somebody else's regular expressions, such as a JSON Schema's, searched by an engine that never backtracks.

JSON Schema uses ECMA-262's syntax with the `u` flag. pydantic-core's engine (Rust's regex) takes time that is linear in
the text, and reads some characters differently, so each pattern is translated. A pattern that it doesn't support, that
the two read differently, or whose repetitions make it large is refused with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

MAX_PLACES = 5_000
"""The maximum number of places in a pattern, with its repetitions expanded; searching costs up to as many steps per
character."""

_MAX_FEW_PLACES = 300
_MAX_DEPTH = 100
_MAX_QUANTIFIER_LENGTH = len("{1000000,1000000}")
_CLASS_PLACES = 30
"""The cost of a Unicode class, which consists of some hundred ranges."""

_DIGITS = frozenset("0123456789")
_DIGIT = "0-9"
_WORD = "0-9A-Za-z_"
_SPACE = r"\t\n\x{b}\x{c}\r \x{a0}\x{feff}\x{2028}\x{2029}\p{Zs}"
_SETS = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_ANY = r"[^\n\r\x{2028}\x{2029}]"

_QUANTIFIER = re.compile(r"[*+?]|\{([0-9]+)(?:,([0-9]*))?\}")
_WITHOUT_LEAST = re.compile(r"\{,[0-9]*\}")
_GROUP = re.compile(r"\((?:\?(?::|(?P<folding>i):|P?<(?![=!])[^<>()]{1,100}>))?")
_LOOK_AROUND = re.compile(r"\?<?[=!]")
_PROPERTY = re.compile(r"[pP]\{[A-Za-z0-9_]{1,60}(?:=[A-Za-z0-9_]{1,60})?\}")
_HEXADECIMAL = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}")
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9A-Fa-f]{2})")


class PatternRefused(ValueError):  # noqa: N818 - the message continues the sentence
    """A regular expression that can't be searched; the text says why."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression that can be searched. `places` bounds the steps per character of a text."""

    places: int
    _matches: Callable[[str], bool]

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere in `text`; half of a surrogate pair is read as U+FFFD."""
        if not text.isascii():
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return self._matches(text)


def compile_pattern(pattern: str) -> Pattern:
    """Compile a pattern of ECMA-262 for searching. Raises `PatternRefused`."""
    translation = _Translator(pattern)
    written = translation.translate()
    made = (_few_places if translation.places <= _MAX_FEW_PLACES else _many_places)(written)
    if isinstance(made, str):
        raise PatternRefused(made)
    return Pattern(translation.places, made)


def _build_matcher(written: str) -> Callable[[str], bool] | str:
    """The search function for a translated pattern, or why there is none."""
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        schema = core_schema.str_schema(pattern=written, regex_engine="rust-regex", strict=True)
        return SchemaValidator(schema).isinstance_python
    except SchemaError as error:
        is_large = "size limit" in str(error)
        return "it is too large" if is_large else "the engine without backtracking can't read it"


# Cached separately, since a pattern with many places may take some megabytes.
_few_places = lru_cache(maxsize=256)(_build_matcher)
_many_places = lru_cache(maxsize=8)(_build_matcher)


@dataclass(slots=True)
class _Group:
    """The content of two parentheses: its places so far, and those of the last atom, None if there is none that may be
    repeated."""

    places: int = 0
    atom: int | None = None


@dataclass(slots=True)
class _Translator:
    """Translates a pattern of ECMA-262 to the syntax of Rust's regex, from left to right."""

    source: str
    at: int = 0
    out: list[str] = field(default_factory=list)
    groups: list[_Group] = field(default_factory=lambda: [_Group()])
    places: int = 0

    def translate(self) -> str:
        """Translate the pattern; sets `places`. Raises `PatternRefused`."""
        if self.source.startswith("(?i)"):  # how Python and Rust write a flag that ECMA-262 puts outside the pattern
            self.at = len("(?i)")
            self.out.append("(?i)")
        while self.at < len(self.source):
            self._take_one()
            if self.groups[-1].places > MAX_PLACES:
                raise PatternRefused("its repetitions make it too large")
        if len(self.groups) > 1:
            raise PatternRefused("a group isn't closed")
        self.places = self.groups[0].places + 1
        return "".join(self.out)

    def _take_one(self) -> None:
        character = self.source[self.at]
        if character == "(":
            self._open()
        elif character == ")":
            self._close()
        elif quantifier := _QUANTIFIER.match(self.source, self.at):
            self._repeat(quantifier)
        elif character == "[":
            self._add(*self._take_class())
        elif character == "\\":
            self._take_escape()
        else:
            self.at += 1
            if character in "^$|":
                self.out.append(character)
                self.groups[-1].atom = None
            elif character == ".":
                self._add(_ANY, 1)
            elif _WITHOUT_LEAST.match(self.source, self.at - 1):
                raise PatternRefused("engines read '{,' differently")
            else:
                self._add(_escape_literal(ord(character)), 1)

    def _add(self, text: str, places: int) -> None:
        self.out.append(text)
        self.groups[-1].places += places
        self.groups[-1].atom = places

    def _open(self) -> None:
        opening = _GROUP.match(self.source, self.at)
        assert opening is not None
        if opening[0] == "(" and self.source.startswith("?", opening.end()):
            is_around = _LOOK_AROUND.match(self.source, opening.end())
            raise PatternRefused("it has a lookaround" if is_around else "it has a group that isn't in ECMA-262")
        if len(self.groups) > _MAX_DEPTH:
            raise PatternRefused("its groups are nested too deeply")
        self.at = opening.end()
        self.out.append("(?i:" if opening["folding"] else "(?:")
        self.groups.append(_Group())

    def _close(self) -> None:
        if len(self.groups) == 1:
            raise PatternRefused("it has an unmatched ')'")
        self.at += 1
        self._add(")", self.groups.pop().places + 1)

    def _repeat(self, found: re.Match[str]) -> None:
        group = self.groups[-1]
        if group.atom is None:
            raise PatternRefused("it repeats nothing, or a repetition")
        if len(found[0]) > _MAX_QUANTIFIER_LENGTH:
            raise PatternRefused("its repetitions make it too large")
        least = int(found[1]) if found[1] else 0
        most = int(found[2]) if found[2] else least
        if most < least:
            raise PatternRefused("a repetition's limits are in the wrong order")
        group.places += group.atom * (max(most, 1) - 1)
        group.atom = None
        self.at = found.end()
        # Greedy or not makes no difference to whether there is a match.
        if self.source.startswith("?", self.at):
            self.at += 1
        self.out.append(found[0])

    def _take_escape(self) -> None:
        """Take an escape outside a class."""
        name = self.source[self.at + 1 : self.at + 2]
        if name in ("b", "B"):
            self.at += 2
            self.out.append(rf"(?-u:\{name})")
            self.groups[-1].atom = None
        elif name.lower() in _SETS and name:
            self.at += 2
            self._add(f"[{'^' if name.isupper() else ''}{_SETS[name.lower()]}]", 1)
        elif name.lower() == "p" and name:
            self._add(self._take_property(), _CLASS_PLACES)
        else:
            self._add(_escape_literal(self._take_character()), 1)

    def _take_property(self) -> str:
        found = _PROPERTY.match(self.source, self.at + 1)
        if found is None:
            raise PatternRefused("engines read \\p without a name in braces differently")
        self.at = found.end()
        return "\\" + found[0]

    def _take_character(self) -> int:
        """Take the code point of an escaped character."""
        rest = self.source[self.at + 1 : self.at + 10]
        name = rest[:1]
        if found := _HEXADECIMAL.match(rest):
            self.at += 1 + found.end()
            return self._with_low_surrogate(int(found[1] or found[2] or found[3], 16))
        if name == "c" and rest[1:2].isascii() and rest[1:2].isalpha():
            self.at += 3
            return ord(rest[1]) % 32
        if name == "0" and rest[1:2] not in _DIGITS:
            self.at += 2
            return 0
        if not name or (name.isascii() and name.isalnum() and name not in _CONTROLS):
            raise PatternRefused("it has a backreference" if name in {*_DIGITS, "k"} else f"\\{name} isn't in ECMA-262")
        self.at += 2
        return _CONTROLS.get(name) or ord(name)

    def _with_low_surrogate(self, point: int) -> int:
        if 0xD800 <= point < 0xDC00 and (low := _LOW_SURROGATE.match(self.source, self.at)):
            self.at = low.end()
            return 0x10000 + ((point - 0xD800) << 10) + int(low[1], 16) - 0xDC00
        if point > 0x10FFFF or 0xD800 <= point < 0xE000:
            raise PatternRefused("an escape doesn't name a character")
        return point

    def _take_class(self) -> tuple[str, int]:
        """Take a class; returns it in the engine's syntax, with its places."""
        self.at += 1
        out = ["["]
        if self.source.startswith("^", self.at):
            self.at += 1
            out.append("^")
        if self.source.startswith("]", self.at):
            raise PatternRefused("engines read a class that begins with ']' differently")
        places = 1
        while not self.source.startswith("]", self.at):
            if self.at >= len(self.source):
                raise PatternRefused("a class isn't closed")
            text, cost = self._take_range()
            out.append(text)
            places += cost
        self.at += 1
        return "".join(out) + "]", 1 + places // 10

    def _take_range(self) -> tuple[str, int]:
        first = self._take_member()
        if isinstance(first, str):  # not a range, as browsers read it: a letter, "-" or "." in [\\w-.]
            return first, 10 * _CLASS_PLACES
        if not self.source.startswith("-", self.at) or self.source.startswith("-]", self.at):
            return _escape_literal(first), 1
        self.at += 1
        last = self._take_member() if self.at < len(self.source) else ""
        if isinstance(last, str) or first > last:
            raise PatternRefused("a class has an invalid range")
        return f"{_escape_literal(first)}-{_escape_literal(last)}", 1

    def _take_member(self) -> int | str:
        """Take a code point, or a set of them in the engine's syntax."""
        if self.source[self.at] != "\\":
            self.at += 1
            return _check_character(ord(self.source[self.at - 1]))
        name = self.source[self.at + 1 : self.at + 2]
        if name.lower() == "p" and name:
            return self._take_property()
        if name.lower() in _SETS and name:
            self.at += 2
            inside = _SETS[name.lower()]
            return f"[^{inside}]" if name.isupper() else inside
        if name == "b":
            self.at += 2
            return 8
        return self._take_character()


def _check_character(point: int) -> int:
    if 0xD800 <= point < 0xE000:
        raise PatternRefused("half of a surrogate pair is not a character")
    return point


def _escape_literal(point: int) -> str:
    """A character, written by its number if the engine could misread it."""
    character = chr(_check_character(point))
    return character if character.isascii() and character.isalnum() else f"\\x{{{point:x}}}"
