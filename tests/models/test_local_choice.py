"""What `choice`, `force` and `strict_tools` make a local model do, however bad it is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Literal

import jsonschema
import pytest
from random_models import random_model
from reciting_engine import RecitingEngine

from ferrule import model, tool
from ferrule.conversation import Conversation, ToolCall, user
from ferrule.errors import DialectError, EngineError, ModelError
from ferrule.events import LossesReported, MessageFinished
from ferrule.models.local import LocalModel
from ferrule.models.protocol import ModelSettings
from ferrule.toolspec import ToolSpec

GO = Conversation((user("Go 3!"),))


@tool
def move(x: int, speed: Literal["slow", "fast"] = "slow") -> str:
    """Move by some steps."""
    return f"{x} {speed}"


@tool
def halt() -> str:
    """Stop."""
    return "halted"


TOOLS = (move.spec, halt.spec)


def ask(local: LocalModel, tools: tuple[ToolSpec, ...] = TOOLS, **settings: Any) -> list[Any]:
    async def main() -> list[Any]:
        return [event async for event in local.stream(GO, tools, ModelSettings(**{"max_tokens": 120, **settings}))]

    return asyncio.run(main())


def get_calls(events: list[Any]) -> list[ToolCall]:
    finished = events[-1]
    assert isinstance(finished, MessageFinished)
    for call in finished.message.calls:
        assert isinstance(call, ToolCall)
        jsonschema.validate(json.loads(call.arguments), {one.name: one for one in TOOLS}[call.name].parameters)
    return [call for call in finished.message.calls if isinstance(call, ToolCall)]


@pytest.mark.parametrize("dialect", ["hermes", "template"])
def test_a_call_is_made_if_it_is_required(tmp_path: Path, dialect: str) -> None:
    local = random_model(tmp_path, dialect)
    assert "choice" in local.capabilities.settings
    required = [get_calls(ask(local, choice="required", temperature=1.0, seed=seed)) for seed in range(6)]
    assert all(len(calls) == 1 for calls in required)
    for name in ("move", "halt"):
        (call,) = get_calls(ask(local, choice=name, temperature=1.0, seed=1))
        assert call.name == name


def test_without_tools_to_call_none_is_offered(tmp_path: Path) -> None:
    local = random_model(tmp_path, "hermes")
    silent = ask(local, choice="none", seed=1, temperature=1.0)[-1]
    assert silent.prompt_ids == ask(local, (), seed=1, temperature=1.0)[-1].prompt_ids
    assert not silent.message.calls


def test_force_makes_the_first_message_a_call(tmp_path: Path) -> None:
    local = random_model(tmp_path, "hermes")
    pipeline = model(local).using(move, halt, force=True).within(rounds=1)
    run = asyncio.run(pipeline.chat("Go!").with_(temperature=1.0, seed=3, max_tokens=100).run())
    assert [message.role for message in run.conversation.messages][:3] == ["user", "assistant", "tool"]


def test_ids_keep_by_which_log_probabilities_they_were_drawn(tmp_path: Path) -> None:
    local = random_model(tmp_path, "hermes")
    message = ask(local, choice="required", temperature=0.7, top_k=3, seed=1)[-1].message
    drawn = message.sampled
    assert len(drawn.sampling_logprobs) == len(drawn.ids)
    assert all(logprob <= 0 for logprob in drawn.sampling_logprobs)
    # Where the grammar leaves one id, it was drawn for certain; elsewhere among three.
    assert 0.0 in drawn.sampling_logprobs
    assert min(drawn.sampling_logprobs) < -0.1
    assert drawn.weights_versions == ((0, len(drawn.ids)),)
    trace = local.trace(Conversation((*GO.messages, message)), TOOLS)
    assert len(trace.ids) == len(trace.sampling_logprobs)
    assert tuple(one for one in trace.sampling_logprobs if one is not None) == drawn.sampling_logprobs
    greedy = ask(local, choice="required")[-1].message.sampled
    assert set(greedy.sampling_logprobs) == {0.0}
    local.engine.weights_changed()
    assert ask(local, choice="halt")[-1].message.sampled.weights_versions[0][0] == 1


def test_what_a_schema_says_that_is_not_ensured_is_reported(tmp_path: Path) -> None:
    odd = ToolSpec("f", "", {"type": "object", "properties": {"x": {"type": "string", "not": {"const": "a"}}}})
    losses = [
        event for event in ask(random_model(tmp_path, "hermes"), (odd,), choice="f") if type(event) is LossesReported
    ]
    assert [loss.kind for loss in losses[0].losses] == ["schema"]
    assert "not" in losses[0].losses[0].detail


def test_what_cannot_be_required_is_refused(tmp_path: Path) -> None:
    local = random_model(tmp_path, "hermes")
    with pytest.raises(ModelError, match="no tools are offered"):
        ask(local, (), choice="required")
    with pytest.raises(ModelError, match="only these tools are offered: move, halt"):
        ask(local, choice="jump")
    impossible = ToolSpec("f", "", {"type": "object", "properties": {"x": {"enum": []}}, "required": ["x"]})
    with pytest.raises(DialectError, match="no call of 'f' can be written: no value fits the schema"):
        ask(local, (halt.spec, impossible), choice="required")
    with pytest.raises(
        EngineError, match=r"its shortest message takes \d+ tokens, and max_tokens or the context leaves 9"
    ):
        ask(local, choice="move", max_tokens=9)


def test_models_that_cannot_constrain_refuse_a_choice(tmp_path: Path) -> None:
    guided = random_model(tmp_path, "nanochat-tools")
    with pytest.raises(ModelError, match="doesn't support choice: its guide says which calls it makes"):
        ask(guided, choice="required")
    random_model(tmp_path, "hermes")
    reciting = random_model(tmp_path, "hermes", engine=lambda folder: RecitingEngine(folder, ()))
    assert "choice" not in reciting.capabilities.settings
    with pytest.raises(ModelError, match="doesn't support choice: its engine can't; one with a vocabulary does"):
        ask(reciting, choice="required")
    with pytest.raises(ModelError, match=r"strict_tools: .* has an engine that can't constrain"):
        LocalModel(reciting.engine, reciting.tokenizer, reciting.dialect, strict_tools=True)
