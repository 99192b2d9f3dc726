"""What a dialect must be able to do: write offers, calls and results, frame messages, and read the model's output."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from ferrule.capabilities import Capabilities, Loss
from ferrule.conversation import Conversation, ToolCall, ToolResult
from ferrule.dialects.grammar import Grammar
from ferrule.dialects.segments import Layout
from ferrule.events import ReaderEvent
from ferrule.toolspec import ToolSpec


class Reader(Protocol):
    """A streaming parser: text in, events out. A full parse is `feed` and `close`."""

    def feed(self, text: str, control: bool | None = None) -> list[ReaderEvent]:
        """Read a piece. `control` True: it is exactly one control token; False: never a marker; None: match by text."""
        ...

    def close(self, stopped: bool = False) -> list[ReaderEvent]:
        """End the text; `stopped`: the model ended it itself, rather than a limit."""
        ...


class Dialect(Protocol):
    """A notation and a framing together.

    `markers` are all markers that its reader knows; `rewrites_history`: the template later writes earlier turns
    differently.
    """

    name: str
    markers: tuple[str, ...]
    capabilities: Capabilities
    rewrites_history: bool

    def offer(self, tools: Sequence[ToolSpec]) -> str:
        """The text that offers tools to the model; empty if the dialect has none."""
        ...

    def call(self, call: ToolCall) -> str:
        """The text of a call, including markers. Raises `DialectError` for a call that can't be expressed."""
        ...

    def result(self, result: ToolResult) -> tuple[str, list[Loss]]:
        """The text of a result, including markers, and the markers that had to be neutralised. Never refuses."""
        ...

    def layout(self, conversation: Conversation, tools: Sequence[ToolSpec] = ()) -> Layout:
        """The whole conversation as segments."""
        ...

    def grammar(self, tools: Sequence[ToolSpec], choice: str | None, *, opens: str = "") -> Grammar | None:
        """What a message can be where these tools are offered, for an engine that keeps to it; None: any text.

        `choice` is that of the settings: `required` or the name of a tool for exactly one call, `auto` (or None) for
        text and perhaps a call after it, `none`. `opens` is how the prompt ended: reasoning that it opened comes first.
        Raises `DialectError`, naming the tool, for one whose calls can't be described, or that isn't offered.
        """
        ...

    def reader(
        self,
        tools: Sequence[ToolSpec] = (),
        *,
        first_call: int = 1,
        opens: str = "",
        spelled_out: Collection[str] = (),
    ) -> Reader:
        """A reader for one assistant message; calls without ids are numbered from `first_call`.

        `opens` is how the prompt ended. `spelled_out` are the markers for which a tokenizer has no token: they are
        matched by their text, even in pieces that are ordinary text (`control` False). A mapping gives, for each of
        them, the control tokens inside it: without those it is just text.
        """
        ...
