"""A family of models as a declaration: how its calls, messages, results, offers and turns are written.

The syntax of the calls is one of `notations/`; `MessageMarkers` are what stands around them. `TextNotation` reads and
writes by a declaration, `FramedDialect` lays out whole conversations by its turns.
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
    """A syntax that is written as well as read. `markers`: its fixed texts that a tokenizer may have tokens for."""

    @property
    def markers(self) -> tuple[str, ...]:
        """All fixed texts of it that a tokenizer may have tokens for."""
        ...

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls of one message, wrapper and all. Raises `DialectError` for what has no expression here."""
        ...


@runtime_checkable
class PunctuatedSyntax(Protocol):
    """A syntax with fixed texts around its calls that no tokenizer has tokens for: brackets, words of a header."""

    @property
    def punctuation(self) -> tuple[str, ...]:
        """These texts."""
        ...


@runtime_checkable
class EscapingSyntax(Protocol):
    """A syntax that can write every value, since it escapes them: what it writes needn't be read back."""

    escapes_values: ClassVar[bool]


@dataclass(frozen=True, slots=True)
class Family:
    """One family. `losses` are what its notation has no place for; `models` is one line for people; `one_tool` the
    tool, and its parameter, of a family that knows no other; `turns` how whole conversations are framed, if known, and
    `other_turns` how other models of it frame them, each with its name; `make_dialect` makes the dialect of a family
    that frames conversations as no `turns` can say; `among` gives the syntax and the results'
    wording for tools on offer, where calls and results name the group of a tool too."""

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
    among: Callable[[Sequence[ToolSpec]], tuple[CallSyntax, ResultWriter]] | None = None
