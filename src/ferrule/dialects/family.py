"""A family of models as a declaration: how its calls, messages, results, offers and turns are written.

The syntax of the calls is one of `notations/`; `MessageMarkers` surround them. `TextNotation` reads and writes text
from a declaration, `FramedDialect` lays out whole conversations in its turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from ferrule.conversation import ToolCall
from ferrule.dialects.reader.message import MessageMarkers, ReadableSyntax
from ferrule.dialects.wording import JsonOffer, OfferWriter, ResultWriter, WrappedResults
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.dialects.framing.turns import Turns
    from ferrule.dialects.protocol import Dialect

NO_IDS, NO_IMAGES, NO_REASONING = "ids", "images", "reasoning"
NO_TEXT_BESIDE, NO_PARALLEL, NO_GAPS = "text beside calls", "parallel calls", "arguments after one that is left out"


class CallSyntax(ReadableSyntax, Protocol):
    """A syntax that can be written as well as read. `markers`: its fixed texts that a tokenizer may have tokens for."""

    @property
    def markers(self) -> tuple[str, ...]:
        """All its fixed texts that a tokenizer may have tokens for."""
        ...

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls of one message with their wrapper. Raises `DialectError` for calls that can't be expressed."""
        ...


@runtime_checkable
class PunctuatedSyntax(Protocol):
    """A syntax with fixed texts around its calls that no tokenizer has tokens for: brackets, header keywords."""

    @property
    def punctuation(self) -> tuple[str, ...]:
        """These texts."""
        ...


@runtime_checkable
class VariedSyntax(Protocol):
    """A syntax that also reads a variant of itself, which it doesn't write."""

    @property
    def other_markers(self) -> tuple[str, ...]:
        """The markers of that variant."""
        ...


@runtime_checkable
class StyledSyntax(Protocol):
    """A syntax in which values may be written in another style than JSON, which can't express all of them."""

    @property
    def with_json_values(self) -> CallSyntax:
        """The same syntax with values in JSON, for calls that can't be read back otherwise."""
        ...


@runtime_checkable
class EscapingSyntax(Protocol):
    """A syntax that escapes values and so can write all of them: its output needn't be read back as a check."""

    escapes_values: ClassVar[bool]


@dataclass(frozen=True, slots=True)
class Family:
    """One family. `losses`: what its notation can't express; `models`: one line for people; `one_tool`: the only tool,
    and its parameter, of a family that knows no other; `turns`: how whole conversations are framed, if known;
    `other_turns`: how other models of the family frame them, by name; `make_dialect` makes the dialect of a family
    whose framing `turns` can't express; `select_for_tools` returns the syntax and the result wording for the offered
    tools, where calls and results also name a tool's group."""

    name: str
    models: str
    syntax: CallSyntax
    message: MessageMarkers = field(default_factory=MessageMarkers)
    results: ResultWriter = field(default_factory=lambda: WrappedResults("", ""))
    offer: OfferWriter = field(default_factory=lambda: JsonOffer("You may call these tools:\n"))
    losses: frozenset[str] = frozenset({NO_IDS, NO_IMAGES})
    aliases: tuple[str, ...] = ()
    one_tool: tuple[str, str] | None = None
    turns: Turns | None = None
    other_turns: tuple[tuple[str, Turns], ...] = ()
    make_dialect: Callable[[], Dialect] | None = None
    select_for_tools: Callable[[Sequence[ToolSpec]], tuple[CallSyntax, ResultWriter]] | None = None
