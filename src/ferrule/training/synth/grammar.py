"""The content of a parsed template file: sections of phrasings, and the drawing of one phrasing.

`parsing` reads the files; `turns` fills the slots; `noise` varies a phrasing further.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

from ferrule.training.synth.conditions import Condition
from ferrule.training.synth.numbers import Hint
from ferrule.training.synth.wheel import pick

KINDS = (
    "symbols", "words", "percent", "count", "length", "reverse", "problem", "error", "chat", "refusal", "average",
    "sum", "compare", "power", "two", "letter", "words_count", "time",
)  # fmt: skip
TEXT_SLOTS = frozenset({"word", "phrase", "letter", "name", "things", "thing", "expr", "list", "nth"})
REPLY_FORMS = ("", "money", "size", "th", "sum", "product")
CALL_FORMS = ("", "product", "count")
MOST_PHRASING_WEIGHT = 8.0


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a template file."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


class GrammarError(ValueError):
    """Invalid template files; `problems` lists everything that is wrong with them."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("\n".join(map(str, problems)))


@dataclass(frozen=True, slots=True)
class Slot:
    """A placeholder in a phrasing; `base` is its name without a number."""

    name: str
    base: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Alternatives, one of which is written."""

    alternatives: tuple["Node", ...]


Node = tuple[str | Slot | Choice, ...]


@dataclass(frozen=True, slots=True)
class Phrasing:
    """One line of a template file. `expansions` counts its possible texts, not counting the slots' values."""

    file: str
    line: int
    text: str
    node: Node
    expansions: int

    @property
    def weight(self) -> float:
        """How often it is drawn: more for lines with many expansions, but slowly, so that none dominates."""
        return min(MOST_PHRASING_WEIGHT, 1.0 + math.log2(self.expansions))


@dataclass(frozen=True, slots=True)
class Field:
    """A slot in a call or a reply, with its format or an empty string.

    In a reply `money` writes cents in full, `size` leaves out the sign, `th` makes an ordinal (`3rd`), and `sum` and
    `product` write a list with signs between its numbers; in a call `product` multiplies the numbers of a list instead
    of adding them, and `count` is how many they are.
    """

    name: str
    form: str


Fields = tuple[str | Field, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """Phrasings that share a call and a reply.

    `second` is a second call in the same answer, whose result is `{r2}` in the reply. `below` and `equal` are the
    replies to a negative result and to zero, where these differ. `opening` is the phrasing of a turn before that gives
    values of the section's slots; it is answered by `opened`. `offering` is the reply where foreign tools are offered,
    if that differs; `{tools}` in it are their names.
    """

    file: str
    line: int
    name: str
    kind: str
    call: Fields | None
    reply: Fields
    hints: Mapping[str, Hint]
    where: Condition | None
    weight: float
    follow: bool
    phrasings: tuple[Phrasing, ...]
    lists: Mapping[str, tuple[str, ...]]
    second: Fields | None = None
    below: Fields | None = None
    equal: Fields | None = None
    opening: Phrasing | None = None
    opened: str = ""
    offering: str | None = None

    @property
    def share(self) -> float:
        """Its share within its kind: its weight, times the square root of the number of its phrasings."""
        return self.weight * math.sqrt(len(self.phrasings))


def strip_number(name: str) -> str:
    """The slot's name without the number that distinguishes it: `name2` is a `name`."""
    return name.rstrip("0123456789")


def find_slots(node: Node, *, certain: bool = False) -> set[str]:
    """Names of the slots in a phrasing; with `certain`, of those in every expansion of it."""
    names: set[str] = set()
    for item in node:
        if isinstance(item, Slot):
            names.add(item.name)
        elif isinstance(item, Choice):
            inner = [find_slots(alternative, certain=certain) for alternative in item.alternatives]
            names |= set.intersection(*inner) if certain else set.union(*inner)
    return names


def expand(node: Node, rng: random.Random, parts: list[str | Slot]) -> None:
    """Draw one expansion of a phrasing: its literal pieces and its slots, in order, appended to `parts`."""
    for item in node:
        if isinstance(item, Choice):
            alternatives = item.alternatives
            expand(pick(rng, alternatives), rng, parts)
        else:
            parts.append(item)
