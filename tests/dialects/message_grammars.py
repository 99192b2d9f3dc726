"""Whether a text is in a grammar, and texts that are, for the terms that describe messages.

Both take a grammar as what it says: values of a schema by the schema's own validator, text up to the first closer.
"""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator

from ferrule.dialects.grammar import (
    CharacterSet,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    JsonValue,
    LiteralText,
    MarkerText,
    Repetition,
    TextUntil,
)
from ferrule.dialects.notations.pythonic import write_literal

AWKWARD = [
    "", "a", "Oslo", "two words", " lead", "trail ", "\n", "a\nb", "\ta\t", '"', "'", '"quoted"', "it's", "\\", "\\n",
    "Zürich", "日本", "🙂", "null", "None", "true", "1", "-2.5", "{", "}", "[1, 2]", '{"a": 1}', "<", ">", "a < b & c",
    "&amp;", "]]>", "<x>", "</x>", "]", "]<", "```", "`", "<tool_call>", "</tool_call>", "<|x|>", "<think>", ",", ":",
]  # fmt: skip
WORDS = "abc ABC_0,.;:!?()'\"\n<>/{}[]|`é日"


def is_in(grammar: Grammar, text: str) -> bool:
    return len(text) in find_ends((grammar,), text, 0)


def find_ends(grammars: tuple[Grammar, ...], text: str, at: int) -> set[int]:
    """Where these, one after the other, may end if they begin at a place of a text."""
    places = {at}
    for one in grammars:
        places = {end for place in places for end in _find_ends(one, text, place)}
    return places


def _find_ends(one: Grammar, text: str, at: int) -> set[int]:
    if isinstance(one, LiteralText | MarkerText):
        return {at + len(one.text)} if text.startswith(one.text, at) else set()
    if isinstance(one, CharacterSet):
        is_one = at < len(text) and (text[at] in one.characters) is not one.is_excluded
        return {at + 1} if is_one else set()
    if isinstance(one, TextUntil):
        return {min((found for closer in one.closers if (found := text.find(closer, at)) >= 0), default=len(text))}
    if isinstance(one, JsonValue):
        return _find_value_ends(one, text, at)
    if isinstance(one, GrammarSequence):
        return find_ends(one.items, text, at)
    if isinstance(one, GrammarChoice):
        return {end for option in one.options for end in _find_ends(option, text, at)}
    assert isinstance(one, Repetition)
    found = {at} if one.minimum == 0 else set()
    places, count = {at}, 0
    while places and (one.maximum is None or count < one.maximum):
        places = {end for place in places for end in _find_ends(one.item, text, place)} - found
        count += 1
        found |= places if count >= one.minimum else set()
    return found


def _find_value_ends(one: JsonValue, text: str, at: int) -> set[int]:
    validator = Draft202012Validator(one.schema)
    ends = set()
    for value, end in _parse_values(text, at, is_python=one.is_python):
        if validator.is_valid(value) and not any(closer in text[at:end] for closer in one.closers):
            ends.add(end)
    return ends


def _parse_values(text: str, at: int, *, is_python: bool) -> Iterator[tuple[Any, int]]:
    if not is_python:
        try:
            yield json.JSONDecoder().raw_decode(text, at)
        except ValueError:
            return
    for end in range(at + 1, len(text) + 1) if is_python else ():
        try:
            yield ast.literal_eval(text[at:end]), end
        except (ValueError, SyntaxError):
            continue


class TextMaker:
    """Makes random texts of grammars, as pieces: (a text, whether it is a marker)."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def make(self, one: Grammar) -> list[tuple[str, bool]]:
        random = self._random
        if isinstance(one, LiteralText | MarkerText):
            return [(one.text, isinstance(one, MarkerText))]
        if isinstance(one, CharacterSet):
            found = one.characters
            if one.is_excluded:
                found = "".join(character for character in WORDS if character not in one.characters)
            return [(random.choice(found), False)]
        if isinstance(one, TextUntil):
            return [(self._make_text(one.closers), False)]
        if isinstance(one, JsonValue):
            return [(self._write_value(one), False)]
        if isinstance(one, GrammarSequence):
            return [piece for item in one.items for piece in self.make(item)]
        if isinstance(one, GrammarChoice):
            return self.make(random.choice(one.options))
        assert isinstance(one, Repetition)
        most = one.minimum + 3 if one.maximum is None else min(one.maximum, one.minimum + 3)
        return [piece for _ in range(random.randint(one.minimum, most)) for piece in self.make(one.item)]

    def _make_text(self, closers: tuple[str, ...]) -> str:
        text = ""
        for _ in range(self._random.randint(0, 3)):
            piece = self._random.choice([*AWKWARD, *(closer[:-1] for closer in closers)])
            text += piece if not any(closer in text + piece for closer in closers) else ""
        return text

    def _write_value(self, one: JsonValue) -> str:
        value = self.draw(one.schema, one.schema)
        text = write_literal(value) if one.is_python else json.dumps(value, ensure_ascii=False)
        for closer in one.closers:
            text = text.replace(closer, f"\\u{ord(closer[0]):04x}{closer[1:]}")
        return text

    def draw(self, schema: Any, root: Any) -> Any:
        """A value that the schema allows."""
        random = self._random
        if "$ref" in schema:
            return self.draw(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
        if "anyOf" in schema:
            return self.draw(random.choice(schema["anyOf"]), root)
        if "enum" in schema:
            return random.choice(schema["enum"])
        kinds = schema.get("type") or ["string", "integer", "boolean", "null"]
        kind = random.choice(kinds) if isinstance(kinds, list) else kinds
        if kind == "object":
            named = schema.get("properties", {})
            kept = [key for key in named if key in schema.get("required", ()) or random.random() < 0.6]
            return {key: self.draw(named[key], root) for key in kept}
        if kind == "array":
            count = random.randint(schema.get("minItems", 0), schema.get("maxItems", 3))
            return [self.draw(schema.get("items", {}), root) for _ in range(count)]
        values = {"string": random.choice(AWKWARD) + random.choice(AWKWARD), "integer": random.randint(-50, 10**6)}
        values |= {"number": random.choice([0, 1, -2.5, 1e20]), "boolean": random.random() < 0.5, "null": None}
        return values[kind]
