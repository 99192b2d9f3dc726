"""What a whole message may be where tools are offered: a call that fits its schema, alone or after reasoning and text.

A message is written as any other: with the parts that it may have, in whose place their grammars are put.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, runtime_checkable

from ferrule.conversation import Part, Reasoning, Text, ToolCall
from ferrule.dialects.family import NO_TEXT_BESIDE, Family
from ferrule.dialects.framing.turns import PLAIN_TURNS, Turns
from ferrule.dialects.grammar import NOTHING, Grammar, GrammarChoice, GrammarSequence, MarkerText, TextUntil
from ferrule.dialects.message_writer import write_parts
from ferrule.dialects.notation import NoCalls, TextNotation
from ferrule.dialects.segments import Content
from ferrule.dialects.value_terms import join_options
from ferrule.dialects.written_calls import describe_calls
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec

_THOUGHT, _SAID, _CALL = "\U00100001", "\U00100002", "\U00100003"
_PLACES = re.compile(f"([{_THOUGHT}{_SAID}{_CALL}])")


@runtime_checkable
class BareTextSyntax(Protocol):
    """A syntax in which text may be read as a call without any marker before it."""

    def list_bare_openers(self, names: Sequence[str]) -> tuple[str, ...]:
        """Texts of which each call of a tool with one of these names has one, if no marker precedes it."""
        ...


class _Message:
    """Describes messages of one family, in its turns, after a prompt that ended in `opens`."""

    def __init__(self, family: Family, tools: Sequence[ToolSpec], turns: Turns, opens: str) -> None:
        thinking = family.message.thinking if turns.reasons else None
        if thinking is not None and turns.inline:  # a call is written inside reasoning
            thinking = replace(thinking, closes_before_call=False)
            family = replace(family, message=replace(family.message, thinking=thinking))
        self._family, self._turns, self._opens = family, turns, opens
        self._thinking = thinking
        # As in the reader.
        self._in_thought = thinking is not None and opens.rfind(thinking.open) > opens.rfind(thinking.close)
        self._names = [spec.name for spec in tools]

    def describe(self, call: Grammar, *, is_forced: bool) -> Grammar:
        """Messages that are only a call if `is_forced`, otherwise those with reasoning and text as well."""
        thought, said, called = Reasoning(_THOUGHT), Text(_SAID), ToolCall("", _CALL, "{}")
        shapes: list[tuple[Part, ...]] = [(called,)]
        if not is_forced:
            beside = [] if NO_TEXT_BESIDE in self._family.losses else [(said, *shape) for shape in shapes]
            shapes = [(said,), *shapes, *beside]
        if self._in_thought or (self._thinking is not None and self._turns.thinks):
            shapes = [(thought, *shape) for shape in shapes]
        elif self._thinking is not None and not is_forced:
            shapes += [(thought, *shape) for shape in shapes]
        return join_options([self._render(shape, call, may_be_cut=not is_forced) for shape in shapes])

    def _render(self, parts: tuple[Part, ...], call: Grammar, *, may_be_cut: bool) -> Grammar:
        segments = write_parts(self._family, parts, lambda calls: [Content(calls[0].name)], self._turns)
        pieces = _PLACES.split(self._strip_opening("".join(segment.text for segment in segments)))
        ending = self._get_ending(parts)
        items: list[Grammar] = []
        for at, piece in enumerate(pieces):
            following = pieces[at + 1] if pieces[at + 1 :] not in ([], [""]) else ending
            if piece == _CALL:
                items.append(call if items else _strip_marker(call, self._opens))
            elif piece in (_THOUGHT, _SAID) and at % 2:
                items.append(TextUntil(self._list_ends(piece, following), may_be_cut))
            elif piece:
                items.append(MarkerText(piece))
        if ending:
            items.append(GrammarChoice((NOTHING, MarkerText(ending))))
        return items[0] if len(items) == 1 else GrammarSequence(tuple(items))

    def _get_ending(self, parts: tuple[Part, ...]) -> str:
        """What comes after a message, before the token that stops it."""
        turns = self._turns
        end = turns.calls_end if isinstance(parts[-1], ToolCall) and turns.calls_end is not None else turns.end
        return end.removesuffix(turns.get_last_token(end))

    def _strip_opening(self, text: str) -> str:
        """A message without its beginning that the prompt already wrote, if there is more of it than white space."""
        first = _PLACES.search(text)
        for length in range(first.start() if first else len(text), 0, -1):
            if text[:length].strip() and self._opens.endswith(text[:length]):
                return text[length:].lstrip() if text[length:].lstrip()[:1] == _THOUGHT else text[length:]
        return text

    def _list_ends(self, place: str, following: str) -> tuple[str, ...]:
        """The texts that end reasoning or text; `following` is what comes after it in the message."""
        syntax, markers, thinking = self._family.syntax, self._family.message, self._thinking
        # White space at the end of an opener may be what separates text and call.
        bare_openers = [opener.rstrip() or opener for opener in syntax.openers]
        openers = (*(f"{markers.before_call}{opener}" for opener in bare_openers), *bare_openers)
        if place == _THOUGHT and thinking is not None:
            is_open = thinking.ends_at_call or not thinking.closes_before_call
            ends = (f"{thinking.before_close}{thinking.close}", thinking.close, *(openers if is_open else ()))
            return tuple(dict.fromkeys(filter(None, ends)))
        marks = (markers.thinking.open, markers.thinking.close) if markers.thinking else ()
        bare = syntax.list_bare_openers(self._names) if isinstance(syntax, BareTextSyntax) else ()
        around = (markers.answer[1], markers.preamble[1])
        ends = (following if following.strip() else "", *openers, *marks, *(markers.result or ()), *around, *bare)
        return tuple(dict.fromkeys(filter(None, ends)))


def _strip_marker(call: Grammar, opens: str) -> Grammar:
    """A call without the marker that it begins with, if the prompt ended with that one."""
    if isinstance(call, GrammarChoice):
        return GrammarChoice(tuple(_strip_marker(option, opens) for option in call.options))
    if isinstance(call, MarkerText) and opens.endswith(call.text):
        return NOTHING
    if isinstance(call, GrammarSequence) and call.items:
        return replace(call, items=(_strip_marker(call.items[0], opens), *call.items[1:]))
    return call


def make_message_grammar(
    family: Family,
    tools: Sequence[ToolSpec],
    choice: str | None,
    *,
    opens: str = "",
    turns: Turns = PLAIN_TURNS,
    describe: Callable[[ToolSpec], Grammar] | None = None,
) -> Grammar | None:
    """See `Dialect.grammar`. `turns` are those of the messages, and `describe` describes a tool's calls if not as the
    family's notation writes them."""
    is_forced = choice not in (None, "auto")
    if choice == "none" or isinstance(family.syntax, NoCalls) or not (tools or is_forced):
        return None
    describe = describe or partial(describe_calls, TextNotation(family), tools)
    call = join_options([describe(spec) for spec in _select_tools(tools, choice)])
    return _Message(family, tools, turns, opens).describe(call, is_forced=is_forced)


def _select_tools(tools: Sequence[ToolSpec], choice: str | None) -> Sequence[ToolSpec]:
    """The tools that may be called. Raises `DialectError` if there must be a call and none is offered."""
    found = [spec for spec in tools if choice in (None, "auto", "required", spec.name)]
    if not found:
        offered = ", ".join(spec.name for spec in tools) or "none"
        wanted = "a tool" if choice == "required" else f"the tool {choice!r}"
        raise DialectError(f"the message must call {wanted}, and the offered tools are: {offered}")
    return found
