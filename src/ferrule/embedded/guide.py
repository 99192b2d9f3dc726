"""Steers the calls of a model of this size: a grammar keeps them to what was offered and told; unsure ones are asked.

The rules of the grammar are written by hand, for English: what a few million parameters learn late, words and counts
decide at once. Each rule is a file of this room, under whose name it can be switched off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ferrule.conversation import Conversation, File, Message, Text, ToolResult
from ferrule.dialects.call_grammar import make_call_grammar
from ferrule.dialects.families.nanochat import ASSISTANT_END, PYTHON_END, PYTHON_START
from ferrule.dialects.families.nanochat_tools import is_calculator
from ferrule.dialects.grammar import (
    CharacterSet,
    ControlToken,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    LiteralText,
    Repetition,
    make_other_text,
)
from ferrule.dialects.notations.expression import make_expression_grammar
from ferrule.embedded import RULES
from ferrule.embedded.copy_source import CopySource
from ferrule.embedded.copying import make_copy_grammar
from ferrule.embedded.missing import BEGINNING, has_what_is_needed, make_question_grammar
from ferrule.embedded.relevance import list_relevant_tools, may_need_expression
from ferrule.embedded.withholding import find_agreed_call, read_threshold, withhold
from ferrule.errors import SettingsError
from ferrule.models.protocol import ModelSettings
from ferrule.toolspec import ToolSpec

_ANY_TEXT = Repetition(CharacterSet("", is_excluded=True))
_OTHER_TEXT = make_other_text(BEGINNING)
"""A question for what is missing is a text of its own, and no beginning of another one."""


def load_guide(folder: Path) -> EmbeddedGuide:
    """The guide of the checkpoint in a folder. Raises `ModelError` for a `confidence.json` that holds no threshold."""
    return EmbeddedGuide(read_threshold(folder))


@dataclass(frozen=True, slots=True)
class EmbeddedGuide:
    """See `CallGuide`. Without a `threshold` every call is made; `rules` are those of `RULES` that apply."""

    threshold: float | None = None
    rules: frozenset[str] = RULES

    def without(self, *rules: str) -> EmbeddedGuide:
        """The same guide with these rules switched off. Raises `SettingsError` for an unknown name."""
        if unknown := sorted(set(rules) - RULES):
            raise SettingsError(f"unknown rule {unknown[0]!r}; expected one of {', '.join(sorted(RULES))}")
        return replace(self, rules=self.rules.difference(rules))

    @property
    def holds_calls(self) -> bool:
        """Whether calls wait until it is known that they are made."""
        return self.threshold is not None and "withholding" in self.rules

    def constrain(
        self,
        conversation: Conversation,
        tools: Sequence[ToolSpec],
        settings: ModelSettings,  # noqa: ARG002
    ) -> Grammar | None:
        """Text, and at its end perhaps a call that fits the signature of a tool that the request may mean.

        Its texts and numbers are copied. A call that the user agreed to is written as it is.
        """
        if self.holds_calls and (agreed := find_agreed_call(conversation)):
            return GrammarSequence((ControlToken(PYTHON_START), LiteralText(agreed), ControlToken(PYTHON_END)))
        return self.make_grammar(tools, _list_given_texts(conversation), conversation.request)

    def make_grammar(self, tools: Sequence[ToolSpec], texts: Sequence[str], request: str) -> Grammar:
        """What a message can be after these texts, of which the `request` is the user's last one."""
        others = [spec for spec in tools if not is_calculator(spec)]
        can_compute = len(others) < len(tools)
        if others and "relevance" in self.rules:
            can_compute = can_compute and may_need_expression(request, others)
            others = list_relevant_tools(request, others)
        copy = make_copy_grammar(texts) if can_compute and "copying" in self.rules else None
        calls = [make_expression_grammar(copy)] if can_compute else []
        calls += self._list_calls(others, texts, request) if others else []
        call = GrammarSequence((ControlToken(PYTHON_START), GrammarChoice(tuple(calls)), ControlToken(PYTHON_END)))
        end = GrammarChoice((ControlToken(ASSISTANT_END), call))
        if "missing" not in self.rules:
            return GrammarSequence((_ANY_TEXT, end))
        question = make_question_grammar(others, request) if others else None
        text_and_call = GrammarSequence((_OTHER_TEXT, end))
        if question is None:
            return text_and_call
        return GrammarChoice((text_and_call, GrammarSequence((question, ControlToken(ASSISTANT_END)))))

    def _list_calls(self, tools: Sequence[ToolSpec], texts: Sequence[str], request: str) -> list[Grammar]:
        source = CopySource(texts, request, self.rules)
        possible = [spec for spec in tools if "missing" not in self.rules or has_what_is_needed(spec, source)]
        return [make_call_grammar(spec, source.choose_literals(spec)) for spec in possible]

    def review(self, message: Message, confidences: Sequence[float], conversation: Conversation) -> Message | None:
        """The question that stands for calls below the threshold (see `withhold`); None if they are made."""
        if not self.holds_calls or self.threshold is None or min(confidences, default=1.0) >= self.threshold:
            return None
        return withhold(message, conversation)


def _list_given_texts(conversation: Conversation) -> list[str]:
    """The texts that the model was given: requests, attached files and results."""
    given = (message for message in conversation.messages if message.role != "assistant")
    texts = (part.text for message in given for part in message.parts if isinstance(part, Text | File | ToolResult))
    return [text for text in texts if text]
