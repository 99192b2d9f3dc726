"""What an answer took: tokens, seconds, and its price where that is known."""

from __future__ import annotations

import time
from typing import Any

from ferrule._util.terminal_text import escape_json
from ferrule.agent.hooks import Hooks, RunState
from ferrule.agent.run import Run
from ferrule.events import CallStarted, Event, ReasoningDelta, TextDelta
from ferrule.session.renderer import Renderer


class CostRenderer(Hooks):
    """Shows everything by another renderer, and at the end of each turn what it took.

    It is also a hook of the pipeline: the time begins with the first request to the model.
    """

    def __init__(self, renderer: Renderer, as_json: bool = False) -> None:
        self._renderer = renderer
        self._as_json = as_json
        self._asked: float | None = None
        self._first_token: float | None = None

    async def before_request(self, state: RunState) -> None:  # noqa: ARG002 - as hooks are called
        """Note when a turn asked its model first."""
        if self._asked is None:
            self._asked = time.monotonic()

    def show(self, event: Event) -> None:
        """Show one event, and note when the model wrote first."""
        if self._first_token is None and isinstance(event, TextDelta | ReasoningDelta | CallStarted):
            self._first_token = time.monotonic()
        self._renderer.show(event)

    def clear(self) -> None:
        """Move to the start of a line."""
        self._renderer.clear()

    def notify(self, text: str) -> None:
        """Show a notice."""
        self._renderer.notify(text)

    def finish(self, run: Run, /, conversation_id: str | None = None) -> None:
        """Show the end of the turn and what it took; as JSON, an event before the last."""
        asked, first_token = self._asked, self._first_token
        self._asked = self._first_token = None
        if asked is not None and self._as_json:
            print(escape_json({"event": "cost", **describe_cost(run, asked, first_token)}), flush=True)
        self._renderer.finish(run, conversation_id)
        if asked is not None and not self._as_json:
            self.notify(format_cost(describe_cost(run, asked, first_token)))


def describe_cost(run: Run, asked: float, first_token: float | None) -> dict[str, Any]:
    """Describe what a run took since `asked`, as data; `dollars` is None if the price isn't known."""
    return {
        "tokens": {
            "prompt": run.usage.prompt_tokens,
            "cached": run.usage.cached_tokens,
            "sampled": run.usage.sampled_tokens,
        },
        "first_token_seconds": None if first_token is None else round(first_token - asked, 3),
        "seconds": round(time.monotonic() - asked, 3),
        "dollars": run.cost,
    }


def format_cost(cost: dict[str, Any]) -> str:
    """Format the same as a line for people."""
    tokens, first, dollars = cost["tokens"], cost["first_token_seconds"], cost["dollars"]
    cached = f" ({tokens['cached']:,} of them cached)" if tokens["cached"] else ""
    waited = "" if first is None else f"first token after {first:.2f} s, "
    price = "" if dollars is None else f"; ${dollars:.6f}".rstrip("0").rstrip(".")
    counted = f"{tokens['prompt']:,} tokens read{cached}, {tokens['sampled']:,} written"
    return f"{counted}; {waited}{cost['seconds']:.2f} s in all{price}"
