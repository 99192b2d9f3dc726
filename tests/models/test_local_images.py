"""What a local model is shown of images: with their tokens where these are known, and notes where they aren't."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from random_models import random_model
from reciting_engine import RecitingEngine

from ferrule.agent.pipeline import model
from ferrule.conversation import Image, Text, user
from ferrule.dialects import get_dialect
from ferrule.errors import EngineError
from ferrule.models.checkpoints.loading import read_tokenizer
from ferrule.models.local import LocalModel
from ferrule.tokens.tokenizer import make_byte_tokenizer_json
from ferrule.tools.decorator import tool

CAT, DOG = Image(b"a cat"), Image(b"a dog, which is larger")
CONTROL = (*get_dialect("qwen35").markers, "<|vision_start|>", "<|image_pad|>", "<|vision_end|>")
CALL = "<tool_call>\n<function=draw>\n</function>\n</tool_call>"


@tool
def draw() -> list[Text | Image]:
    """Draw a dog."""
    return [Text("drawn"), DOG]


def count_bytes(image: Image) -> int:
    return len(image.data)


def seeing_model(
    folder: Path, *texts: str, image_tokens: Callable[[Image], Any] | None = count_bytes
) -> tuple[LocalModel, RecitingEngine]:
    (folder / "tokenizer.json").write_text(json.dumps(make_byte_tokenizer_json(CONTROL)))
    engine = RecitingEngine(folder, [f"{text}<|im_end|>" for text in texts])
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    return LocalModel(engine, tokenizer, get_dialect("qwen35"), image_tokens=image_tokens), engine


async def test_the_engine_is_given_each_image_and_its_place(tmp_path: Path) -> None:
    local, engine = seeing_model(tmp_path, f"</think>\n\n{CALL}", "</think>\n\nA dog.")
    run = await model(local).chat(user("Draw one, unlike", CAT)).using(draw).run()
    assert (run.stopped, run.text, run.losses) == ("done", "A dog.", ())
    pad = local.tokenizer.control["<|image_pad|>"]
    assert [[place.image for place in images] for images in engine.images] == [[CAT], [CAT, DOG]]
    for prompt, images in zip(engine.prompts, engine.images, strict=True):
        assert sum(place.length for place in images) == prompt.count(pad)
        for place in images:
            assert place.length == len(place.image.data)
            assert set(prompt[place.start : place.start + place.length]) == {pad}
    (trace,) = run.traces()
    assert trace.images == engine.images[1]
    assert local.trace(run.conversation, [draw.spec]).images == trace.images
    assert local.count_tokens(run.conversation.add(user(CAT))) > local.count_tokens(run.conversation.add(user("cat")))


async def test_a_model_whose_image_tokens_are_not_known_is_shown_notes(tmp_path: Path) -> None:
    local, engine = seeing_model(tmp_path, "</think>\n\nI can't.", image_tokens=None)
    assert not local.capabilities.user_images
    run = await model(local).chat(user("What is this?", CAT)).run()
    assert run.text == "I can't."
    assert [(loss.kind, loss.detail) for loss in run.losses] == [("image", CAT.hash)]
    assert engine.images == [()]
    assert CAT.hash.encode() in bytes(token for token in engine.prompts[0] if token < 256)


async def test_an_engine_for_text_alone_refuses_images_by_name(tmp_path: Path) -> None:
    local = random_model(tmp_path, "qwen3_vl", image_tokens=lambda _: 1)
    with pytest.raises(EngineError, match="images: this engine runs text models only"):
        await model(local).chat(user(CAT)).run()
