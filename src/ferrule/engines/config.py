"""Reads a checkpoint's `config.json`, and refuses by name what the decoder does not support.

A setting that would silently change the logits (a scaled RoPE, a bias, a sliding window) is an error here, so that
every model that loads is run as it was trained.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferrule.errors import EngineError

_WITH_HEAD_NORMS = {"Qwen3ForCausalLM": True, "LlamaForCausalLM": False}


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """The shape of a decoder-only transformer of the Llama family. All sizes are counts of values."""

    vocab_size: int
    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate_size: int
    context_length: int
    norm_epsilon: float = 1e-6
    rope_theta: float = 10_000.0
    tied_embeddings: bool = True
    head_norms: bool = True

    def __post_init__(self) -> None:
        for name in ("vocab_size", "hidden_size", "layers", "heads", "kv_heads", "head_dim",
                     "intermediate_size", "context_length"):  # fmt: skip
            if getattr(self, name) < 1:
                raise EngineError(f"config: {name} must be at least 1, not {getattr(self, name)}")
        if self.heads % self.kv_heads:
            raise EngineError(f"config: {self.heads} heads can't share {self.kv_heads} key-value heads evenly")
        if self.head_dim % 2:
            raise EngineError(f"config: head_dim {self.head_dim} is odd; rotary positions need pairs")


def read_config(path: Path) -> DecoderConfig:
    """The shape in a Hugging Face `config.json`. Raises `EngineError` if it can't be read or run."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EngineError(f"can't read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise EngineError(f"{path} is not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise EngineError(f"{path} is not a JSON object")
    try:
        return _read_decoder_config(raw)
    except KeyError as error:
        raise EngineError(f"{path} lacks {error.args[0]!r}") from error
    except (TypeError, ValueError) as error:
        raise EngineError(f"{path} has a value of the wrong type: {error}") from error
    except EngineError as error:
        raise EngineError(f"{path}: {error}") from error


def _read_decoder_config(raw: dict[str, Any]) -> DecoderConfig:
    architectures = raw.get("architectures") or ["none"]
    if architectures[0] not in _WITH_HEAD_NORMS:
        raise EngineError(f"architecture {architectures[0]} is not one of {', '.join(_WITH_HEAD_NORMS)}")
    # transformers 5 writes `rope_parameters`; older versions wrote `rope_theta` and `rope_scaling`.
    rope = raw.get("rope_parameters") or {"rope_theta": raw.get("rope_theta", 10_000.0)} | (
        raw.get("rope_scaling") or {}
    )
    _refuse_unknown(raw, rope)
    heads = int(raw["num_attention_heads"])
    return DecoderConfig(
        vocab_size=int(raw["vocab_size"]),
        hidden_size=int(raw["hidden_size"]),
        layers=int(raw["num_hidden_layers"]),
        heads=heads,
        kv_heads=int(raw.get("num_key_value_heads") or heads),
        head_dim=int(raw.get("head_dim") or int(raw["hidden_size"]) // heads),
        intermediate_size=int(raw["intermediate_size"]),
        context_length=int(raw["max_position_embeddings"]),
        norm_epsilon=float(raw.get("rms_norm_eps", 1e-6)),
        rope_theta=float(rope.get("rope_theta", 10_000.0)),
        tied_embeddings=bool(raw.get("tie_word_embeddings", False)),
        head_norms=_WITH_HEAD_NORMS[architectures[0]],
    )


def _refuse_unknown(raw: dict[str, Any], rope: dict[str, Any]) -> None:
    computed: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "hidden_act": (raw.get("hidden_act", "silu"), ("silu",)),
        "attention_bias": (raw.get("attention_bias", False), (False, None)),
        "mlp_bias": (raw.get("mlp_bias", False), (False, None)),
        "use_sliding_window": (raw.get("use_sliding_window", False), (False, None)),
        "rope_type": (rope.get("rope_type", rope.get("type", "default")), ("default",)),
        "partial_rotary_factor": (rope.get("partial_rotary_factor", 1.0), (1.0, None)),
        "layer_types": (sorted(set(raw.get("layer_types") or [])), ([], ["full_attention"])),
    }
    for name, (value, allowed) in computed.items():
        if value not in allowed:
            raise EngineError(f"{name} {value!r} is not computed by this engine")
