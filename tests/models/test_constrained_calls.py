"""A local model with a guide calls only what is offered, with arguments that fit, however bad it is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Literal

import jsonschema
from random_models import random_model

from ferrule import model, tool
from ferrule.conversation import MalformedCall, ToolCall


@tool
def move(x: int, speed: Literal["slow", "fast"] = "slow", back: bool = False) -> str:
    """Move by some steps."""
    return f"{x} {speed} {back}"


@tool
def halt() -> str:
    """Stop."""
    return "halted"


def collect_calls(folder: Path, *, has_guide: bool) -> list[ToolCall | MalformedCall]:
    """The calls in 40 answers of a model with random weights."""

    async def main() -> list[ToolCall | MalformedCall]:
        async with random_model(folder, "nanochat-tools", likely=2.5) as local:
            if not has_guide:
                local.guide = None
            pipeline = model(local).using(move, halt).within(rounds=1)
            asked = (pipeline.chat("Go 3!").with_(temperature=1.0, seed=n, max_tokens=200).run() for n in range(40))
            messages = [message for run in await asyncio.gather(*asked) for message in run.conversation.messages]
            return [call for message in messages for call in message.calls]

    return asyncio.run(main())


def test_every_call_fits_an_offered_tool(tmp_path: Path) -> None:
    calls = collect_calls(tmp_path, has_guide=True)
    assert len(calls) >= 10
    specs = {one.name: one.spec for one in (move, halt)}
    for call in calls:
        if isinstance(call, MalformedCall):
            assert call.kind == "truncated"
            continue
        jsonschema.validate(json.loads(call.arguments), specs[call.name].parameters)
    assert {call.name for call in calls if isinstance(call, ToolCall)} == {"move", "halt"}


def test_without_a_grammar_it_writes_nonsense(tmp_path: Path) -> None:
    calls = collect_calls(tmp_path, has_guide=False)
    assert len(calls) >= 10
    assert not any(isinstance(call, ToolCall) and call.name in {"move", "halt"} for call in calls)
