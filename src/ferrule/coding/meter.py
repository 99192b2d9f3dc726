"""Counts what a session has taken: tokens, dollars, and how full the model's context is."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.agent.run import Run
from ferrule.events import NO_USAGE, Event, MessageFinished, Usage
from ferrule.session.renderer import Renderer


@dataclass(slots=True)
class Meter:
    """The usage of a session; during a turn, that of its messages so far."""

    context_size: int | None = None
    """The size of the model's context in tokens; None if nobody says it."""
    usage: Usage = NO_USAGE
    """The tokens of all turns that have ended, with those of sub-agents."""
    dollars: float = 0.0
    is_priced: bool = True
    """Whether the price of every turn is known."""
    context_used: int = 0
    """The tokens of the last request and its answer; 0 as long as they aren't known."""
    _turn: Usage = NO_USAGE
    _earlier: Usage = NO_USAGE
    """The tokens of the conversations before this one."""

    @property
    def total(self) -> Usage:
        """The tokens so far, with those of the current turn."""
        return self.usage + self._turn

    @property
    def context_left(self) -> float | None:
        """The share of the context that is free; None if its size isn't known."""
        if not self.context_size or not self.context_used:
            return None
        return max(0.0, 1 - self.context_used / self.context_size)

    def add_message(self, usage: Usage) -> None:
        """Count a message of the current turn."""
        self._turn = self._turn + usage
        if usage != NO_USAGE:
            self.context_used = usage.prompt_tokens + usage.sampled_tokens

    def start_conversation(self) -> None:
        """Count another conversation, of which it isn't known yet how much of the context it fills."""
        self._earlier = self.total
        self.context_used = 0

    def end_compaction(self, run: Run) -> None:
        """Count what a summary has taken; the next answer says how much of the context is left."""
        self.end_turn(run)
        if run.compactions:
            self.context_used = 0

    def end_turn(self, run: Run) -> None:
        """Count a turn that has ended."""
        self._turn = NO_USAGE
        self.usage = self.usage + run.usage
        cost = run.cost
        if cost is not None:
            self.dollars += cost
        elif run.usage != NO_USAGE:
            self.is_priced = False

    def describe(self) -> str:
        """Describe all of it in one line."""
        total = self.total
        parts = [_describe_usage(total)]
        if self._earlier != NO_USAGE:
            parts[0] += f" in this session, in this conversation {_describe_usage(total - self._earlier)}"
        if self.dollars or (self.is_priced and total != NO_USAGE):
            parts.append(f"${self.dollars:.4f}{'' if self.is_priced else ', and what has no known price'}")
        elif not self.is_priced:
            parts.append("the price of the model isn't known")
        if self.context_size:
            left = self.context_left
            used = "" if left is None else f", {left:.0%} left"
            parts.append(f"context of {self.context_size:,} tokens{used}")
        else:
            parts.append("the size of the model's context isn't known; --context-limit gives it")
        return "; ".join(parts)


class MeteredRenderer:
    """Shows everything by another renderer, and counts what it takes."""

    def __init__(self, renderer: Renderer, meter: Meter) -> None:
        self._renderer = renderer
        self._meter = meter

    def show(self, event: Event) -> None:
        """Count the tokens of a message, and show the event."""
        if isinstance(event, MessageFinished):
            self._meter.add_message(event.usage)
        self._renderer.show(event)

    def clear(self) -> None:
        """Move to the start of a line."""
        self._renderer.clear()

    def finish(self, run: Run, /, conversation_id: str | None = None) -> None:
        """Count the turn, and show its end."""
        self._meter.end_turn(run)
        self._renderer.finish(run, conversation_id)

    def notify(self, text: str) -> None:
        """Show a notice."""
        self._renderer.notify(text)


def _describe_usage(usage: Usage) -> str:
    cached = f" ({usage.cached_tokens:,} of them cached)" if usage.cached_tokens else ""
    return f"{usage.prompt_tokens:,} tokens read{cached}, {usage.sampled_tokens:,} written"


def format_count(tokens: int) -> str:
    """Format a number of tokens briefly: 950, 12.3k, 1.2M."""
    if tokens < 1000:
        return str(tokens)
    return f"{tokens / 1000:.1f}k" if tokens < 1_000_000 else f"{tokens / 1_000_000:.1f}M"
