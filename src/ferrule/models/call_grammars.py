"""What a local model's message can be where its calls are constrained: the dialect's grammar, with values made bounded.

Imported for the first message that is constrained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.capabilities import Loss
from ferrule.dialects.grammar import Grammar
from ferrule.dialects.protocol import Dialect
from ferrule.dialects.value_grammar.schema_values import lower_values
from ferrule.errors import DialectError, ModelError
from ferrule.toolspec import ToolSpec

_KEPT = 8


@dataclass(frozen=True, slots=True)
class CallGrammar:
    """A grammar without schemas, and what of the schemas it doesn't enforce."""

    grammar: Grammar
    losses: tuple[Loss, ...]
    tools: tuple[ToolSpec, ...]


class CallGrammars:
    """The grammars of one dialect: the last few are kept, so that an engine compiles each once."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._known: dict[tuple[object, ...], CallGrammar] = {}

    def make(self, tools: Sequence[ToolSpec], choice: str, opens: str, name: str) -> CallGrammar | None:
        """Messages that call the tool that `choice` says, any for `required`, or none or any for `auto`.

        `opens` is how the prompt ended; `name` is the model's. None if any message can be written. Raises `ModelError`
        for a dialect without calls, and `DialectError`, naming the tool, for one that no call can be written of.
        """
        # Tools are told apart by identity: they are kept with their grammar.
        key = (*map(id, tools), choice, opens)
        known = self._known.pop(key, None)
        if known is None:
            known = self._make(tools, choice, opens)
        if known is None:
            if choice == "auto":
                return None
            raise ModelError(
                f"{name} can't be made to call a tool: the dialect {self._dialect.name} describes no calls"
            )
        self._known[key] = known
        if len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]
        return known

    def _make(self, tools: Sequence[ToolSpec], choice: str, opens: str) -> CallGrammar | None:
        grammar = self._dialect.grammar(tools, choice, opens=opens)
        if grammar is None:
            return None
        try:
            return CallGrammar(*lower_values(grammar), tuple(tools))
        except DialectError as error:
            raise DialectError(f"no call of {self._find_impossible(tools)!r} can be written: {error}") from error

    def _find_impossible(self, tools: Sequence[ToolSpec]) -> str:
        for spec in tools:
            alone = self._dialect.grammar((spec,), spec.name)
            try:
                lower_values(alone) if alone is not None else None
            except DialectError:
                return spec.name
        return tools[0].name
