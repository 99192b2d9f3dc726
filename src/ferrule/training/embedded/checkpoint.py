"""Writes a trained model to a folder (`export`), and starts a run from the model in one (`begin_from`).

The files are `config.json`, `model.safetensors`, `tokenizer.json` and the chat template, all in the standard formats
that `transformers` loads unchanged.

A run may start from a model with fewer layers: continuing training costs less than starting over. Layers in the middle
are doubled, and a copy's two output matrices are zero: the grown network computes the same as the small one, and the
copy can use what the original layer detects (the idea is Net2Net's, Chen et al., 2015).
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ferrule.dialects.families.nanochat import ASSISTANT_END, BOS, CONTROL_TOKENS
from ferrule.dialects.families.nanochat_tools import TOOLS_END, TOOLS_START
from ferrule.errors import SettingsError
from ferrule.tokens.tokenizer import ByteTokenizer, make_byte_tokenizer_json
from ferrule.training.embedded.network import Network

_CHAT_TEMPLATE = "chat_template.jinja"
_USED = (*CONTROL_TOKENS, TOOLS_START, TOOLS_END)
# The vocabulary is 256 bytes and 16 control tokens, five of which are unused: a model trained further from these
# weights can use them without a new embedding.
CONTROL = (*_USED, *(f"<|reserved_{n}|>" for n in range(16 - len(_USED))))


def write_embedded_tokenizer(folder: Path) -> ByteTokenizer:
    """Write a `tokenizer.json` into `folder`; returns the tokenizer read from it."""
    path = folder / "tokenizer.json"
    _write_json(path, make_byte_tokenizer_json(CONTROL))
    return ByteTokenizer(path)


def export(network: Network, folder: Path) -> None:
    """Write the model to `folder`, with its weights in float16."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    write_embedded_tokenizer(folder)
    _write_json(
        folder / "config.json",
        {**network.shape.make_config(), "bos_token_id": 256, "eos_token_id": _get_id(ASSISTANT_END)},
    )
    _write_json(folder / "tokenizer_config.json", _make_tokenizer_config(network.shape.max_position_embeddings))
    (folder / _CHAT_TEMPLATE).write_text(read_chat_template(), encoding="utf-8")
    weights = {
        name: tensor.detach().to("cpu", torch.float16).contiguous() for name, tensor in network.state_dict().items()
    }
    partial = folder / "model.safetensors.partial"
    save_file(weights, partial, metadata={"format": "pt"})
    partial.replace(folder / "model.safetensors")


def read_chat_template() -> str:
    """The chat template of an exported model, in Jinja."""
    return (files("ferrule.training.embedded") / _CHAT_TEMPLATE).read_text("utf-8")


def _get_id(name: str) -> int:
    return 256 + CONTROL.index(name)


def _make_tokenizer_config(context_length: int) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": ASSISTANT_END,
        "clean_up_tokenization_spaces": False,
        "model_max_length": context_length,
    }


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


_LAYER = re.compile(r"model\.layers\.(\d+)\.(.*)")
_OUTPUTS = ("self_attn.o_proj.weight", "mlp.down_proj.weight")


def begin_from(network: Network, folder: Path) -> None:
    """Load the weights of the model in `folder` into a network.

    Raises `SettingsError` if there is none, or if it has another width or more layers.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / "model.safetensors"
    if not path.is_file():
        raise SettingsError(f"start: {folder} contains no model.safetensors to start from")
    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise SettingsError(f"start: {path} can't be read: {error}") from error
    depth = 1 + max((int(match[1]) for name in weights if (match := _LAYER.match(name))), default=-1)
    wanted = network.shape.num_hidden_layers
    if not 0 < depth <= wanted <= 2 * depth:
        raise SettingsError(
            f"start: {folder} has {depth} layers, which can't become {wanted}: only 1 to 2 times as many"
        )
    try:
        network.load_state_dict(grow_weights(weights, depth, wanted))
    except RuntimeError as error:
        raise SettingsError(f"start: {folder} contains a network of other sizes") from error


def grow_weights(weights: dict[str, Tensor], depth: int, wanted: int) -> dict[str, Tensor]:
    """The weights, in float32, of a network of `wanted` layers that computes the same as these of `depth` layers."""
    order = order_layers(depth, wanted)
    result = {}
    for name, tensor in weights.items():
        match = _LAYER.match(name)
        if match is None:
            result[name] = tensor.float()
            continue
        for place, (source, is_copy) in enumerate(order):
            if source == int(match[1]):
                is_silent = is_copy and match[2] in _OUTPUTS
                taken = torch.zeros_like(tensor) if is_silent else tensor
                result[f"model.layers.{place}.{match[2]}"] = taken.float()
    return result


def order_layers(depth: int, wanted: int) -> list[tuple[int, bool]]:
    """The source layer for each layer, and whether it is a copy; the middle ones are doubled first."""
    inner = sorted(range(depth), key=lambda layer: abs(2 * layer - depth + 1))
    doubled = set(inner[: wanted - depth])
    return [(layer, is_copy) for layer in range(depth) for is_copy in (False, True) if layer in doubled or not is_copy]
