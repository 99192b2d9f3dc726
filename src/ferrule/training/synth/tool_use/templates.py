"""The content of a parsed tool template: a tool, its parameters, its results, and the phrasings that ask for it.

`template_parsing` reads the files; `requests` fills the slots of a phrasing.
"""

import random
from dataclasses import dataclass
from typing import Literal

from ferrule.training.synth.wheel import pick

Scalar = str | int | float | bool
Value = Scalar | list[Scalar] | None
"""A value of an argument, as in JSON."""
ScalarName = Literal["str", "int", "float", "bool"]


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a parameter; `options` are the values of an enum."""

    scalar: ScalarName
    is_list: bool = False
    options: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """A parameter. `source` is the name of a source of texts, or texts of its own; `low` and `high` bound a number.

    A parameter that is not `required` may have no `default`: then it is None.
    """

    name: str
    type: ValueType
    source: str | tuple[str, ...] | None = None
    low: float = 0
    high: float = 0
    decimals: int = 0
    required: bool = True
    default: Value = None
    other_names: tuple[str, ...] = ()

    @property
    def is_drawable(self) -> bool:
        """Whether values can be drawn and said; a boolean is only set by words."""
        return self.type.scalar != "bool" and bool(self.type.options or self.source or self.low < self.high)


@dataclass(frozen=True, slots=True)
class TemplateSlot:
    """The place of a parameter's value in a phrasing or a result."""

    parameter: str


@dataclass(frozen=True, slots=True)
class TemplateSetting:
    """Words of a phrasing that set a parameter to a certain value: `{alerts=True: with alerts}`."""

    parameter: str
    value: Value
    words: "Node"


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Pieces of a phrasing, one of which is written."""

    nodes: tuple["Node", ...]


Node = tuple[str | TemplateSlot | TemplateSetting | Alternatives, ...]


@dataclass(frozen=True, slots=True)
class ToolPhrasing:
    """One line of a template. `is_incomplete` marks one that lacks a required argument."""

    line: int
    text: str
    node: Node
    is_incomplete: bool = False


@dataclass(frozen=True, slots=True)
class DrawnPart:
    """A part of a result that is drawn: a number from a range, a text of a source or of a list, or a boolean."""

    kind: Literal["int", "float", "bool", "source", "options"]
    source: str = ""
    options: tuple[str, ...] = ()
    low: float = 0
    high: float = 0
    decimals: int = 0


@dataclass(frozen=True, slots=True)
class ResultTemplate:
    """A result or an error of a tool: literal text, drawn parts, and values of arguments; `is_json` by its start."""

    line: int
    parts: tuple[str | DrawnPart | TemplateSlot, ...]
    is_json: bool


@dataclass(frozen=True, slots=True, eq=False)
class ToolTemplate:
    """A tool with everything that can be said and asked of it. `names` and `abouts` are alternatives.

    Each is equal only to itself, so that what is computed from one can be cached.
    """

    file: str
    line: int
    section: str
    domain: str
    names: tuple[str, ...]
    abouts: tuple[str, ...]
    parameters: tuple[TemplateParameter, ...]
    results: tuple[ResultTemplate, ...]
    errors: tuple[ResultTemplate, ...]
    phrasings: tuple[ToolPhrasing, ...]
    is_invented: bool = False

    def get_parameter(self, name: str) -> TemplateParameter:
        """The parameter of this name, which the parser has made sure of."""
        return next(parameter for parameter in self.parameters if parameter.name == name)


def find_parameters(node: Node, *, certain: bool = False) -> set[str]:
    """Names of the parameters that a phrasing writes or sets; with `certain`, those in every expansion of it."""
    names: set[str] = set()
    for item in node:
        if isinstance(item, TemplateSlot | TemplateSetting):
            names.add(item.parameter)
        elif isinstance(item, Alternatives):
            inner = [find_parameters(alternative, certain=certain) for alternative in item.nodes]
            names |= set.intersection(*inner) if certain else set.union(*inner)
    return names


def find_slot_names(node: Node) -> set[str]:
    """Names of the parameters whose drawn value a phrasing writes."""
    names: set[str] = set()
    for item in node:
        if isinstance(item, TemplateSlot):
            names.add(item.parameter)
        elif isinstance(item, Alternatives):
            names |= set.union(*map(find_slot_names, item.nodes))
    return names


def expand_phrasing(node: Node, rng: random.Random, parts: list[str | TemplateSlot | TemplateSetting]) -> None:
    """Draw one expansion of a phrasing, in order, appended to `parts`. The words of a setting follow it."""
    for item in node:
        if isinstance(item, Alternatives):
            expand_phrasing(pick(rng, item.nodes), rng, parts)
        else:
            parts.append(item)
            if isinstance(item, TemplateSetting):
                expand_phrasing(item.words, rng, parts)
