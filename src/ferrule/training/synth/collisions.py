"""Finds templates that could have produced a given request: the test that held-out phrasings are held out.

A template with open slots is compared with a request after removing casing, white space, quotes and punctuation at the
end of sentences from both, unifying number words, and removing the generator's own openers and suffixes from the
request.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from ferrule.training.synth.grammar import TEXT_SLOTS, Choice, Node, Phrasing, Section, Slot, find_slots, strip_number
from ferrule.training.synth.noise import ASKING, OPENERS, REQUESTING, SUFFIXES
from ferrule.training.synth.number_words import NUMBER_WORDS

# One character that represents any number word, so that "two" and "seventy" look alike.
_WORD = "№"
_DIGITS = r"\d[\d.,]*|\.\d+"
_NUMBER = (
    rf"\(?(?:negative |minus )?[-+−]?[$€£]?"
    rf"(?:(?:{_DIGITS})(?: ?(?:k|m|bn|{_WORD}))?|(?:an? |half a )?{_WORD}(?:[ -](?:and |point )?{_WORD})*"
    rf"|point(?: {_WORD})+)\)?"
)
_EXPRESSION = r"[\d\s.,+\-−*/÷×x·:^%()]+"
_LIST = rf"{_NUMBER}(?:(?:,| |, ?and | and ){_NUMBER})+"
_TEXT = dict.fromkeys(TEXT_SLOTS, ".+") | {
    "expr": _EXPRESSION, "letter": ".", "word": "[^ ]+", "nth": "[^ ]+", "list": _LIST,
}  # fmt: skip
_FEWEST_WORDS = 4
# Punctuation at the end of a request may be missing, so it is not compared there.
_MARK = re.compile(r"\\[.?]|[!…,;:]")
_NUMBER_WORDS = re.compile(r"\b(?:" + "|".join(sorted(NUMBER_WORDS, key=len, reverse=True)) + r")s?\b")
_SIGN = re.compile(r"\s*([+\-*/÷×=^%:,])\s*")
# A space may be missing next to anything but a letter or digit: "2+2", or an omitted option with its own space.
_SPACE = r"(?: +|(?<=\W)|(?=\W)|\A|\Z)"
_QUOTES = str.maketrans("", "", "\"'`“”‘’«»´")
_END = ".?!…,;: "
_OPENER = re.compile(r"(?:" + "|".join(re.escape(text) for text in
    sorted({text.translate(_QUOTES) for text in (*OPENERS, *ASKING, *REQUESTING)}, key=len, reverse=True)
) + r")(?:\s*[,:!.\-]\s*|\s+)")  # fmt: skip
_SUFFIX = re.compile(r"[\s,.?!]+(?:" + "|".join(re.escape(text) for text in
    sorted({text.translate(_QUOTES) for text in SUFFIXES}, key=len, reverse=True)
) + r")\Z")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Collision:
    """A template line that could have produced a request, named by its id."""

    file: str
    line: int
    id: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.id}"


@dataclass(slots=True)
class _Index:
    """Request variants, and for each literal of a template the set (as bits) of those that contain it."""

    variants: list[str]
    with_number: int = 0
    containing: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.with_number = self._test_all(lambda text: _WORD in text or any(char.isdigit() for char in text))

    def _test_all(self, test: Callable[[str], bool]) -> int:
        return sum(1 << place for place, text in enumerate(self.variants) if test(text))

    def find_possible(self, node: Node, numbers: frozenset[str]) -> int:
        """The variants that contain every literal that a node needs: the only ones to match a pattern against."""
        found = (1 << len(self.variants)) - 1
        for item in node:
            if isinstance(item, Choice):
                any_of = 0
                for alternative in item.alternatives:
                    any_of |= self.find_possible(alternative, numbers)
                found &= any_of
            elif isinstance(item, Slot):
                found &= self.with_number if item.name in numbers else found
            else:
                for fragment in _find_fragments(item):
                    if fragment not in self.containing:
                        self.containing[fragment] = self._test_all(partial(_contains, fragment))
                    found &= self.containing[fragment]
        return found


def _contains(fragment: str, text: str) -> bool:
    return fragment in text


def normalise(text: str) -> str:
    """A request or a literal without casing, quotes and spaces next to signs; all number words are alike."""
    plain = _NUMBER_WORDS.sub(_WORD, text.lower().translate(_QUOTES))
    return re.sub(r"\s+", " ", _SIGN.sub(r"\1", plain))


def list_variants(prompt: str) -> set[str]:
    """The normalised forms of a request: unchanged, and with openers and suffixes removed one by one."""
    plain = " ".join(prompt.lower().translate(_QUOTES).split()).strip(_END)
    found: set[str] = set()
    waiting = [plain]
    while waiting:
        text = waiting.pop().strip(_END)
        if not text or text in found:
            continue
        found.add(text)
        opener = _OPENER.match(text)
        if opener:
            waiting.append(text[opener.end() :])
        suffix = _SUFFIX.search(text)
        if suffix:
            waiting.append(text[: suffix.start()])
    return {normalise(text) for text in found}


def compile_pattern(phrasing: Phrasing, section: Section) -> re.Pattern[str]:
    """The phrasing with its slots open, for `fullmatch` on a normalised request.

    A number slot matches digits and number words, a list of numbers two or more of them, an expression slot digits and
    operators, a letter one character, a word or an ordinal anything without a space, other slots anything. A named list
    matches anything if at least four words surround it; with fewer, as in "what is {topic}", that would match any
    request: there the list matches only its entries.
    """
    words = re.findall(r"[a-z]+", " ".join(item.lower() for item in phrasing.node if isinstance(item, str)))
    return re.compile(_Opening(section, len(words) >= _FEWEST_WORDS).expression(phrasing.node))


def is_frameless(phrasing: Phrasing, section: Section) -> bool:
    """Whether a line of a section without a call is only random words, such as a bare `{phrase}`.

    It teaches that nonsense is refused; it has no wording that could be held out, and with open slots it matches
    everything.
    """
    is_bare = all(
        isinstance(item, Slot) or (isinstance(item, str) and not re.search(r"\w", item)) for item in phrasing.node
    )
    return section.call is None and is_bare


def find_number_slots(section: Section) -> frozenset[str]:
    """The slots of a section's phrasings that contain numbers."""
    names = {name for phrasing in section.phrasings for name in find_slots(phrasing.node)}
    return frozenset(name for name in names if strip_number(name) not in TEXT_SLOTS and name not in section.lists)


