"""Families told by the markers in a chat template."""

import json
from pathlib import Path

import pytest
from template_cases import EMBEDDED, LLAMA, MISTRAL, QWEN

from ferrule.dialects.catalogue import families
from ferrule.dialects.recognise import for_template

TURNS = Path(__file__).parents[2].parent / "shared" / "vectors" / "render" / "tool_turns.json"
# By a part of the model's name; the last three share their markers with another family, so they are less sure.
EXPECTED = {
    "Apertus": "apertus", "ByteDance-Seed-OSS": "seed_oss", "Cohere2MoE": "cohere2", "GigaChat3": "gigachat3",
    "Kimi-K2": "kimi_k2", "Kimi-K3": "kimi_k3", "MiniMax-M2": "minimax_m2", "Mistral-Small": "mistral_small",
    "Ministral": "mistral", "Hermes-3": "hermes", "Qwen3-0.6B": "hermes", "QwQ": "hermes", "Spark": "spark",
    "DeepSeek-V3.1": "deepseek_v31", "DeepSeek-V3.2": "deepseek_v32", "DeepSeek-V4": "deepseek_v4",
    "gemma-4": "gemma4", "granite-4.1": "granite4", "v3.1": "functionary_v31", "Llama-3.3": "llama3_json",
    "muse-glimmer": "muse_glimmer", "GLM-4.6": "glm45", "GLM-4.7": "glm47", "Qwen3-Coder": "qwen3_coder",
}  # fmt: skip


@pytest.mark.parametrize(
    ("template", "name"),
    [(QWEN, "hermes"), (LLAMA, "llama3_json"), (MISTRAL, "mistral_v7"), (EMBEDDED, "nanochat")],
    ids=["qwen", "llama", "mistral", "embedded"],
)
def test_templates(template, name):
    found = for_template(template)
    assert found.name == name
    assert 0.8 < found.certainty < 1
    assert all(marker in template for marker in found.evidence)


def test_nothing_is_nothing():
    assert for_template("") is None
    assert (
        for_template("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}") is None
    )


def test_what_shares_its_markers_is_less_sure():
    found = for_template("<tool_call>\\n<function={{ name }}>\\n<parameter={{ key }}>")
    assert found.name == "qwen3_coder"
    assert found.certainty < 0.8


@pytest.mark.parametrize("part", EXPECTED)
def test_what_real_templates_write(part):
    if not TURNS.exists():
        pytest.skip("../shared/vectors is missing")
    turns = json.loads(TURNS.read_text(encoding="utf-8"))
    name = next(name for name in turns if part in name and ("functionary" in EXPECTED[part]) is ("functionary" in name))
    found = for_template("".join(case["text"] for case in turns[name].values()))
    assert (name, found.name) == (name, EXPECTED[part])


def test_only_known_families_are_named():
    from ferrule.dialects.recognise import _IN_WORDS, _SIGNS, _WITHOUT

    assert {*_SIGNS, *_WITHOUT, *_IN_WORDS} <= families().keys()
