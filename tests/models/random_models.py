"""Local models with random weights: they write nonsense, in the very tokens of a dialect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from ferrule.dialects.families.nanochat import CONTROL_TOKENS
from ferrule.dialects.families.nanochat_tools import TOOLS_END, TOOLS_START
from ferrule.models.checkpoints.loading import load_local_model
from ferrule.models.local import LocalModel
from ferrule.tokens.tokenizer import make_byte_tokenizer_json

# A chat template that keeps what was written, in the manner of many.
TEMPLATE = """{% if tools %}<|im_start|>system
Call as <tool_call>{"name": …, "arguments": …}</tool_call>: {{ tools | tojson }}<|im_end|>
{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls or [] %}
<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
_HERMES = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>", "<tool_response>")
_CONTROL = {
    "nanochat": CONTROL_TOKENS,
    "nanochat-tools": (*CONTROL_TOKENS, TOOLS_START, TOOLS_END),
    "qwen3_vl": (*_HERMES, "<|vision_start|>", "<|image_pad|>", "<|vision_end|>"),
}
SHAPE: dict[str, Any] = {
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "intermediate_size": 24,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10_000.0,
    "tie_word_embeddings": True,
}


def random_model(
    folder: Path,
    dialect: str = "nanochat",
    seed: int = 0,
    likely: float = 1.5,
    context: int = 4096,
    template: str = TEMPLATE,
    **options: Any,
) -> LocalModel:
    """A model of a dialect, whose control tokens are `likely` times as loud as other ids, so that turns end.

    The dialect "template" is that of the folder's chat template, `template`; `options` are those of `load_local_model`.
    """
    control = _CONTROL.get(dialect, _HERMES)
    (folder / "tokenizer.json").write_text(json.dumps(make_byte_tokenizer_json(control)))
    shape = {**SHAPE, "vocab_size": 256 + len(control), "max_position_embeddings": context}
    (folder / "config.json").write_text(json.dumps(shape))
    save_file(_weights(shape, seed, likely), folder / "model.safetensors")
    if dialect == "template":
        (folder / "chat_template.jinja").write_text(template)
    named = None if dialect == "template" else dialect
    return load_local_model(folder, name=f"random {dialect}", dialect=named, **options)


def _weights(shape: dict[str, Any], seed: int, likely: float) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    width, inner, size = shape["hidden_size"], shape["intermediate_size"], shape["head_dim"]
    queries, keys = shape["num_attention_heads"] * size, shape["num_key_value_heads"] * size
    matrices = {
        "self_attn.q_proj": (queries, width),
        "self_attn.k_proj": (keys, width),
        "self_attn.v_proj": (keys, width),
        "self_attn.o_proj": (width, queries),
        "mlp.gate_proj": (inner, width),
        "mlp.up_proj": (inner, width),
        "mlp.down_proj": (width, inner),
    }
    norms = {
        "self_attn.q_norm": size,
        "self_attn.k_norm": size,
        "input_layernorm": width,
        "post_attention_layernorm": width,
    }
    # Small enough that at temperature 1 every id has a chance.
    embedding = 0.3 * draw.normal(size=(shape["vocab_size"], width)).astype(np.float32)
    embedding[256:] *= likely
    weights = {"model.embed_tokens.weight": embedding, "model.norm.weight": np.ones(width, np.float32)}
    for layer in range(shape["num_hidden_layers"]):
        for name, rows in matrices.items():
            weights[f"model.layers.{layer}.{name}.weight"] = draw.normal(size=rows).astype(np.float32) * 0.3
        for name, length in norms.items():
            weights[f"model.layers.{layer}.{name}.weight"] = np.ones(length, np.float32)
    return weights
