"""Invents tools: what is done (`patterns.txt`) with what (`nouns.txt`), in thousands of combinations.

A pattern is a tool template with `@noun`, `@nouns` and `@a` (the noun with its article) in its lines. Its parameter
`key` identifies one of the nouns, by a code or a name as the kind of noun has it.
"""

import keyword
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files

from ferrule.embedded.missing import split_name
from ferrule.training.synth.grammar import GrammarError
from ferrule.training.synth.tool_use.template_parsing import parse_tool_templates
from ferrule.training.synth.tool_use.templates import ToolTemplate
from ferrule.training.synth.wheel import pick
from ferrule.training.synth.words import draw_pseudo_word

_PATTERNS, _NOUNS = "patterns.txt", "nouns.txt"
_MODIFIED_SHARE, _MADE_UP_SHARE = 0.22, 0.06
_VOWELS = tuple("aeiou")
_NOUN_LINE = re.compile(r"(\w+): (.*)")
_KEYS = {
    "record": (
        "str from id; also @noun_id, id, @noun, reference, code, @noun_number, ref",
        "str from id; also id, @noun_id, number, @noun_code, which",
        "int 100..99999; also @noun_id, id, @noun_number, number, nr",
    ),
    "named": (
        "str from title; also name, @noun, @noun_name, title, which",
        "str from topic; also @noun, name, @noun_name, label, title",
        "str from word; also name, @noun_name, @noun, slug",
    ),
    "person": (
        "str from full_name; also name, @noun, @noun_name, full_name, who",
        "str from person; also name, @noun, first_name, who, person",
        "str from email; also email, @noun, @noun_email, address, contact",
        "str from username; also username, @noun, user, handle, login",
    ),
}


@dataclass(frozen=True, slots=True)
class Noun:
    """What a tool is about."""

    kind: str
    singular: str
    plural: str

    @property
    def with_article(self) -> str:
        """`an invoice`; close enough to English for what is read by a model."""
        is_vowel = self.singular.startswith(_VOWELS) and not self.singular.startswith(("user", "uni", "eu"))
        return f"{'an' if is_vowel or self.singular.startswith('x-') else 'a'} {self.singular}"


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A section of the patterns file; two of one `group` ask alike, and are never offered for the same noun."""

    group: str
    kinds: tuple[str, ...]
    line: int
    text: str


class ToolInventor:
    """Invents tools from the package's patterns and nouns."""

    def __init__(self) -> None:
        self._patterns = _read_patterns()
        self._nouns, self._modifiers = _read_nouns()

    def invent(self, rng: random.Random, like: ToolTemplate | None = None) -> ToolTemplate:
        """A tool; with `like`, if it is an invented one, another tool for the same noun."""
        noun = _find_noun(like, self._nouns) if like is not None and like.is_invented else None
        noun = noun or self._draw_noun(rng)
        pattern = pick(rng, _select(self._patterns, noun.kind))
        return _build(pattern, noun, int(rng.random() * len(_KEYS[noun.kind])))

    def _draw_noun(self, rng: random.Random) -> Noun:
        if rng.random() < _MADE_UP_SHARE:
            word = _draw_made_up_word(rng)
            return Noun(pick(rng, ("record", "named")), word, f"{word}s")
        noun = pick(rng, self._nouns)
        if rng.random() > _MODIFIED_SHARE:
            return noun
        modifier = pick(rng, self._modifiers)
        return Noun(noun.kind, f"{modifier} {noun.singular}", f"{modifier} {noun.plural}")


def _draw_made_up_word(rng: random.Random) -> str:
    """A made-up word that can name an argument, which `not` can't."""
    word = draw_pseudo_word(rng)
    while keyword.iskeyword(word):
        word = draw_pseudo_word(rng)
    return word


def list_nouns() -> tuple[Noun, ...]:
    """The listed nouns."""
    return _read_nouns()[0]


def list_invented_names() -> frozenset[str]:
    """The names of all tools that can be invented with a listed noun, as words: `get invoice`."""
    return frozenset(
        split_name(_put_into_name(name.strip(), noun))
        for pattern in _read_patterns()
        for line in pattern.text.splitlines()
        if line.startswith("name:")
        for name in line.removeprefix("name:").split("|")
        for noun in list_nouns()
        if noun.kind in pattern.kinds
    )


@cache
def _select(patterns: tuple[_Pattern, ...], kind: str) -> tuple[_Pattern, ...]:
    return tuple(pattern for pattern in patterns if kind in pattern.kinds)


def _find_noun(like: ToolTemplate, nouns: Sequence[Noun]) -> Noun | None:
    return next((noun for noun in nouns if noun.singular == like.domain), None)


@lru_cache(maxsize=2048)
def _build(pattern: _Pattern, noun: Noun, key: int) -> ToolTemplate:
    """The pattern for a noun. Raises `GrammarError` for a pattern that is no valid template then."""
    text = pattern.text.replace("KEY", _KEYS[noun.kind][key])
    lines = [_put_noun(line, noun) for line in text.splitlines()]
    tools, problems = parse_tool_templates({_PATTERNS: "\n" * (pattern.line - 1) + "\n".join(lines)})
    if problems:
        raise GrammarError(problems)
    (tool,) = tools
    return replace(tool, domain=noun.singular, section=pattern.group, is_invented=True)


def _put_noun(line: str, noun: Noun) -> str:
    if line.startswith("name:"):
        return _put_into_name(line, noun)
    if line.startswith("result: {"):
        line = line.replace('"@noun":', f'"{_put_into_name("@noun", noun)}":')
    head, also, names = line.partition("; also ")
    plain = head.replace("@a", noun.with_article).replace("@nouns", noun.plural).replace("@noun", noun.singular)
    return plain + also + _put_into_name(names, noun)


def _put_into_name(text: str, noun: Noun) -> str:
    singular, plural = (split_name(form).replace(" ", "_").replace("'", "") for form in (noun.singular, noun.plural))
    return text.replace("@nouns", plural).replace("@noun", singular)


@cache
def _read_patterns() -> tuple[_Pattern, ...]:
    """The sections of the patterns file; `== group: kinds` begins one."""
    found: list[_Pattern] = []
    text = (files("ferrule.training.synth.tool_use") / _PATTERNS).read_text("utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("=="):
            group, _, kinds = line[2:].partition(":")
            found.append(_Pattern(group.strip(), tuple(kinds.split()), number, f"== {group.strip()}\ndomain: @noun"))
        elif found and line.strip() and not line.startswith("#"):
            last = found[-1]
            found[-1] = replace(last, text=f"{last.text}\n{line.strip()}")
    return tuple(found)


@cache
def _read_nouns() -> tuple[tuple[Noun, ...], tuple[str, ...]]:
    """The nouns, and the words that are put before them."""
    nouns: list[Noun] = []
    modifiers: tuple[str, ...] = ()
    for line in (files("ferrule.training.synth.tool_use") / _NOUNS).read_text("utf-8").splitlines():
        match = _NOUN_LINE.fullmatch(line)
        if match is None or line.startswith("#"):
            continue
        entries = tuple(entry.strip() for entry in match[2].split(";"))
        if match[1] == "modifier":
            modifiers = entries
        else:
            pairs = (entry.split(" / ") for entry in entries)
            nouns += [Noun(match[1], singular, plural) for singular, plural in pairs]
    return tuple(nouns), modifiers
