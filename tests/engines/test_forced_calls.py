"""Every call that a local model must make is one of the tool's, whole and within its budget, whatever the model is."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from engine_checkpoints import random_tensors

from ferrule.conversation import Conversation, ToolCall, user
from ferrule.dialects import get_dialect
from ferrule.engines import NumpyEngine
from ferrule.engines.config import DecoderConfig
from ferrule.errors import DialectError, EngineError
from ferrule.events import MessageFinished
from ferrule.models.local import LocalModel
from ferrule.models.protocol import ModelSettings
from ferrule.tokens.tokenizer import TokenTable
from ferrule.toolspec import ToolSpec

BFCL = next((found for up in Path(__file__).parents if (found := up / "shared" / "vectors" / "bfcl").is_dir()), None)
NOTATIONS = ("hermes", "qwen3_coder", "pythonic")
"""JSON between tags, elements of XML with text as it is, and Python."""
BUDGETS = (32, 128, 512)
LATE = b"x\xc3\xa9{[(,: \n-9876543210."
"""What the adversary likes best, the first most: text, and what opens. What closes comes last."""
ASKED = Conversation((user("Go."),))
CLOSING = b"\"'}])<"
TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}


def map_types(schema: Any) -> Any:
    """A schema of BFCL, whose types are those of Python, as JSON Schema."""
    if isinstance(schema, list):
        return [map_types(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    mapped = {key: map_types(value) for key, value in schema.items()}
    kind = mapped.get("type")
    if isinstance(kind, str) and kind in TYPES:
        mapped["type"] = TYPES[kind]
        if mapped["type"] is None:
            del mapped["type"]
    return mapped


@cache
def read_tools() -> tuple[ToolSpec, ...]:
    """A tool for each distinct schema of BFCL."""
    assert BFCL is not None
    found: dict[str, ToolSpec] = {}
    for name in ("simple_python", "live_simple", "parallel"):
        for line in (BFCL / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            for function in json.loads(line)["function"]:
                schema = map_types(function["parameters"])
                key = json.dumps(function["parameters"], sort_keys=True)
                found.setdefault(key, ToolSpec(function["name"].replace(".", "_"), "", schema))
    return tuple(found.values())


class WordsAndBytes(TokenTable):
    """Single bytes, and the words and what stands between them in the calls of three notations."""

    def __init__(self, control: list[str]) -> None:
        texts = [bytes([byte]) for byte in range(256)] + [b""] * len(control)
        words = Counter(
            re.findall(r"[A-Za-z]+|[^A-Za-z]{2,8}", " ".join(json.dumps(one.parameters) for one in read_tools()))
        )
        texts += [word.encode() for word, _ in words.most_common(1500) if len(word.encode()) > 1]
        texts += [b'{"name": "', b'", "arguments": {', b"}}\n", b"<function=", b"<parameter=", b"</parameter>\n"]
        ids = {text: token for token, text in enumerate(texts) if text}
        super().__init__(
            "words", {name: 256 + at for at, name in enumerate(control)}, {ids[text]: text for text in ids}
        )
        self._ids = ids

    def encode_text(self, text: str) -> list[int]:
        rest, ids = text.encode(), []
        while rest:
            size = next(size for size in range(min(len(rest), 40), 0, -1) if rest[:size] in self._ids)
            ids.append(self._ids[rest[:size]])
            rest = rest[size:]
        return ids


@dataclass
class Made:
    """How many calls were made, and what was refused, by the reason."""

    calls: int = 0
    too_short: int = 0
    impossible: int = 0


def make_model(notation: str, kind: str, *, strict_tools: bool = False) -> LocalModel:
    """One with random weights; or the adversary, which always prefers the same ids; or a caller, which likes to begin a
    call as well."""
    dialect = get_dialect(notation)
    layout = dialect.layout(ASKED, ())
    markers = dict.fromkeys((*dialect.markers, *layout.control_tokens, *layout.stops))
    control = [marker for marker in markers if marker.startswith("<") and marker.endswith(">")]
    tokenizer = WordsAndBytes(control)
    size = tokenizer.vocabulary_size
    shape: dict[str, Any] = {"vocab_size": size, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
                             "num_key_value_heads": 1, "head_dim": 8, "intermediate_size": 8}  # fmt: skip
    tensors = random_tensors(shape)
    if kind != "random":
        # Without what its layers add, the last state is the same for all ids, and so are the logits.
        tensors = {
            name: np.zeros_like(one) if name.startswith("model.layers") else one for name, one in tensors.items()
        }
        tensors["model.embed_tokens.weight"] = np.ones((size, 16), np.float32)
        tensors["model.norm.weight"] = np.ones(16, np.float32)
        preferences = np.zeros(size)
        preferences[list(CLOSING)] = -1
        preferences[256 : 256 + len(control)] = -2
        preferences[list(LATE)] = np.arange(len(LATE), 0, -1)
        if kind == "caller":
            preferences[tokenizer.control["<tool_call>"]] = 100
        tensors["lm_head.weight"] = np.repeat(preferences[:, None], 16, axis=1).astype(np.float32) / 16
    config = DecoderConfig(size, 16, 1, 2, 1, 8, 8, context_length=16_384, tied_embeddings=kind == "random")
    engine = NumpyEngine(config, tensors, vocabulary=tokenizer, prefix_bytes=0)
    return LocalModel(engine, tokenizer, dialect, f"{kind} {notation}", strict_tools=strict_tools)


async def call_once(model: LocalModel, tool: ToolSpec, settings: ModelSettings, made: Made) -> None:
    """Have a model call a tool, and check the call."""
    tools = (tool, ToolSpec("other", "", {"type": "object", "properties": {}}))
    finished, refused = None, ""
    try:
        async for event in model.stream(ASKED, tools, settings):
            finished = event if isinstance(event, MessageFinished) else finished
    except (EngineError, DialectError) as error:
        refused = str(error)
    if refused:
        is_impossible = "no value fits" in refused
        assert is_impossible or f"max_tokens or the context leaves {settings.max_tokens}" in refused, (tool, refused)
        made.impossible += is_impossible
        made.too_short += not is_impossible
        return
    assert finished is not None
    calls = finished.message.calls
    assert len(calls) == 1, (tool, finished.message)
    call = calls[0]
    assert isinstance(call, ToolCall), (tool, call)
    assert finished.stop == "calls"
    assert finished.message.sampled is not None
    assert len(finished.message.sampled.ids) <= (settings.max_tokens or 0)
    assert call.name == tool.name
    jsonschema.Draft202012Validator(tool.parameters).validate(call.decode())
    made.calls += 1


def make_calls(notation: str, kind: str, tools: tuple[ToolSpec, ...], budgets: tuple[int, ...]) -> Made:
    made, temperature = Made(), 1.0 if kind == "random" else 0.0

    async def main() -> None:
        async with make_model(notation, kind) as model:
            asked = [
                (tool, ModelSettings(choice=tool.name, max_tokens=budget, seed=number, temperature=temperature))
                for number, tool in enumerate(tools)
                for budget in budgets
            ]
            for at in range(0, len(asked), 32):
                await asyncio.gather(
                    *(call_once(model, tool, settings, made) for tool, settings in asked[at : at + 32])
                )

    asyncio.run(main())
    return made


@pytest.mark.skipif(BFCL is None, reason="../shared/vectors is missing")
@pytest.mark.parametrize("kind", ["random", "adversary"])
@pytest.mark.parametrize("notation", NOTATIONS)
def test_forced_calls_fit_a_sample_of_schemas(notation: str, kind: str) -> None:
    tools = read_tools()[NOTATIONS.index(notation) :: 48]
    made = make_calls(notation, kind, tools, (32, 128))
    assert made.calls + made.too_short == 2 * len(tools)
    assert made.calls > len(tools)


@pytest.mark.slow
@pytest.mark.skipif(BFCL is None, reason="../shared/vectors is missing")
@pytest.mark.parametrize("kind", ["random", "adversary"])
@pytest.mark.parametrize("notation", NOTATIONS)
def test_forced_calls_fit_all_schemas(notation: str, kind: str) -> None:
    tools = read_tools()
    assert len(tools) == 671
    # The longest take most of the time.
    budgets = BUDGETS if notation == NOTATIONS[0] else BUDGETS[:2]
    made = make_calls(notation, kind, tools, budgets)
    assert made.impossible == len(budgets)
    assert made.calls + made.too_short == len(budgets) * 670


@pytest.mark.skipif(BFCL is None, reason="../shared/vectors is missing")
def test_calls_that_the_model_chooses_to_make_fit_if_tools_are_strict() -> None:
    made = Made()

    async def main() -> None:
        for kind in ("caller", "adversary"):
            async with make_model("hermes", kind, strict_tools=True) as model:
                for budget in (8, 64, 256):
                    settings = ModelSettings(max_tokens=budget)
                    if kind == "caller" and budget > 8:
                        await call_once(model, read_tools()[0], settings, made)
                        continue
                    # Too few for a call: text is cut where the budget ends, and a call isn't begun.
                    *_, finished = [one async for one in model.stream(ASKED, read_tools()[:1], settings)]
                    assert isinstance(finished, MessageFinished)
                    assert not finished.message.calls
                    assert finished.stop == ("length" if kind == "adversary" else "turn")

    asyncio.run(main())
    assert made.calls == 2
