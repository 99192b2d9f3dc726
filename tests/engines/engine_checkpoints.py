"""Random tiny checkpoints for the engine's tests, written without torch or safetensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALL: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 24,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10_000.0,
}


def write_safetensors(path: Path, tensors: dict[str, NDArray[np.float32]]) -> None:
    """Write float32 tensors in the safetensors format."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.astype("<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": tensor.shape,
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def random_tensors(config: dict[str, Any], seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Weights large enough that the logits tell ids apart. Qwen 3's names, tied embeddings."""
    generator = np.random.default_rng(seed)
    hidden, inner, head_dim = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries = config["num_attention_heads"] * head_dim
    keys = config["num_key_value_heads"] * head_dim
    shapes = {
        "self_attn.q_proj": (queries, hidden),
        "self_attn.k_proj": (keys, hidden),
        "self_attn.v_proj": (keys, hidden),
        "self_attn.o_proj": (hidden, queries),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    norms = {
        "self_attn.q_norm": head_dim,
        "self_attn.k_norm": head_dim,
        "input_layernorm": hidden,
        "post_attention_layernorm": hidden,
    }
    tensors = {
        "model.embed_tokens.weight": generator.normal(0, 0.5, (config["vocab_size"], hidden)),
        "model.norm.weight": generator.uniform(0.5, 1.5, hidden),
    }
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        for name, shape in shapes.items():
            tensors[f"{prefix}{name}.weight"] = generator.normal(0, 0.4, shape)
        for name, width in norms.items():
            tensors[f"{prefix}{name}.weight"] = generator.uniform(0.5, 1.5, width)
    return {name: tensor.astype(np.float32) for name, tensor in tensors.items()}


def write_checkpoint(folder: Path, **changes: Any) -> Path:
    """A folder with a random Qwen 3 checkpoint of `SMALL`'s shape, its config changed as asked."""
    config = SMALL | changes
    text = json.dumps({"architectures": ["Qwen3ForCausalLM"], "tie_word_embeddings": True} | config)
    (folder / "config.json").write_text(text, encoding="utf-8")
    write_safetensors(folder / "model.safetensors", random_tensors(config))
    return folder