@dataclass(frozen=True, slots=True)
class _Opening:
    """Writes the slots of a section's phrasing as a regular expression."""

    section: Section
    lists_open: bool

    def expression(self, node: Node) -> str:
        written = []
        for item in node:
            if isinstance(item, Choice):
                written.append(f"(?:{'|'.join(map(self.expression, item.alternatives))})")
            elif isinstance(item, Slot):
                written.append(self._write_slot(item))
            else:
                literal = _MARK.sub(lambda match: rf"(?:{match[0]}|\Z)", re.escape(normalise(item)))
                written.append(literal.replace(r"\ ", _SPACE))
        return "".join(written)

    def _write_slot(self, slot: Slot) -> str:
        if slot.name in self.section.lists:
            entries = "|".join(re.escape(normalise(entry)) for entry in self.section.lists[slot.name])
            return ".+" if self.lists_open else f"(?:{entries})"
        return _TEXT[slot.base] if slot.base in TEXT_SLOTS else _NUMBER


def _find_fragments(literal: str) -> list[str]:
    """The parts of a literal that a request must contain: its runs of characters without optional marks."""
    return [run for run in re.split(r"[.?!…,;:\s]", normalise(literal)) if run]


def find_collisions(prompts: Mapping[str, str], sections: Iterable[Section]) -> list[Collision]:
    """Every pair of a template line and a request (by id) that the line could have produced."""
    owners: list[str] = []
    texts: list[str] = []
    for identifier, prompt in prompts.items():
        for variant in sorted(list_variants(prompt)):
            owners.append(identifier)
            texts.append(variant)
    index = _Index(texts)
    found: set[Collision] = set()
    for section in sections:
        numbers = find_number_slots(section)
        for phrasing in section.phrasings:
            if is_frameless(phrasing, section):
                continue
            left = index.find_possible(phrasing.node, numbers)
            expression = compile_pattern(phrasing, section) if left else None
            while left and expression:
                place = left.bit_length() - 1
                left ^= 1 << place
                if expression.fullmatch(texts[place]):
                    found.add(Collision(phrasing.file, phrasing.line, owners[place]))
    return sorted(found, key=lambda collision: (collision.file, collision.line, collision.id))
