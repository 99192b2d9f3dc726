"""Calls with recognisable values, which a notation writes to be compared: what they share is what every call has.

Characters that Unicode leaves to private use stand for values and for the markers in the text between them, so that no
comparison cuts a marker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Protocol, runtime_checkable

from ferrule.conversation import ToolCall
from ferrule.dialects.family import CallSyntax
from ferrule.dialects.grammar import CharacterSet, Grammar, GrammarSequence, LiteralText, MarkerText, Repetition
from ferrule.dialects.notations.pythonic import write_literal
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec

_FIRST_MARKER = 0xF0000
_PRIVATE = re.compile("[\U000f0000-\U0010fffd]")
KEYS = ("\U00100001", "\U00100002")
"""Keys that no tool has."""
PLACE, _PLACE_OF_ID = "\U00100003", "\U00100004"
"""What stands for a value, or for the id of a call, in a written call."""
SAMPLE_ID = "call73519"
NUMBER, OTHER_NUMBER = 73401, 73402
SAMPLES: Mapping[str, Any] = {
    "string": PLACE,
    "integer": NUMBER,
    "number": NUMBER,
    "boolean": True,
    "null": None,
    "array": ["a", True],
    "object": {"a": True},
}
"""A value of each type of JSON Schema, to be found in a call that was written with it."""
_ID_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_LONGEST_ID = 64


@runtime_checkable
class IdentifyingSyntax(Protocol):
    """A syntax whose ids have a form of their own."""

    def describe_id(self, name: str) -> tuple[str, Grammar] | None:
        """(the id of a call of the tool with this name, what else it can be); None for ids of any form."""
        ...


@dataclass(frozen=True, slots=True)
class Frame:
    """What all calls of a tool have around and between their arguments."""

    before: str
    between: str
    after: str

    def cut(self, before: str, after: str) -> tuple[str, str]:
        """Of the text before and after a call's only value, what belongs to its argument."""
        if not (before.startswith(self.before) and after.endswith(self.after)):
            raise DialectError("its arguments are written differently in different calls")
        return before.removeprefix(self.before), after.removesuffix(self.after)


class SampleCalls:
    """Writes calls of one tool. Raises `DialectError` for a name or an argument that the syntax can't write."""

    def __init__(self, syntax: CallSyntax, markers: Sequence[str], spec: ToolSpec) -> None:
        self._syntax, self._spec = syntax, spec
        names = sorted(filter(None, markers), key=len, reverse=True)
        self._marks = {name: chr(_FIRST_MARKER + at) for at, name in enumerate(names)}
        self._names = {mark: name for name, mark in self._marks.items()}
        self._pattern = re.compile("|".join(map(re.escape, names)) if names else "(?!)")
        declared = syntax.describe_id(spec.name) if isinstance(syntax, IdentifyingSyntax) else None
        self._id, self._other_ids = declared or (SAMPLE_ID, Repetition(CharacterSet(_ID_CHARACTERS), 1, _LONGEST_ID))

    def check_names(self) -> None:
        """Raise `DialectError` for a name that looks like a marker."""
        for name in (self._spec.name, *get_properties(self._spec)):
            if self._pattern.search(name):
                raise DialectError(f"the name {name!r} holds one of its markers")

    def write(self, arguments: Mapping[str, Any]) -> str:
        """A call with these arguments."""
        call = ToolCall(self._id, self._spec.name, json.dumps(arguments, ensure_ascii=False))
        text = self._syntax.write((call,)).replace(self._id, _PLACE_OF_ID)
        return self._pattern.sub(lambda found: self._marks[found.group()], text)

    def write_text(self, name: str, value: str) -> str:
        """The text that stands for a string in a call where it is the only argument."""
        before, after = self.find_value(name, "string")
        written = self.write({name: value})
        if not (written.startswith(before) and written.endswith(after)):
            raise DialectError(f"{value!r} is written differently from other values of {name!r}")
        text = written[len(before) : len(written) - len(after)]
        return _PRIVATE.sub(lambda found: self._names.get(found.group(), found.group()), text)

    def describe(self, text: str, value: Grammar | None = None) -> Grammar:
        """A written text as a grammar, with a value in its place."""
        items: list[Grammar] = []
        at = 0
        for private in _PRIVATE.finditer(text):
            if private.start() > at:
                items.append(LiteralText(text[at : private.start()]))
            character = private.group()
            if character == _PLACE_OF_ID:
                items.append(self._other_ids)
            elif character == PLACE and value is not None:
                items.append(value)
            else:
                items.append(MarkerText(self._names[character]))
            at = private.end()
        if at < len(text):
            items.append(LiteralText(text[at:]))
        return items[0] if len(items) == 1 else GrammarSequence(tuple(items))

    def find_frame(self) -> Frame:
        """What surrounds and separates arguments, found by comparing a call with one and a call with two."""
        key, other = KEYS
        one = self.write({key: NUMBER})
        two = self.write({key: NUMBER, other: OTHER_NUMBER})
        before, _, after = one.rpartition(str(NUMBER))
        head, _, attributes = before.partition(key)
        # The key may be in a closer, too.
        end = f"{other}{attributes}{OTHER_NUMBER}{after.replace(key, other)}"
        middle = two.removeprefix(f"{before}{NUMBER}").removesuffix(end)
        # Both the next argument and the end of the call may begin with a bracket, but an argument doesn't end in one.
        closing = _find_beginning(middle, after).rstrip("<")
        opening = _find_beginning(middle[len(closing) :][::-1], head[::-1])[::-1]
        between = middle[len(closing) : len(middle) - len(opening)]
        return Frame(head.removesuffix(opening), between, after.removeprefix(closing))

    def find_value(self, name: str, kind: str) -> tuple[str, str]:
        """The text before and after the only argument of a call, a value of the type `kind`."""
        text = self.write({name: SAMPLES[kind]})
        start, end, _ = find_sample(text, SAMPLES[kind])
        return text[:start], text[end:]

    def sort_names(self) -> list[str]:
        """The names of the tool's parameters, in the order in which a call has them."""
        numbers = {name: NUMBER + at for at, name in enumerate(get_properties(self._spec))}
        text = self.write(numbers)
        return sorted(numbers, key=lambda name: text.rfind(str(numbers[name])))


def find_sample(text: str, value: Any) -> tuple[int, int, bool]:
    """(where a value begins and ends in a written call, whether it is a Python literal)."""
    literals = [json.dumps(value, ensure_ascii=False), write_literal(value), repr(value)]
    ways = [(literal, at > 0) for at, literal in enumerate(literals)]
    if isinstance(value, str):
        ways = [(f'"{value}"', False), (f"'{value}'", True), (value, False)]
    for literal, is_python in ways:
        start = text.rfind(literal)
        if start >= 0:
            return start, start + len(literal), is_python
    raise DialectError(f"{value!r} is written in a way of its own")


def get_properties(spec: ToolSpec) -> Mapping[str, Any]:
    """The parameters of a tool, by their names."""
    properties = spec.parameters.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _find_beginning(one: str, other: str) -> str:
    """What both begin with."""
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return "".join(character for character, _ in alike)
