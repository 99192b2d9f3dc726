"""Texts of a grammar: at random, and the shortest one."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from random import Random
from typing import Any

from grammar_matching import is_text_of
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
from ferrule.dialects.value_grammar.schema_values import lower_values

AWKWARD = [
    "", "a", "Oslo", "two words", " lead", "trail ", "\n", "a\nb", "\ta\t", '"', "'", '"quoted"', "it's", "\\", "\\n",
    "Zürich", "日本", "🙂", "null", "None", "true", "1", "-2.5", "{", "}", "[1, 2]", '{"a": 1}', "<", ">", "a < b & c",
    "&amp;", "]]>", "<x>", "</x>", "]", "]<", "```", "`", "<tool_call>", "</tool_call>", "<|x|>", "<think>", ",", ":",
]  # fmt: skip
_DUMPED = [json.dumps(text)[1:-1] for text in AWKWARD]
INSIDE = [*_DUMPED, *(text.replace("<", "\\u003c") for text in _DUMPED if "<" in text)]
"""The awkward texts as they are in a string."""
OTHERS = "aZbcABC09 _-/.,;:!?()'\"`\n<>{}[]|\\é日漢😀\u2028\x7f@"
"""Characters for sets that exclude some."""


class TextMaker:
    """Makes random texts of grammars, as pieces: (a text, whether it is a marker). Repetitions are short, unless they
    end at a small number, which is then tried too."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def make(self, term: Grammar) -> list[tuple[str, bool]]:
        if isinstance(term, LiteralText | MarkerText):
            return [(term.text, isinstance(term, MarkerText))]
        if isinstance(term, CharacterSet):
            return [(self._random.choice(list_characters(term)), False)]
        if isinstance(term, TextUntil):
            return [(self._make_text(term.closers), False)]
        if isinstance(term, JsonValue):
            return [(self._write_value(term), False)]
        if isinstance(term, GrammarSequence):
            return [piece for item in term.items for piece in self.make(item)]
        if isinstance(term, GrammarChoice):
            return self.make(self._random.choice(term.options))
        assert isinstance(term, Repetition), term
        return self._make_repeated(term)

    def _make_repeated(self, term: Repetition) -> list[tuple[str, bool]]:
        random = self._random
        inside = random.choice(INSIDE)
        if random.random() < 0.3 and is_text_of(term, inside):
            return [(inside, False)]
        times = term.minimum + random.choice((0, 1, 2, 5))
        if term.maximum is not None:
            times = min(times, term.maximum)
            if term.maximum < 20:
                times = random.choice((term.minimum, times, term.maximum))
        return [piece for _ in range(times) for piece in self.make(term.item)]

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


def write_random(term: Grammar, random: Random) -> str:
    return "".join(text for text, _ in TextMaker(random).make(term))


def list_characters(term: CharacterSet) -> str:
    if not term.is_excluded:
        return term.characters
    return "".join(one for one in OTHERS if one not in term.characters) or "\u2603"


def write_shortest(term: Grammar, known: dict[int, str] | None = None) -> str:
    """The first one of the shortest texts of a grammar without values of a schema."""
    known = {} if known is None else known
    if id(term) not in known:
        known[id(term)] = _write_shortest(term, known)
    return known[id(term)]


def _write_shortest(term: Grammar, known: dict[int, str]) -> str:
    if isinstance(term, LiteralText | MarkerText):
        return term.text
    if isinstance(term, CharacterSet):
        return list_characters(term)[0]
    if isinstance(term, TextUntil):
        return ""
    if isinstance(term, GrammarSequence):
        return "".join(write_shortest(item, known) for item in term.items)
    if isinstance(term, GrammarChoice):
        return min((write_shortest(option, known) for option in term.options), key=len)
    assert isinstance(term, Repetition)
    item = write_shortest(term.item, known)
    assert item, "what is repeated must not be empty"
    return item * term.minimum


def parse(text: str, is_python: bool) -> Any:
    """The value that a text of a value is read as."""
    return ast.literal_eval(text) if is_python else json.loads(text)


def find_problems(schema: Any, is_python: bool, count: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """The texts, of some at random and the shortest one, that aren't valid by a schema without losses, and why."""
    grammar, losses = lower_values(JsonValue(schema, is_python))
    random = Random(seed)
    validator = Draft202012Validator(schema)
    for text in (write_shortest(grammar), *(write_random(grammar, random) for _ in range(count))):
        value = parse(text, is_python)
        problem = None if losses else next(validator.iter_errors(value), None)
        if problem is not None:
            yield text, problem.message
